"""Atomics: integer ones whose result is unused commute and become effects; float sums are unstable."""

from __future__ import annotations

import numpy as np
from foldproof.gpu.symbolic.algebra import compute, named
from foldproof.gpu.symbolic.handlers import width_of_type
from foldproof.gpu.symbolic.lanes import Lanes, Stop, Unstable, Value, nodes_of
from foldproof.gpu.symbolic.machine import Effect, Handler, Machine
from foldproof.gpu.symbolic.program import Instr, Mem, Reg


def atomic(instr: Instr) -> Handler:
    """Atomics (atom, red): integer ones whose result is unused commute and become effects; float sums are unstable."""
    parts = instr.parts
    kind = parts[-1]
    ops = {"add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"} & set(parts)
    if kind[0] == "f" or kind.startswith("bf"):
        if "add" in ops:
            return _unstable
        raise Stop(f"{instr.opcode}: floating-point atomics other than add are not modelled", instr.line)
    if len(ops) != 1 or ops & {"inc", "dec", "exch", "cas"} or "global" not in parts or {"v2", "v4"} & set(parts):
        raise Stop(f"{instr.opcode}: the order of arrival decides the result", instr.line)
    op, width = next(iter(ops)), width_of_type(kind)
    sign = kind[0] if op in ("min", "max") and kind[0] in "su" else "i"
    name = f"{op}.{sign}{width}"
    dst = instr.operands[0] if parts[0] == "atom" else None
    place, source = instr.operands[-2:]
    if not isinstance(place, Mem) or not isinstance(place.base, Reg):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    base = place.base
    offset = place.offset

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        m.side_effects += 1
        start = m.get(base, 64, idx, i.line)
        at = compute(
            m.g, named("add.i64"), [start, Value(np.full(len(start.bits), offset, np.int64).view(np.uint64))], [64, 64]
        )
        m.effects.append(Effect(name, nodes_of(m.g, at, 64), nodes_of(m.g, m.get(source, width, idx, i.line), width)))
        if dst is not None:
            count = len(start.bits)
            m.put(dst, Value(np.zeros(count, np.uint64), m.g.undefined(width, np.full(count, i.line, np.uint64))), idx)

    return run


def _unstable(_m: Machine, i: Instr, _idx: Lanes | None) -> None:
    raise Unstable(f"{i.opcode}: sums in the order of arrival, which decides the rounding", i.line)
