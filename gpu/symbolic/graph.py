"""The hash-consed graph of symbolic values: equal node, equal bits, whatever the inputs.

A node is an operation over at most three earlier nodes and a 64-bit immediate. Interning is vectorised: `apply` takes
arrays of operands and gives an array of nodes. The table compares the columns themselves, so a hash collision costs
time and never soundness. Ids increase from operands to results, so id order is a topological order.

Node 0 is reserved: in a lane it means "concrete".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
Bits: TypeAlias = NDArray[np.uint64]
Mask: TypeAlias = NDArray[np.bool_]

_MIX = tuple(np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93))
_SHIFT = np.uint64(29)
WIDTHS = (1, 8, 16, 32, 64)


class GraphFull(Exception):
    """The graph holds more nodes than the budget allows."""


@dataclass(frozen=True, slots=True)
class Op:
    """An operation: its name holds every modifier that decides bits (rounding, flushing, types); `width` is the result's."""

    name: str
    width: int
    arity: int
    commutative: bool


class Graph:
    """Nodes in columns. `limit` is the largest number of nodes."""

    def __init__(self, limit: int = 12_000_000) -> None:
        self.limit = limit
        self.ops: list[Op] = []
        self._ids: dict[str, int] = {}
        self.count = 1
        size = 1 << 12
        self.op = np.zeros(size, np.int32)
        self.a = np.zeros(size, np.int32)
        self.b = np.zeros(size, np.int32)
        self.c = np.zeros(size, np.int32)
        self.imm = np.zeros(size, np.uint64)
        self.width = np.zeros(size, np.uint8)
        self.line = np.zeros(size, np.int32)
        self._table = np.full(size * 4, -1, np.int32)
        self.current_line = 0
        self.none = self.op_id("none", 0, 0)
        self.consts = {w: self.op_id(f"const{w}", w, 0) for w in WIDTHS}
        self.leaves = {w: self.op_id(f"input{w}", w, 0) for w in WIDTHS}
        self.extracts = {w: self.op_id(f"extract{w}", w, 1) for w in WIDTHS}
        self.cats = {w: self.op_id(f"cat{w}", w, 2) for w in WIDTHS}
        self.sels = {w: self.op_id(f"sel{w}", w, 3) for w in WIDTHS}
        self.undef = self.op_id("undef", 64, 0)
        self.pair = self.op_id("pair", 0, 3)
        self.is_const = np.zeros(1 << 12, np.bool_)
        self.is_const[list(self.consts.values())] = True

    def op_id(self, name: str, width: int, arity: int, *, commutative: bool = False) -> int:
        """The number of an operation, new or known."""
        found = self._ids.get(name)
        if found is None:
            found = self._ids[name] = len(self.ops)
            self.ops.append(Op(name, width, arity, commutative))
        return found

    def name(self, node: int) -> str:
        """The name of a node's operation."""
        return self.ops[int(self.op[node])].name

    def constant(self, width: int, bits: Bits | int) -> Ids:
        """Nodes of constants."""
        values = np.atleast_1d(np.asarray(bits, np.uint64))
        zero = np.zeros(len(values), np.int32)
        return self.intern(self.consts[width], zero, zero, zero, values)

    def leaf(self, width: int, address: Bits) -> Ids:
        """Nodes of the initial content of memory, `width` bits at an address."""
        zero = np.zeros(len(address), np.int32)
        return self.intern(self.leaves[width], zero, zero, zero, address)

    def apply(self, op: int, a: Ids, b: Ids | None = None, c: Ids | None = None, imm: Bits | int = 0) -> Ids:
        """Nodes of an operation over operands; a commutative one takes its first two in id order."""
        zero = np.zeros(len(a), np.int32)
        b = zero if b is None else b
        if self.ops[op].commutative:
            a, b = np.minimum(a, b), np.maximum(a, b)
        if not isinstance(imm, np.ndarray):
            imm = np.full(len(a), imm, np.uint64)
        return self.intern(op, a, b, zero if c is None else c, imm)

    def intern(self, op: int, a: Ids, b: Ids, c: Ids, imm: Bits) -> Ids:
        """One node per row of the columns; equal rows give the same node."""
        n = len(a)
        if n == 0:
            return np.zeros(0, np.int32)
        if self.count + n > len(self.op):
            self._grow(n)
        h = (a.astype(np.uint64) * _MIX[0]) ^ (b.astype(np.uint64) * _MIX[1]) ^ (c.astype(np.uint64) * _MIX[2])
        h = (h ^ (imm * _MIX[3]) ^ np.uint64(op * 0x2545F491)) * _MIX[0]
        h ^= h >> _SHIFT
        h = (h * _MIX[2]) >> np.uint64(17)
        mask = len(self._table) - 1
        slot = (h & np.uint64(mask)).astype(np.int64)
        out = np.zeros(n, np.int32)
        todo = np.arange(n)
        while len(todo):
            at = slot[todo]
            found = self._table[at]
            fresh = found < 0
            same = (self.op[found] == op) & (self.a[found] == a[todo]) & (self.b[found] == b[todo])
            same &= (self.c[found] == c[todo]) & (self.imm[found] == imm[todo]) & ~fresh
            out[todo[same]] = found[same]
            if fresh.any():
                mine = todo[fresh]
                where = at[fresh]
                self._table[where] = mine.astype(np.int32)
                won = self._table[where] == mine
                mine, where = mine[won], where[won]
                ids = np.arange(self.count, self.count + len(mine), dtype=np.int32)
                self._table[where] = ids
                self._store(ids, op, a[mine], b[mine], c[mine], imm[mine])
                out[mine] = ids
                todo = todo[~same]
                todo = todo[out[todo] == 0]
                # A lane that lost the slot looks at it again: the winner may be its equal.
                found = self._table[slot[todo]]
                lost = (self.op[found] == op) & (self.a[found] == a[todo]) & (self.b[found] == b[todo])
                lost &= (self.c[found] == c[todo]) & (self.imm[found] == imm[todo])
                out[todo[lost]] = found[lost]
                todo = todo[~lost]
            else:
                todo = todo[~same]
            slot[todo] = (slot[todo] + 1) & mask
        return out

    def _store(self, ids: Ids, op: int, a: Ids, b: Ids, c: Ids, imm: Bits) -> None:
        first, last = self.count, self.count + len(ids)
        self.op[first:last] = op
        self.a[first:last] = a
        self.b[first:last] = b
        self.c[first:last] = c
        self.imm[first:last] = imm
        self.width[first:last] = self.ops[op].width
        self.line[first:last] = self.current_line
        self.count = last

    def _grow(self, n: int) -> None:
        need = self.count + n
        if need > self.limit:
            raise GraphFull
        size = len(self.op)
        while size < need + 1:
            size *= 2
        for name in ("op", "a", "b", "c", "imm", "width", "line"):
            old = getattr(self, name)
            new = np.zeros(size, old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)
        rows = slice(1, self.count)
        kept = [getattr(self, name)[rows].copy() for name in ("op", "a", "b", "c", "imm", "line")]
        self._table = np.full(size * 4, -1, np.int32)
        self._rehash(*kept[:5])

    def _rehash(self, op: Ids, a: Ids, b: Ids, c: Ids, imm: Bits) -> None:
        h = (a.astype(np.uint64) * _MIX[0]) ^ (b.astype(np.uint64) * _MIX[1]) ^ (c.astype(np.uint64) * _MIX[2])
        h = (h ^ (imm * _MIX[3]) ^ (op.astype(np.uint64) * np.uint64(0x2545F491))) * _MIX[0]
        h ^= h >> _SHIFT
        h = (h * _MIX[2]) >> np.uint64(17)
        mask = len(self._table) - 1
        slot = (h & np.uint64(mask)).astype(np.int64)
        ids = np.arange(1, self.count, dtype=np.int32)
        todo = np.arange(len(ids))
        while len(todo):
            at = slot[todo]
            free = self._table[at] < 0
            self._table[at[free]] = ids[todo[free]]
            todo = todo[self._table[at] != ids[todo]]
            slot[todo] = (slot[todo] + 1) & mask
