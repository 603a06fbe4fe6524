"""Shared memory whose content is symbolic, and which stops on races.

What one thread writes and another reads or writes must be ordered by a barrier; asynchronous copies count as unordered
until they are waited for. A race stops the execution: its result would depend on timing.
"""

from __future__ import annotations

import numpy as np
from foldproof.gpu.symbolic.graph import Graph, Ids
from foldproof.gpu.symbolic.lanes import Lanes, Stop
from foldproof.gpu.symbolic.units import EPOCH, PENDING, By, compose, differ
from numpy.typing import NDArray

MANY = -2


class Shared:
    """The shared memory of some blocks side by side, `size` bytes each."""

    def __init__(self, g: Graph, blocks: int, size: int, unit: int) -> None:
        self.g, self.unit, self.size = g, unit, -(-size // unit)
        total = blocks * self.size
        self.node = np.zeros(total, np.int32)
        self.part = np.zeros(total, np.uint8)
        self.writer = np.full(total, -1, np.int32)
        self.written = np.full(total, -1, np.int64)
        self.reader = np.full(total, -1, np.int32)
        self.reader_warp = np.full(total, -1, np.int32)
        self.read_at = np.full(total, -1, np.int64)

    def index(self, address: NDArray[np.int64], block: Lanes, count: int, line: int) -> NDArray[np.int64]:
        """Rows of unit indices for accesses of `count` units. Stops on one outside the block's memory or misaligned."""
        if (address < 0).any() or (address + count * self.unit > self.size * self.unit).any():
            raise Stop("an access outside the shared memory of the block", line)
        if (address % self.unit).any():
            raise Stop(f"a shared memory access that is no multiple of {self.unit} bytes", line)
        return (block * self.size + address // self.unit)[:, None] + np.arange(count)

    def load(self, index: NDArray[np.int64], by: By) -> Ids:
        """Nodes at the rows of indices."""
        self.note_read(index, by)
        node = self.node[index]
        fresh = node == 0
        if fresh.any():
            node[fresh] = self.g.undefined(self.unit * 8, index[fresh].astype(np.uint64))
        return compose(self.g, node, self.part[index], self.unit)

    def note_read(self, index: NDArray[np.int64], by: By, *, pending: bool = False) -> None:
        """Record reads, and stop on one that races with a write."""
        lane, clock = by.thread[:, None], by.clock[:, None]
        written, writer = self.written[index], self.writer[index]
        same_epoch = (written >> EPOCH) >= (clock >> EPOCH)
        races = same_epoch & (writer != lane) & ((writer >> 5 != lane >> 5) | (written >= clock))
        if (races | (written >= PENDING)).any():
            raise Stop("a race: shared memory is read with no barrier after the write of another thread", by.line)
        count = index.shape[1]
        flat, who, when = index.ravel(), np.repeat(by.thread, count), np.repeat(by.clock, count)
        stale = (self.read_at[flat] >> EPOCH) < (when >> EPOCH)
        self.reader[flat[stale]] = -1
        self.reader_warp[flat[stale]] = -1
        self.read_at[flat[stale]] = -1
        _mark(self.reader, flat, who.astype(np.int32))
        _mark(self.reader_warp, flat, (who >> 5).astype(np.int32))
        self.read_at[flat] = PENDING if pending else np.maximum(self.read_at[flat], when)

    def store(
        self,
        index: NDArray[np.int64],
        nodes: Ids,
        by: By,
        *,
        pending: bool = False,
    ) -> None:
        """Write nodes of the rows' width; equal values from several threads are no race."""
        count = index.shape[1]
        flat = index.ravel()
        node = np.repeat(nodes, count)
        part = np.tile(np.arange(count, dtype=np.uint8), len(nodes))
        who, when = np.repeat(by.thread, count).astype(np.int32), np.repeat(by.clock, count)
        written, writer = self.written[flat], self.writer[flat]
        other = ((written >> EPOCH) >= (when >> EPOCH)) & (writer != who)
        other &= (writer >> 5 != who >> 5) | (written >= when)
        asked = np.flatnonzero(other)
        other[asked] = differ(self.g, self.node[flat[asked]], self.part[flat[asked]], node[asked], part[asked])
        reader, read_at, warp = self.reader[flat], self.read_at[flat], self.reader_warp[flat]
        read = ((read_at >> EPOCH) >= (when >> EPOCH)) & (reader != who) & ((warp != who >> 5) | (read_at >= when))
        read &= reader != -1
        if (other | (written >= PENDING) | read | (read_at >= PENDING)).any():
            raise Stop("a race: shared memory is written with no barrier after another thread's access", by.line)
        self.node[flat], self.part[flat] = node, part
        self.writer[flat] = who
        self.written[flat] = PENDING if pending else when
        if differ(self.g, self.node[flat], self.part[flat], node, part).any():
            raise Stop("a race: two threads write different values to one place of shared memory", by.line)

    def settle(self, index: NDArray[np.int64], clock: NDArray[np.int64], *, reads: bool = False) -> None:
        """Asynchronous accesses that were waited for become ordinary ones at `clock`."""
        (self.read_at if reads else self.written)[index] = clock[:, None] if index.ndim == 2 else clock


def _mark(column: NDArray[np.int32], flat: NDArray[np.int64], who: NDArray[np.int32]) -> None:
    """Record a participant of each place, MANY where there are several."""
    before = column[flat]
    column[flat] = np.where((before == -1) | (before == who), who, np.int32(MANY))
    lost = column[flat] != who
    column[flat[lost]] = MANY
