"""From class codes to table places: the codes of several args as one number, their tables as one table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from foldproof.impl.batch.classes import Codes

Places: TypeAlias = npt.NDArray[np.intp]


def runs(radices: Sequence[int], limit: int, start: int = 0) -> list[range]:
    """Consecutive args, cut wherever one more would give more than `limit` combinations of classes."""
    found: list[range] = []
    first, size = start, 1
    for place, radix in enumerate(radices, start):
        if place > first and size * radix > limit:
            found.append(range(first, place))
            first, size = place, 1
        size *= radix
    return [*found, range(first, start + len(radices))]


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """How the codes of the args `args` become one number below `size`, the last arg counting fastest.

    `bytes_` cuts them into parts of at most 256 combinations: a part is computed in bytes, 32 launches an
    instruction, and only the parts are widened.
    """

    args: range
    radices: tuple[int, ...]
    bytes_: tuple[range, ...]

    @classmethod
    def over(cls, args: range, radices: Sequence[int]) -> KeyPlan:
        """The plan for some args; `radices` holds the number of classes of every arg of the launch."""
        chosen = tuple(radices[args.start : args.stop])
        return cls(args, tuple(radices), tuple(runs(chosen, 256, args.start)))

    @property
    def size(self) -> int:
        """The number of combinations."""
        return math.prod(self.radices[self.args.start : self.args.stop])

    def keys(self, codes: Codes) -> Places:
        """The key of each launch; `codes` has a row an arg of the launch, each below its number of classes."""
        total: Places = np.zeros(codes.shape[1], np.intp)
        for position, part in enumerate(self.bytes_):
            part_key = self._byte_key(codes, part)
            if position == 0:
                total[:] = part_key
            else:
                total *= math.prod(self.radices[part.start : part.stop])
                total += part_key
        return total

    def _byte_key(self, codes: Codes, part: range) -> Codes:
        if not part:
            return np.zeros(codes.shape[1], np.uint8)
        key: Codes = codes[part.start]
        for arg in part[1:]:
            key = key * np.uint8(self.radices[arg])
            key += codes[arg]
        return key

    def all_codes(self) -> Codes:
        """The codes of every key, in order: a row each of `args`."""
        chosen = self.radices[self.args.start : self.args.stop]
        return np.indices(chosen, np.uint8).reshape(len(chosen), self.size)


def blockwise(count: int, step: int, action: Callable[[slice], None]) -> None:
    """`action` on consecutive slices: what one touches stays in the cache."""
    for start in range(0, count, step):
        action(slice(start, min(start + step, count)))
