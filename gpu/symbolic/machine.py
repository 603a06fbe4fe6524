"""The executor: all threads of some blocks in lock step, lane by lane masks where they part (`schedule`).

Integers, predicates and addresses are concrete; what is loaded from memory is symbolic.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from foldproof.gpu.symbolic.bitview import extract, low_mask, select
from foldproof.gpu.symbolic.graph import Ids
from foldproof.gpu.symbolic.lanes import Lanes, Stop, Value, merge, nodes_of, value_of
from foldproof.gpu.symbolic.memory import Global, origin
from foldproof.gpu.symbolic.program import Guard, Imm, Instr, Kernel, Operand, Reg, Sym
from foldproof.gpu.symbolic.shared import Shared
from foldproof.gpu.symbolic.units import EPOCH, By
from numpy.typing import NDArray

Handler = Callable[["Machine", Instr, "Lanes | None"], None]
Copy = tuple[NDArray[np.int64], Lanes]
"""Places of shared memory, a row a lane, and the lanes on whose behalf they are accessed asynchronously."""


@dataclass(frozen=True, slots=True)
class Effect:
    """An atomic whose order does not matter: operation, address and operand nodes per lane, and the result's width."""

    op: str
    address: Ids
    value: Ids


@dataclass(frozen=True, slots=True)
class Launched:
    """What all blocks of a launch share: `params` are the bits of each parameter, `handlers` go with the instructions.

    `fork` runs both sides of a branch that depends on data.
    """

    kernel: Kernel
    params: Mapping[str, int]
    grid: tuple[int, int, int]
    shared_bytes: int
    handlers: Mapping[int, Handler]
    fork: Callable[[Machine, Instr, Lanes, Value, NDArray[np.int64], int], int]


