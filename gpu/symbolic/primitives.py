"""The operations of the graph: what each computes on bits, for folding constants and for evaluating witnesses.

A name says everything that decides the result. An operation without a function is uninterpreted: equal operands give
equal results, nothing else is known of it. `exact` says that the function is what the device computes bit for bit;
others (approximations, tensor cores) are models, good for finding witnesses only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from foldproof.gpu.symbolic import softfloat as sf
from foldproof.gpu.symbolic.bitview import low_mask
from foldproof.gpu.symbolic.lanes import signed
from numpy.typing import NDArray

Bits: TypeAlias = NDArray[np.uint64]
Function: TypeAlias = Callable[..., Bits]


@dataclass(frozen=True, slots=True)
class Primitive:
    """An operation: result width, operand count, whether its first two operands commute, and its function."""

    name: str
    width: int
    arity: int
    commutative: bool = False
    function: Function | None = None
    exact: bool = True


FLOAT_TYPES = ("f16", "bf16", "f32", "f64")
CANONICAL = ("add", "sub", "mul", "fma")
"""Operations whose NaN results are the canonical one, in every format but f64."""


def _i(width: int, fn: Callable[..., NDArray[np.int64]]) -> Function:
    mask = low_mask(width)

    def run(*bits: Bits) -> Bits:
        return fn(*(signed(b, width) for b in bits)).view(np.uint64) & mask

    return run


def _u(width: int, fn: Callable[..., Bits]) -> Function:
    mask = low_mask(width)

    def run(*bits: Bits) -> Bits:
        return fn(*bits) & mask

    return run


def _bool(fn: Callable[..., NDArray[np.bool_]]) -> Function:
    return lambda *bits: fn(*bits).astype(np.uint64)


def _shift(width: int, kind: str) -> Function:
    """PTX shifts clamp the amount at the width."""

    def run(a: Bits, n: Bits) -> Bits:
        n = n & np.uint64(0xFFFFFFFF)
        far = n >= np.uint64(width)
        amount = np.where(far, np.uint64(0), n)
        if kind == "shl":
            return np.where(far, np.uint64(0), (a << amount) & low_mask(width))
        if kind == "shr.u":
            return np.where(far, np.uint64(0), a >> amount)
        value = signed(a, width) >> np.where(far, np.uint64(width - 1), n).astype(np.int64)
        return value.view(np.uint64) & low_mask(width)

    return run


def _divide(width: int, is_signed: bool, remainder: bool) -> Function:
    """Quotient or remainder, truncated towards zero; all ones for a zero divisor, where PTX says nothing."""

    def run(a: Bits, b: Bits) -> Bits:
        x, y = (signed(a, width), signed(b, width)) if is_signed else (a, b)
        zero = y == 0
        y = np.where(zero, np.ones_like(y), y)
        quotient: NDArray[Any]
        if is_signed:
            quotient = np.abs(x).view(np.uint64) // np.abs(y).view(np.uint64)
            quotient = np.where((x < 0) != (y < 0), -quotient.view(np.int64), quotient.view(np.int64))
        else:
            quotient = x // y
        result = (x - quotient * y if remainder else quotient).view(np.uint64)
        return np.where(zero, low_mask(width), result & low_mask(width))

    return run


def _high(is_signed: bool) -> Function:
    def run(a: Bits, b: Bits) -> Bits:
        if is_signed:
            return ((signed(a, 32) * signed(b, 32)) >> 32).view(np.uint64) & low_mask(32)
        return (a * b) >> np.uint64(32)

    return run


def _popc(a: Bits) -> Bits:
    return np.bitwise_count(a).astype(np.uint64)


def _clz(width: int) -> Function:
    def run(a: Bits) -> Bits:
        out = np.full(a.shape, width, np.uint64)
        for bit in range(width):
            out = np.where((a >> np.uint64(bit)) & np.uint64(1), np.uint64(width - 1 - bit), out)
        return out

    return run


def integer(name: str) -> Primitive | None:
    """The integer operation `op.type`, such as `add.i32`, `lt.s32`, `and.i1`; None if there is none of that name."""
    op, _, kind = name.rpartition(".")
    if not kind or kind[0] not in "isu" or not kind[1:].isdigit():
        return None
    width, is_signed = int(kind[1:]), kind[0] == "s"
    two: dict[str, tuple[Function, bool]] = {
        "add": (_u(width, lambda a, b: a + b), True),
        "sub": (_u(width, lambda a, b: a - b), False),
        "mul": (_u(width, lambda a, b: a * b), True),
        "and": (_u(width, lambda a, b: a & b), True),
        "or": (_u(width, lambda a, b: a | b), True),
        "xor": (_u(width, lambda a, b: a ^ b), True),
        "shl": (_shift(width, "shl"), False),
        "shr": (_shift(width, "shr.s" if is_signed else "shr.u"), False),
        "min": (_i(width, np.minimum) if is_signed else _u(width, np.minimum), True),
        "max": (_i(width, np.maximum) if is_signed else _u(width, np.maximum), True),
        "div": (_divide(width, is_signed, remainder=False), False),
        "rem": (_divide(width, is_signed, remainder=True), False),
    }
    if op in two:
        function, commutes = two[op]
        return Primitive(name, width, 2, commutes, function)
    if op == "hi" and width == 32:
        return Primitive(name, width, 2, True, _high(is_signed))
    if op == "wide":
        product = (
            (lambda a, b: (signed(a, width) * signed(b, width)).view(np.uint64)) if is_signed else (lambda a, b: a * b)
        )
        return Primitive(name, 2 * width, 2, True, _u(2 * width, product))
    compare: dict[str, Callable[..., NDArray[np.bool_]]] = {
        "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal
    }  # fmt: skip
    if op in compare:
        fn = compare[op]
        body = _bool(lambda a, b: fn(signed(a, width), signed(b, width))) if is_signed else _bool(fn)
        return Primitive(name, 1, 2, op in ("eq", "ne"), body)
    one: dict[str, tuple[int, Function]] = {
        "not": (width, _u(width, lambda a: ~a)),
        "popc": (32, _popc),
        "clz": (32, _clz(width)),
        "abs": (width, _i(width, np.abs)),
    }
    if op in one:
        return Primitive(name, one[op][0], 1, False, one[op][1])
    if op.startswith("sext") and is_signed:
        target = int(op[4:])
        return Primitive(name, target, 1, False, lambda a: signed(a, width).view(np.uint64) & low_mask(target))
    return None


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
