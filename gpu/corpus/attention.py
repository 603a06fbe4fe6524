"""Corpus entries of `kernels/attention.py`: the pieces of a decoder's attention."""

from __future__ import annotations

from foldproof.gpu.corpus.model import Buffer, Float, Int, Kernel, Label, standard_twins

_HEADS = 4
_TOKENS = 3
_ROWS = _HEADS * _TOKENS
_D = 64
_KEYS = 96
_SPLITS = 16
_KS = 256

ATTENTION: tuple[Kernel, ...] = (
    Kernel(
        "_rotary",
        "attention",
        (
            Buffer("X", "*bf16", _ROWS * _D * 3),
            Buffer("POS", "*i32", _TOKENS, below=128),
            Buffer("COS", "*fp32", 128 * _D // 2),
            Buffer("SIN", "*fp32", 128 * _D // 2),
            Buffer("OUT", "*bf16", _ROWS * _D, "out"),
            Int("S", 1),
        ),
        {"H": _HEADS, "HALF": _D // 2},
        standard_twins("S", 3, "X"),
        Label("positive", "fold of S", "two products and a sum an element, contracted alike in both twins"),
        grid=(_ROWS, 1, 1),
        fusion=(True, False),
    ),
    Kernel(
        "_attend",
        "attention",
        (
            Buffer("Q", "*bf16", _ROWS * _D),
            Buffer("K", "*bf16", _KEYS * _KS),
            Buffer("V", "*bf16", _KEYS * _KS),
            Buffer("ACC", "*fp32", _ROWS * _SPLITS * _D, "out"),
            Buffer("MAX", "*fp32", _ROWS * _SPLITS, "out"),
            Buffer("SUM", "*fp32", _ROWS * _SPLITS, "out"),
            Int("LEN", _KEYS),
            Int("R", 1),
            Int("G", 2),
            Int("KS", _KS),
            Float("scale", 0.18033688011112042),
        ),
        {"H": _HEADS, "D": _D, "BLOCK": 32},
        standard_twins("R", 3, "K", multiple=_SPLITS),
        Label(
            "positive",
            "fold of R",
            "R only bounds the loop; V, aligned in every twin, decides how a tile is spread over the threads",
        ),
        grid=(_ROWS, "R", 1),
    ),
    Kernel(
        "_merge",
        "attention",
        (
            Buffer("ACC", "*fp32", _ROWS * _SPLITS * _D),
            Buffer("MAX", "*fp32", _ROWS * _SPLITS),
            Buffer("SUM", "*fp32", _ROWS * _SPLITS),
            Buffer("OUT", "*bf16", _ROWS * _D, "out"),
            Int("R", 1),
        ),
        {"D": _D},
        standard_twins("R", 3, "ACC", multiple=_SPLITS),
        Label(
            "positive",
            "fold of R",
            "R is a trip count; folded, the FMA takes the product with the new split and not the one with nothing, "
            "but that split is weighed by exactly 1, so neither product rounds",
        ),
        grid=(_ROWS, 1, 1),
        fusion=(True, False),
    ),
)
