"""Values of a register over all lanes (the threads of the blocks that run together), and why an execution stops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from foldproof.gpu.symbolic.bitview import const_mask
from foldproof.gpu.symbolic.graph import Bits, Graph, Ids, Mask
from numpy.typing import NDArray

Lanes: TypeAlias = NDArray[np.int64]


class Stop(Exception):
    """The execution cannot go on soundly; `line` is in the PTX, 0 where none is to blame."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class Parted(Stop):
    """Blocks that run together have parted where they may not; each alone may do."""


class Unstable(Stop):
    """The result depends on timing: float atomics."""


@dataclass(frozen=True, slots=True)
class Value:
    """A register: `bits` where `node` is 0 (or None for all lanes), else the symbolic node of the lane."""

    bits: Bits
    node: Ids | None = None

    def take(self, idx: Lanes | None) -> Value:
        """The value on some lanes."""
        if idx is None:
            return self
        return Value(self.bits[idx], None if self.node is None else self.node[idx])

    def symbolic(self) -> Mask:
        """Which lanes are symbolic."""
        return np.zeros(len(self.bits), np.bool_) if self.node is None else self.node > 0


def nodes_of(g: Graph, value: Value, width: int) -> Ids:
    """Nodes of all lanes, concrete ones as constants."""
    if value.node is None:
        return g.constant(width, value.bits)
    concrete = value.node == 0
    if not concrete.any():
        return value.node
    out = value.node.copy()
    out[concrete] = g.constant(width, value.bits[concrete])
    return out


def value_of(g: Graph, nodes: Ids) -> Value:
    """The value of nodes; constants become concrete."""
    constant = const_mask(g, nodes)
    if not constant.any():
        return Value(np.zeros(len(nodes), np.uint64), nodes)
    bits = np.where(constant, g.imm[nodes], np.uint64(0))
    return Value(bits, None) if constant.all() else Value(bits, np.where(constant, np.int32(0), nodes))


def merge(old: Value, new: Value, idx: Lanes) -> Value:
    """`old` with the lanes `idx` replaced by `new`."""
    bits = old.bits.copy()
    bits[idx] = new.bits
    if old.node is None and new.node is None:
        return Value(bits)
    node = np.zeros(len(bits), np.int32) if old.node is None else old.node.copy()
    node[idx] = 0 if new.node is None else new.node
    return Value(bits, node)


def signed(bits: Bits, width: int) -> NDArray[np.int64]:
    """Two's complement values of `width` bits."""
    shift = np.int64(64 - width)
    return (bits.astype(np.uint64).view(np.int64) << shift) >> shift
