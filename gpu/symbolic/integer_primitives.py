"""The operations of the graph: what one is, and the integer ones.

A name says everything that decides the result. An operation without a function is uninterpreted: equal operands give
equal results, nothing else is known of it. `exact` says that the function is what the device computes bit for bit;
others (approximations, tensor cores) are models, good for finding witnesses only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
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
