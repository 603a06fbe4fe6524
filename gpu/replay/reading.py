"""From what the comparisons of a batch found to counts, with the window of a first difference."""

from __future__ import annotations

import numpy as np
from foldproof.gpu.replay.arena import COMPARED
from foldproof.gpu.replay.backend import Backend
from foldproof.gpu.replay.batch import Batch
from foldproof.gpu.replay.comparing import DIFFERING, Found, first_offset
from foldproof.gpu.replay.inputs import SetClass, kind_of
from foldproof.gpu.replay.tally import Difference, PairCount, VariantCount

WINDOW = 16
"""Bytes copied back around a first difference, from each side."""


class Reader:
    """Reads the comparisons of one batch."""

    __slots__ = ("_backend", "_batch", "_cls", "_compared", "_indices", "_redzone")

    def __init__(self, backend: Backend, batch: Batch, cls: SetClass, indices: range) -> None:
        self._backend, self._batch, self._cls, self._indices = backend, batch, cls, indices
        regions = batch.arena.regions
        self._compared = np.array([r.kind in COMPARED for r in regions])
        self._redzone = np.array([r.kind == "redzone" for r in regions])

    def variant(self, name: str, found: list[Found]) -> VariantCount:
        """The counts of one variant against itself and its image."""
        again, other_fill, image = found
        unstable = self._sets(again)
        reads_fill = self._sets(other_fill)
        first, second, third = self._batch.results[name]
        where = self._difference(again, first, third) or self._difference(other_fill, first, second)
        changed = image[:, self._compared, DIFFERING].sum()
        return VariantCount(
            name,
            self._cls,
            len(self._indices),
            int(unstable.sum()),
            int((reads_fill & ~unstable).sum()),
            int((image[:, self._redzone, DIFFERING].sum(axis=1) > 0).sum()),
            int(changed),
            where,
        )

    def pair(self, first: str, second: str, found: list[Found], known: PairCount | None) -> PairCount:
        """The counts of two variants; the window is fetched for the first difference of the class only."""
        differs = self._sets(found[0]) | self._sets(found[1])
        where = None
        if known is None or known.difference is None:
            for place, one in enumerate(found):
                left, right = self._batch.results[first][place], self._batch.results[second][place]
                where = where or self._difference(one, left, right)
        more = found[0][:, self._compared, DIFFERING].sum()
        size = len(self._indices) * self._batch.arena.compared_bytes
        return PairCount(first, second, self._cls, len(self._indices), int(differs.sum()), int(more), size, where)

    def _sets(self, found: Found) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.asarray(found[:, self._compared, DIFFERING].sum(axis=1) > 0)

    def _difference(self, found: Found, left: int, right: int) -> Difference | None:
        hits = np.argwhere((found[:, :, DIFFERING] > 0) & self._compared)
        if not len(hits):
            return None
        slot, place = int(hits[0][0]), int(hits[0][1])
        region = self._batch.arena.regions[place]
        offset = first_offset(found, slot, place)
        begin = max(region.begin, min(offset - WINDOW // 2, region.end - WINDOW)) // 4 * 4
        size = min(WINDOW, self._batch.arena.stride - begin)
        base = slot * self._batch.arena.stride + begin
        sides = [self._backend.download(side + base, size).tobytes().hex() for side in (left, right)]
        index = self._indices[slot]
        kind = kind_of(self._cls, index)
        return Difference(self._cls, kind, index, region.title, offset - region.begin, offset - begin, *sides)
