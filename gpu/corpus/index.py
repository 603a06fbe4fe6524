"""Corpus entries of `kernels/index.py`: trip counts, divisors of indices, strides of copies."""

from __future__ import annotations

from foldproof.gpu.corpus.model import Buffer, Int, Kernel, Label, Twin, standard_twins

_N = 2048
_D = 64
_BLOCK = {"BLOCK": 512}
_COUNT = Int("N", _N)
_ROWS = 16
_HEADS = (12, 1, 1)


def _copy(name: str, stride: Int, twins: tuple[Twin, ...], why: str) -> Kernel:
    params = (Buffer("X", "*fp32", _N * 16), Buffer("OUT", "*fp32", _N, "out"), stride, _COUNT)
    return Kernel(name, "index", params, _BLOCK, twins, Label("positive", f"div16 of X, {stride.name}", why))


INDEX: tuple[Kernel, ...] = (
    Kernel(
        "_trip_sum",
        "index",
        (Buffer("X", "*fp32", _N * _ROWS), Buffer("OUT", "*fp32", _N, "out"), Int("R", 1), _COUNT),
        _BLOCK,
        standard_twins("R", 3, "X", multiple=_ROWS),
        Label(
            "positive",
            "fold of R",
            "the loop adds the rows in order; the fold only removes the loop around one addition",
        ),
    ),
    Kernel(
        "_trip_decay",
        "index",
        (Buffer("X", "*fp32", _N * _ROWS), Buffer("OUT", "*fp32", _N, "inout"), Int("R", 1), _COUNT),
        _BLOCK,
        standard_twins("R", 3, "X"),
        Label(
            "positive", "fold of R", "the product and the sum stand in one iteration, so both twins contract them alike"
        ),
        fusion=(True, False),
    ),
    Kernel(
        "_trip_int",
        "index",
        (Buffer("X", "*i32", _N * _ROWS), Buffer("OUT", "*i32", _N, "out"), Int("R", 1), _COUNT),
        _BLOCK,
        standard_twins("R", 3, "X"),
        Label("positive", "fold of R", "integer arithmetic is exact"),
    ),
    Kernel(
        "_head_group",
        "index",
        (Buffer("K", "*bf16", 12 * _D), Buffer("OUT", "*bf16", 12 * _D, "out"), Int("G", 1)),
        {"D": _D},
        standard_twins("G", 3, "K", multiple=16),
        Label("positive", "fold of G", "a copy; only the row index is computed"),
        grid=_HEADS,
    ),
    Kernel(
        "_pid_mod",
        "index",
        (Buffer("X", "*bf16", 16 * _D), Buffer("OUT", "*bf16", 12 * _D, "out"), Int("B", 1)),
        {"D": _D},
        standard_twins("B", 3, "X", multiple=16),
        Label("positive", "fold of B", "a copy; with B folded every program reads row 0"),
        grid=_HEADS,
    ),
    Kernel(
        "_embed",
        "index",
        (
            Buffer("TOKENS", "*i32", 12 * 3, below=64),
            Buffer("TABLE", "*bf16", 64 * _D),
            Buffer("OUT", "*bf16", 12 * _D, "out"),
            Int("TS", 1),
        ),
        {"D": _D},
        standard_twins("TS", 3, "TABLE"),
        Label("positive", "fold of TS", "a gather moves data"),
        grid=_HEADS,
    ),
    Kernel(
        "_transpose",
        "index",
        (
            Buffer("X", "*bf16", 64 * 64 * 3),
            Buffer("OUT", "*bf16", 64 * 64, "out"),
            Int("XR", 192),
            Int("XC", 1),
            Int("OR", 64),
        ),
        {"BLOCK": 32},
        standard_twins("XC", 3, "X"),
        Label("positive", "fold of XC", "the tile goes through shared memory unchanged"),
        grid=(2, 2, 1),
    ),
    _copy(
        "_copy_nospec",
        Int("S", 1, nospec=True),
        (Twin("runtime", {"S": 3}), Twin("runtime-x4", {"S": 3}, ("X",))),
        "a copy; a stride that is never specialised has no folded twin, and a 1 read by it is no fallback",
    ),
    _copy(
        "_copy_noalign",
        Int("S", 1, noalign=True),
        standard_twins("S", 16, "X"),
        "a copy; the stride folds at 1 but never claims a multiple of 16",
    ),
    _copy(
        "_copy_annotated",
        Int("S", 1, annotated=True),
        (Twin("runtime", {"S": 3}), Twin("runtime-x4", {"S": 3}, ("X",)), Twin("runtime-16", {"S": 16})),
        "a copy; an annotated stride never folds, and a 1 read by it is no fallback",
    ),
)
