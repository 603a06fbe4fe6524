"""Where the buffers of a launch lie: one arena, redzones between them, addresses as aligned as the launch says.

An input set lives in a *slot* of `stride` bytes; a batch is many slots one after the other. Every byte of a slot is in
exactly one region, so a comparison of whole slots misses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from foldproof.gpu.replay.trace import BufferNote, Record
from foldproof.impl.launch import Arg, Kind

RegionKind: TypeAlias = Literal["redzone", "in", "out", "inout", "scratch"]
ALIGNMENT = 1024
"""A buffer keeps the residue of its recorded address modulo this: as aligned as there, and no more."""
REDZONE = 1024
"""Smallest redzone before and after each buffer, in bytes."""
COMPARED: frozenset[RegionKind] = frozenset({"in", "out", "inout"})
POISONED: frozenset[RegionKind] = frozenset({"redzone", "out", "scratch"})
"""Regions that hold no input: they are filled with a pattern before each run, another one in every second run."""


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes [begin, end) of a slot. `names` are the pointer arguments that lie in it, `type` its element type."""

    begin: int
    end: int
    kind: RegionKind
    names: tuple[str, ...] = ()
    type: str = ""
    below: int = 0

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.begin

    @property
    def title(self) -> str:
        """What a report calls it: its arguments, or what it is."""
        return "/".join(self.names) or self.kind


@dataclass(frozen=True, slots=True)
class Arena:
    """The layout of one slot: regions in order, covering [0, stride); offsets by argument; the two scratch offsets."""

    stride: int
    regions: tuple[Region, ...]
    offsets: Mapping[str, int]
    scratch: tuple[int, int]

    @property
    def compared_bytes(self) -> int:
        """Bytes of a slot that belong to pointer arguments."""
        return sum(region.size for region in self.regions if region.kind in COMPARED)

    def addresses(self, base: int) -> dict[str, int]:
        """The address of each pointer argument in the slot at `base`."""
        return {name: base + offset for name, offset in self.offsets.items()}


def lay_out(record: Record, scratch: tuple[int, int] = (0, 0)) -> Arena:
    """The arena of a launch. `scratch` is the bytes of global and of profile scratch that its variants need.

    Arguments whose recorded allocations overlap keep their distance and share a region: an in-place launch stays one.
    """
    regions: list[Region] = []
    offsets: dict[str, int] = {}
    cursor = 0
    for group in _overlapping(arg for arg in record.launch.args if arg.kind == Kind.PTR):
        first = group[0].number
        length = max(arg.number + (arg.bytes or 0) for arg in group) - first
        begin = _up(cursor + REDZONE) + first % ALIGNMENT
        offsets |= {arg.name: begin + arg.number - first for arg in group}
        if length:
            regions += _gap(cursor, begin)
            regions.append(_buffer(group, record.buffers, begin, begin + length))
            cursor = begin + length
    places = []
    for size in scratch:
        begin = _up(cursor + REDZONE)
        places.append(begin if size else 0)
        if size:
            regions += _gap(cursor, begin)
            regions.append(Region(begin, begin + size, "scratch"))
            cursor = begin + size
    stride = _up(cursor + REDZONE)
    regions += _gap(cursor, stride)
    return Arena(stride, tuple(regions), offsets, (places[0], places[1]))


def _up(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _gap(begin: int, end: int) -> list[Region]:
    return [Region(begin, end, "redzone")] if end > begin else []


def _overlapping(args: Iterable[Arg]) -> list[list[Arg]]:
    """The pointer arguments, those with overlapping allocations together, each group by address."""
    groups: list[list[Arg]] = []
    end = -1
    for arg in sorted(args, key=lambda a: (a.number, -(a.bytes or 0))):
        if groups and arg.number < end:
            groups[-1].append(arg)
        else:
            groups.append([arg])
        end = max(end, arg.number + (arg.bytes or 0))
    return groups


def _buffer(group: list[Arg], notes: Mapping[str, BufferNote], begin: int, end: int) -> Region:
    own = [notes.get(arg.name, BufferNote()) for arg in group]
    roles = {note.role for note in own}
    kind: RegionKind = own[0].role if len(roles) == 1 else "inout"
    read = next((i for i, note in enumerate(own) if note.role != "out"), 0)
    below = max(note.below for note in own)
    return Region(begin, end, kind, tuple(arg.name for arg in group), group[read].pointee, below)
