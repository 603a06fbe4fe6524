"""What a code host shows beside a file: everything broken, found or owed, each with its rule, level and place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from foldproof.reports.canonical import canonical, sha256
from foldproof.reports.events import CaseFound, Owed, TheoremJudged
from foldproof.reports.evidence import FOLDER
from foldproof.reports.obligations import FILE
from foldproof.reports.render.checks import asked, theorem_ended
from foldproof.reports.view import Report

Level = Literal["error", "warning", "note"]
RULES = {
    "divergence": "A selector and the reference, or the reference and the model, answer alike.",
    "obligation": "Each obligation of the release holds.",
    "owed": "Each obligation of the release has evidence that speaks of what is at hand.",
    "undecided": "Each theorem that the release owes is decided.",
    "damaged": "Each file of the evidence is what its record says.",
}
"""Rules beside the theorems, each as the sentence that must hold."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`rule` is a theorem's id or one of `RULES`; `file` is below the evidence folder, "" for `foldproof.toml`.

    `subject` stays the same from run to run while the finding is about the same thing.
    """

    rule: str
    level: Level
    title: str
    says: str
    subject: tuple[str, ...]
    file: str = ""

    @property
    def fingerprint(self) -> str:
        """64 hex digits that name the finding from run to run."""
        return sha256(canonical([self.rule, *self.subject]))

    def uri(self, folder: str = FOLDER) -> str:
        """Where it is shown, as a relative URI reference."""
        return quote(f"{folder}/{self.file}" if self.file else FILE)


def findings(report: Report) -> tuple[Finding, ...]:
    """Errors first, then warnings, then notes; within a level theorems, cases, obligations, what is owed."""
    order = ("error", "warning", "note")
    found = (*_damaged(report), *_theorems(report), *_cases(report), *_obligations(report), *_owed(report))
    return tuple(sorted(found, key=lambda one: order.index(one.level)))


def _damaged(report: Report) -> Iterator[Finding]:
    for one in report.damaged:
        yield Finding("damaged", "error", "damaged evidence", f"{one.file} {one.why}.", (one.file,), one.file)


def _theorems(report: Report) -> Iterator[Finding]:
    rows = asked(report)
    why = {case.file.path: case.why for _, case in report.cases("theorem")}
    for fact, e in report.found.of(TheoremJudged):
        if fact.stale or e.verdict != "refuted":
            continue
        fails = theorem_ended(rows, fact, e) == "failed"
        against = f" against {e.old}" if e.old else ""
        says = f"{e.theorem} {e.name} of {e.policy}{against} is refuted"
        reason = e.reason or why.get(e.counterexample.path if e.counterexample else "", "")
        says += (f": {reason.rstrip('.')}" if reason else "") + f". The theorem: {e.sentence}"
        says += "" if fails else " No obligation asks for it." if e.promised else " The policy does not promise it."
        file = e.counterexample.path if e.counterexample else ""
        yield Finding(
            e.theorem, "error" if fails else "warning", f"{e.theorem} {e.name}: {e.policy}{against}", says,
            (e.policy, e.old), file,
        )  # fmt: skip


def _cases(report: Report) -> Iterator[Finding]:
    """Cases of campaigns; those of theorems are told by their theorem."""
    rows = asked(report)
    for fact, e in report.found.of(CaseFound):
        if fact.stale or e.stage == "theorem":
            continue
        says = f"{e.title}: {e.why}. Expected {e.expected or 'nothing'}, got {e.got or 'nothing'}. Replay: {e.command}"
        yield Finding(
            e.theorem or "divergence", "error" if rows.fails(fact, e) else "warning", f"{e.stage}: {e.title}", says,
            (e.stage, e.policy, e.file.sha256), e.file.path,
        )  # fmt: skip


def _obligations(report: Report) -> Iterator[Finding]:
    """Obligations that fail, besides those of theorems, which have said so already."""
    theorems = {fact.digest for fact, _ in report.found.of(TheoremJudged)}
    for row in report.failing:
        if row.evidence not in theorems:
            says = f"{row.what}: expected {row.expected}, observed {row.observed}. Made by: {row.command}"
            yield Finding("obligation", "error", row.what, says, (row.what,))


def _owed(report: Report) -> Iterator[Finding]:
    for row in report.open:
        says = f"{row.what}: {row.observed}{f' ({row.why})' if row.why else ''}. Settle with: {row.settle}"
        rule = "undecided" if row.verdict == "undecided" else "owed"
        yield Finding(rule, "note", f"{row.verdict}: {row.what}", says, (row.what,))
    for _, e in report.found.of(Owed):
        yield Finding("owed", "note", f"owed: {e.what}", f"{e.what}: {e.why}. Settle with: {e.settle}", (e.what,))
