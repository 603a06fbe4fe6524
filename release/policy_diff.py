"""Where two policies differ: a minimal list of described regions, each with its smallest example, and the proofs.

A region is a change of ending and the fact that all its cases share. The regions of one change cover it, and none can
be left out; both are decided by the model in a stated scope. T09 is proved for any number of candidates and args.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import z3
from foldproof.impl.cases import Case, replay
from foldproof.impl.policy import Policy
from foldproof.impl.select import Outcome, Selection
from foldproof.model.decode import Reader
from foldproof.model.matrix import SEARCH, settle
from foldproof.model.minimise import fewest_assumptions, smallest_size, smallest_values
from foldproof.model.prove import Bench, Question
from foldproof.model.rules import conj, disj
from foldproof.model.scope import Scope, Size
from foldproof.model.selection import answer
from foldproof.model.terms import Bool
from foldproof.model.theorems import THEOREMS
from foldproof.release.features import AMBIGUOUS, OPEN, Feature, Picks, endings, features
from foldproof.release.solving import Undecided

WIDER = Size(3, 2)
OTHER = -1
"""The fact of a region that none of the known facts names."""


class Region(msgspec.Struct, frozen=True):
    """Cases that share a fact and end in another way: the changes (OLD's ending, NEW's ending) that the fact covers,
    what else always holds of them, and the smallest example with what each side answers.
    """

    id: str
    says: str
    changes: tuple[tuple[str, str], ...]
    always: tuple[str, ...]
    example: Case
    old_answer: str
    new_answer: str


class Proof(msgspec.Struct, frozen=True):
    """A verdict on T09 for the pair, in one direction."""

    theorem: str
    old: str
    new: str
    verdict: str
    scope: str
    sentence: str


class PolicyDiff(msgspec.Struct, frozen=True):
    """The regions where two policies differ, the scope in which the list is shown to be whole, and T09 both ways."""

    regions: tuple[Region, ...]
    scope: str
    proofs: tuple[Proof, ...]

    @property
    def equal(self) -> bool:
        """Whether no case of the scope tells the policies apart."""
        return not self.regions


def policy_diff(old: Policy, new: Policy, wider: Size = WIDER) -> PolicyDiff:
    """The whole difference. Raises `Undecided` where the solver gives up."""
    bench = Bench(wider)
    small = _Pair.of(bench, SEARCH, old, new)
    large = small if wider == SEARCH else _Pair.of(bench, wider, old, new)
    covered: dict[int, list[tuple[str, str]]] = {}
    for was, now in _heads(small, large):
        for fact in _cover(small, large, was, now):
            covered.setdefault(fact, []).append((was, now))
    last = len(small.facts)
    ordered = sorted(covered, key=lambda fact: fact if fact != OTHER else last)
    regions = tuple(_region(bench, (small, large), fact, covered[fact]) for fact in ordered)
    return PolicyDiff(regions, f"{SEARCH} and {wider}", (_conserves(old, new), _conserves(new, old)))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both policies' answers in the scope of one size, and one solver that is asked everything about them."""

    bench: Bench
    scope: Scope
    policies: tuple[Policy, Policy]
    ends: tuple[dict[str, Bool], dict[str, Bool]]
    picks: tuple[Picks, Picks]
    facts: tuple[Feature, ...]
    without: tuple[Bool, ...]
    asked: z3.Solver
    _names: dict[int, Bool]

    @classmethod
    def of(cls, bench: Bench, size: Size, old: Policy, new: Policy) -> _Pair:
        """The pair in one size."""
        scope = bench.scope(size)
        one, other = (Picks(run.picks, run.missing, run.ambiguous) for run in (answer(scope, old), answer(scope, new)))
        ends = endings(scope, one), endings(scope, other)
        solver = bench.solver()
        solver.add(scope.well_formed)
        facts = features(scope, one, other)
        without = tuple(z3.Not(fact.formula) for fact in facts)
        return cls(bench, scope, (old, new), ends, (one, other), facts, without, solver, {})

    def differs(self, was: str, now: str) -> Bool:
        """The sides end so; and where both pick, they pick different variants."""
        one, other = self.picks
        same = disj(z3.And(one.picks(i), other.picks(i)) for i in range(self.scope.size.candidates))
        return conj([self.ends[0][was], self.ends[1][now], *([] if was != now else [_apart(was, same)])])

    def within(self, fact: int, changes: Sequence[tuple[str, str]]) -> list[Bool]:
        """The cases of a region."""
        named = [self.facts[fact].formula] if fact != OTHER else [z3.Not(f.formula) for f in self.facts]
        return [disj(self.differs(was, now) for was, now in changes), *named]

    def possible(self, *wanted: Bool) -> bool:
        """Whether a case of the scope meets all of `wanted`. Raises `Undecided`."""
        found = self.asked.check([self._named(formula) for formula in wanted])
        if found == z3.unknown:
            raise Undecided(f"the solver gave up on {self.scope.size}", fix="try again on a quieter machine")
        return bool(found == z3.sat)

    def model(self) -> z3.ModelRef:
        """The case that the last question found."""
        return self.asked.model()

    def _named(self, formula: Bool) -> Bool:
        """A name for a formula, so that the solver keeps what it learns of it between questions."""
        key = formula.get_id()
        if key not in self._names:
            name = z3.Bool(f"asked.{len(self._names)}")
            self.asked.add(name == formula)
            self._names[key] = name
        return self._names[key]


