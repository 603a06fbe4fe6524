"""Corpus entries of `kernels/norm.py`: bf16 rows of 1,024 columns, whose sums follow the layout of the loads."""

from __future__ import annotations

from foldproof.gpu.corpus.model import Buffer, Float, Int, Kernel, Label, Param, Twin, standard_twins

_N = 1024
_ROWS = 4
_RS = 4096
_ODD_RS = 4097
_SCALARS: tuple[Param, ...] = (Int("RS", _RS), Int("S", 1), Int("N", _N))
_X = Buffer("X", "*bf16", _ROWS * (_ODD_RS + 3))
_STRIDED_OUT = Buffer("OUT", "*bf16", _ROWS * (_ODD_RS + 3), "out")
_FOLDED = ("folded", "folded-x4", "folded-rs")
_TWINS = (*standard_twins("S", 3, "X"), Twin("folded-rs", {"S": 1, "RS": _ODD_RS}))
_WHY = (
    "a thread holds eight neighbouring bf16 (four at 8 warps) where some aligned buffer has unit stride, one where "
    "none has; the sums differ by an ulp in every third row, which a bf16 output shows in a few rows of a thousand"
)
_GRID = (_ROWS, 1, 1)

NORM: tuple[Kernel, ...] = (
    Kernel(
        "_rms_norm",
        "norm",
        (_X, Buffer("W", "*bf16", 3 * _N), _STRIDED_OUT, *_SCALARS),
        {"EPS": 1e-5, "BLOCK": _N},
        _TWINS,
        Label("negative control", "fold of S", f"{_WHY}; W keeps it at eight when RS or X is odd", classes=(_FOLDED,)),
        grid=_GRID,
        fusion=(True, False),
    ),
    Kernel(
        "_layer_norm",
        "norm",
        (_X, Buffer("W", "*bf16", _N), Buffer("OUT", "*bf16", _ROWS * _N, "out"), *_SCALARS, Float("eps", 1e-5)),
        {"BLOCK": _N},
        _TWINS,
        Label(
            "positive",
            "fold of S",
            "the dense, aligned OUT and W decide how many elements a thread holds, in every twin",
        ),
        grid=_GRID,
    ),
    Kernel(
        "_softmax",
        "norm",
        (_X, _STRIDED_OUT, *_SCALARS),
        {"BLOCK": _N},
        _TWINS,
        Label("negative control", "fold of S, div16 of RS", _WHY, classes=(("folded", "folded-x4"),), warps=True),
        grid=_GRID,
        num_warps=(4, 8),
    ),
)
