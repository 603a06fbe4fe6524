"""Verification of a receipt: every digest, every script by both solvers, every counterexample, every device verdict."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import msgspec
from foldproof.cli.digests import policy_digest
from foldproof.cli.emitting import device_event
from foldproof.cli.examples import answered
from foldproof.gpu.replay.receipts import read_receipt
from foldproof.impl.cases import case_from, read_cases
from foldproof.impl.errors import FoldproofError
from foldproof.impl.orphans import end_with_parent
from foldproof.impl.policy import ZOO, Policy, zoo_policy
from foldproof.model.solvers import decide_text
from foldproof.props.checks import violation
from foldproof.props.differential import Oracle, disagreements
from foldproof.reports.events import BytesJudged, CaseFound, ObligationDecided, PolicySeen, TheoremJudged
from foldproof.reports.store import Damage, Stored, damage, raw, read

Tick = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """One kind of check: how many things it looked at, and what does not hold."""

    what: str
    count: int
    wrong: tuple[Damage, ...]


def verify(folder: Path, tick: Tick = lambda _, __: None) -> Iterator[Checked]:
    """Every check of an evidence folder, in order. Raises `FoldproofError` where there is no evidence at all."""
    stored, unreadable = read(folder)
    broken = (*unreadable, *damage(folder, stored))
    yield Checked("records and files by digest", len(stored) + len(unreadable), broken)
    # A file that is not what its record says is named once, and is not judged by its content again.
    spoilt = {one.file for one in broken}
    yield _scripts(folder, stored, spoilt, tick)
    yield _proofs(stored)
    policies = dict(_policies(stored))
    yield _cases(folder, stored, spoilt, policies)
    yield _receipts(folder, stored, spoilt)


def _scripts(folder: Path, stored: Sequence[Stored], spoilt: set[str], tick: Tick) -> Checked:
    """Both solvers' answers to each script, decided again on all cores."""
    told = {e.script.path: e for s in stored if isinstance(e := s.record.event, ObligationDecided)}
    asked = [(path, raw(folder / path).decode("utf-8", "replace")) for path in told if path not in spoilt]
    wrong = []
    with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        for done, (path, z3, cvc5) in enumerate(pool.map(_decide, asked, chunksize=8), 1):
            tick(done, path)
            said = told[path]
            if (z3, cvc5) != (said.z3, said.cvc5):
                why = f"Z3 says {z3}, cvc5 says {cvc5}; its record says {said.z3} and {said.cvc5}"
                wrong.append(Damage(path, why))
    return Checked("SMT-LIB scripts by Z3 and cvc5", len(asked), tuple(wrong))


def _decide(script: tuple[str, str]) -> tuple[str, str, str]:
    decided = decide_text(script[0], "", script[1])
    return script[0], decided.z3, decided.cvc5


def _proofs(stored: Sequence[Stored]) -> Checked:
    """Each "proved, unbounded" has its scripts, and each of them holds by both solvers."""
    holding = {
        (s.record.run, e.name)
        for s in stored
        if isinstance(e := s.record.event, ObligationDecided) and e.z3 == e.cvc5 == "unsat"
    }
    wrong, count = [], 0
    for s in stored:
        event = s.record.event
        if not isinstance(event, TheoremJudged) or event.scope != "unbounded":
            continue
        count += 1
        fallen = [name for name in event.obligations if (s.record.run, name) not in holding]
        if fallen or not event.obligations:
            why = (
                f"says {event.theorem} is proved; {fallen[0] if fallen else 'no script'} does not hold by both solvers"
            )
            wrong.append(Damage(f"records/{s.digest}.json", why))
    return Checked("unbounded proofs rest on scripts that hold", count, tuple(wrong))


def _policies(stored: Sequence[Stored]) -> Iterator[tuple[str, Policy]]:
    """The policies by digest: those of the zoo, and those that the records hold."""
    for name in ZOO:
        yield policy_digest(zoo_policy(name)), zoo_policy(name)
    for s in stored:
        if isinstance(event := s.record.event, PolicySeen):
            try:
                policy = msgspec.convert(event.data, Policy)
            except (msgspec.ValidationError, ValueError):
                continue
            yield policy_digest(policy), policy


def _cases(folder: Path, stored: Sequence[Stored], spoilt: set[str], policies: dict[str, Policy]) -> Checked:
    by_name = {policy.name: policy for policy in policies.values()}
    wrong, count = [], 0
    for event in {e.file.path: e for s in stored if isinstance(e := s.record.event, CaseFound)}.values():
        if event.file.path in spoilt:
            continue
        count += 1
        policy = policies.get(event.policy_sha256)
        try:
            if policy is None:
                why = f"its policy {event.policy} is in no record and not in the zoo"
            else:
                why = _case_fault(folder / event.file.path, event, policy, by_name.get(event.old))
        except FoldproofError as problem:
            why = problem.why
        if why:
            wrong.append(Damage(event.file.path, why))
    return Checked("counterexamples and findings replayed", count, tuple(wrong))


def _case_fault(file: Path, event: CaseFound, policy: Policy, old: Policy | None) -> str:
    """What does not hold of a case, "" if it shows what its record says."""
    values = read_cases(file)
    if len(values) != 1 or not isinstance(values[0], dict):
        return "holds no single case"
    value = values[0]
    case = case_from(value)
    got = answered(case, policy)
    if "expect" in value and value["expect"] != got:
        return f"{policy.name} answers {got}, and not {value['expect']}"
    if event.theorem:
        twin = case_from(value["twin"]) if "twin" in value else None
        broken = violation(event.theorem, case, policy, old, twin.launch if twin else None)
        if broken is None:
            return f"does not break {event.theorem} of {policy.name}"
    elif event.stage == "campaign" and not disagreements(Oracle([policy]), case):
        return f"reference and model of {policy.name} answer alike"
    return ""


def _receipts(folder: Path, stored: Sequence[Stored], spoilt: set[str]) -> Checked:
    """What a record says of a device run is what the receipt beside it says."""
    wrong, count = [], 0
    for s in stored:
        event = s.record.event
        if not isinstance(event, BytesJudged) or event.receipt is None or event.receipt.path in spoilt:
            continue
        count += 1
        again = device_event(read_receipt(folder / event.receipt.path), event.receipt)
        if again != event:
            wrong.append(Damage(f"records/{s.digest}.json", f"says something else than {event.receipt.path}"))
    return Checked("device verdicts against their receipts", count, tuple(wrong))
