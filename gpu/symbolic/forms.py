"""Associative operations in normal form: sums as linear forms, extrema and bitwise operations as sets.

Sets are Python integers, a bit an operand, so that a union over thousands of operands costs about a microsecond.
"""

from __future__ import annotations

import numpy as np
from foldproof.gpu.symbolic.algebra import build
from foldproof.gpu.symbolic.bitview import const_mask, low_mask
from foldproof.gpu.symbolic.graph import Graph, Ids
from foldproof.gpu.symbolic.integer_primitives import Primitive
from foldproof.gpu.symbolic.softfloat import FORMATS
from numpy.typing import NDArray

Linear = tuple[NDArray[np.int32], NDArray[np.uint64], int]
"""Operands ascending, their coefficients, and a constant."""


class Forms:
    """The forms of one graph; shared by all normalisers of it, so that equal forms are equal nodes."""

    def __init__(self) -> None:
        self.atoms: dict[int, int] = {}
        self.by_atom: list[int] = []
        self.sets: dict[int, tuple[str, int]] = {}
        self.known: dict[tuple[str, object], int] = {}
        self.count = 0
        self.sums: dict[int, Linear] = {}

    def takes(self, name: str) -> bool:
        """Whether an operation has a normal form here."""
        words = name.split(".")
        kind = words[-1]
        if words[0] in ("max", "min") and kind in FORMATS:
            return kind != "f64" and "xorsign" not in words
        if words[0] in ("max", "min", "and", "or", "xor") and kind[0] in "isu":
            return True
        return words[0] in ("add", "sub", "mul", "shl") and kind[0] in "iu" and kind != "i1"

    def normal(self, g: Graph, prim: Primitive, a: Ids, b: Ids, used: set[str]) -> Ids:
        """The node of the form of `a op b`, for operands in normal form."""
        words = prim.name.split(".")
        if words[0] in ("add", "sub", "mul", "shl"):
            return self._linear(g, prim, a, b, used)
        used.add("extremum" if words[0] in ("max", "min") else "bitwise")
        is_float = words[-1] in FORMATS
        plain = a if is_float else build(g, prim, [a, b])
        decided = np.zeros(len(a), np.bool_)
        if not is_float:
            decided = g.op[plain] != g.op_id(prim.name, prim.width, 2, commutative=prim.commutative)
        out = plain.copy()
        rows = np.flatnonzero(~decided)
        members = []
        for x, y in zip(a[rows].tolist(), b[rows].tolist(), strict=True):
            one, other = self._set(prim.name, x), self._set(prim.name, y)
            members.append(one ^ other if words[0] == "xor" else one | other)
        out[rows] = self._of_sets(g, prim, members)
        return out

    def _set(self, name: str, node: int) -> int:
        found = self.sets.get(node)
        if found is not None and found[0] == name:
            return found[1]
        atom = self.atoms.get(node)
        if atom is None:
            atom = self.atoms[node] = len(self.by_atom)
            self.by_atom.append(node)
        return 1 << atom

    def _of_sets(self, g: Graph, prim: Primitive, sets: list[int]) -> Ids:
        """The nodes of sets: an empty one is zero, a single operand is itself, except in extrema of floats."""
        keeps = prim.name.split(".")[-1] in FORMATS
        fresh = [m for m in dict.fromkeys(sets) if (prim.name, m) not in self.known]
        proper = []
        for members in fresh:
            if members == 0:
                self.known[prim.name, members] = int(g.constant(prim.width, 0)[0])
            elif not keeps and members & (members - 1) == 0:
                self.known[prim.name, members] = self.by_atom[members.bit_length() - 1]
            else:
                proper.append(members)
        lowest = [self.by_atom[(m & -m).bit_length() - 1] for m in proper]
        nodes = self._nodes(g, f"set:{prim.name}", prim.width, lowest)
        for members, node in zip(proper, nodes, strict=True):
            self.known[prim.name, members] = node
            self.sets[node] = (prim.name, members)
        return np.array([self.known[prim.name, m] for m in sets], np.int32)

    def _nodes(self, g: Graph, name: str, width: int, operands: list[int]) -> list[int]:
        """New nodes, one for each operand given (a node that the form depends on)."""
        if not operands:
            return []
        zero = np.zeros(len(operands), np.int32)
        numbers = np.arange(self.count, self.count + len(operands), dtype=np.uint64)
        self.count += len(operands)
        return [int(n) for n in g.intern(g.op_id(name, width, 1), np.array(operands, np.int32), zero, zero, numbers)]

    def _linear(self, g: Graph, prim: Primitive, a: Ids, b: Ids, used: set[str]) -> Ids:
        op, width = prim.name.split(".")[0], prim.width
        mask = int(low_mask(width))
        constant = const_mask(g, b)
        factor_a = const_mask(g, a)
        out = np.zeros(len(a), np.int32)
        pairs: dict[tuple[int, int], int] = {}
        for row, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            known = pairs.get((x, y))
            if known is None:
                if op == "add":
                    form = _combine(self._sum(g, x), 1, self._sum(g, y), 1, mask)
                elif op == "sub":
                    form = _combine(self._sum(g, x), 1, self._sum(g, y), mask, mask)
                elif op == "shl" and constant[row]:
                    amount = int(g.imm[y])
                    form = _scale(self._sum(g, x), (1 << amount) & mask if amount < width else 0, mask)
                elif op == "mul" and constant[row]:
                    form = _scale(self._sum(g, x), int(g.imm[y]), mask)
                elif op == "mul" and factor_a[row]:
                    form = _scale(self._sum(g, y), int(g.imm[x]), mask)
                else:
                    known = int(build(g, prim, [a[row : row + 1], b[row : row + 1]])[0])
                if known is None:
                    used.add("ring")
                    known = self._of_sum(g, width, form)
                pairs[x, y] = known
            out[row] = known
        return out

    def _sum(self, g: Graph, node: int) -> Linear:
        found = self.sums.get(node)
        if found is not None:
            return found
        if int(g.op[node]) in g.consts.values():
            return np.zeros(0, np.int32), np.zeros(0, np.uint64), int(g.imm[node])
        return np.array([node], np.int32), np.ones(1, np.uint64), 0

    def _of_sum(self, g: Graph, width: int, form: Linear) -> int:
        atoms, factors, constant = form
        if not len(atoms):
            return int(g.constant(width, constant)[0])
        if len(atoms) == 1 and factors[0] == 1 and constant == 0:
            return int(atoms[0])
        key = (f"sum{width}", (atoms.tobytes(), factors.tobytes(), constant))
        node = self.known.get(key)
        if node is None:
            node = self.known[key] = self._nodes(g, f"sum{width}", width, [int(atoms[0])])[0]
            self.sums[node] = form
        return node


def _combine(x: Linear, times_x: int, y: Linear, times_y: int, mask: int) -> Linear:
    atoms = np.concatenate([x[0], y[0]])
    factors = np.concatenate([x[1] * np.uint64(times_x), y[1] * np.uint64(times_y)]) & np.uint64(mask)
    constant = (x[2] * times_x + y[2] * times_y) & mask
    if len(atoms) > 1:
        unique, where = np.unique(atoms, return_inverse=True)
        if len(unique) != len(atoms):
            totals = np.zeros(len(unique), np.uint64)
            np.add.at(totals, where, factors)
            atoms, factors = unique, totals & np.uint64(mask)
        else:
            order = np.argsort(atoms)
            atoms, factors = atoms[order], factors[order]
    kept = factors != 0
    return atoms[kept], factors[kept], constant


def _scale(x: Linear, times: int, mask: int) -> Linear:
    empty: Linear = (np.zeros(0, np.int32), np.zeros(0, np.uint64), 0)
    return _combine(x, times & mask, empty, 1, mask)
