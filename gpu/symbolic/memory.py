"""Global memory whose content is symbolic: inputs until something is written.

It passes nothing between threads unless a barrier of their block orders it. A breach stops the execution: its result
would depend on timing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from foldproof.gpu.symbolic.bitview import extract, join
from foldproof.gpu.symbolic.graph import Graph, Ids
from foldproof.gpu.symbolic.lanes import Stop
from foldproof.gpu.symbolic.units import EPOCH, By, compose, differ
from numpy.typing import NDArray

PAGE = 4096


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
    by: By


@dataclass(slots=True)
class Global:
    """Global memory: `regions` by start, never overlapping; pages exist where something was written."""

    g: Graph
    regions: tuple[Region, ...]
    unit: int
    pages: dict[int, _Page] = field(default_factory=dict)
    reads: list[_Read] = field(default_factory=list)

    def load(self, address: NDArray[np.int64], width: int, by: By) -> Ids:
        """Nodes of `width` bits at the addresses."""
        size = width // 8
        region = self._regions(address, size, "read", by.line)
        count = max(size // self.unit, 1)
        self.reads.append(_Read(address, count, by))
        if self.pages:
            found = self._written(address, count, by)
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
        parts = size // step
        return join(self.g, [cut[i::parts] for i in range(parts)], width)

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

    def _written(self, address: NDArray[np.int64], count: int, by: By) -> tuple[Ids, NDArray[np.uint8]] | None:
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
            foreign = (writer >= 0) & (writer != by.thread[mine, None])
            apart = (writer >> 12 != by.thread[mine, None] >> 12) | ((when >> EPOCH) >= (by.clock[mine, None] >> EPOCH))
            if (foreign & apart).any():
                raise Stop("global memory passes a value between threads with no barrier between them", by.line)
            node[mine], part[mine] = page.node[at], page.part[at]
        return node, part

    def store(self, address: NDArray[np.int64], nodes: Ids, width: int, by: By) -> None:
        """Write nodes of `width` bits."""
        size = width // 8
        self._regions(address, size, "write", by.line)
        count = size // self.unit
        number = address // PAGE
        for p in np.unique(number):
            page = self.pages.setdefault(int(p), _page(self.unit))
            mine = np.flatnonzero(number == p)
            at = (((address[mine] % PAGE) // self.unit)[:, None] + np.arange(count)).ravel()
            node, who = np.repeat(nodes[mine], count), np.repeat(by.thread[mine], count)
            when, part = np.repeat(by.clock[mine], count), np.tile(np.arange(count, dtype=np.uint8), len(mine))
            foreign = (page.writer[at] >= 0) & (page.writer[at] != who)
            foreign &= (page.writer[at] >> 12 != who >> 12) | ((page.clock[at] >> EPOCH) >= (when >> EPOCH))
            if ((page.writer[at] >= 0) & (page.clock[at] >> EPOCH != when >> EPOCH)).any():
                self.check_reads()  # the overwritten clocks are what earlier reads are held to
            clash = np.flatnonzero(foreign)
            differs = differ(self.g, page.node[at[clash]], page.part[at[clash]], node[clash], part[clash])
            page.node[at], page.part[at], page.writer[at], page.clock[at] = node, part, who, when
            if differs.any() or differ(self.g, page.node[at], page.part[at], node, part).any():
                raise Stop("two threads write different values to one address", by.line)

    def check_reads(self) -> None:
        """Stop if a thread read what another wrote with no barrier between, in whatever order it ran here."""
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
                thread, clock = read.by.thread[mine, None], read.by.clock[mine, None]
                foreign = (writer >= 0) & (writer != thread)
                apart = (writer >> 12 != thread >> 12) | ((when >> EPOCH) == (clock >> EPOCH))
                if (foreign & apart).any():
                    raise Stop(
                        "global memory is read by one thread and written by another with no barrier between",
                        read.by.line,
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


def origin(g: Graph, node: int, memory: Global) -> str:
    """The first input below a node, as `NAME[byte offset]`."""
    todo, seen = [node], set()
    while todo:
        cur = todo.pop()
        if cur in seen or cur == 0:
            continue
        seen.add(cur)
        if int(g.op[cur]) in g.leaves.values():
            address = int(g.imm[cur])
            for region in memory.regions:
                if region.start <= address < region.stop:
                    return f"{region.name}, byte {address - region.start}"
        todo += [int(g.c[cur]), int(g.b[cur]), int(g.a[cur])]
    return g.name(node)