def _apart(ends: str, same: Bool) -> Bool:
    return z3.BoolVal(False) if ends in ("missing", "ambiguous") else z3.Not(same)


def _heads(small: _Pair, large: _Pair) -> Iterator[tuple[str, str]]:
    for was in small.ends[0]:
        for now in small.ends[1]:
            if small.possible(small.differs(was, now)) or large.possible(large.differs(was, now)):
                yield was, now


def _cover(small: _Pair, large: _Pair, was: str, now: str) -> list[int]:
    """The facts that cover one change: greedy in the order of the facts, then what is not needed is dropped."""
    cover: list[int] = []
    for pair in (small, large):
        while OTHER not in cover and pair.possible(*_outside(pair, was, now, cover)):
            model = pair.model()
            holding = [f for f, fact in enumerate(pair.facts) if _true(model, fact)]
            # Of an ambiguity it is first asked what a refusal looks at.
            if AMBIGUOUS in (was, now):
                holding.sort(key=lambda f: pair.facts[f].id not in OPEN)
            cover.append(next(iter(holding), OTHER))
    for fact in sorted(cover, reverse=True):
        rest = [other for other in cover if other != fact]
        if OTHER not in cover and not any(pair.possible(*_outside(pair, was, now, rest)) for pair in (small, large)):
            cover = rest
    return cover


def _outside(pair: _Pair, was: str, now: str, cover: Sequence[int]) -> list[Bool]:
    return [pair.differs(was, now), *(pair.without[f] for f in cover)]


def _region(bench: Bench, pairs: tuple[_Pair, _Pair], fact: int, changes: Sequence[tuple[str, str]]) -> Region:
    pair = next(pair for pair in pairs if pair.possible(*pair.within(fact, changes)))
    within = pair.within(fact, changes)
    always = _always(pair, within, fact)
    case = _smallest(bench, pair, fact, changes)
    answers = [replay(case, policy) for policy in pair.policies]
    says = pair.facts[fact].says if fact != OTHER else "none of the facts known here"
    name = pair.facts[fact].id if fact != OTHER else "other"
    return Region(name, says, tuple(changes), tuple(always), case, *(answer_text(outcome) for outcome in answers))


def _always(pair: _Pair, within: Sequence[Bool], fact: int) -> list[str]:
    """What holds of every case of a region, besides the fact that names it; `pair` has just found one of its cases."""
    model = pair.model()
    open_ = [n for n, f in enumerate(pair.facts) if n != fact and _true(model, f)]
    always = []
    while open_:
        number = open_.pop(0)
        if pair.possible(*within, pair.without[number]):
            model = pair.model()
            open_ = [n for n in open_ if _true(model, pair.facts[n])]
        else:
            always.append(pair.facts[number].says)
    return always


def _true(model: z3.ModelRef, fact: Feature) -> bool:
    return bool(z3.is_true(model.eval(fact.formula, model_completion=True)))


def _smallest(bench: Bench, pair: _Pair, fact: int, changes: Sequence[tuple[str, str]]) -> Case:
    """The smallest case of a region: fewest candidates, args and constants, then fewest assumptions."""
    made: dict[Size, _Pair] = {pair.scope.size: pair}

    def of(size: Size) -> _Pair:
        if size not in made:
            made[size] = _Pair.of(bench, size, *pair.policies)
        return made[size]

    size = smallest_size(pair.scope.size, lambda size: of(size).possible(*of(size).within(fact, changes)))
    assert size is not None, "the region was met in this very size"
    found = of(size)
    solver = bench.solver()
    solver.add(found.scope.well_formed, *found.within(fact, changes))
    fewest_assumptions(solver, found.scope)
    return Reader(smallest_values(solver, found.scope), found.scope).case(
        found.facts[fact].id if fact >= 0 else "other"
    )


def answer_text(outcome: Outcome) -> str:
    """An answer in a few words."""
    if isinstance(outcome, Selection):
        reads = f", reading {', '.join(outcome.ones)}" if outcome.ones else ""
        return f"{outcome.variant.hash} by {outcome.strictness or 'no rules'}{reads}"
    return outcome.code


def _conserves(old: Policy, new: Policy) -> Proof:
    theorem = THEOREMS["T09"]
    verdict = settle(Bench(SEARCH), Question(theorem, new, new, old=old), None).verdict
    return Proof("T09", old.name, new.name, str(verdict.status), verdict.scope, theorem.sentence)
