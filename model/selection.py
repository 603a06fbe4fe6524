"""The pass loop as formulas: what a policy answers in a world, for any order and subset of its candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import z3
from foldproof.impl.choose import TIE_BREAKS
from foldproof.impl.policy import Pass, Policy
from foldproof.model.rules import conj, disj
from foldproof.model.terms import Bool
from foldproof.model.world import SOUND, Flaws, Index, Number, Order, Predicate, World


@dataclass(frozen=True, slots=True)
class Answer:
    """What a policy answers: at most one candidate that `picks`, else `missing` or `ambiguous`.

    `won[p]` says that pass p has the first admissible candidates, which are those of `admissible[p]`.
    `silent`, `once` say of a candidate how many log lines picking it writes: none, one, or else more.
    `dumps` says whether a miss lists every arg and const.
    """

    picks: Predicate
    missing: Bool
    ambiguous: Bool
    won: tuple[Bool, ...]
    admissible: tuple[Predicate, ...]
    silent: Predicate
    once: Predicate
    dumps: bool


def answer(world: World, policy: Policy, order: Order | None = None, flaws: Flaws = SOUND) -> Answer:
    """The policy's answer over the capture in `order`, by default the world's own."""
    order = world.order if order is None else order
    passes = policy.passes
    if "loop-stops-before-the-last-pass" in flaws and len(passes) > 1:
        passes = passes[:-1]
    admissible = tuple(_admissible(world, policy, sweep, order, flaws) for sweep in passes)
    found = [world.exists(row) for row in admissible]
    won = tuple(conj([found[p], *(z3.Not(f) for f in found[:p])]) for p in range(len(passes)))
    best = [_picked_of(world, sweep, row, order, flaws) for sweep, row in zip(passes, admissible, strict=True)]
    clash = [_refuses(world, passes[p], admissible[p], best[p]) for p in range(len(passes))]

    def picks(index: Index) -> Bool:
        return disj(z3.And(won[p], z3.Not(clash[p]), best[p](index)) for p in range(len(passes)))

    silent, once = _logging(world, policy, flaws)
    return Answer(
        world.remembered(picks),
        z3.Not(disj(found)),
        disj(z3.And(w, c) for w, c in zip(won, clash, strict=True)),
        won,
        admissible,
        silent,
        once,
        policy.dump and "bare-miss" not in flaws,
    )


def _admissible(world: World, policy: Policy, sweep: Pass, order: Order, flaws: Flaws) -> Predicate:
    rules = policy.rules(sweep.rules)

    def admitted(index: Index) -> Bool:
        return z3.And(order.holds(index), world.admits(index, rules, flaws))

    def first_of_all(index: Index) -> Bool:
        earlier = world.exists(lambda k: z3.And(order.holds(k), world.less(order.position(k), order.position(index))))
        return z3.And(admitted(index), z3.Not(earlier))

    return world.remembered(first_of_all if "only-the-first-candidate" in flaws else admitted)


def _picked_of(world: World, sweep: Pass, row: Predicate, order: Order, flaws: Flaws) -> Predicate:
    """The candidate that the pass prefers, unless it refuses to choose."""
    beats = _beats(world, (*sweep.choose, "first"), order)
    best = world.best(row, beats)
    if "second-best" not in flaws:
        return best
    runner_up = world.best(lambda i: z3.And(row(i), z3.Not(best(i))), beats)
    alone = z3.Not(world.exists(lambda i: z3.And(row(i), z3.Not(best(i)))))
    return world.remembered(lambda i: z3.Or(runner_up(i), z3.And(alone, best(i))))


def pass_is(world: World, policy: Policy, index: Index) -> tuple[Bool, ...]:
    """Whether the strictest strictness that the candidate meets is exact, general, runtime-one, or none of them.

    The rules are the policy's own and sound: a planted fault in the rules does not rename what it selects.
    """
    met = [world.admits(index, rules) for rules in policy.strictest_first]
    named = [conj([met[s], *(z3.Not(m) for m in met[:s])]) for s in range(len(met))]
    return (*named, z3.Not(disj(met)))


def _key(world: World, name: str, index: Index, order: Order) -> Number:
    """A key as a number of which the least is preferred."""
    match name:
        case "first":
            return order.position(index)
        case "last":
            return world.negated(order.position(index))
        case "hash":
            return world.rank(index)
        case "fewest-ones":
            return world.ones(index)
        case "fewest-runtime-ones":
            return world.runtime_ones(index)
        case "most-assumptions":
            return world.negated(world.assumptions(index))
        case "fewest-assumptions":
            return world.assumptions(index)
        case "most-held":
            return world.negated(world.held(index))
        case "fewest-held":
            return world.held(index)
    raise NotImplementedError(f"the key {name!r} has no formula")


def _beats(world: World, keys: Sequence[str], order: Order) -> Callable[[Index, Index], Bool]:
    """The first candidate is preferred to the second by the keys, or ties with it in all of them."""

    def beats(one: Index, other: Index) -> Bool:
        result = z3.BoolVal(True)
        for name in reversed(keys):
            a, b = _key(world, name, one, order), _key(world, name, other, order)
            result = z3.Or(world.less(a, b), z3.And(a == b, result))
        return result

    return beats


def _refuses(world: World, sweep: Pass, row: Predicate, best: Predicate) -> Bool:
    """The pass refuses to choose among its admissible candidates."""
    score = [key for key in sweep.choose if key not in TIE_BREAKS]

    def ties(one: Index, other: Index) -> Bool:
        return conj(_key(world, key, one, world.order) == _key(world, key, other, world.order) for key in score)

    def ties_with_the_best(index: Index) -> Bool:
        return z3.And(row(index), world.exists(lambda b: z3.And(best(b), ties(index, b))))

    def pair(group: Predicate, clashes: Callable[[Index, Index], Bool]) -> Bool:
        return world.exists_pair(lambda one, other: z3.And(group(one), group(other), clashes(one, other)))

    scored = world.remembered(ties_with_the_best)
    refusals = {
        "free-constants": lambda: pair(row, world.differs_in_free),
        "warps-and-stages": lambda: pair(
            row, lambda a, b: z3.Not(world.same_options(a, b, ("num_warps", "num_stages")))
        ),
        "launch-options": lambda: pair(scored, lambda a, b: z3.Not(world.same_options(a, b))),
        "twins": lambda: pair(scored, world.twins),
    }
    return disj(refusals[name]() for name in sweep.refuse)


def _logging(world: World, policy: Policy, flaws: Flaws) -> tuple[Predicate, Predicate]:
    """Of a candidate: that picking it logs no line, and that it logs exactly one."""

    def writes(index: Index) -> Bool:
        written = z3.And(world.falls_back(index), _lets_through(world, policy, index))
        if "log-every-launch" in flaws:
            written = z3.BoolVal(True)
        if "log-dropped" in flaws:
            written = z3.BoolVal(False)
        if "log-only-two-ones" in flaws:
            written = z3.And(written, world.reads_two_ones(index))
        return written

    doubled = "log-doubled" in flaws
    return (lambda i: z3.Not(writes(i))), (lambda i: z3.BoolVal(False) if doubled else writes(i))


def _lets_through(world: World, policy: Policy, index: Index) -> Bool:
    if policy.log == "variant":
        return z3.Not(world.warned(index))
    return z3.BoolVal(policy.log == "launch")


def picked(world: World, terms: Answer) -> Bool:
    """The policy selects some candidate."""
    return world.exists(terms.picks)
