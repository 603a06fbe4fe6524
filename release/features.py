"""What can be said of a difference between two answers: facts as formulas over a scope, each with its sentence.

OLD and NEW are known by what they pick alone, so the same facts hold of two policies and of two selectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import z3
from foldproof.impl.launch import INT_KINDS, Kind
from foldproof.impl.rules import Rules, Strictness
from foldproof.model import rules as formulas
from foldproof.model.rules import conj, disj
from foldproof.model.scope import Scope, folded
from foldproof.model.terms import ArgTerm, Bool, PlaceTerm, kind_is
from foldproof.model.world import Predicate

LOOSEST = Rules(Strictness.RUNTIME_ONE)
Cell = Callable[[ArgTerm, PlaceTerm], Bool]


@dataclass(frozen=True, slots=True)
class Picks:
    """What one side answers in a scope: at most one candidate picked, else missing or ambiguous."""

    picks: Predicate
    missing: Bool
    ambiguous: Bool


AMBIGUOUS = "ambiguous"
OPEN = ("free-constants", "options-open", "twins")
"""The facts that a refusal of the policy language looks at."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A fact about a case and two answers. `id` is stable; `says` is its sentence."""

    id: str
    says: str
    formula: Bool


def endings(scope: Scope, side: Picks) -> dict[str, Bool]:
    """How a side ends, by the words of the coverage table; the pass is the strictest of section 3 that it meets."""

    def picked(test: Predicate) -> Bool:
        return disj(z3.And(side.picks(i), test(i)) for i in range(scope.size.candidates))

    def met(strictness: Strictness) -> Predicate:
        return lambda i: scope.admits(i, Rules(strictness, options=False, source=False))

    exact, loosest = met(Strictness.EXACT), met(Strictness.RUNTIME_ONE)
    return {
        "exact": picked(exact),
        "general": picked(lambda i: z3.And(loosest(i), z3.Not(exact(i)), z3.Not(scope.falls_back(i)))),
        "fallback": picked(lambda i: z3.And(loosest(i), z3.Not(exact(i)), scope.falls_back(i))),
        "no rules": picked(lambda i: z3.And(z3.Not(loosest(i)), z3.Not(exact(i)))),
        AMBIGUOUS: side.ambiguous,
        "missing": side.missing,
    }


def features(scope: Scope, old: Picks, new: Picks) -> tuple[Feature, ...]:
    """The facts, the most telling first: a region is named by the first that covers it."""
    sides = (("OLD", old), ("NEW", new))
    found: list[Feature] = []

    def add(name: str, says: str, formula: Bool) -> None:
        found.append(Feature(name, says, formula))

    def of(side: Picks, cell: Cell) -> Bool:
        return picked_arg(scope, side, cell)

    for name, side in sides:
        add(f"{name}-source", f"{name}'s pick comes from another source than the launch's", _of_source(scope, side))
    for name, side in sides:
        refused = _picked(scope, side, lambda i: z3.Not(_options_fit(scope, i)))
        add(f"{name}-option", f"{name}'s pick was compiled with another option than the launch pins", refused)
        broken = _picked(scope, side, lambda i: z3.Not(scope.assumptions_hold(i)))
        add(f"{name}-broken", f"the launch breaks an assumption of {name}'s pick", broken)
    for name, side in sides:
        add(
            f"{name}-mixed-pointers",
            f"a pointer is aligned, and {name}'s pick was compiled for one that is not (mixed pointers)",
            of(side, lambda a, p: z3.And(kind_is(a.kind, Kind.PTR), _unused(a, p))),
        )
        add(
            f"{name}-mixed-ints",
            f"an int is a multiple of 16, and {name}'s pick was compiled for one that is not",
            of(side, lambda a, p: z3.And(kind_is(a.kind, *INT_KINDS), _unused(a, p))),
        )
        add(f"{name}-div16-switch", f"{name}'s pick assumes an aligned pointer through a param whose switches rule "
            "that out", of(side, lambda a, p: z3.And(kind_is(a.kind, Kind.PTR), p.on_param, p.param.div16,
                                                     z3.Not(_alignable(p)))))  # fmt: skip
    for (name, side), (other, rival) in ((sides[0], sides[1]), (sides[1], sides[0])):
        add(
            f"{name}-folds-what-{other}-reads",
            f"{other}'s pick reads at run time a 1 that {name}'s pick folds",
            _two_args(scope, side, rival),
        )
    add(
        "free-constants",
        "two candidates differ in a constant that the launch does not name",
        _pair(scope, scope.differs_in_free),
    )
    add("options-open", "two candidates differ in options", _pair(scope, lambda i, k: z3.Not(scope.same_options(i, k))))
    add("twins", "two candidates are equal but for the hash", _pair(scope, scope.twins))
    for name, side in sides:
        nospec_one = of(
            side, lambda a, p: z3.And(p.on_param, formulas.is_one(a), z3.Or(p.param.nospec, p.param.annotated))
        )
        add(f"{name}-reads-a-closed-one", f"{name}'s pick reads a 1 through a nospec or annotated param", nospec_one)
        add(f"{name}-falls-back", f"{name}'s pick reads a foldable 1", _picked(scope, side, scope.falls_back))
    public = (Kind.PTR, Kind.I32, Kind.FP32, Kind.U64)
    odd = disj(z3.Not(kind_is(arg.kind, *public)) for arg in scope.launch.args)
    add("kind", "the launch has an arg of a kind that the public selectors do not know", odd)
    nospec = _any_cell(scope, lambda a, p: z3.And(p.on_param, p.param.nospec, kind_is(a.kind, Kind.PTR, Kind.U64)))
    add("nospec-pointer", "a candidate has a nospec pointer or u64", nospec)
    add("pins", "the launch pins an option", disj(option.given for option in scope.launch.options))
    both = [
        z3.And(scope.admits(i, LOOSEST), scope.admits(k, LOOSEST))
        for i in range(scope.size.candidates)
        for k in range(i)
    ]
    add("choice", "two candidates are admissible, and the sides prefer differently", disj(both))
    return tuple(found)


