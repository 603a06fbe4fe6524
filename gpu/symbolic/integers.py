"""Integer and bit instructions on registers; add, mul and their like of floats are passed on."""

from __future__ import annotations

import numpy as np
from foldproof.gpu.symbolic.algebra import compute, named
from foldproof.gpu.symbolic.bitview import extract, join, low_mask
from foldproof.gpu.symbolic.floats import floating
from foldproof.gpu.symbolic.handlers import simple, width_of_type
from foldproof.gpu.symbolic.lanes import Lanes, Stop, Value, nodes_of
from foldproof.gpu.symbolic.machine import Handler, Machine
from foldproof.gpu.symbolic.program import Imm, Instr


def integer_binary(instr: Instr) -> Handler:
    """add, sub, mul, and, or, xor, min, max, div, rem of integers or predicates, or the floating-point one."""
    op, kind = instr.parts[0], instr.parts[-1]
    if kind[0] == "f" or kind.startswith("bf"):
        return floating(instr)
    known = {"lo", "hi", "wide"}
    if set(instr.parts[1:-1]) - known or kind.endswith("x2"):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    width = width_of_type(kind)
    sign = "s" if kind[0] == "s" else "u"
    if op in ("add", "sub", "and", "or", "xor") or (op == "mul" and "lo" in instr.parts):
        return simple(instr, named(f"{op}.i{width}"), [width, width])
    if op == "mul":
        form = "wide" if "wide" in instr.parts else "hi"
        if form == "hi" and width != 32:
            raise Stop(f"unknown instruction {instr.opcode}", instr.line)
        return simple(instr, named(f"{form}.{sign}{width}"), [width, width])
    return simple(instr, named(f"{op}.{sign}{width}"), [width, width])


def mad(instr: Instr) -> Handler:
    """Multiply-add (mad.lo, mad.wide): a product, then a sum; both exact."""
    kind = instr.parts[-1]
    form, width, sign = instr.parts[1], width_of_type(kind), "s" if kind[0] == "s" else "u"
    if form not in ("lo", "wide") or kind[0] == "f":
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    wide = width * 2 if form == "wide" else width
    product = named(f"wide.{sign}{width}" if form == "wide" else f"mul.i{width}")
    total = named(f"add.i{wide}")
    dst, a, b, c = instr.operands

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        first = compute(m.g, product, [m.get(a, width, idx, i.line), m.get(b, width, idx, i.line)], [width, width])
        m.put(dst, compute(m.g, total, [first, m.get(c, wide, idx, i.line)], [wide, wide]), idx)

    return run


def shift(instr: Instr) -> Handler:
    """Shifts (shl, shr); the amount has 32 bits."""
    kind = instr.parts[-1]
    width = width_of_type(kind)
    sign = "s" if kind[0] == "s" and instr.parts[0] == "shr" else "u"
    prim = named(f"{instr.parts[0]}.{sign}{width}")
    dst, a, n = instr.operands

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        amount = m.get(n, 32, idx, i.line)
        if amount.node is not None and (amount.node > 0).any() and width != 32:
            raise Stop("a shift by an amount that depends on data", i.line)
        m.put(dst, compute(m.g, prim, [m.get(a, width, idx, i.line), amount], [width, width]), idx)

    return run


def unary(instr: Instr) -> Handler:
    """not, neg, abs, popc, clz."""
    op, kind = instr.parts[0], instr.parts[-1]
    if kind[0] == "f" or kind.startswith("bf"):
        return floating(instr)
    width = width_of_type(kind)
    if op == "neg":
        dst, a = instr.operands
        prim = named(f"sub.i{width}")

        def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
            value = m.get(a, width, idx, i.line)
            zero = Value(np.zeros(len(value.bits), np.uint64))
            m.put(dst, compute(m.g, prim, [zero, value], [width, width]), idx)

        return run
    sign = "s" if op == "abs" else "i"
    return simple(instr, named(f"{op}.{sign}{width}"), [width])


