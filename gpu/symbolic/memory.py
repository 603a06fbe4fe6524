"""Memory whose content is symbolic: units of `unit` bytes, each holding a node and which unit of the node it is.

Shared memory checks that what one thread writes and another reads or writes is ordered by a barrier; asynchronous
copies count as unordered until they are waited for. Global memory passes nothing between threads unless a barrier of
their block orders it. A breach stops the execution: its result would depend on timing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from foldproof.gpu.symbolic.bitview import extract, join
from foldproof.gpu.symbolic.graph import Graph, Ids
from foldproof.gpu.symbolic.lanes import Lanes, Stop
from numpy.typing import NDArray

PENDING = np.int64(1) << 62
"""The clock of an access that no barrier orders yet: an asynchronous copy or tensor core read under way."""
EPOCH = np.int64(20)
"""A clock is (barriers of the block) << EPOCH | (barriers of the warp)."""
MANY = -2
PAGE = 4096


def compose(g: Graph, node: Ids, part: NDArray[np.uint8], unit: int) -> Ids:
    """The values whose units lie in the rows of `node` and `part`, lowest first."""
    count = node.shape[1]
    first = node[:, 0]
    whole = (g.width[first] == count * unit * 8) & (part[:, 0] == 0)
    if count > 1:
        whole &= (node == first[:, None]).all(axis=1) & (part == np.arange(count, dtype=np.uint8)).all(axis=1)
    if whole.all():
        return first
    out = first.copy()
    broken = ~whole
    cut = [
        extract(g, node[broken, i], part[broken, i].astype(np.uint64) * np.uint64(unit * 8), unit * 8)
        for i in range(count)
    ]
    out[broken] = join(g, cut, count * unit * 8)
    return out


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

    def load(
        self, index: NDArray[np.int64], lane: Lanes, clock: NDArray[np.int64], line: int, *, pending: bool = False
    ) -> Ids:
        """Nodes at the rows of indices, read by `lane` at `clock`."""
        self.note_read(index, lane, clock, line, pending=pending)
        node = self.node[index]
        fresh = node == 0
        if fresh.any():
            node[fresh] = self.g.undefined(self.unit * 8, index[fresh].astype(np.uint64))
        return compose(self.g, node, self.part[index], self.unit)

    def note_read(
        self, index: NDArray[np.int64], lane: Lanes, clock: NDArray[np.int64], line: int, *, pending: bool = False
    ) -> None:
        """Record reads, and stop on one that races with a write."""
        lane2, clock2 = lane[:, None], clock[:, None]
        written, writer = self.written[index], self.writer[index]
        same_epoch = (written >> EPOCH) >= (clock2 >> EPOCH)
        races = same_epoch & (writer != lane2) & ((writer >> 5 != lane2 >> 5) | (written >= clock2))
        if (races | (written >= PENDING)).any():
            raise Stop("a race: shared memory is read with no barrier after the write of another thread", line)
        flat, who, when = index.ravel(), np.repeat(lane, index.shape[1]), np.repeat(clock, index.shape[1])
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
        lane: Lanes,
        clock: NDArray[np.int64],
        line: int,
        *,
        pending: bool = False,
    ) -> None:
        """Write nodes of the rows' width; equal values from several threads are no race."""
        count = index.shape[1]
        flat = index.ravel()
        node = np.repeat(nodes, count)
        part = np.tile(np.arange(count, dtype=np.uint8), len(nodes))
        who, when = np.repeat(lane, count).astype(np.int32), np.repeat(clock, count)
        written, writer = self.written[flat], self.writer[flat]
        other = ((written >> EPOCH) >= (when >> EPOCH)) & (writer != who)
        other &= (writer >> 5 != who >> 5) | (written >= when)
        asked = np.flatnonzero(other)
        other[asked] = _differ(self.g, self.node[flat[asked]], self.part[flat[asked]], node[asked], part[asked])
        reader, read_at, warp = self.reader[flat], self.read_at[flat], self.reader_warp[flat]
        read = ((read_at >> EPOCH) >= (when >> EPOCH)) & (reader != who) & ((warp != who >> 5) | (read_at >= when))
        read &= reader != -1
        if (other | (written >= PENDING) | read | (read_at >= PENDING)).any():
            raise Stop("a race: shared memory is written with no barrier after another thread's access", line)
        self.node[flat], self.part[flat] = node, part
        self.writer[flat] = who
        self.written[flat] = PENDING if pending else when
        if _differ(self.g, self.node[flat], self.part[flat], node, part).any():
            raise Stop("a race: two threads write different values to one place of shared memory", line)

    def settle(self, index: NDArray[np.int64], clock: NDArray[np.int64], *, reads: bool = False) -> None:
        """Asynchronous accesses that were waited for become ordinary ones at `clock`."""
        (self.read_at if reads else self.written)[index] = clock[:, None] if index.ndim == 2 else clock