class Machine:
    """One batch of blocks of a launch, in lock step."""

    def __init__(self, launch: Launched, memory: Global, blocks: Sequence[tuple[int, int, int]]) -> None:
        kernel, grid, g = launch.kernel, launch.grid, memory.g
        self.g, self.kernel, self.params, self.memory = g, kernel, launch.params, memory
        self.handlers, self.fork = launch.handlers, launch.fork
        x, y, z = kernel.reqntid
        self.threads = x * y * z
        self.lanes = self.threads * len(blocks)
        thread = np.tile(np.arange(self.threads, dtype=np.int64), len(blocks))
        self.block = np.repeat(np.arange(len(blocks), dtype=np.int64), self.threads)
        linear = np.array([b[0] + grid[0] * (b[1] + grid[1] * b[2]) for b in blocks], np.int64)
        self.thread = (linear[self.block] << 12) | thread
        self.warp = self.block * (-(-self.threads // 32)) + thread // 32
        self.lane_in_warp = thread % 32
        self.block_clock = np.zeros(len(blocks), np.int64)
        self.warp_clock = np.zeros(int(self.warp[-1]) + 1, np.int64)
        ids = np.array(blocks, np.int64)[self.block]
        special = {
            "%tid.x": thread % x,
            "%tid.y": thread // x % y,
            "%tid.z": thread // (x * y),
            "%ctaid.x": ids[:, 0],
            "%ctaid.y": ids[:, 1],
            "%ctaid.z": ids[:, 2],
            "%laneid": self.lane_in_warp,
        }
        special |= {f"%ntid.{a}": np.full(self.lanes, n) for a, n in zip("xyz", (x, y, z), strict=True)}
        special |= {f"%nctaid.{a}": np.full(self.lanes, n) for a, n in zip("xyz", grid, strict=True)}
        self.special = {name: Value(bits.astype(np.uint64)) for name, bits in special.items()}
        self.regs: dict[str, Value] = {}
        self.shared = Shared(g, len(blocks), max(launch.shared_bytes, kernel.shared_static, 16), memory.unit)
        self.effects: list[Effect] = []
        self.groups: list[list[Copy]] = []
        self.open_copies: list[Copy] = []
        self.pending_reads: list[list[Copy]] = []
        self.open_reads: list[Copy] = []
        self.places = [g.place_id(kernel.source(instr)) for instr in kernel.code]
        self.joins = frozenset(kernel.labels.values())
        self.side_effects = 0
        self.depth = 0

    def clock(self, idx: Lanes | None) -> NDArray[np.int64]:
        """The clock of lanes: see `units.EPOCH`."""
        block, warp = (self.block, self.warp) if idx is None else (self.block[idx], self.warp[idx])
        clock: NDArray[np.int64] = (self.block_clock[block] << EPOCH) | self.warp_clock[warp]
        return clock

    def by_lane(self, idx: Lanes | None, line: int) -> By:
        """These lanes as users of shared memory."""
        return By(self.lane_ids(idx), self.clock(idx), line)

    def by_thread(self, idx: Lanes | None, line: int) -> By:
        """These lanes as users of global memory, where threads are numbered over the grid."""
        return By(self.thread if idx is None else self.thread[idx], self.clock(idx), line)

    def lane_ids(self, idx: Lanes | None) -> Lanes:
        """The lanes meant by `idx`."""
        return np.arange(self.lanes, dtype=np.int64) if idx is None else idx

    def get(self, operand: Operand, width: int, idx: Lanes | None, line: int = 0) -> Value:
        """The value of an operand on some lanes, cut to `width` bits."""
        count = self.lanes if idx is None else len(idx)
        if isinstance(operand, Imm):
            bits = operand.value & int(low_mask(width))
            return Value(np.full(count, bits, np.uint64))
        if isinstance(operand, Sym):
            if operand.name in self.kernel.shared:
                return Value(np.full(count, self.kernel.shared[operand.name], np.uint64))
            if not self.kernel.width_of(operand.name):
                raise Stop(f"{operand.name} is no shared memory and no register", line)
        if not isinstance(operand, Reg | Sym):
            raise Stop("an operand of a form that is not supported here", line)
        value = self.special.get(operand.name) or self.register(operand.name, line)
        value = value.take(idx)
        own = 32 if operand.name in self.special else self.kernel.width_of(operand.name)
        return self.cut(value, own, width, line)

    def cut(self, value: Value, own: int, width: int, line: int) -> Value:
        """The low `width` bits of a value of `own` bits."""
        if own == width:
            return value
        if own < width:
            raise Stop(f"a {own}-bit register is read as {width} bits", line)
        bits = value.bits & low_mask(width)
        if value.node is None:
            return Value(bits)
        node = value.node.copy()
        there = node > 0
        node[there] = extract(self.g, node[there], 0, width)
        return Value(bits, node)

    def register(self, name: str, line: int = 0) -> Value:
        """All lanes of a register; undefined where nothing was written."""
        found = self.regs.get(name)
        if found is None:
            width = self.kernel.width_of(name)
            if not width:
                raise Stop(f"the register {name} is not known", line)
            found = self.regs[name] = self.undefined(name, width)
        return found

    def undefined(self, name: str, width: int) -> Value:
        """All lanes of a register before anything is written to it."""
        place = np.full(self.lanes, zlib.crc32(name.encode()), np.uint64)
        return Value(np.zeros(self.lanes, np.uint64), self.g.undefined(width, place))

    def put(self, operand: Operand, value: Value, idx: Lanes | None) -> None:
        """Write a register on some lanes; `_` takes anything."""
        assert isinstance(operand, Reg | Sym)
        if operand.name != "_":
            self.regs[operand.name] = value if idx is None else merge(self.register(operand.name), value, idx)

    def put_nodes(self, operand: Operand, nodes: Ids, idx: Lanes | None) -> None:
        """Write nodes; constants become concrete."""
        self.put(operand, value_of(self.g, nodes), idx)

    def concrete(self, operand: Operand, width: int, idx: Lanes | None, what: str, line: int) -> NDArray[np.uint64]:
        """The bits of an operand that must not depend on data; `what` says what it is."""
        value = self.get(operand, width, idx, line)
        if value.node is not None and (value.node > 0).any():
            raise Stop(f"{what} depends on data: {self.blame(value.node)}", line)
        return value.bits

    def blame(self, node: Ids | None) -> str:
        """What a symbolic value comes from, in words."""
        assert node is not None
        return origin(self.g, int(node[node > 0][0]), self.memory)

    def active(self, guard: Guard, idx: Lanes | None, line: int) -> Lanes | None:
        """The lanes of `idx` on which a guard holds; None for all lanes there are."""
        value = self.get(Reg(guard.reg), 1, idx, line)
        if value.node is not None and (value.node > 0).any():
            raise Stop(f"a predicate depends on data: {self.blame(value.node)}", line)
        holds = (value.bits != 0) != guard.negated
        if holds.all():
            return idx
        held: Lanes = self.lane_ids(idx)[holds]
        return held

    def step(self, at: int, instr: Instr, idx: Lanes | None) -> None:
        """Execute one instruction that is no branch and no barrier on some lanes."""
        handler = self.handlers[at]
        if instr.guard is None:
            handler(self, instr, idx)
            return
        value = self.get(Reg(instr.guard.reg), 1, idx, instr.line)
        holds = (value.bits != 0) != instr.guard.negated
        symbolic = value.symbolic()
        if not symbolic.any():
            if holds.all():
                handler(self, instr, idx)
            elif holds.any():
                handler(self, instr, self.lane_ids(idx)[holds])
            return
        self._under_select(handler, instr, idx, value, holds | symbolic)

    def _under_select(
        self, handler: Handler, instr: Instr, idx: Lanes | None, value: Value, runs: NDArray[np.bool_]
    ) -> None:
        """Execute under a predicate that depends on data: each register becomes a choice between new and old."""
        lanes = self.lane_ids(idx)
        before, effects = dict(self.regs), self.side_effects
        self.depth += 1
        handler(self, instr, lanes[runs])
        self.depth -= 1
        if self.side_effects != effects:
            raise Stop(
                f"memory is written under a predicate that depends on data: {self.blame(nodes_of(self.g, value, 1))}",
                instr.line,
            )
        assert instr.guard is not None
        symbolic = value.symbolic()
        condition = value.take(np.flatnonzero(symbolic))
        assert condition.node is not None
        self.choose(before, lanes[symbolic], condition.node, instr.guard.negated)

    def choose(self, before: Mapping[str, Value], lanes: Lanes, condition: Ids, negated: bool) -> None:
        """On `lanes`, registers become `condition ? now : before`."""
        for name, now in list(self.regs.items()):
            old = before.get(name)
            if old is now:
                continue
            width = self.kernel.width_of(name)
            old = self.undefined(name, width) if old is None else old
            yes, no = (nodes_of(self.g, v.take(lanes), width) for v in (now, old))
            if negated:
                yes, no = no, yes
            self.regs[name] = merge(now, value_of(self.g, select(self.g, condition, yes, no, width)), lanes)
