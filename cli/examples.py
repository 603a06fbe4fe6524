"""Counterexamples as files that replay, with the table that shows them on one screen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foldproof.impl.cases import Case, case_bytes, case_to, replay
from foldproof.impl.explain import case_table, decides
from foldproof.impl.launch import Launch
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.select import Selection
from foldproof.model.verdict import Verdict
from foldproof.props.campaign import Disagreement
from foldproof.props.checks import Violation, describe, violation

UNSEEN = "the model refutes it, and the reference does not: report this"


@dataclass(frozen=True, slots=True)
class Example:
    """A case that breaks something: its file below the report folder, the words for it, and its table.

    `says` is what the policy answers; `theorem` and `old` are "" for a difference between reference and model.
    """

    path: str
    content: bytes
    policy: Policy
    theorem: str
    old: str
    why: str
    says: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    decides: str


def example_of(verdict: Verdict, policy: Policy) -> Example | None:
    """The counterexample of a refuted theorem, None where there is none."""
    if verdict.counterexample is None:
        return None
    case, other = verdict.counterexample.case, verdict.counterexample.other_launch
    old = load_policy(verdict.old) if verdict.old else None
    return _broken(verdict.theorem, case, policy, old, other)


def stem(verdict: Verdict) -> str:
    """The name of a verdict's files, without what comes after the dot."""
    return _stem(verdict.theorem, verdict.policy, verdict.old)


def _stem(theorem: str, policy: str, old: str) -> str:
    return f"{theorem}-{Path(policy).stem}" + (f"-over-{Path(old).stem}" if old else "")


def violation_example(found: Violation, policy: Policy, old: Policy | None) -> Example:
    """A promise that a campaign saw broken."""
    return _broken(found.theorem, found.case, policy, old, None, "campaign-")


def _broken(  # noqa: PLR0913, PLR0917 (what a theorem is about)
    theorem: str, case: Case, policy: Policy, old: Policy | None, other: Launch | None, prefix: str = ""
) -> Example:
    broken = violation(theorem, case, policy, old, other)
    why = broken.why if broken else UNSEEN
    more: dict[str, Any] = {"theorem": theorem, "policy": policy.name} | ({"old": old.name} if old else {})
    more |= {"expect": answered(case, policy), "why": why}
    if broken and broken.twin:
        more["twin"] = case_to(broken.twin)
    path = f"cases/{prefix}{_stem(theorem, policy.name, old.name if old else '')}.json"
    return _example(path, case, policy, more)


def difference_example(found: Disagreement, policy: Policy, number: int) -> Example:
    """A case on which the model and the reference answer differently."""
    more = {"policy": policy.name, "why": found.why}
    return _example(f"cases/disagreement-{number}.json", found.case, policy, more)


def _example(path: str, case: Case, policy: Policy, more: dict[str, Any]) -> Example:
    outcome = replay(case, policy)
    columns, rows = case_table(case, outcome)
    names = (more.get("theorem", ""), more.get("old", ""), more["why"])
    content = case_bytes(case_to(case, **more))
    return Example(path, content, policy, *names, describe(outcome), columns, rows, decides(case, outcome))


def answered(case: Case, policy: Policy) -> dict[str, Any]:
    """What the policy answers, as a case file says what to expect: the hash and the pass, or the error's code."""
    outcome = replay(case, policy)
    if isinstance(outcome, Selection):
        return {"pick": outcome.variant.hash, "pass": str(outcome.strictness) if outcome.strictness else None}
    return {"error": outcome.code}
