"""Names of a nested scope of PTX, given to its instructions in place of those that the text has."""

from __future__ import annotations

from typing import Any

from foldproof.gpu.symbolic.program import Guard, Instr, Mem, Reg, Split, Sym, Vec


def rename(instr: Instr, names: dict[str, str]) -> Instr:
    """The instruction with each register, symbol and label of `names` called by its new name."""
    guard = Guard(names.get(instr.guard.reg, instr.guard.reg), instr.guard.negated) if instr.guard else None
    operands = tuple(_renamed(o, names) for o in instr.operands)
    return Instr(instr.opcode, instr.parts, operands, guard, instr.line, instr.loc)


def _renamed(item: Any, names: dict[str, str]) -> Any:
    if isinstance(item, Reg | Sym):
        return type(item)(names.get(item.name, item.name))
    if isinstance(item, Mem):
        return Mem(_renamed(item.base, names), item.offset, item.extra)
    if isinstance(item, Vec):
        return Vec(tuple(_renamed(i, names) for i in item.items))
    return Split(_renamed(item.first, names), _renamed(item.second, names)) if isinstance(item, Split) else item