def picked_arg(scope: Scope, side: Picks, cell: Cell) -> Bool:
    """Of some arg the cell holds where the side's pick places it."""
    return _picked(scope, side, lambda i: disj(cell(a, p) for a, p in scope.placed(i)))


def _picked(scope: Scope, side: Picks, test: Predicate) -> Bool:
    return disj(z3.And(side.picks(i), test(i)) for i in range(scope.size.candidates))


def _of_source(scope: Scope, side: Picks) -> Bool:
    return _picked(scope, side, scope.other_source)


def _options_fit(scope: Scope, index: int) -> Bool:
    return formulas.options_admit(scope.candidates[index].options, scope.launch.options)


def _two_args(scope: Scope, folding: Picks, reading: Picks) -> Bool:
    """Some arg is folded by one side's pick, and read as a foldable 1 by the other's."""
    parts = []
    for i in range(scope.size.candidates):
        for k in range(scope.size.candidates):
            reads = scope.reads_one(k)
            pairs = zip(scope.placed(i), reads, strict=True)
            shared = disj(z3.And(folded(a, p), read) for (a, p), read in pairs)
            parts.append(z3.And(folding.picks(i), reading.picks(k), shared))
    return disj(parts)


def _alignable(place: PlaceTerm) -> Bool:
    return z3.And(z3.Not(place.param.nospec), z3.Not(place.param.noalign))


def _unused(arg: ArgTerm, place: PlaceTerm) -> Bool:
    """The arg is a multiple of 16, may be specialised on it, and the place was not."""
    return conj([place.on_param, formulas.is_aligned(arg), _alignable(place), z3.Not(place.param.div16)])


def _any_cell(scope: Scope, cell: Cell) -> Bool:
    return disj(cell(a, p) for i in range(scope.size.candidates) for a, p in scope.placed(i))


def _pair(scope: Scope, test: Callable[[int, int], Bool]) -> Bool:
    """Two candidates that the loosest rules admit pass the test."""
    loose = Rules(Strictness.RUNTIME_ONE, options=False, source=False)
    pairs: Sequence[tuple[int, int]] = [(i, k) for i in range(scope.size.candidates) for k in range(i)]
    return disj(z3.And(scope.admits(i, loose), scope.admits(k, loose), test(i, k)) for i, k in pairs)
