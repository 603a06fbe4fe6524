"""An unbounded world: any number of candidates of any number of params, known only by what the lemmas say of them.

Candidates are constants of an uninterpreted sort and what may be asked of them are uninterpreted functions. The
axioms are exactly the statements of `model.lemmas`, each of which is an obligation of its own; a theorem that
follows from them holds for every capture and every launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import z3
from foldproof.impl.rules import STRICTEST_FIRST, Rules
from foldproof.model.terms import OPTIONS, Bool
from foldproof.model.world import SOUND, Flaws, Index, Number, Order, Predicate, World

CANDIDATE = z3.DeclareSort("Candidate")
NUMBERS = ("ones", "unfoldable_ones", "assumptions", "held")


@dataclass(slots=True)
class Abstract:
    """A `World` of any size. `axioms` grow as a theorem is stated; they are the premises of its proof."""

    axioms: list[Bool] = field(default_factory=list)
    _names: list[int] = field(default_factory=lambda: [0])
    _rules: set[Rules] = field(default_factory=set)
    _chosen: dict[tuple[Bool, Bool], z3.ExprRef] = field(default_factory=dict)

    @classmethod
    def fresh(cls) -> Abstract:
        """A world with the axioms that hold of every capture and launch."""
        world = cls()
        world.axioms += [*world._of_one(), *world._of_pairs()]
        return world

    def _flag(self, name: str, index: Index) -> Bool:
        return z3.Function(name, CANDIDATE, z3.BoolSort())(index)

    def _number(self, name: str, index: Index) -> Number:
        return z3.Function(name, CANDIDATE, z3.IntSort())(index)

    def _pair(self, name: str, one: Index, other: Index) -> Bool:
        return z3.Function(name, CANDIDATE, CANDIDATE, z3.BoolSort())(one, other)

    def _variable(self, prefix: str) -> z3.ExprRef:
        self._names[0] += 1
        return z3.Const(f"{prefix}{self._names[0]}", CANDIDATE)

    # What holds of every candidate, by the counting lemmas.
    def _of_one(self) -> list[Bool]:
        def counts(i: Index) -> Bool:
            numbers = [self._number(name, i) >= 0 for name in NUMBERS]
            none_read = z3.Implies(self.folds_every_one(i), self.runtime_ones(i) == 0)
            some = self.falls_back(i) == (self.ones(i) > 0)
            return z3.And(*numbers, none_read, some)

        return [self.forall(counts)]

    # What holds of every two candidates.
    def _of_pairs(self) -> list[Bool]:
        def both(i: Index, k: Index) -> Bool:
            apart = z3.Implies(i != k, z3.And(self.rank(i) != self.rank(k), _position(i) != _position(k)))
            options = [self._pair(f"same_options.{'.'.join(names)}", i, i) for names in _OPTION_SETS]
            neither_reads = z3.And(z3.Not(self.falls_back(i)), z3.Not(self.falls_back(k)))
            return z3.And(
                apart,
                *options,
                self.same_reads(i, i),
                z3.Implies(neither_reads, self.same_reads(i, k)),
                z3.Not(self.differs_in_free(i, i)),
                self.differs_in_free(i, k) == self.differs_in_free(k, i),
                self.twins(i, k) == self.twins(k, i),
                self.same_reads(i, k) == self.same_reads(k, i),
            )

        return [self.forall(lambda i: self.forall(lambda k: both(i, k)))]

    def _learn(self, rules: Rules) -> None:
        """The lemmas about the three strictnesses of one dialect and one reading of options."""
        family = Rules(STRICTEST_FIRST[0], rules.public, rules.options, source=False)
        if rules.strictness not in STRICTEST_FIRST or family in self._rules:
            return
        self._rules.add(family)

        def holds(i: Index) -> Bool:
            exact, general, runtime_one = (self._flag(self._admission(family, s), i) for s in STRICTEST_FIRST)
            reads = self.falls_back(i)
            return z3.And(
                z3.Implies(exact, general),
                z3.Implies(general, z3.And(runtime_one, z3.Not(reads))),
                z3.Implies(z3.And(runtime_one, z3.Not(reads)), general),
                z3.Implies(runtime_one, self.assumptions_hold(i)),
            )

        self.axioms.append(self.forall(holds))

    def _admission(self, rules: Rules, strictness: str) -> str:
        parts = [strictness, "public" if rules.public else "full", "options" if rules.options else "any"]
        return f"admits.{'.'.join(parts)}"

    @property
    def order(self) -> Order:
        """The capture: any set of candidates in any order."""
        return Order(lambda i: self._flag("listed", i), _position)

    def other_orders(self) -> Sequence[Order]:
        """One other order, of which nothing is known."""

        def elsewhere(index: Index) -> Number:
            return self._number("elsewhere", index)

        apart = self.forall(lambda i: self.forall(lambda k: z3.Implies(i != k, elsewhere(i) != elsewhere(k))))
        self.axioms.append(apart)
        return [Order(self.order.holds, elsewhere)]

    def any_candidate(self) -> Sequence[Index]:
        """One candidate of which nothing is known."""
        return [z3.Const("x", CANDIDATE)]

    def same_class_launch(self) -> tuple[World, Bool]:
        """The world itself: by the class lemmas another launch of the same classes changes no function of it.

        What is left to show of T15 is that the answer is determined: nothing but these functions decides it.
        """
        return self, z3.BoolVal(True)

    def forall(self, body: Predicate) -> Bool:
        """A universal quantifier."""
        index = self._variable("i")
        return z3.ForAll([index], body(index))

    def exists(self, body: Predicate) -> Bool:
        """An existential quantifier."""
        index = self._variable("i")
        return z3.Exists([index], body(index))

    def exists_pair(self, body: Callable[[Index, Index], Bool]) -> Bool:
        """Two quantifiers, over constants that differ."""
        return self.exists(lambda i: self.exists(lambda k: z3.And(z3.Not(self.equal(i, k)), body(i, k))))

    def remembered(self, body: Predicate) -> Predicate:
        """The predicate itself."""
        return body

    def equal(self, one: Index, other: Index) -> Bool:
        """Equality of constants."""
        return one == other

    def best(self, admissible: Predicate, beats: Callable[[Index, Index], Bool]) -> Predicate:
        """The candidate that the scanning loop ends with (`model.lemmas`): a constant, where any is admissible."""
        one, other = z3.Consts("one other", CANDIDATE)
        # The loop is a function of what is admissible and what beats what: equal questions have one constant.
        question = (admissible(one), beats(one, other))
        if question not in self._chosen:
            chosen = self._variable("best")
            beaten = self.forall(lambda k: z3.Implies(admissible(k), beats(chosen, k)))
            self.axioms.append(z3.Implies(self.exists(admissible), z3.And(admissible(chosen), beaten)))
            self._chosen[question] = chosen
        chosen = self._chosen[question]
        return lambda i: z3.And(admissible(i), i == chosen)

    def less(self, one: Number, other: Number) -> Bool:
        """Integer comparison."""
        return one < other

    def negated(self, number: Number) -> Number:
        """The number with its sign turned."""
        return -number

    def admits(self, index: Index, rules: Rules, flaws: Flaws = SOUND) -> Bool:
        """Admission under the rules; a source that is looked at is a conjunct of its own."""
        if flaws:
            raise NotImplementedError("a planted fault has no lemmas")
        self._learn(rules)
        admitted = self._flag(self._admission(rules, rules.strictness), index)
        return z3.And(admitted, z3.Not(self.other_source(index))) if rules.source else admitted

    def ones(self, index: Index) -> Number:
        """An uninterpreted count."""
        return self._number("ones", index)

    def unfoldable_ones(self, index: Index) -> Number:
        """An uninterpreted count."""
        return self._number("unfoldable_ones", index)

    def runtime_ones(self, index: Index) -> Number:
        """The foldable and the unfoldable 1s."""
        return self.ones(index) + self.unfoldable_ones(index)

    def assumptions(self, index: Index) -> Number:
        """An uninterpreted count."""
        return self._number("assumptions", index)

    def held(self, index: Index) -> Number:
        """An uninterpreted count."""
        return self._number("held", index)

    def rank(self, index: Index) -> Number:
        """An uninterpreted number, different for each candidate."""
        return self._number("rank", index)

    def falls_back(self, index: Index) -> Bool:
        """An uninterpreted flag."""
        return self._flag("falls_back", index)

    def reads_two_ones(self, index: Index) -> Bool:
        """An uninterpreted flag."""
        return self._flag("reads_two_ones", index)

    def same_reads(self, one: Index, other: Index, launch: World | None = None) -> Bool:  # noqa: ARG002 (as in `World`)
        """An uninterpreted relation; between two launches of the same classes it is the same one."""
        return self._pair("same_reads", one, other)

    def folds_every_one(self, index: Index) -> Bool:
        """An uninterpreted flag."""
        return self._flag("folds_every_one", index)

    def differs_in_free(self, one: Index, other: Index) -> Bool:
        """An uninterpreted relation."""
        return self._pair("differs_in_free", one, other)

    def same_options(self, one: Index, other: Index, names: Iterable[str] = OPTIONS) -> Bool:
        """An uninterpreted relation for each set of options."""
        return self._pair(f"same_options.{'.'.join(names)}", one, other)

    def twins(self, one: Index, other: Index) -> Bool:
        """An uninterpreted relation."""
        return self._pair("twins", one, other)

    def assumptions_hold(self, index: Index) -> Bool:
        """An uninterpreted flag."""
        return self._flag("assumptions_hold", index)

    def other_source(self, index: Index) -> Bool:
        """An uninterpreted flag."""
        return self._flag("other_source", index)

    def warned(self, index: Index) -> Bool:
        """An uninterpreted flag."""
        return self._flag("warned", index)


_OPTION_SETS = (OPTIONS, ("num_warps", "num_stages"))


def _position(index: Index) -> Number:
    return z3.Function("position", CANDIDATE, z3.IntSort())(index)
