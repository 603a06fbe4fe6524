"""Corpus entries of `kernels/matmul.py`: the tensor cores see the same fragments whatever the width of the loads."""

from __future__ import annotations

from foldproof.gpu.corpus.model import Absent, Buffer, Int, Kernel, Label, Param, standard_twins

_M = _N = 64
_K = 128
_AM = 512
_DEEP_K = 1536
_WHY = "the loads change, the fragments and the order of the products along K do not"
_LABEL = Label("positive", "fold of AK", _WHY)


_PARAMS: tuple[Param, ...] = (
    Buffer("A", "*bf16", _M * _AM),
    Buffer("B", "*bf16", _K * _N),
    Buffer("OUT", "*fp32", _M * _N, "out"),
    Int("M", _M),
    Int("N", _N),
    Int("K", _K),
    Int("AM", _AM),
    Int("AK", 1),
    Int("BK", _N),
)


MATMUL: tuple[Kernel, ...] = (
    Kernel(
        "_dot",
        "matmul",
        _PARAMS,
        {"BM": 64, "BN": 64, "STEP": 64},
        standard_twins("AK", 3, "A"),
        _LABEL,
        grid=(1, 1, 1),
    ),
    Kernel(
        "_dot_small",
        "matmul",
        _PARAMS,
        {"BM": 32, "BN": 32, "STEP": 32},
        standard_twins("AK", 3, "A"),
        _LABEL,
        grid=(2, 2, 1),
    ),
    Kernel(
        "_linear",
        "matmul",
        (
            Buffer("X", "*bf16", 16 * _K),
            Buffer("W", "*bf16", _K * _N),
            Absent("BIAS"),
            Buffer("OUT", "*bf16", 16 * _N, "out"),
            Int("T", 1),
            Int("N", _N),
            Int("K", _K),
            Int("WS", _N),
        ),
        {"BM": 16, "BN": 32, "STEP": 64},
        standard_twins("T", 3, "X", multiple=16),
        Label("positive", "fold of T", "T only masks rows; each row's products and their order along K stay"),
        grid=(1, 2, 1),
    ),
    Kernel(
        "_deep_pipeline",
        "matmul",
        (
            Buffer("A", "*bf16", _M * 3 * _DEEP_K),
            Buffer("B", "*bf16", _DEEP_K * _N),
            Buffer("OUT", "*fp32", _M * _N, "out"),
            Int("K", _DEEP_K),
            Int("AM", 3 * _DEEP_K),
            Int("AK", 1),
            Int("BK", _N),
        ),
        {"BM": _M, "BN": _N, "STEP": 128},
        standard_twins("AK", 3, "A"),
        Label(
            "no reference",
            "fold of AK, div16 of A",
            "with wide loads every stage of the pipeline is buffered in shared memory, more than any device has",
        ),
        grid=(1, 1, 1),
        num_stages=9,
        no_reference={"folded": "load"},
    ),
)
