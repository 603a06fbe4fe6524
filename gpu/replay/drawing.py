"""Input sets for whole batches: drawn by several threads, ahead of their use, and kept, because launches share them."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from foldproof.gpu.replay.arena import Arena, Region
from foldproof.gpu.replay.inputs import Bytes, SetClass, block, kinds_of

KEPT_BYTES = 2 << 30
"""Bytes of drawn inputs above which all of them are let go."""
Key: TypeAlias = tuple[str, str, int, str, int, SetClass, range]


class Inputs:
    """Draws the sets of a seed. What was asked for twice is drawn once."""

    def __init__(self, seed: int, threads: int) -> None:
        self._seed = seed
        self._pool = ThreadPoolExecutor(threads)
        self._kept: dict[Key, Future[Bytes]] = {}
        self._size = 0
        self._room: Bytes = np.empty(0, np.uint8)

    def room(self, slots: int, stride: int) -> Bytes:
        """Host memory for the images of so many slots, the same at every call: fresh pages cost more than drawing."""
        if self._room.size < slots * stride:
            self._room = np.zeros(slots * stride, np.uint8)
        return self._room[: slots * stride].reshape(slots, stride)

    def ahead(self, fn: str, arena: Arena, cls: SetClass, indices: range) -> None:
        """Begin to draw these sets; `image` will find them."""
        for _, region, own in _parts(arena, cls, indices):
            self._block(fn, region, cls, own)

    def image(self, fn: str, arena: Arena, cls: SetClass, indices: range, out: Bytes) -> None:
        """Write the inputs of these sets into `out`, of shape (sets, stride)."""
        self.ahead(fn, arena, cls, indices)
        for rows, region, own in _parts(arena, cls, indices):
            out[rows, region.begin : region.end] = self._block(fn, region, cls, own).result()

    def _block(self, fn: str, region: Region, cls: SetClass, indices: range) -> Future[Bytes]:
        key = (fn, region.title, region.size, region.type, region.below, cls, indices)
        found = self._kept.get(key)
        if found is None:
            if self._size > KEPT_BYTES:
                self._kept.clear()
                self._size = 0
            found = self._pool.submit(block, self._seed, fn, region, cls, indices)
            self._kept[key] = found
            self._size += region.size * len(indices)
        return found


def _parts(arena: Arena, cls: SetClass, indices: range) -> list[tuple[slice, Region, range]]:
    """The rows, region and indices of each draw: sets of one kind are drawn together."""
    step = len(kinds_of(indices.start, cls))
    places = [region for region in arena.regions if region.kind in {"in", "inout"}]
    ways = [(slice(k, None, step), range(indices.start + k, indices.stop, step)) for k in range(step)]
    return [(rows, region, own) for rows, own in ways if own for region in places]
