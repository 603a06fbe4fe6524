"""Moves, selections and predicates, and the table of all instructions that compute on registers alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from foldproof.gpu.symbolic.algebra import compute, named
from foldproof.gpu.symbolic.bitview import select
from foldproof.gpu.symbolic.floats import convert, floating
from foldproof.gpu.symbolic.handlers import Factory, glue, piece, width_of_type
from foldproof.gpu.symbolic.integers import bit_field, bit_insert, integer_binary, lop3, mad, permute, shift, unary
from foldproof.gpu.symbolic.lanes import Lanes, Stop, Value, nodes_of
from foldproof.gpu.symbolic.machine import Handler, Machine
from foldproof.gpu.symbolic.primitives import primitive
from foldproof.gpu.symbolic.program import Instr, Split, Vec


def move(instr: Instr) -> Handler:
    """mov: copies, and packing or unpacking of vectors."""
    width = width_of_type(instr.parts[-1])
    dst, source = instr.operands
    if isinstance(dst, Vec):
        items, part = dst.items, width // len(dst.items)

        def unpack(m: Machine, i: Instr, idx: Lanes | None) -> None:
            value = m.get(source, width, idx, i.line)
            for place, item in enumerate(items):
                m.put(item, piece(m, value, place * part, part), idx)

        return unpack
    if isinstance(source, Vec):
        inputs, part = source.items, width // len(source.items)

        def pack(m: Machine, i: Instr, idx: Lanes | None) -> None:
            m.put(dst, glue(m, [m.get(s, part, idx, i.line) for s in inputs], part), idx)

        return pack

    def copy(m: Machine, i: Instr, idx: Lanes | None) -> None:
        m.put(dst, m.get(source, width, idx, i.line), idx)

    return copy


def choose(instr: Instr) -> Handler:
    """Selection by a predicate (selp)."""
    width = width_of_type(instr.parts[-1])
    dst, a, b, p = instr.operands

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        yes, no, when = m.get(a, width, idx, i.line), m.get(b, width, idx, i.line), m.get(p, 1, idx, i.line)
        if when.node is None:
            holds = when.bits != 0
            bits = np.where(holds, yes.bits, no.bits)
            if yes.node is None and no.node is None:
                m.put(dst, Value(bits), idx)
                return
            zero = np.zeros(len(bits), np.int32)
            node = np.where(holds, zero if yes.node is None else yes.node, zero if no.node is None else no.node)
            m.put(dst, Value(bits, node), idx)
            return
        out = select(m.g, nodes_of(m.g, when, 1), nodes_of(m.g, yes, width), nodes_of(m.g, no, width), width)
        m.put_nodes(dst, out, idx)

    return run


SWAPPED = {"gt": "lt", "ge": "le", "gtu": "ltu", "geu": "leu", "hi": "lt", "hs": "le"}
INVERTED = {"ltu": "le", "leu": "lt", "neu": "eq"}
"""a < b or unordered is not b <= a, and so on."""
UNSIGNED = {"lo": "lt", "ls": "le"}


def set_predicate(instr: Instr) -> Handler:
    """setp, with the optional combination with a third predicate; a > b is written b < a."""
    kind, cmp = instr.parts[-1], instr.parts[1]
    extra = [p for p in instr.parts[2:-1] if p != "ftz"]
    width = width_of_type(kind)
    dst, a, b, *third = instr.operands
    if cmp in SWAPPED:
        a, b = b, a
    is_float = kind[0] == "f" or kind.startswith("bf")
    if kind.endswith("x2") or set(extra) - {"and", "or", "xor"} or len(third) != len(extra):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    name = SWAPPED.get(cmp, UNSIGNED.get(cmp, cmp))
    inverted = name in INVERTED
    if inverted:
        name = INVERTED[name]
        a, b = (b, a) if name != "eq" else (a, b)
    if is_float:
        ftz = ".ftz" if "ftz" in instr.parts else ""
        prim = primitive(f"setp.{name}{ftz}.{kind}")
    else:
        sign = "s" if kind[0] == "s" else "u"
        prim = primitive(f"{name}.{'u' if name in ('eq', 'ne') else sign}{width}")
    if prim is None:
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    known = prim

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        value = compute(m.g, known, [m.get(a, width, idx, i.line), m.get(b, width, idx, i.line)], [width, width])
        if inverted:
            value = compute(m.g, named("not.i1"), [value], [1])
        inverse = compute(m.g, named("not.i1"), [value], [1]) if isinstance(dst, Split) else value
        outs = [(dst.first, value), (dst.second, inverse)] if isinstance(dst, Split) else [(dst, value)]
        for where, result in outs:
            combined = result
            if extra:
                combined = compute(m.g, named(f"{extra[0]}.i1"), [result, m.get(third[0], 1, idx, i.line)], [1, 1])
            m.put(where, combined, idx)

    return run


def address_space(instr: Instr) -> Handler:
    """Address conversions (cvta) between global and generic addresses, which are the same numbers."""
    if "global" not in instr.parts:
        raise Stop(f"{instr.opcode}: generic addresses of this space are not modelled", instr.line)
    return move(instr)


SCALAR: Mapping[str, Factory] = {
    **dict.fromkeys(("add", "sub", "mul", "and", "or", "xor", "min", "max", "div", "rem"), integer_binary),
    "mad": mad,
    **dict.fromkeys(("shl", "shr"), shift),
    **dict.fromkeys(("not", "neg", "abs", "popc", "clz"), unary),
    "bfe": bit_field,
    "bfi": bit_insert,
    "prmt": permute,
    "lop3": lop3,
    "mov": move,
    "selp": choose,
    "setp": set_predicate,
    **dict.fromkeys(("fma", "ex2", "lg2", "sin", "cos", "tanh", "sqrt", "rsqrt", "rcp"), floating),
    "cvt": convert,
    "cvta": address_space,
}
"""Instruction families by their first word."""
