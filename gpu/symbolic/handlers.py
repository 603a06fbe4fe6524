"""What families of instructions share: types, the simplest handler, and pieces of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from foldproof.gpu.symbolic.algebra import compute
from foldproof.gpu.symbolic.bitview import extract, join, low_mask
from foldproof.gpu.symbolic.integer_primitives import Primitive
from foldproof.gpu.symbolic.lanes import Lanes, Stop, Value, nodes_of, value_of
from foldproof.gpu.symbolic.machine import Handler, Machine
from foldproof.gpu.symbolic.program import Instr

Factory: TypeAlias = Callable[[Instr], Handler]


def width_of_type(kind: str) -> int:
    """Bits of a PTX type (`s32`, `bf16x2`, `pred`)."""
    if kind == "pred":
        return 1
    packed = kind.endswith(("x2", "x4"))
    digits = "".join(c for c in (kind[:-2] if packed else kind) if c.isdigit())
    return int(digits) * (int(kind[-1]) if packed else 1)


def refuse(reason: str) -> Factory:
    """A family that is recognised and not modelled."""

    def factory(instr: Instr) -> Handler:
        raise Stop(f"{instr.opcode}: {reason}", instr.line)

    return factory


def nothing(_: Instr) -> Handler:
    """An instruction without a result that matters here."""
    return lambda _m, _i, _idx: None


def simple(instr: Instr, prim: Primitive, widths: list[int]) -> Handler:
    """One operation on registers."""
    dst, *sources = instr.operands
    line = instr.line
    if len(sources) != len(widths):
        raise Stop(f"{instr.opcode} with {len(sources)} operands", line)
    pairs = list(zip(sources, widths, strict=True))

    def run(m: Machine, _: Instr, idx: Lanes | None) -> None:
        m.put(dst, compute(m.g, prim, [m.get(s, w, idx, line) for s, w in pairs], widths), idx)

    return run


def piece(m: Machine, value: Value, low: int, width: int) -> Value:
    """Bits [low, low + width) of a value."""
    bits = (value.bits >> np.uint64(low)) & low_mask(width)
    if value.node is None:
        return Value(bits)
    there = value.node > 0
    node = np.zeros(len(bits), np.int32)
    cut = value_of(m.g, extract(m.g, value.node[there], low, width))
    bits[there], node[there] = cut.bits, (0 if cut.node is None else cut.node)
    return Value(bits, node)


def glue(m: Machine, parts: list[Value], width: int) -> Value:
    """Parts of `width` bits each, lowest first, as one value."""
    if all(p.node is None for p in parts):
        bits = np.zeros(len(parts[0].bits), np.uint64)
        for place, part in enumerate(parts):
            bits |= part.bits << np.uint64(place * width)
        return Value(bits)
    return value_of(m.g, join(m.g, [nodes_of(m.g, p, width) for p in parts], width * len(parts)))
