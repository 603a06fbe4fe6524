"""Floating-point arithmetic and conversions on registers."""

from __future__ import annotations

import numpy as np
from foldproof.gpu.symbolic.algebra import compute, named
from foldproof.gpu.symbolic.bitview import cat
from foldproof.gpu.symbolic.handlers import glue, piece, simple, width_of_type
from foldproof.gpu.symbolic.integer_primitives import Primitive
from foldproof.gpu.symbolic.lanes import Lanes, Stop, nodes_of
from foldproof.gpu.symbolic.machine import Handler, Machine
from foldproof.gpu.symbolic.primitives import primitive
from foldproof.gpu.symbolic.program import Instr


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
