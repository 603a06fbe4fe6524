"""Corpus entries of `kernels/elementwise.py`: exact whatever the layout, unless the fold removes a rounding."""

from __future__ import annotations

from foldproof.gpu.corpus.model import Buffer, Int, Kernel, Label, standard_twins

_N = 2048
_BLOCK = {"BLOCK": 512}
_COUNT = Int("N", _N)
_FOLDED = ("folded", "folded-x4")
_RUNTIME = ("runtime", "runtime-x4", "runtime-16")
_BOTH = (True, False)
_PAYLOAD = "a NaN input keeps its payload in the folded twin and becomes 0x7fffffff in the other"


def _fp32(name: str, rows: int = 1) -> Buffer:
    return Buffer(name, "*fp32", _N * rows)


ELEMENTWISE: tuple[Kernel, ...] = (
    Kernel(
        "_fma_scale",
        "elementwise",
        (_fp32("A"), _fp32("B"), _fp32("C"), Buffer("OUT", "*fp32", _N, "out"), Int("R", 1), _COUNT),
        _BLOCK,
        standard_twins("R", 3, "A", multiple=16),
        Label(
            "negative control",
            "fold of R",
            "folded, A*B and +C contract to one FMA; at run time A*B is rounded before the FMA with R",
            classes=(_FOLDED, _RUNTIME),
            unfused=(),
        ),
        fusion=_BOTH,
    ),
    Kernel(
        "_scale",
        "elementwise",
        (_fp32("X"), Buffer("OUT", "*fp32", _N, "out"), Int("R", 1), _COUNT),
        _BLOCK,
        standard_twins("R", 3, "X", multiple=16),
        Label("positive", "fold of R", f"x * 1 is x for every number; {_PAYLOAD}", domain="no NaN"),
        fusion=_BOTH,
    ),
    Kernel(
        "_divide",
        "elementwise",
        (_fp32("X"), Buffer("OUT", "*fp32", _N, "out"), Int("R", 1), _COUNT),
        _BLOCK,
        standard_twins("R", 3, "X"),
        Label("positive", "fold of R", f"x / 1 is x for every number; {_PAYLOAD}", domain="no NaN"),
        fusion=_BOTH,
    ),
    Kernel(
        "_cast_scale",
        "elementwise",
        (Buffer("X", "*bf16", _N), Buffer("OUT", "*bf16", _N, "out"), Int("R", 1), _COUNT),
        _BLOCK,
        standard_twins("R", 3, "X"),
        Label(
            "positive",
            "fold of R",
            "x * 1 is x; the narrowing conversion canonicalises NaNs unless the fold removes both conversions",
            domain="no NaN",
        ),
    ),
    Kernel(
        "_copy_stride",
        "elementwise",
        (_fp32("X", 16), Buffer("OUT", "*fp32", _N, "out"), Int("S", 1), _COUNT),
        _BLOCK,
        standard_twins("S", 3, "X", multiple=16),
        Label("positive", "fold of S", "only the width of the loads changes; no arithmetic touches the data"),
    ),
    Kernel(
        "_int_mix",
        "elementwise",
        (Buffer("X", "*i32", _N), Buffer("OUT", "*i32", _N, "out"), Int("R", 1), _COUNT),
        _BLOCK,
        standard_twins("R", 3, "X", multiple=16),
        Label("positive", "fold of R", "integer arithmetic is exact"),
    ),
    Kernel(
        "_select_every",
        "elementwise",
        (_fp32("X"), _fp32("Y"), Buffer("OUT", "*fp32", _N, "out"), Int("R", 1), _COUNT),
        _BLOCK,
        standard_twins("R", 3, "X", multiple=16),
        Label("positive", "fold of R", "a select moves data; the fold only drops the branch that is never taken"),
    ),
    Kernel(
        "_silu_mul",
        "elementwise",
        (
            Buffer("GATE", "*bf16", _N * 3),
            Buffer("UP", "*bf16", _N * 3),
            Buffer("OUT", "*bf16", _N, "out"),
            Int("S", 1),
            _COUNT,
        ),
        {"ACT": "silu", **_BLOCK},
        standard_twins("S", 3, "GATE"),
        Label("positive", "fold of S", "each element is computed alone by the same operations in the same order"),
        fusion=_BOTH,
    ),
    Kernel(
        "_residual_add",
        "elementwise",
        (
            Buffer("X", "*bf16", _N),
            Buffer("DELTA", "*bf16", _N * 3),
            Buffer("OUT", "*bf16", _N, "out"),
            Int("S", 1),
            _COUNT,
        ),
        _BLOCK,
        standard_twins("S", 3, "DELTA"),
        Label("positive", "fold of S", "one addition and one rounding an element, whatever the layout"),
    ),
)
