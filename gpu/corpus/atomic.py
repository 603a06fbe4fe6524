"""Corpus entries of `kernels/atomic.py`: unstable sums, their exact counterpart, and a twin that cannot exist."""

from __future__ import annotations

from foldproof.gpu.corpus.model import Buffer, Int, Kernel, Label, standard_twins

_N = 8192
_BINS = 64
_COUNT = Int("N", _N)
_CONSTS = {"BINS": _BINS, "BLOCK": 256}
_GRID = (_N // 256, 1, 1)

ATOMIC: tuple[Kernel, ...] = (
    Kernel(
        "_atomic_sum",
        "atomic",
        (Buffer("X", "*fp32", _N * 3), Buffer("OUT", "*fp32", _BINS, "inout"), Int("S", 1), _COUNT),
        _CONSTS,
        standard_twins("S", 3, "X"),
        Label("unstable", "none", "programs add into the same sums in the order in which they happen to arrive"),
        grid=_GRID,
    ),
    Kernel(
        "_atomic_count",
        "atomic",
        (Buffer("X", "*i32", _N * 3), Buffer("OUT", "*i32", _BINS, "inout"), Int("S", 1), _COUNT),
        _CONSTS,
        standard_twins("S", 3, "X"),
        Label("positive", "fold of S", "integer counts are exact in any order of arrival"),
        grid=_GRID,
    ),
    Kernel(
        "_fold_breaks",
        "atomic",
        (Buffer("X", "*fp32", _N), Buffer("OUT", "*fp32", _N, "out"), Int("R", 1), _COUNT),
        {"BLOCK": 256},
        standard_twins("R", 3, "X"),
        Label("no reference", "fold of R", "a folded R is a Python integer without the method that the kernel calls"),
        grid=_GRID,
        no_reference={"folded": "compile", "folded-x4": "compile"},
    ),
)
