"""Comparing on the host, and reading what the device found: the same three numbers a slot and region from both."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from foldproof.gpu.replay.arena import Arena
from foldproof.gpu.replay.inputs import Bytes

Found: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
"""Shape (slots, regions, 3): differing bytes, offset in the slot of the first one (inverted, so that a zeroed buffer
means none), bytes that both sides left at their fill."""

DIFFERING, FIRST, UNTOUCHED = range(3)
NUMBERS = 3


def found_bytes(arena: Arena, slots: int) -> int:
    """The size of what one comparison writes."""
    return slots * len(arena.regions) * NUMBERS * 8


def as_found(data: Bytes, arena: Arena, slots: int) -> Found:
    """The numbers of one comparison from its bytes."""
    return data.view(np.uint64).reshape(slots, len(arena.regions), NUMBERS)


def first_offset(found: Found, slot: int, region: int) -> int:
    """The offset in the slot of the first differing byte of a region that has one."""
    return int(~found[slot, region, FIRST])


def compare_on_host(left: Bytes, right: Bytes, arena: Arena, fills: tuple[int, int] | None = None) -> Found:
    """What the device's comparison finds between two batches of slots, computed with numpy."""
    slots = left.size // arena.stride
    a, b = left.reshape(slots, arena.stride), right.reshape(slots, arena.stride)
    found = np.zeros((slots, len(arena.regions), NUMBERS), np.uint64)
    for place, region in enumerate(arena.regions):
        x, y = a[:, region.begin : region.end], b[:, region.begin : region.end]
        differs = x != y
        if fills is not None:
            untouched = differs & (x == fills[0]) & (y == fills[1])
            found[:, place, UNTOUCHED] = untouched.sum(axis=1)
            differs &= ~untouched
        counts = differs.sum(axis=1)
        found[:, place, DIFFERING] = counts
        first = (differs.argmax(axis=1) + region.begin).astype(np.uint64)
        found[:, place, FIRST] = np.where(counts > 0, ~first, np.uint64(0))
    return found