def _differ(g: Graph, old: Ids, old_part: NDArray[np.uint8], new: Ids, part: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where contents are not the same, empty places (node 0) included."""
    out = (old != new) | (old_part != part)
    asked = np.flatnonzero((old != new) & (old_part == part) & (old > 0))
    if len(asked):
        out[asked] = ~g.agree(old[asked], new[asked])
    return out


def _mark(column: NDArray[np.int32], flat: NDArray[np.int64], who: NDArray[np.int32]) -> None:
    """Record a participant of each place, MANY where there are several."""
    before = column[flat]
    column[flat] = np.where((before == -1) | (before == who), who, np.int32(MANY))
    lost = column[flat] != who
    column[flat[lost]] = MANY


@dataclass(frozen=True, slots=True)
class Region:
    """An allocation: bytes [start, stop), the size in bytes of an element of the param that names it, and its name.

    `floats` is the format of its elements (`f32`, `bf16`, `f16`), empty for integers; `values`, where given, are the
    concrete bits of its elements (indices that reach addresses).
    """

    start: int
    stop: int
    elem: int
    name: str
    floats: str = ""
    values: NDArray[np.uint64] | None = field(default=None, compare=False)


@dataclass(slots=True)
class _Page:
    node: Ids
    part: NDArray[np.uint8]
    writer: NDArray[np.int64]
    clock: NDArray[np.int64]


def _page(unit: int) -> _Page:
    n = PAGE // unit
    return _Page(np.zeros(n, np.int32), np.zeros(n, np.uint8), np.full(n, -1, np.int64), np.full(n, -1, np.int64))


@dataclass(slots=True)
class _Read:
    address: NDArray[np.int64]
    count: int
    thread: Lanes
    clock: NDArray[np.int64]
    line: int


@dataclass(slots=True)
class Global:
    """Global memory: `regions` by start, never overlapping; pages exist where something was written."""

    g: Graph
    regions: tuple[Region, ...]
    unit: int
    pages: dict[int, _Page] = field(default_factory=dict)
    reads: list[_Read] = field(default_factory=list)

    def load(self, address: NDArray[np.int64], width: int, thread: Lanes, clock: NDArray[np.int64], line: int) -> Ids:
        """Nodes of `width` bits at the addresses."""
        size = width // 8
        region = self._regions(address, size, "read", line)
        count = max(size // self.unit, 1)
        self.reads.append(_Read(address, count, thread, clock, line))
        if self.pages:
            found = self._written(address, count, thread, clock, line)
            if found is not None:
                node, part = found
                fresh = node == 0
                if fresh.any():
                    rows, columns = np.nonzero(fresh)
                    at = address[rows] + columns * self.unit
                    node[fresh], part[fresh] = self._initial(at, region[rows])
                return compose(self.g, node, part, self.unit)
        elem = self.elems[region]
        concrete = any(r.values is not None for r in self.regions)
        if not concrete and (elem == size).all() and ((address - self.starts[region]) % size == 0).all():
            return self.g.leaf(width, address.astype(np.uint64))
        step = min(int(elem.min()), size)
        at = (address[:, None] + np.arange(0, size, step)).ravel()
        node, part = self._initial(at, np.repeat(region, size // step))
        cut = extract(self.g, node, part.astype(np.uint64) * np.uint64(8 * self.unit), 8 * step)
        columns = cut.reshape(len(address), -1)
        return join(self.g, [columns[:, i] for i in range(columns.shape[1])], width)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Starts of the regions."""
        return np.array([r.start for r in self.regions], np.int64)

    @property
    def elems(self) -> NDArray[np.int64]:
        """Element sizes of the regions."""
        return np.array([r.elem for r in self.regions], np.int64)

    def _regions(self, address: NDArray[np.int64], size: int, verb: str, line: int) -> NDArray[np.int64]:
        region = np.searchsorted(self.starts, address, side="right") - 1
        stops = np.array([r.stop for r in self.regions], np.int64)
        outside = (region < 0) | (address + size > stops[region])
        if outside.any():
            where = int(address[outside][0])
            raise Stop(f"the launch {verb}s {size} bytes at {where:#x}, outside every allocation that it names", line)
        if (address % size).any():
            raise Stop(f"a global access of {size} bytes is misaligned", line)
        return region

    def _initial(self, address: NDArray[np.int64], region: NDArray[np.int64]) -> tuple[Ids, NDArray[np.uint8]]:
        elem, start = self.elems[region], self.starts[region]
        inside = (address - start) % elem
        node = np.zeros(len(address), np.int32)
        for size in np.unique(elem):
            mine = elem == size
            node[mine] = self.g.leaf(int(size) * 8, (address - inside)[mine].astype(np.uint64))
        for number, place in enumerate(self.regions):
            if place.values is not None:
                mine = region == number
                at = (address[mine] - place.start) // place.elem
                node[mine] = self.g.constant(place.elem * 8, place.values[at])
        return node, (inside // self.unit).astype(np.uint8)

    def _written(
        self, address: NDArray[np.int64], count: int, thread: Lanes, clock: NDArray[np.int64], line: int
    ) -> tuple[Ids, NDArray[np.uint8]] | None:
        """Node and part per unit, 0 where the initial content still stands; None if that is everywhere."""
        number = address // PAGE
        known = [int(p) for p in np.unique(number) if int(p) in self.pages]
        if not known:
            return None
        node = np.zeros((len(address), count), np.int32)
        part = np.zeros((len(address), count), np.uint8)
        for p in known:
            page, mine = self.pages[p], np.flatnonzero(number == p)
            at = ((address[mine] % PAGE) // self.unit)[:, None] + np.arange(count)
            writer, when = page.writer[at], page.clock[at]
            foreign = (writer >= 0) & (writer != thread[mine, None])
            apart = (writer >> 12 != thread[mine, None] >> 12) | ((when >> EPOCH) >= (clock[mine, None] >> EPOCH))
            if (foreign & apart).any():
                raise Stop("global memory passes a value between threads with no barrier between them", line)
            node[mine], part[mine] = page.node[at], page.part[at]
        return node, part

    def store(
        self, address: NDArray[np.int64], nodes: Ids, width: int, thread: Lanes, clock: NDArray[np.int64], line: int
    ) -> None:
        """Write nodes of `width` bits."""
        size = width // 8
        self._regions(address, size, "write", line)
        count = size // self.unit
        number = address // PAGE
        for p in np.unique(number):
            page = self.pages.setdefault(int(p), _page(self.unit))
            mine = np.flatnonzero(number == p)
            at = (((address[mine] % PAGE) // self.unit)[:, None] + np.arange(count)).ravel()
            node, who = np.repeat(nodes[mine], count), np.repeat(thread[mine], count)
            when, part = np.repeat(clock[mine], count), np.tile(np.arange(count, dtype=np.uint8), len(mine))
            foreign = (page.writer[at] >= 0) & (page.writer[at] != who)
            foreign &= (page.writer[at] >> 12 != who >> 12) | ((page.clock[at] >> EPOCH) >= (when >> EPOCH))
            if ((page.writer[at] >= 0) & (page.clock[at] >> EPOCH != when >> EPOCH)).any():
                self.check_reads()  # the overwritten clocks are what earlier reads are held to
            clash = np.flatnonzero(foreign)
            differs = _differ(self.g, page.node[at[clash]], page.part[at[clash]], node[clash], part[clash])
            page.node[at], page.part[at], page.writer[at], page.clock[at] = node, part, who, when
            if differs.any() or _differ(self.g, page.node[at], page.part[at], node, part).any():
                raise Stop("two threads write different values to one address", line)

    def check_reads(self) -> None:
        """Stop if some thread read what another wrote later with no barrier between them, in whatever order it ran here."""
        if not self.pages:
            return
        for read in self.reads:
            number = read.address // PAGE
            for p in np.unique(number):
                page = self.pages.get(int(p))
                if page is None:
                    continue
                mine = np.flatnonzero(number == p)
                at = ((read.address[mine] % PAGE) // self.unit)[:, None] + np.arange(read.count)
                writer, when = page.writer[at], page.clock[at]
                thread, clock = read.thread[mine, None], read.clock[mine, None]
                foreign = (writer >= 0) & (writer != thread)
                apart = (writer >> 12 != thread >> 12) | ((when >> EPOCH) == (clock >> EPOCH))
                if (foreign & apart).any():
                    raise Stop(
                        "global memory is read by one thread and written by another with no barrier between", read.line
                    )

    def written(self) -> NDArray[np.int64]:
        """Addresses of all units written, ascending."""
        found = [p * PAGE + np.flatnonzero(self.pages[p].writer >= 0) * self.unit for p in sorted(self.pages)]
        return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)

    def blocks_at(self, address: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the block that wrote each address last; -1 where none did."""
        out = np.full(len(address), -1, np.int64)
        for p in np.unique(address // PAGE):
            page = self.pages.get(int(p))
            if page is not None:
                mine = address // PAGE == p
                out[mine] = page.writer[(address[mine] % PAGE) // self.unit] >> 12
        return out

    def final(self, address: NDArray[np.int64], size: int) -> Ids:
        """Nodes of the final content, `size` bytes at each address; no check of who wrote it."""
        node = np.zeros((len(address), size // self.unit), np.int32)
        part = np.zeros(node.shape, np.uint8)
        number = address // PAGE
        for p in np.unique(number):
            page = self.pages.get(int(p))
            if page is None:
                continue
            mine = np.flatnonzero(number == p)
            at = ((address[mine] % PAGE) // self.unit)[:, None] + np.arange(node.shape[1])
            node[mine], part[mine] = page.node[at], page.part[at]
        fresh = node == 0
        if fresh.any():
            rows, columns = np.nonzero(fresh)
            region = np.searchsorted(self.starts, address, side="right") - 1
            node[fresh], part[fresh] = self._initial(address[rows] + columns * self.unit, region[rows])
        return compose(self.g, node, part, self.unit)
