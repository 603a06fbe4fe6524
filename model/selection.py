"""The pass loop as formulas: what a policy answers on a scope, for any order and subset of its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3
from foldproof.impl.choose import TIE_BREAKS
from foldproof.impl.policy import Pass, Policy
from foldproof.impl.rules import STRICTEST_FIRST
from foldproof.model.rules import SOUND, Flaws, conj, disj
from foldproof.model.scope import Scope
from foldproof.model.terms import Bits, Bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What a policy answers: at most one `picks`, else `missing` or `ambiguous`.

    `order` holds the candidate indices in the order in which they are tried; `picks[i]` is about candidate i.
    `won[p]` says that pass p has the first admissible candidates; `admissible[p][i]` is pass by candidate.
    `lines[i]` is how many log lines a pick of candidate i writes; `dumps` whether a miss lists everything.
    """

    order: tuple[int, ...]
    picks: dict[int, Bool]
    missing: Bool
    ambiguous: Bool
    won: tuple[Bool, ...]
    admissible: tuple[dict[int, Bool], ...]
    lines: dict[int, Bits]
    dumps: bool


def answer(scope: Scope, policy: Policy, order: Sequence[int] | None = None, flaws: Flaws = SOUND) -> Answer:
    """The policy's answer over the candidates in `order` (all, in their own order, by default)."""
    order = tuple(range(scope.size.candidates)) if order is None else tuple(order)
    passes = _running_passes(policy, flaws)
    admissible = tuple({i: scope.admits(i, policy.rules(p.rules), flaws) for i in order} for p in passes)
    found = [disj(row.values()) for row in admissible]
    won = tuple(z3.And(found[p], *(z3.Not(f) for f in found[:p])) for p in range(len(passes)))
    clash = [_refused(scope, p, row, order) for p, row in zip(passes, admissible, strict=True)]
    picks = {
        i: disj(
            z3.And(won[p], z3.Not(clash[p]), _is_best(scope, passes[p], admissible[p], order, i))
            for p in range(len(passes))
        )
        for i in order
    }
    missing = z3.Not(disj(found))
    ambiguous = disj(z3.And(w, c) for w, c in zip(won, clash, strict=True))
    lines = {i: _lines(scope, policy, i, flaws) for i in order}
    return Answer(order, picks, missing, ambiguous, won, admissible, lines, policy.dump and "bare-miss" not in flaws)


def _running_passes(policy: Policy, flaws: Flaws) -> tuple[Pass, ...]:
    if "loop-stops-before-the-last-pass" in flaws and len(policy.passes) > 1:
        return policy.passes[:-1]
    return policy.passes


def pass_of(scope: Scope, policy: Policy, index: int) -> tuple[Bool, ...]:
    """Whether the strictest strictness that the candidate meets is exact, general, runtime-one, or none of them.

    The rules are the policy's own and sound: a planted fault in the rules does not rename what it selects.
    """
    met = [scope.admits(index, policy.rules(s)) for s in STRICTEST_FIRST]
    named = [z3.And(met[s], *(z3.Not(m) for m in met[:s])) for s in range(len(met))]
    return (*named, z3.Not(disj(met)))


def _key(scope: Scope, name: str, index: int, order: tuple[int, ...]) -> Bits:
    """A key as an unsigned number of which the least is preferred."""
    place = order.index(index)
    match name:
        case "first":
            return z3.BitVecVal(place, 8)
        case "last":
            return z3.BitVecVal(255 - place, 8)
        case "hash":
            return scope.candidates[index].rank
        case "fewest-ones":
            return scope.ones(index)
        case "fewest-runtime-ones":
            return scope.runtime_ones(index)
        case "most-assumptions":
            return z3.BitVecVal(255, 8) - scope.assumptions(index)
        case "most-held":
            return z3.BitVecVal(255, 8) - scope.held(index)
        case "fewest-held":
            return scope.held(index)
    raise NotImplementedError(f"the key {name!r} has no formula")


def _beats(scope: Scope, keys: Sequence[str], order: tuple[int, ...], pair: tuple[int, int]) -> Bool:
    """The first of the pair is preferred to the second by the keys, or ties with it in all of them."""
    result = z3.BoolVal(True)
    for name in reversed(keys):
        one, other = (_key(scope, name, index, order) for index in pair)
        result = z3.Or(z3.ULT(one, other), z3.And(one == other, result))
    return result


def _is_best(scope: Scope, sweep: Pass, row: dict[int, Bool], order: tuple[int, ...], index: int) -> Bool:
    keys = (*sweep.choose, "first")
    beaten = [z3.And(row[k], z3.Not(_beats(scope, keys, order, (index, k)))) for k in order if k != index]
    return z3.And(row[index], z3.Not(disj(beaten)))


def _best_scored(scope: Scope, sweep: Pass, row: dict[int, Bool], order: tuple[int, ...]) -> dict[int, Bool]:
    keys = [key for key in sweep.choose if key not in TIE_BREAKS]
    return {i: z3.And(row[i], *(z3.Implies(row[k], _beats(scope, keys, order, (i, k))) for k in order)) for i in order}


def _refused(scope: Scope, sweep: Pass, row: dict[int, Bool], order: tuple[int, ...]) -> Bool:
    """The pass refuses to choose among its admissible candidates."""
    pairs = [(i, k) for place, i in enumerate(order) for k in order[place + 1 :]]
    scored = _best_scored(scope, sweep, row, order) if sweep.refuse else row
    clashes = []
    for name in sweep.refuse:
        for i, k in pairs:
            match name:
                case "free-constants":
                    clash = z3.And(row[i], row[k], scope.differs_in_free(i, k))
                case "warps-and-stages":
                    same = scope.same_options(i, k, ("num_warps", "num_stages"))
                    clash = z3.And(row[i], row[k], z3.Not(same))
                case "launch-options":
                    clash = z3.And(scored[i], scored[k], z3.Not(scope.same_options(i, k)))
                case "twins":
                    clash = z3.And(scored[i], scored[k], scope.twins(i, k))
                case _:
                    raise NotImplementedError(f"the refusal {name!r} has no formula")
            clashes.append(clash)
    return disj(clashes)


def _lines(scope: Scope, policy: Policy, index: int, flaws: Flaws) -> Bits:
    """How many lines the policy logs when it picks the candidate."""
    fallback = disj(scope.reads_one(index))
    logs = z3.BoolVal(policy.log == "launch")
    if policy.log == "variant":
        logs = z3.Not(scope.warned[index])
    written = z3.And(fallback, logs)
    if "log-every-launch" in flaws:
        written = z3.BoolVal(True)
    if "log-dropped" in flaws:
        written = z3.BoolVal(False)
    if "log-only-two-ones" in flaws:
        written = z3.And(written, z3.UGT(scope.ones(index), 1))
    lines = 2 if "log-doubled" in flaws else 1
    return z3.If(written, z3.BitVecVal(lines, 2), z3.BitVecVal(0, 2))


def picked(terms: Answer) -> Bool:
    """The policy selects some candidate."""
    return disj(terms.picks.values())


def same_pick(one: Answer, other: Answer) -> Bool:
    """Both answers pick the same candidate, or neither picks one."""
    shared = set(one.picks) & set(other.picks)
    lone = [z3.Not(a.picks[i]) for a in (one, other) for i in a.picks if i not in shared]
    return conj([one.picks[i] == other.picks[i] for i in shared] + lone)
