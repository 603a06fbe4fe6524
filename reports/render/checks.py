"""Every verdict of a report as one test result: what JUnit, CTRF and the attestation list, in their order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from foldproof.impl.errors import one_line
from foldproof.reports.duty import Row
from foldproof.reports.events import CampaignRan, CaseFound, TheoremJudged
from foldproof.reports.evidence import Fact
from foldproof.reports.view import Report

Ended = Literal["passed", "failed", "undecided", "damaged", "finding", "owed"]
"""A finding is something broken that no obligation asks for: it is shown and stops nothing."""
ROWS: dict[str, Ended] = {"holds": "passed", "fails": "failed", "undecided": "undecided", "owed": "owed"}
THEOREMS: dict[str, Ended] = {"proved": "passed", "refuted": "failed", "undecided": "undecided"}


@dataclass(frozen=True, slots=True)
class Check:
    """One test result. `suite` is obligations, theorems, cases or evidence; `of` the policy, "" where none is meant.

    `says` is one sentence, `more` further lines; `file` is the case file or the damaged file below the evidence
    folder; `seconds` are None where nothing measured them; `digest` is that of the record, "" where there is none.
    """

    suite: str
    of: str
    name: str
    ended: Ended
    says: str
    more: tuple[str, ...] = ()
    file: str = ""
    seconds: float | None = None
    digest: str = ""


def label(text: str) -> str:
    """`text` on one line as a name. One that is cut keeps its digest, so that two long names stay two."""
    shown = one_line(text)
    return (
        shown
        if len(shown) < 400
        else f"{shown[:380]}... {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What the obligations make of facts: the row of a record, and what belongs to a row that fails."""

    rows: dict[str, Row]
    runs: frozenset[tuple[str, str]]
    files: frozenset[str]

    def fails(self, fact: Fact, case: CaseFound) -> bool:
        """Whether the case belongs to an obligation that fails."""
        if fact.stale or case.known:
            return False
        return case.file.path in self.files or (case.stage != "theorem" and (fact.run.name, case.policy) in self.runs)


def asked(report: Report) -> Asked:
    """The obligations of a report, by what they rest on."""
    rows = {row.evidence: row for row in report.rows if row.evidence}
    failing = {row.evidence for row in report.failing}
    facts = [fact for fact in report.found.facts if fact.digest in failing]
    campaigns = ((fact.run.name, e) for fact in facts if isinstance(e := fact.event, CampaignRan))
    theorems = (e for fact in facts if isinstance(e := fact.event, TheoremJudged))
    return Asked(
        rows,
        frozenset((run, e.policy) for run, e in campaigns),
        frozenset(e.counterexample.path for e in theorems if e.counterexample),
    )


def theorem_ended(rows: Asked, fact: Fact, event: TheoremJudged) -> Ended:
    """How a theorem ended. One that no required obligation asks for is a finding, or owed, and fails nothing."""
    if fact.stale:
        return "owed"
    ended = THEOREMS.get(event.verdict, "owed")
    row = rows.rows.get(fact.digest)
    if row is not None and row.required:
        return ended
    return {"failed": "finding", "undecided": "owed"}.get(ended, ended)  # type: ignore[return-value]


def checks(report: Report) -> tuple[Check, ...]:
    """The test results of a report: its obligations, its theorems, its cases, and what is damaged."""
    rows = asked(report)
    return (
        *(_of_row(row) for row in report.rows),
        *_of_theorems(report, rows),
        *_of_cases(report, rows),
        *(
            Check("evidence", "", label(d.file), "damaged", one_line(f"{d.file} {d.why}"), file=d.file)
            for d in report.damaged
        ),
    )


def _of_row(row: Row) -> Check:
    ended = ROWS[row.verdict]
    if not row.required:
        ended = {"failed": "finding", "undecided": "owed"}.get(ended, ended)  # type: ignore[assignment]
    lines = (
        ("expected", row.expected), ("observed", row.observed), ("why", row.why), ("command", row.command),
        ("settle with", row.settle), ("record", row.evidence and f"records/{row.evidence}.json"), ("date", row.date),
    )  # fmt: skip
    more = tuple(one_line(f"{name}: {value}") for name, value in lines if value)
    says = row.observed + (f"; settle with: {row.settle}" if ended != "passed" and row.settle else "")
    return Check("obligations", "", label(row.what), ended, one_line(says), more, digest=row.evidence)


def _of_theorems(report: Report, rows: Asked) -> Iterator[Check]:
    for fact, e in report.found.of(TheoremJudged):
        name = f"{e.theorem} {e.name}" + (f" against {e.old}" if e.old else "")
        says = f"stale: {fact.stale}" if fact.stale else f"{e.verdict}, {e.scope}" if e.scope else e.verdict
        file = e.counterexample.path if e.counterexample else ""
        lines = (e.sentence, e.reason, f"promised: {'yes' if e.promised else 'no'}", file and f"counterexample: {file}")
        yield Check(
            "theorems",
            label(e.policy),
            label(name),
            theorem_ended(rows, fact, e),
            one_line(says + (f": {e.reason}" if e.reason and e.verdict != "proved" else "")),
            tuple(one_line(line) for line in lines if line),
            file,
            e.seconds,
            fact.digest,
        )


def _of_cases(report: Report, rows: Asked) -> Iterator[Check]:
    for fact, e in report.found.of(CaseFound):
        ended: Ended = "owed" if fact.stale else "failed" if rows.fails(fact, e) else "finding"
        lines = (
            f"expected: {e.expected}", f"got: {e.got}", f"replay: {e.command}", f"file: {e.file.path}",
            *(" | ".join(cells) for cells in (e.columns, *e.rows)),
        )  # fmt: skip
        yield Check(
            "cases",
            label(e.policy),
            label(f"{e.stage}: {e.title} ({e.file.path})"),
            ended,
            one_line(f"stale: {fact.stale}" if fact.stale else e.why),
            tuple(one_line(line) for line in lines if line.strip(" |")),
            e.file.path,
            digest=fact.digest,
        )
