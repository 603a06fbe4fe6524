"""A campaign on the reference: generated cases, each decided by `impl` and by the model, each promise checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import monotonic

import msgspec
from foldproof.impl.cases import Case, replay
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.select import Selection
from foldproof.model.theorems import THEOREMS, older
from foldproof.props.checks import Violation, violation
from foldproof.props.differential import Oracle, disagreements
from foldproof.props.generate import make_case, seeded
from foldproof.props.shrink import shrink

Tick = Callable[[float, int], None]
"""Told the seconds gone and the cases done."""


class Disagreement(msgspec.Struct, frozen=True):
    """A shrunk case on which the model and the reference answer differently."""

    policy: str
    case: Case
    why: str


class Campaign(msgspec.Struct, frozen=True):
    """What a campaign saw: cases, how many ended in which way, disagreements, and the theorems that fell."""

    seed: int
    cases: int
    seconds: float
    outcomes: dict[str, int]
    disagreements: tuple[Disagreement, ...] = ()
    violations: tuple[Violation, ...] = ()
    violated: dict[str, int] = {}


def run(policy: Policy, seconds: float, seed: int, tick: Tick = lambda _, __: None, most: int = 10**9) -> Campaign:
    """Decide cases from `seed` for `seconds` of wall time, or until there are `most`.

    The first violation of each theorem, and the first disagreement, are shrunk and kept.
    """
    oracle, choose = Oracle([policy]), seeded(seed)
    started = monotonic()  # the budget is for cases: setting the model up takes a second or so
    outcomes: Counter[str] = Counter()
    violated: Counter[str] = Counter()
    first: dict[str, Violation] = {}
    differing: list[Disagreement] = []
    done = 0
    while done < most and (gone := monotonic() - started) < seconds:
        case = make_case(choose, name=f"seed {seed} case {done}")
        outcomes[ending(case, policy)] += 1
        differ = disagreements(oracle, case)
        if differ and not differing:
            differing.append(_shrunk_disagreement(oracle, case, differ[0][1]))
        for theorem in THEOREMS:
            if broken := _violation(theorem, case, policy):
                violated[theorem] += 1
                first.setdefault(theorem, broken)
        done += 1
        tick(gone, done)
    kept = tuple(_shrunk_violation(v, policy) for v in first.values() if _promises(policy, v.theorem))
    return Campaign(
        seed, done, monotonic() - started, dict(sorted(outcomes.items())), tuple(differing), kept, dict(violated)
    )


def _old(policy: Policy, theorem: str) -> Policy | None:
    name = older(policy, theorem) if THEOREMS[theorem].pairwise else ""
    return load_policy(name) if name else None


def _promises(policy: Policy, theorem: str) -> bool:
    old = _old(policy, theorem)
    return policy.promised(theorem, old.name if old else "")


def _violation(theorem: str, case: Case, policy: Policy) -> Violation | None:
    return violation(theorem, case, policy, _old(policy, theorem))


def ending(case: Case, policy: Policy) -> str:
    """How the case ends, in the words of the coverage table: fallback, a pass, or an error code."""
    outcome = replay(case, policy)
    if not isinstance(outcome, Selection):
        return outcome.code
    return "fallback" if outcome.is_fallback else str(outcome.strictness or "no rules")


def _shrunk_disagreement(oracle: Oracle, case: Case, why: str) -> Disagreement:
    small = shrink(case, lambda c: bool(disagreements(oracle, c)), most=500)
    return Disagreement(oracle.policies[0].name, small, dict(disagreements(oracle, small)).get(oracle.policies[0], why))


def _shrunk_violation(found: Violation, policy: Policy) -> Violation:
    small = shrink(found.case, lambda c: _violation(found.theorem, c, policy) is not None)
    return _violation(found.theorem, small, policy) or found
