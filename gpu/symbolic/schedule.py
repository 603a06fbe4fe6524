"""The schedule of a machine: groups of lanes run straight on until they part, wait at a barrier, or may meet others.

Of the groups that can go on, the one at the lowest instruction does, so that lanes join where their instructions meet.
"""

from __future__ import annotations

import numpy as np
from foldproof.gpu.symbolic.lanes import Lanes, Stop
from foldproof.gpu.symbolic.machine import Machine
from foldproof.gpu.symbolic.program import Instr, Reg, Sym
from numpy.typing import NDArray

MAX_STEPS = 400_000
"""Instructions that one batch of blocks may take."""


def run(m: Machine) -> None:
    """Run every lane to its end. Raises `Stop`."""
    pc = np.zeros(m.lanes, np.int64)
    spread(m, pc, np.arange(m.lanes, dtype=np.int64), len(m.kernel.code))
    m.memory.check_reads()
    m.g.current_place = 0


def spread(m: Machine, pc: NDArray[np.int64], members: Lanes, until: int) -> None:
    """Run the lanes `members` until each is at `until` (the end of a region, or of the code)."""
    end = len(m.kernel.code)
    waiting = np.zeros(m.lanes, np.bool_)
    steps = 0
    while True:
        here = pc[members]
        live = members[(here < end) & (here != until)]
        ready = live[~waiting[live]]
        if not len(ready):
            if not len(live):
                return
            _release(m, live, waiting)
            continue
        at = int(pc[ready].min())
        group = ready[pc[ready] == at]
        alone = len(group) == len(live)
        steps += _straight(m, pc, group, at, alone, waiting, until)
        if steps > MAX_STEPS:
            raise Stop(f"more than {MAX_STEPS} instructions", m.kernel.code[at].line)


def _straight(  # noqa: C901, PLR0913, PLR0917  # one loop over instructions, and the state of the schedule
    m: Machine, pc: NDArray[np.int64], group: Lanes, at: int, alone: bool, waiting: NDArray[np.bool_], until: int
) -> int:
    """Run one group from `at` until its lanes part, wait, or may meet others."""
    code, steps = m.kernel.code, 0
    idx = None if len(group) == m.lanes else group
    while at < len(code) and at != until:
        instr = code[at]
        steps += 1
        if steps > MAX_STEPS:
            return steps
        m.g.current_place = m.places[at]
        kind = instr.parts[0]
        if kind == "bra":
            taken = _branch(m, instr, group, idx, pc, at)
            if taken is None:
                return steps
            at = taken
        elif kind in ("ret", "exit"):
            chosen = group if instr.guard is None else m.active(instr.guard, idx, instr.line)
            if chosen is None:
                chosen = group
            pc[group] = at + 1
            pc[chosen] = len(code)
            return steps
        elif kind in ("bar", "barrier") and instr.parts[1] != "warp":
            if instr.guard is not None:
                raise Stop("a barrier under a predicate", instr.line)
            at += 1
            if idx is not None:
                pc[group] = at
                waiting[group] = True
                return steps
            _barrier(m, np.arange(len(m.block_clock)))
        else:
            m.step(at, instr, idx)
            at += 1
        if not alone and at in m.joins:
            break
    pc[group] = at
    return steps


def _barrier(m: Machine, blocks: NDArray[np.int64]) -> None:
    """All threads of these blocks have arrived."""
    m.block_clock[blocks] += 1


def _release(m: Machine, live: Lanes, waiting: NDArray[np.bool_]) -> None:
    """Let the blocks go on whose every living thread waits. All living lanes wait."""
    blocks = np.unique(m.block[live])
    if m.depth:
        raise Stop("a barrier in a branch that depends on data")
    waiting[live] = False
    _barrier(m, blocks)


def _branch(  # noqa: PLR0913, PLR0917  # one instruction, and the state of the schedule
    m: Machine, instr: Instr, group: Lanes, idx: Lanes | None, pc: NDArray[np.int64], at: int
) -> int | None:
    """Where the whole group goes on; None when it parts (`pc` is then set)."""
    target = instr.operands[0]
    assert isinstance(target, Sym)
    to = m.kernel.labels[target.name]
    if instr.guard is None:
        return to
    value = m.get(Reg(instr.guard.reg), 1, idx, instr.line)
    symbolic = value.symbolic()
    if symbolic.any():
        return m.fork(m, instr, group, value, pc, at)
    holds = (value.bits != 0) != instr.guard.negated
    if holds.all():
        return to
    if not holds.any():
        return at + 1
    pc[group] = np.where(holds, to, at + 1)
    return None
