"""The hash-consed graph of symbolic values: equal node, equal bits, whatever the inputs.

A node is an operation over at most three earlier nodes and a 64-bit immediate. Interning is vectorised: `apply` takes
arrays of operands and gives an array of nodes. The table compares the columns themselves, so a hash collision costs
time and never soundness. Ids increase from operands to results, so id order is a topological order.

Node 0 is reserved: in a lane it means "concrete".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
Bits: TypeAlias = NDArray[np.uint64]
Mask: TypeAlias = NDArray[np.bool_]

_MIX = tuple(np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93))
_SHIFT, _HALF = np.uint64(29), np.uint64(32)
WIDTHS = (1, 8, 16, 32, 64)


class GraphFull(Exception):
    """The graph holds more nodes than the budget allows."""


@dataclass(frozen=True, slots=True)
class Op:
    """An operation: its name holds all that decides bits (rounding, flushing, types); `width` is the result's."""

    name: str
    width: int
    arity: int
    commutative: bool


class Graph:
    """Nodes in columns. `limit` is the largest number of nodes.

    `agree` says which of two nodes' contents are the same, for threads that write one place; node equality unless the
    comparison of variants puts a weaker one there.
    """

    def __init__(self, limit: int = 12_000_000) -> None:
        self.limit = limit
        self.ops: list[Op] = []
        self._ids: dict[str, int] = {}
        self.count = 1
        self._first: Bits
        self._second: Bits
        self.imm: Bits
        self.width: NDArray[np.uint8]
        self.place: Ids
        self.level: Ids
        self._allocate(1 << 14)
        self.places: list[str] = [""]
        self.current_place = 0
        self.agree: Callable[[Ids, Ids], Mask] = np.equal
        self.none = self.op_id("none", 0, 0)
        self.consts = {w: self.op_id(f"const{w}", w, 0) for w in WIDTHS}
        self.leaves = {w: self.op_id(f"input{w}", w, 0) for w in WIDTHS}
        self.extracts = {w: self.op_id(f"extract{w}", w, 1) for w in WIDTHS}
        self.cats = {w: self.op_id(f"cat{w}", w, 2) for w in WIDTHS}
        self.sels = {w: self.op_id(f"sel{w}", w, 3) for w in WIDTHS}
        self.undefs = {w: self.op_id(f"undef{w}", w, 0) for w in WIDTHS}
        self.pair = self.op_id("pair", 0, 3)

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

    def place_id(self, source: str) -> int:
        """The number of a source line; nodes made while it is `current_place` belong to it."""
        if source not in self.places:
            self.places.append(source)
        return self.places.index(source)

    def constant(self, width: int, bits: Bits | int) -> Ids:
        """Nodes of constants."""
        values = np.atleast_1d(np.asarray(bits, np.uint64))
        zero = np.zeros(len(values), np.int32)
        return self.intern(self.consts[width], zero, zero, zero, values)

    def leaf(self, width: int, address: Bits) -> Ids:
        """Nodes of the initial content of memory, `width` bits at an address."""
        zero = np.zeros(len(address), np.int32)
        return self.intern(self.leaves[width], zero, zero, zero, address)

    def undefined(self, width: int, place: Bits) -> Ids:
        """Nodes of bits that nothing has defined; an output that depends on one has no verdict."""
        zero = np.zeros(len(place), np.int32)
        return self.intern(self.undefs[width], zero, zero, zero, place)

    def cone(self, roots: Ids, known: Mask | None = None) -> Ids:
        """The nodes that roots depend on, themselves included, ascending; `known` ones are left out."""
        seen = np.zeros(self.count, np.bool_)
        seen[0] = True
        if known is not None:
            seen |= known[: self.count]
        listed = np.zeros(self.count, np.bool_)
        place = np.zeros(self.count, np.int32)
        front = roots
        while len(front):
            front = front[~seen[front]]
            order = np.arange(len(front), dtype=np.int32)
            place[front] = order
            front = front[place[front] == order]  # each node once
            seen[front] = listed[front] = True
            front = np.concatenate([self.a[front], self.b[front], self.c[front]])
        return np.flatnonzero(listed).astype(np.int32)

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
        if self.count + n > self._room:
            self._grow(n)
        first = (c.astype(np.uint64) << _HALF) | np.uint64(op)
        second = (b.astype(np.uint64) << _HALF) | a.astype(np.uint64)
        slot = self._slots(first, second, imm)
        found = self._table[slot]
        same = self._same(found, first, second, imm)
        if same.all():
            return found
        out = np.where(same, found, 0)
        todo = np.flatnonzero(~same)
        found = found[todo]
        while len(todo):
            fresh = np.flatnonzero(found < 0)
            if len(fresh):
                rows = todo[fresh]
                where = slot[rows]
                self._table[where] = fresh
                won = self._table[where] == fresh
                rows, where = rows[won], where[won]
                new = slice(self.count, self.count + len(rows))
                ids = np.arange(new.start, new.stop, dtype=np.int32)
                self._table[where] = ids
                self._first[new], self._second[new], self.imm[new] = first[rows], second[rows], imm[rows]
                self.width[new], self.place[new] = self.ops[op].width, self.current_place
                below = np.maximum(self.level[a[rows]], self.level[b[rows]])
                self.level[new] = np.maximum(below, self.level[c[rows]]) + 1
                self.count = new.stop
                out[rows] = ids
                todo = todo[out[todo] == 0]
                if not len(todo):
                    break
                # A lane that lost its slot in this round looks at it again: the winner may be its equal.
                found = self._table[slot[todo]]
                same = self._same(found, first[todo], second[todo], imm[todo])
                out[todo[same]] = found[same]
                todo = todo[~same]
            slot[todo] = (slot[todo] + 1) & (len(self._table) - 1)
            found = self._table[slot[todo]]
            same = self._same(found, first[todo], second[todo], imm[todo])
            out[todo[same]] = found[same]
            todo, found = todo[~same], found[~same]
        return out

    def _same(self, found: Ids, first: Bits, second: Bits, imm: Bits) -> Mask:
        """Whether rows hold exactly these columns; row -1, an empty slot, never does: no operation is number 0."""
        same: Mask = (self._second[found] == second) & (self._first[found] == first) & (self.imm[found] == imm)
        return same

    def _slots(self, first: Bits, second: Bits, imm: Bits) -> NDArray[np.int64]:
        h = (first * _MIX[0]) ^ (second * _MIX[1]) ^ (imm * _MIX[3])
        h = (h ^ (h >> _SHIFT)) * _MIX[2]
        slots: NDArray[np.int64] = ((h ^ (h >> _HALF)) & np.uint64(len(self._table) - 1)).astype(np.int64)
        return slots

    def _allocate(self, size: int) -> None:
        old = self.count
        for name, kind in (
            ("_first", np.uint64),
            ("_second", np.uint64),
            ("imm", np.uint64),
            ("width", np.uint8),
            ("place", np.int32),
            ("level", np.int32),
        ):
            column = np.zeros(size + 1, kind)
            if old > 1:
                column[:old] = getattr(self, name)[:old]
            setattr(self, name, column)
        halves = self._first.view(np.int32).reshape(-1, 2), self._second.view(np.int32).reshape(-1, 2)
        self.op, self.c = halves[0][:, 0], halves[0][:, 1]
        self.a, self.b = halves[1][:, 0], halves[1][:, 1]
        self._room = size
        self._table = np.full(size * 4, -1, np.int32)

    def _grow(self, n: int) -> None:
        if self.count + n > self.limit:
            raise GraphFull
        size = self._room
        while size < self.count + n:
            size *= 4
        self._allocate(size)
        ids = np.arange(1, self.count, dtype=np.int32)
        slot = self._slots(self._first[ids], self._second[ids], self.imm[ids])
        while len(ids):
            free = self._table[slot] < 0
            self._table[slot[free]] = ids[free]
            left = self._table[slot] != ids
            ids, slot = ids[left], (slot[left] + 1) & (len(self._table) - 1)
