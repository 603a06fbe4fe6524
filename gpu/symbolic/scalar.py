"""Instructions that compute on registers alone: integers, bits, predicates, moves, floating point, conversions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from foldproof.gpu.symbolic.algebra import compute, named
from foldproof.gpu.symbolic.bitview import cat, extract, join, low_mask, select
from foldproof.gpu.symbolic.lanes import Lanes, Stop, Value, nodes_of, value_of
from foldproof.gpu.symbolic.machine import Handler, Machine
from foldproof.gpu.symbolic.primitives import Primitive, primitive
from foldproof.gpu.symbolic.program import Imm, Instr, Split, Vec

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


def floating(instr: Instr) -> Handler:
    """Floating-point arithmetic, packed forms as their scalar one twice; what is approximate is uninterpreted."""
    kind = instr.parts[-1]
    pieces = 2 if kind.endswith("x2") else 1
    scalar = kind[:-2] if pieces == 2 else kind
    mods = [p for p in instr.parts[1:-1] if not (instr.parts[0] == "fma" and p == "rn")]
    if scalar == "bf16" and mods and mods[-1] == "f32" and instr.parts[0] in ("add", "sub", "fma"):
        return mixed(instr)
    prim = primitive(".".join([instr.parts[0], *sorted(mods), scalar]))
    dst, *sources = instr.operands
    if instr.parts[0] in ("max", "min") and len(sources) == 3 and prim is not None:
        return three(instr, prim)
    if prim is None or prim.arity != len(sources):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    width = width_of_type(scalar)
    known, whole = prim, width * pieces

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        inputs = [m.get(s, whole, idx, i.line) for s in sources]
        if pieces == 1:
            m.put(dst, compute(m.g, known, inputs, [width] * known.arity), idx)
            return
        halves = [
            compute(m.g, known, [piece(m, v, low, width) for v in inputs], [width] * known.arity) for low in (0, width)
        ]
        m.put(dst, glue(m, halves, width), idx)

    return run


def mixed(instr: Instr) -> Handler:
    """add, sub and fma of fp32 with bf16 operands (sm_100 on): the operands widened, then the fp32 operation."""
    op = instr.parts[0]
    mods = [p for p in instr.parts[1:-2] if not (op == "fma" and p == "rn")]
    prim, widen = named(".".join([op, *mods, "f32"])), named("cvt.f32.bf16")
    dst, *sources = instr.operands
    narrow = len(sources) - 1

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        inputs = [compute(m.g, widen, [m.get(s, 16, idx, i.line)], [16]) for s in sources[:narrow]]
        inputs.append(m.get(sources[narrow], 32, idx, i.line))
        m.put(dst, compute(m.g, prim, inputs, [32] * prim.arity), idx)

    return run


def three(instr: Instr, prim: Primitive) -> Handler:
    """Extrema of three operands, as that of two applied twice: it is associative."""
    dst, a, b, c = instr.operands
    width = prim.width

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        first = compute(m.g, prim, [m.get(a, width, idx, i.line), m.get(b, width, idx, i.line)], [width, width])
        m.put(dst, compute(m.g, prim, [first, m.get(c, width, idx, i.line)], [width, width]), idx)

    return run


def convert(instr: Instr) -> Handler:
    """Conversions (cvt) between integers (extension, truncation) and floating-point formats."""
    to, source = instr.parts[-2:]
    dst, *inputs = instr.operands
    out_width, in_width = width_of_type(to), width_of_type(source)
    if to[0] in "us" and source[0] in "us" and "sat" not in instr.parts:
        return _resize(instr, source[0] == "s", in_width, out_width)
    words = list(instr.parts)
    if to.endswith("x2") and len(inputs) == 2:
        prim = primitive(".".join([*words[:-2], to[:-2], source]))
        high, low = inputs

        def both(m: Machine, i: Instr, idx: Lanes | None) -> None:
            assert prim is not None
            parts = [compute(m.g, prim, [m.get(o, in_width, idx, i.line)], [in_width]) for o in (low, high)]
            m.put(dst, glue(m, parts, out_width // 2), idx)

        return both
    prim = primitive(instr.opcode)
    if prim is None or len(inputs) != 1:
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    return simple(instr, prim, [in_width])


def _resize(instr: Instr, is_signed: bool, source: int, target: int) -> Handler:
    dst, a = instr.operands
    if target > source and is_signed:
        return simple(instr, named(f"sext{target}.s{source}"), [source])

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        value = m.get(a, source, idx, i.line)
        if target < source:
            m.put(dst, piece(m, value, 0, target), idx)
            return
        if value.node is None or target == source:
            m.put(dst, value, idx)
            return
        out, width = nodes_of(m.g, value, source), source
        while width < target:
            out = cat(m.g, np.broadcast_to(m.g.constant(width, 0), out.shape), out, width * 2)
            width *= 2
        m.put_nodes(dst, out, idx)

    return run


def address_space(instr: Instr) -> Handler:
    """Address conversions (cvta) between global and generic addresses, which are the same numbers."""
    if "global" not in instr.parts:
        raise Stop(f"{instr.opcode}: generic addresses of this space are not modelled", instr.line)
    return move(instr)


def nothing(_: Instr) -> Handler:
    """An instruction without a result that matters here."""
    return lambda _m, _i, _idx: None


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
