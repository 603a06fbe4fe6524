"""Corpus entries of `kernels/reduce.py`: sums whose tree follows the layout, and reductions that are exact."""

from __future__ import annotations

from foldproof.gpu.corpus.model import Buffer, Domain, Int, Kernel, Label, Twin, standard_twins

_N = 1024
_ROWS = 4
_RS = 4096
_ODD_RS = 4097
_GRID = (_ROWS, 1, 1)
_SCALARS = (Int("RS", _RS), Int("S", 1), Int("N", _N))
_BLOCK = {"BLOCK": _N}
_TREE = (
    "four neighbouring elements a thread where some aligned buffer has unit stride, one where none has: "
    "the additions pair up otherwise"
)
_TWINS = (*standard_twins("S", 3, "X"), Twin("folded-rs", {"S": 1, "RS": _ODD_RS}))


def _x(type_: str, name: str = "X") -> Buffer:
    return Buffer(name, type_, _ROWS * (_ODD_RS + 3))


def _row(name: str, type_: str, out_type: str, label: Label, *, per_element: bool = False) -> Kernel:
    out = Buffer("OUT", out_type, _ROWS * (_N if per_element else 1), "out")
    return Kernel(name, "reduce", (_x(type_), out, *_SCALARS), _BLOCK, _TWINS, label, grid=_GRID)


def _exact(why: str, domain: Domain = "every bit pattern") -> Label:
    return Label("positive", "fold of S", why, domain=domain)


REDUCE: tuple[Kernel, ...] = (
    Kernel(
        "_row_sum",
        "reduce",
        (_x("*fp32"), Buffer("OUT", "*fp32", _ROWS, "out"), *_SCALARS),
        _BLOCK,
        _TWINS,
        Label("negative control", "fold of S, div16 of X, div16 of RS", _TREE, classes=(("folded",),), warps=True),
        grid=_GRID,
        num_warps=(4, 8),
    ),
    Kernel(
        "_row_dot",
        "reduce",
        (_x("*fp32"), _x("*fp32", "Y"), Buffer("OUT", "*fp32", _ROWS, "out"), *_SCALARS),
        _BLOCK,
        _TWINS,
        Label("negative control", "fold of S, div16 of RS", _TREE, classes=(("folded", "folded-x4"),)),
        grid=_GRID,
        fusion=(True, False),
    ),
    _row("_row_max", "*fp32", "*fp32", _exact("a maximum is exact in any order, and its NaNs are canonical")),
    _row(
        "_row_argmax",
        "*fp32",
        "*i32",
        _exact(
            "ties go to the smaller index; a NaN compares false with everything, so its place in the tree matters",
            "no NaN",
        ),
    ),
    _row("_row_isum", "*i32", "*i32", _exact("wrapping integer addition is associative")),
    _row("_row_xor", "*i32", "*i32", _exact("exclusive or is associative")),
    _row(
        "_row_cumsum",
        "*fp32",
        "*fp32",
        Label(
            "positive", "fold of S", "the dense, aligned OUT decides how many elements a thread holds, in every twin"
        ),
        per_element=True,
    ),
    Kernel(
        "_row_cumsum_strided",
        "reduce",
        (_x("*fp32"), Buffer("OUT", "*fp32", _ROWS * (_ODD_RS + 3), "out"), *_SCALARS),
        _BLOCK,
        _TWINS,
        Label("negative control", "fold of S, div16 of RS", _TREE, classes=(("folded", "folded-x4"),)),
        grid=_GRID,
    ),
    _row("_row_cumsum_int", "*i32", "*i32", _exact("wrapping integer addition is associative"), per_element=True),
    _row("_row_cummax", "*fp32", "*fp32", _exact("a maximum is exact in any order", "no NaN"), per_element=True),
)
