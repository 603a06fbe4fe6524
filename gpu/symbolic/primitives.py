"""The operations of the graph by name: what each computes on bits; here those with a floating-point side."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from foldproof.gpu.symbolic import softfloat as sf
from foldproof.gpu.symbolic.integer_primitives import Bits, Function, Primitive, integer
from foldproof.gpu.symbolic.lanes import signed
from numpy.typing import NDArray

FLOAT_TYPES = ("f16", "bf16", "f32", "f64")
CANONICAL = ("add", "sub", "mul", "fma")
"""Operations whose NaN results are the canonical one, in every format but f64."""


def _arithmetic(op: str, fmt: sf.Format, mods: frozenset[str]) -> Function | None:
    core: dict[str, Callable[..., NDArray[np.float64]]] = {"add": sf.add, "mul": sf.multiply, "fma": sf.fma}
    core["sub"] = lambda a, b: sf.add(a, -b)
    core["div"] = lambda a, b: a / b
    core["sqrt"] = np.sqrt
    if op not in core or fmt.name == "f64" or mods & {"rz", "rm", "rp", "sat", "relu"}:
        return None
    if op == "div" and fmt.name == "f32" and "rn" not in mods:
        return None
    fn, ftz = core[op], "ftz" in mods

    def run(*bits: Bits) -> Bits:
        if ftz:
            bits = tuple(sf.flush(fmt, b) for b in bits)
        with np.errstate(all="ignore"):
            out = sf.encode(fmt, fn(*(sf.decode(fmt, b) for b in bits)))
        return sf.flush(fmt, out) if ftz else out

    return run


def _extremum(fmt: sf.Format, mods: frozenset[str], largest: bool) -> Function | None:
    """Extrema as PTX has them: -0 < +0; a NaN loses, or wins with .NaN; no NaN survives but the canonical one."""
    if "xorsign" in mods or "abs" in mods:
        return None
    ftz, wins = "ftz" in mods, "NaN" in mods

    def run(*bits: Bits) -> Bits:
        result = sf.flush(fmt, bits[0]) if ftz else bits[0]
        for raw in bits[1:]:
            other = sf.flush(fmt, raw) if ftz else raw
            nan_a, nan_b = sf.is_nan(fmt, result), sf.is_nan(fmt, other)
            key_a, key_b = _order(fmt, result), _order(fmt, other)
            picked = np.where((key_a >= key_b) == largest, result, other)
            picked = np.where(nan_a, other, np.where(nan_b, result, picked))
            none = (nan_a | nan_b) if wins else (nan_a & nan_b)
            result = np.where(none, np.uint64(fmt.nan), picked)
        return result

    return run


def _order(fmt: sf.Format, bits: Bits) -> NDArray[np.int64]:
    """A key that orders bits as the numbers that they stand for, -0 below +0."""
    value = signed(bits, fmt.width)
    return np.where(value < 0, -(value & np.int64((1 << (fmt.width - 1)) - 1)) - 1, value)


def _compare(cmp: str, fmt: sf.Format, mods: frozenset[str]) -> Function:
    unordered = cmp.endswith("u")
    table = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }

    def run(a: Bits, b: Bits) -> Bits:
        if "ftz" in mods:
            a, b = sf.flush(fmt, a), sf.flush(fmt, b)
        nan = sf.is_nan(fmt, a) | sf.is_nan(fmt, b)
        if cmp in ("num", "nan"):
            wanted: Bits = (nan == (cmp == "nan")).astype(np.uint64)
            return wanted
        with np.errstate(invalid="ignore"):
            result = table[cmp[:2]](sf.decode(fmt, a), sf.decode(fmt, b))
        holds: Bits = np.where(nan, unordered, result).astype(np.uint64)
        return holds

    return run


def _convert(words: list[str]) -> Primitive:
    """`cvt` with at least one floating-point side; what is not modelled stays uninterpreted."""
    name, (to, source) = ".".join(words), words[-2:]
    mods = set(words[1:-2])
    width = (
        1 if to == "pred" else int("".join(c for c in to.replace("x2", "") if c.isdigit())) * (2 if "x2" in to else 1)
    )
    function: Function | None = None
    if not mods - {"rn"} and to in sf.FORMATS and source in sf.FORMATS and "f64" not in (to, source):
        fmt, origin = sf.FORMATS[to], sf.FORMATS[source]

        def function(a: Bits) -> Bits:
            return sf.encode(fmt, sf.decode(origin, a))
    elif mods == {"rn"} and to == "f32" and source[0] in "us" and int(source[1:]) <= 32:
        bits = int(source[1:])

        def function(a: Bits) -> Bits:
            return sf.encode(sf.FORMATS["f32"], (signed(a, bits) if source[0] == "s" else a).astype(np.float64))

    return Primitive(name, width, 1, False, function)


MODELS: dict[str, Callable[..., NDArray[np.float64]]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "rcp": lambda a: 1 / a,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "div": lambda a, b: a / b,
}
"""What an approximation approximates; used for witnesses, never for proofs."""


def _model(op: str, fmt: sf.Format) -> Function:
    fn = MODELS[op]

    def run(*bits: Bits) -> Bits:
        with np.errstate(all="ignore"):
            return sf.encode(fmt, fn(*(sf.decode(fmt, b) for b in bits)))

    return run


@cache
def primitive(name: str) -> Primitive | None:
    """The operation of that name; None where the name is no known operation."""
    found = integer(name)
    if found is not None:
        return found
    words = name.split(".")
    op, kind, mods = words[0], words[-1], frozenset(words[1:-1])
    if op == "cvt":
        return _convert(words)
    if kind not in FLOAT_TYPES:
        return None
    fmt = sf.FORMATS[kind]
    if op == "setp":
        cmp = words[1]
        return Primitive(name, 1, 2, cmp in ("eq", "ne", "equ", "neu", "num", "nan"), _compare(cmp, fmt, mods))
    if op in ("max", "min"):
        return Primitive(name, fmt.width, 2, fmt.name != "f64", _extremum(fmt, mods, op == "max"))
    if op in ("neg", "abs") and "ftz" not in mods:
        sign = np.uint64(1 << (fmt.width - 1))
        body = (lambda a: a ^ sign) if op == "neg" else (lambda a: a & ~sign)
        return Primitive(name, fmt.width, 1, False, body)
    arity = {"fma": 3, "add": 2, "sub": 2, "mul": 2, "div": 2}.get(op, 1)
    if op in ("add", "mul", "fma", "sub") or (op in ("div", "sqrt") and "rn" in mods):
        commutes = op in ("add", "mul", "fma") and kind != "f64"
        return Primitive(name, fmt.width, arity, commutes, _arithmetic(op, fmt, mods))
    if op in MODELS or op in ("neg", "abs"):
        model = _model(op, fmt) if op in MODELS and kind != "f64" else None
        return Primitive(name, fmt.width, arity, False, model, exact=False)
    return None
