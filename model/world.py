"""What policies and theorems are stated over: a world of candidates, bounded (`Scope`) or of any number (`Abstract`).

Stating them once over this interface makes the bounded proof, the unbounded proof and the counterexample speak
of the same formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import z3
from foldproof.impl.rules import Rules
from foldproof.model.terms import OPTIONS, Bool

Index: TypeAlias = Any
"""A candidate: a Python int in a `Scope`, a Z3 constant of an uninterpreted sort in an `Abstract` world."""
Number: TypeAlias = Any
"""A Z3 number: a bit-vector in a `Scope`, an integer in an `Abstract` world. Compare with `World.less`."""
Predicate: TypeAlias = Callable[[Index], Bool]
Flaws: TypeAlias = frozenset[str]
"""Names of planted faults (`model.mutants`); the rules and policies themselves have none."""
SOUND: Flaws = frozenset()


@dataclass(frozen=True, slots=True)
class Order:
    """One capture over the world's candidates: which of them it holds, and where each stands."""

    holds: Predicate
    position: Callable[[Index], Number]

    def without(self, removed: Index) -> Order:
        """The same capture less one candidate."""
        return Order(lambda i: z3.And(self.holds(i), i != removed), self.position)


class World(Protocol):
    """Candidates for one launch, and what may be asked of them."""

    @property
    def order(self) -> Order:
        """The capture as it stands."""

    def other_orders(self) -> Sequence[Order]:
        """Reorderings of the capture that are enough to show order-independence."""

    def any_candidate(self) -> Sequence[Index]:
        """Indices that stand for "some candidate, whichever": what holds of each of these holds of all."""

    def same_class_launch(self) -> tuple[World, Bool]:
        """The world with another launch of the same classes, and the formula that says that they are (T15)."""

    def forall(self, body: Predicate) -> Bool:
        """The body holds of every candidate."""

    def exists(self, body: Predicate) -> Bool:
        """The body holds of some candidate."""

    def exists_pair(self, body: Callable[[Index, Index], Bool]) -> Bool:
        """The body, which must be symmetric, holds of some two candidates."""

    def remembered(self, body: Predicate) -> Predicate:
        """The same predicate; a world of few candidates keeps its terms instead of building them again."""

    def equal(self, one: Index, other: Index) -> Bool:
        """The two are one candidate."""

    def best(self, admissible: Predicate, beats: Callable[[Index, Index], Bool]) -> Predicate:
        """The predicate of the one admissible candidate that beats or ties with every other."""

    def less(self, one: Number, other: Number) -> Bool:
        """The first number is below the second."""

    def negated(self, number: Number) -> Number:
        """A number that is the less the greater the given one is."""

    def admits(self, index: Index, rules: Rules, flaws: Flaws = SOUND) -> Bool:
        """The candidate is admissible under the rules."""

    def ones(self, index: Index) -> Number:
        """How many foldable 1s the candidate reads."""

    def runtime_ones(self, index: Index) -> Number:
        """How many 1s the candidate reads at all."""

    def unfoldable_ones(self, index: Index) -> Number:
        """How many 1s the candidate reads through nospec and annotated params."""

    def assumptions(self, index: Index) -> Number:
        """How many folded ints and div16 params the candidate assumes of the args."""

    def held(self, index: Index) -> Number:
        """What `most-held` counts."""

    def rank(self, index: Index) -> Number:
        """Where the candidate's hash stands among all hashes."""

    def falls_back(self, index: Index) -> Bool:
        """The candidate reads a foldable 1."""

    def reads_two_ones(self, index: Index) -> Bool:
        """The candidate reads two foldable 1s or more."""

    def same_reads(self, one: Index, other: Index, launch: World | None = None) -> Bool:
        """The two read the same foldable 1s, the other one those of `launch`'s args where that is given."""

    def folds_every_one(self, index: Index) -> Bool:
        """Every i32 1 of the launch is folded in the candidate."""

    def differs_in_free(self, one: Index, other: Index) -> Bool:
        """The two differ in a constant that the launch names neither as const nor as arg."""

    def same_options(self, one: Index, other: Index, names: Iterable[str] = OPTIONS) -> Bool:
        """The two were compiled with equal launch options of those names."""

    def twins(self, one: Index, other: Index) -> Bool:
        """The two have equal params and consts."""

    def assumptions_hold(self, index: Index) -> Bool:
        """Everything that the candidate was compiled under is true of the launch (T04)."""

    def other_source(self, index: Index) -> Bool:
        """The candidate and the launch both say a source, and not the same."""

    def warned(self, index: Index) -> Bool:
        """A policy that warns once a variant has warned of the candidate before."""
