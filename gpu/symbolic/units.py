"""Units of memory: what is common to shared and global memory.

A unit is a few bytes; it holds a node and which unit of the node it is. A clock tells accesses in one block apart
that a barrier orders.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from foldproof.gpu.symbolic.bitview import extract, join
from foldproof.gpu.symbolic.graph import Graph, Ids
from foldproof.gpu.symbolic.lanes import Lanes
from numpy.typing import NDArray

PENDING = np.int64(1) << 62
"""The clock of an access that no barrier orders yet: an asynchronous copy or tensor core read under way."""
EPOCH = np.int64(20)
"""A clock is (barriers of the block) << EPOCH | (barriers of the warp)."""


@dataclass(frozen=True, slots=True)
class By:
    """Who accesses memory: a thread a row, its clock, and the PTX line."""

    thread: Lanes
    clock: NDArray[np.int64]
    line: int


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


def differ(g: Graph, old: Ids, old_part: NDArray[np.uint8], new: Ids, part: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where contents are not the same, empty places (node 0) included."""
    out: NDArray[np.bool_] = (old != new) | (old_part != part)
    asked = np.flatnonzero((old != new) & (old_part == part) & (old > 0))
    if len(asked):
        out[asked] = ~g.agree(old[asked], new[asked])
    return out
