"""Branches that depend on data: both sides run, and registers that differ become choices between them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from foldproof.gpu.symbolic.lanes import Lanes, Stop, Value
from foldproof.gpu.symbolic.machine import Machine
from foldproof.gpu.symbolic.program import Instr, Kernel, Sym
from foldproof.gpu.symbolic.schedule import spread
from numpy.typing import NDArray

MAX_DEPTH = 24
"""Branches on data within each other: beyond, a loop whose length depends on data is likely."""


def fork(m: Machine, instr: Instr, group: Lanes, value: Value, pc: NDArray[np.int64], at: int) -> int:  # noqa: PLR0913, PLR0917  # the state of a branch
    """Run both sides of a branch up to where they meet; all lanes of the group go on there. Raises `Stop`."""
    guard, target = instr.guard, instr.operands[0]
    assert guard is not None
    assert isinstance(target, Sym)
    if m.depth >= MAX_DEPTH:
        raise Stop(f"a loop or branch depends on data: {m.blame(value.node)}", instr.line)
    if not value.symbolic().all():
        raise Stop("a branch depends on data in some threads and not in others", instr.line)
    meet = meeting_points(m.kernel)[at]
    if meet < 0:
        raise Stop("a branch that depends on data and whose sides do not meet", instr.line)
    before, effects, clocks = dict(m.regs), m.side_effects, m.block_clock.copy()
    m.depth += 1
    sides = []
    for start in (m.kernel.labels[target.name], at + 1):
        m.regs = dict(before)
        pc[group] = start
        spread(m, pc, group, meet)
        if (pc[group] != meet).any():
            raise Stop("a thread ends within a branch that depends on data", instr.line)
        sides.append(m.regs)
    m.depth -= 1
    if m.side_effects != effects or (m.block_clock != clocks).any():
        raise Stop(
            f"memory is written or a barrier reached in a branch that depends on data: {m.blame(value.node)}",
            instr.line,
        )
    m.regs = sides[0]
    other = {name: m.undefined(name, m.kernel.width_of(name)) for name in sides[0] if name not in sides[1]}
    for name in sides[1]:
        if name not in m.regs:
            m.regs[name] = m.undefined(name, m.kernel.width_of(name))
    assert value.node is not None
    m.choose({**other, **sides[1]}, group, value.node, guard.negated)
    return meet


@lru_cache(maxsize=64)
def _meeting(code: tuple[Instr, ...], labels: tuple[tuple[str, int], ...]) -> tuple[int, ...]:
    """For each instruction the nearest one that every path from it passes (-1: none), by post-dominance."""
    end, where = len(code), dict(labels)
    follow: list[tuple[int, ...]] = []
    for at, instr in enumerate(code):
        kind = instr.parts[0]
        following: tuple[int, ...] = (at + 1,)
        if kind == "bra":
            assert isinstance(instr.operands[0], Sym)
            to = where[instr.operands[0].name]
            following = (to,) if instr.guard is None else (to, at + 1)
        elif kind in ("ret", "exit"):
            following = (end,) if instr.guard is None else (end, at + 1)
        follow.append(following)
    full = (1 << (end + 1)) - 1
    after = [full] * end + [1 << end]
    changed = True
    while changed:
        changed = False
        for at in range(end - 1, -1, -1):
            common = full
            for to in follow[at]:
                common &= after[to]
            common |= 1 << at
            if common != after[at]:
                after[at], changed = common, True
    meets = []
    for at in range(end):
        rest = after[at] & ~(1 << at)
        # The nearest post-dominator is the one that all others post-dominate: it has the most of them itself.
        candidates = [i for i in range(end) if rest >> i & 1] if code[at].parts[0] == "bra" else []
        meets.append(max(candidates, key=lambda i: after[i].bit_count(), default=-1))
    return tuple(meets)


def meeting_points(kernel: Kernel) -> tuple[int, ...]:
    """See `_meeting`."""
    return _meeting(kernel.code, tuple(kernel.labels.items()))