def bit_field(instr: Instr) -> Handler:
    """bfe: the field as a shift and a mask where it depends on data; bfi concrete only."""
    kind = instr.parts[-1]
    width = width_of_type(kind)
    is_signed = kind[0] == "s"
    dst, a, position, length = instr.operands

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        value = m.get(a, width, idx, i.line)
        pos = m.concrete(position, 32, idx, "a bit position", i.line) & np.uint64(0xFF)
        size = m.concrete(length, 32, idx, "a bit count", i.line) & np.uint64(0xFF)
        if (pos + size > width).any() or (size == 0).any():
            raise Stop(f"{i.opcode} of a field that leaves the register", i.line)
        left = Value(np.uint64(width) - pos - size)
        right = Value(np.uint64(width) - size)
        if is_signed:
            up = compute(m.g, named(f"shl.u{width}"), [value, left], [width, width])
            m.put(dst, compute(m.g, named(f"shr.s{width}"), [up, right], [width, width]), idx)
            return
        down = compute(m.g, named(f"shr.u{width}"), [value, Value(pos)], [width, width])
        mask = Value((np.uint64(1) << size) - np.uint64(1) if width < 64 else low_mask(64) >> right.bits)
        m.put(dst, compute(m.g, named(f"and.i{width}"), [down, mask], [width, width]), idx)

    return run


def bit_insert(instr: Instr) -> Handler:
    """Bit field insertion (bfi) of concrete values and fields."""
    width = width_of_type(instr.parts[-1])
    dst, a, b, position, length = instr.operands

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        pos = m.concrete(position, 32, idx, "a bit position", i.line)
        size = m.concrete(length, 32, idx, "a bit count", i.line)
        if (pos + size > width).any() or (size >= 64).any():
            raise Stop(f"{i.opcode} of a field that leaves the register", i.line)
        field = ((np.uint64(1) << size) - np.uint64(1)) << pos
        moved = compute(m.g, named(f"shl.u{width}"), [m.get(a, width, idx, i.line), Value(pos)], [width, width])
        put = compute(m.g, named(f"and.i{width}"), [moved, Value(field)], [width, width])
        rest = compute(
            m.g, named(f"and.i{width}"), [m.get(b, width, idx, i.line), Value(~field & low_mask(width))], [width] * 2
        )
        m.put(dst, compute(m.g, named(f"or.i{width}"), [put, rest], [width, width]), idx)

    return run


def permute(instr: Instr) -> Handler:
    """Byte permutation (prmt) in its default mode: bytes of two registers picked by a concrete selector."""
    if instr.parts != ("prmt", "b32"):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    dst, a, b, c = instr.operands

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        selector = m.concrete(c, 32, idx, "a byte selector", i.line)
        first, second = (nodes_of(m.g, m.get(o, 32, idx, i.line), 32) for o in (a, b))
        parts = []
        for byte in range(4):
            pick = (selector >> np.uint64(4 * byte)) & np.uint64(0xF)
            if (pick & np.uint64(8)).any():
                raise Stop("prmt that replicates a sign", i.line)
            source = np.where(pick < 4, first, second)
            parts.append(extract(m.g, source, (pick & np.uint64(3)) * np.uint64(8), 8))
        m.put_nodes(dst, join(m.g, parts, 32), idx)

    return run


def lop3(instr: Instr) -> Handler:
    """lop3: a truth table of three operands, as ands and ors of what it holds."""
    dst, a, b, c, table = instr.operands
    if instr.parts != ("lop3", "b32") or not isinstance(table, Imm):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    ones = Value(np.array([0xFFFFFFFF], np.uint64))

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        inputs = [m.get(o, 32, idx, i.line) for o in (a, b, c)]
        wide = Value(np.broadcast_to(ones.bits, inputs[0].bits.shape))
        inverse = [compute(m.g, named("xor.i32"), [v, wide], [32, 32]) for v in inputs]
        total = Value(np.zeros(len(inputs[0].bits), np.uint64))
        for row in range(8):
            if table.value >> row & 1:
                term = wide
                for place, (plain, inverted) in enumerate(zip(inputs, inverse, strict=True)):
                    chosen = plain if row >> (2 - place) & 1 else inverted
                    term = compute(m.g, named("and.i32"), [term, chosen], [32, 32])
                total = compute(m.g, named("or.i32"), [total, term], [32, 32])
        m.put(dst, total, idx)

    return run
