"""The argmax rule: selects that carry the larger value and its index through comparisons, as a set of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from foldproof.gpu.symbolic.bitview import const_mask
from foldproof.gpu.symbolic.graph import Ids

if TYPE_CHECKING:
    from foldproof.gpu.symbolic.normal import Normaliser

LARGEST_INDEX = 1 << 17


@dataclass(frozen=True, slots=True)
class Pairs:
    """Candidates (value node, index) as sets of bits: numbers of pairs, and their indices."""

    members: int
    indices: int

    def __or__(self, other: Pairs) -> Pairs:
        return Pairs(self.members | other.members, self.indices | other.indices)

    @property
    def distinct(self) -> bool:
        """Whether no index stands for two values."""
        return self.members.bit_count() == self.indices.bit_count()


class Orders:
    """Recognises `p ? (v1, i1) : (v2, i2)` where p says that (v1, i1) is the better pair; `n` is the normaliser."""

    def __init__(self, n: Normaliser) -> None:
        self.n = n
        self.partners: dict[int, set[tuple[int, int]]] = {}
        self.inputs: dict[int, bool] = {}
        self.winners: dict[int, tuple[str, Pairs]] = {}
        self.nodes: dict[tuple[str, str, Pairs], int] = {}
        self.pairs: dict[tuple[int, int], int] = {}

    def learn(self, cone: Ids) -> None:
        """Note which pairs are chosen between by one condition: the values and the indices of a comparison."""
        g = self.n.g
        chosen = cone[np.isin(g.op[cone], list(g.sels.values()))]
        for condition, yes, no in zip(g.a[chosen].tolist(), g.b[chosen].tolist(), g.c[chosen].tolist(), strict=True):
            self.partners.setdefault(condition, set()).add((yes, no))

    def select(self, nodes: Ids, plain: Ids) -> Ids:
        """Normal forms of select nodes; `plain` where no rule applies."""
        g = self.n.g
        out = plain.copy()
        for row, node in enumerate(nodes.tolist()):
            if int(g.op[plain[row]]) not in g.sels.values():
                continue
            found = self._winner(int(g.a[node]), int(g.b[node]), int(g.c[node]))
            if found is not None:
                out[row] = found
                self.n.used.add("argmax")
        return out

    def _winner(self, condition: int, yes: int, no: int) -> int | None:  # noqa: C901  # its checks in order
        to = self.n.to
        shape = self._condition(int(to[condition]))
        if shape is None:
            return None
        strict, first, second, indices = shape
        if (
            strict
            and indices is None
            and (found := self._cascade(first, second, int(to[yes]), int(to[no]))) is not None
        ):
            return found
        # `first` < `second` (or <=) is tested; the branch taken on success carries the winner.
        pairs = [(int(to[y]), int(to[n])) for y, n in self.partners.get(condition, ())]
        values = next((p for p in pairs if set(p) == {first, second}), None)
        mine = (int(to[yes]), int(to[no]))
        if values is None:
            values = self._orientation(pairs, first, second)
        if values is None:
            return None
        kind = "min" if values[0] == first else "max"
        others = [p for p in pairs if p != values]
        if indices is not None and indices not in others:
            others = [*others, indices]
        for chosen in others:
            sides = [self._pairs(kind, v, i) for v, i in zip(values, chosen, strict=True)]
            if sides[0] is None or sides[1] is None or (mine not in (values, chosen)):
                continue
            if indices is None and not _ordered(sides[0], sides[1], strict):
                continue
            if indices is not None and chosen != indices:
                continue
            pairs_all = sides[0] | sides[1]
            if not pairs_all.distinct:
                continue
            return self._node(kind, "value" if mine == values else "index", pairs_all, 32)
        return None

    def _cascade(self, first: int, second: int, yes: int, rest: int) -> int | None:
        """`first < second ? yes : first == second ? the smaller of both indices : no`, the last step of a tree."""
        g = self.n.g
        if int(g.op[rest]) not in g.sels.values() or g.name(int(g.a[rest])) != "setp.eq.f32":
            return None
        equal, smaller, no = int(g.a[rest]), int(g.b[rest]), int(g.c[rest])
        if {int(g.a[equal]), int(g.b[equal])} != {first, second} or not self._is_smaller(smaller, {yes, no}):
            return None
        for kind, values in (("max", (second, first)), ("min", (first, second))):
            one, other = self._pairs(kind, values[0], yes), self._pairs(kind, values[1], no)
            if one is None or other is None or (one | other).members.bit_count() < 3 or not (one | other).distinct:
                continue
            return self._node(kind, "index", one | other, 32)
        return None

    def _is_smaller(self, node: int, of: set[int]) -> bool:
        g = self.n.g
        if int(g.op[node]) not in g.sels.values():
            return False
        less, low, high = int(g.a[node]), int(g.b[node]), int(g.c[node])
        compares = g.name(less) in ("lt.s32", "lt.u32") and (int(g.a[less]), int(g.b[less])) == (low, high)
        return compares and {low, high} == of

    def _orientation(self, pairs: list[tuple[int, int]], first: int, second: int) -> tuple[int, int] | None:
        """Where only indices are chosen (the last step drops the values), the value that each belongs to."""
        for yes, no in pairs:
            for kind in ("max", "min"):
                values = (second, first) if kind == "max" else (first, second)
                sides = [self._pairs(kind, v, i) for v, i in zip(values, (yes, no), strict=True)]
                if (
                    sides[0] is not None
                    and sides[1] is not None
                    and (sides[0].members.bit_count() > 1 or sides[1].members.bit_count() > 1)
                ):
                    return values
        return None

    def _condition(self, node: int) -> tuple[bool, int, int, tuple[int, int] | None] | None:
        """(strict, lesser value, greater value, indices whose order breaks ties) of a comparison, or None."""
        g = self.n.g
        name = g.name(node)
        if name in ("setp.lt.f32", "setp.le.f32"):
            return name == "setp.lt.f32", int(g.a[node]), int(g.b[node]), None
        if not name.startswith("set:or.i1"):
            return None
        members = _members(self.n.forms.sets[node][1], self.n.forms.by_atom)
        if len(members) != 2:
            return None
        less = next((m for m in members if g.name(m) == "setp.lt.f32"), None)
        both = next((m for m in members if g.name(m).startswith("set:and.i1")), None)
        if less is None or both is None:
            return None
        inner = _members(self.n.forms.sets[both][1], self.n.forms.by_atom)
        equal = next((m for m in inner if g.name(m) == "setp.eq.f32"), None)
        before = next((m for m in inner if g.name(m) in ("lt.s32", "lt.u32")), None)
        if len(inner) != 2 or equal is None or before is None:
            return None
        first, second = int(g.a[less]), int(g.b[less])
        if {int(g.a[equal]), int(g.b[equal])} != {first, second}:
            return None
        return True, first, second, (int(g.a[before]), int(g.b[before]))

    def _pairs(self, kind: str, value: int, index: int) -> Pairs | None:
        """The candidates that (value, index) is the winner of."""
        g = self.n.g
        won = self.winners.get(index)
        if won is not None:
            fits = won[0] == kind and self.winners.get(value, ("", None))[1] == won[1]
            return won[1] if fits else None
        if not const_mask(g, np.array([index], np.int32))[0] or g.width[index] != 32 or g.imm[index] >= LARGEST_INDEX:
            return None
        if value in self.winners or not self._input(value):
            return None
        number = self.pairs.setdefault((value, int(g.imm[index])), len(self.pairs))
        return Pairs(1 << number, 1 << int(g.imm[index]))

    def _input(self, value: int) -> bool:
        """Whether a value is no NaN: an input, or one widened exactly; a computed value may be a NaN."""
        found = self.inputs.get(value)
        if found is None:
            plain = self.n.g.name(value).startswith(("input", "const", "cat32"))
            found = self.inputs[value] = plain and self.n.is_number(value, "f32")
        return found

    def _node(self, kind: str, what: str, pairs: Pairs, width: int) -> int:
        found = self.nodes.get((kind, what, pairs))
        if found is None:
            g, zero = self.n.g, np.zeros(1, np.int32)
            op, number = g.op_id(f"arg{kind}.{what}", width, 1), np.array([len(self.nodes)], np.uint64)
            some = zero + np.int32(next(v for v, _ in self.pairs))
            found = self.nodes[kind, what, pairs] = int(g.intern(op, some, zero, zero, number)[0])
            self.winners[found] = kind, pairs
        return found


def _members(bits: int, by_atom: list[int]) -> list[int]:
    found = []
    while bits:
        low = bits & -bits
        found.append(by_atom[low.bit_length() - 1])
        bits ^= low
    return found


def _ordered(yes: Pairs, no: Pairs, strict: bool) -> bool:
    """Whether a tie, which takes the second branch exactly when the test is strict, goes to the smaller index."""
    first, second = (no, yes) if strict else (yes, no)
    return first.indices.bit_length() <= (second.indices & -second.indices).bit_length() - 1
