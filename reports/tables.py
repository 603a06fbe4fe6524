"""The tables of a report, as pandas frames: every renderer shows these, and `csv` writes each as it is.

Longer than 250 lines because it is one list: a function a table, each a few lines, none calling another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
from foldproof.reports.events import (
    BytesJudged,
    CampaignRan,
    CaptureSeen,
    CaseFound,
    LaunchesExamined,
    MutantsHunted,
    ObligationDecided,
    Owed,
    PolicySeen,
    SelectorSeen,
    TheoremJudged,
)
from foldproof.reports.evidence import Fact
from foldproof.reports.view import Report

Frame = Any
"""A pandas DataFrame; pandas ships no types."""
NOT_MEASURED = ""


def _or_blank(value: object) -> object:
    return NOT_MEASURED if value is None else value


def tables(report: Report) -> dict[str, Frame]:
    """Every table by name, in the order of a report; those without rows included."""
    return {name: make(report) for name, make in MAKERS.items()}


def _frame(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Frame:
    return pd.DataFrame([list(row) for row in rows], columns=list(columns), dtype=object)


def _state(fact: Fact) -> str:
    return f"stale: {fact.stale}" if fact.stale else "fresh"


def obligations(report: Report) -> Frame:
    """Obligation -> evidence -> verdict."""
    columns = (
        "obligation",
        "command",
        "exit",
        "expected",
        "observed",
        "verdict",
        "required",
        "date",
        "evidence",
        "settle",
    )
    return _frame(
        columns,
        (
            (
                row.what,
                row.command,
                NOT_MEASURED if row.exit is None else row.exit,
                row.expected,
                row.observed + (f" ({row.why})" if row.why else ""),
                row.verdict,
                "yes" if row.required else "no",
                row.date,
                row.evidence[:12],
                row.settle,
            )
            for row in report.rows
        ),
    )


def scope(report: Report) -> Frame:
    """What the report speaks of, with its digest."""
    rows: list[tuple[str, str, str, str]] = []
    for fact, seen in report.found.of(CaptureSeen):
        says = f"{seen.variants} variants of {seen.functions} functions, "
        says += f"{len(seen.cubins)} cubins, {seen.cubins_missing} missing"
        rows.append(("capture", seen.name, seen.sha256, f"{says}; {_state(fact)}"))
    for fact, policy in report.found.of(PolicySeen):
        says = f"promises {', '.join(policy.promises) or 'nothing'}; {_state(fact)}"
        rows.append(("policy", policy.name, policy.sha256, says))
    for fact, selector in report.found.of(SelectorSeen):
        said = f"{selector.name}, {', '.join(selector.kinds)}" if selector.kinds else selector.name
        said += f"; {_state(fact)}"
        rows += [("selector", f"{selector.spec}: {name}", digest, said) for name, digest in selector.files.items()]
        if not selector.files:
            rows.append(("selector", selector.spec, NOT_MEASURED, f"{said}; none of its words is a file"))
    return _frame(("what", "name", "sha256", "says"), rows)


def theorems(report: Report) -> Frame:
    """The matrix as a list: a row a policy and theorem."""
    columns = (
        "id",
        "theorem",
        "policy",
        "against",
        "verdict",
        "promised",
        "scope",
        "reason",
        "counterexample",
        "state",
        "seconds",
    )
    return _frame(
        columns,
        (
            (e.theorem, e.name, e.policy, e.old, e.verdict, "yes" if e.promised else "no", e.scope, e.reason,
             e.counterexample.path if e.counterexample else "", _state(fact), _or_blank(e.seconds))
            for fact, e in report.found.of(TheoremJudged)
        ),
    )  # fmt: skip


def matrix(report: Report) -> Frame:
    """Policy x theorem: the verdict in each cell, `*` if promised, "" if not asked; T09 and T09c: a column a pair."""
    cells: dict[str, dict[str, str]] = {}
    for fact, e in report.found.of(TheoremJudged):
        column = f"{e.theorem}:{e.old}" if e.old else e.theorem
        cells.setdefault(e.policy, {})[column] = "stale" if fact.stale else e.verdict + " *" * e.promised
    columns = sorted({column for row in cells.values() for column in row})
    return _frame(("policy", *columns), ((policy, *(row.get(c, "") for c in columns)) for policy, row in cells.items()))


def scripts(report: Report) -> Frame:
    """The proof obligations, and what each solver answers."""
    columns = ("name", "claim", "z3", "cvc5", "file", "sha256")
    found = report.found.of(ObligationDecided)
    return _frame(columns, ((e.name, e.says, e.z3, e.cvc5, e.script.path, e.script.sha256) for _, e in found))


def cases(report: Report) -> Frame:
    """Counterexamples and findings."""
    columns = (
        "stage",
        "title",
        "theorem",
        "policy",
        "why",
        "expected",
        "got",
        "launches",
        "file",
        "sha256",
        "replay",
        "state",
    )
    return _frame(
        columns,
        (
            (e.stage, e.title, e.theorem, e.policy, e.why, e.expected, e.got, _or_blank(e.launches),
             e.file.path, e.file.sha256, e.command, _state(fact))
            for fact, e in report.found.of(CaseFound)
        ),
    )  # fmt: skip


def campaigns(report: Report) -> Frame:
    """Campaigns: what ran against what, how much, and what it saw."""
    columns = ("stage", "policy", "selector", "scope", "seed", "cases", "differences", "faults")
    measured = ("visited", "possible", "chance of new", "chance of failure", "seconds", "cases/s")
    rows = []
    for fact, e in report.found.of(CampaignRan):
        numbers = (e.visited, e.possible, e.chance_of_new, e.chance_of_failure, e.seconds, e.rate)
        state = _state(fact) if e.state == "complete" else f"{_state(fact)}, {e.state}"
        what = (e.stage, e.policy, e.selector, e.scope, e.seed, e.cases, e.disagreements, len(e.faults))
        rows.append((*what, *map(_or_blank, numbers), state))
    return _frame((*columns, *measured, "state"), rows)


def outcomes(report: Report) -> Frame:
    """How the cases of each campaign ended."""
    rows = (
        (e.stage, e.policy, e.selector, word, n)
        for _, e in report.found.of(CampaignRan)
        for word, n in e.outcomes.items()
    )
    return _frame(("stage", "policy", "selector", "ending", "cases"), rows)


def coverage(report: Report) -> Frame:
    """Classes of args x endings: "visited/possible" places, of each campaign that measured it."""
    rows = [
        (e.stage, e.selector or e.policy, row[0], ending, cell)
        for _, e in report.found.of(CampaignRan)
        for row in e.coverage
        for ending, cell in zip(e.endings, row[1:], strict=False)
    ]
    return _frame(("stage", "of", "class", "ending", "visited/possible"), rows)


def launches(report: Report) -> Frame:
    """How the launches of each function end under a policy."""
    names = (
        "variants",
        "launches",
        "exact",
        "general",
        "fallback",
        "ambiguous",
        "missing",
        "order_dependent",
        "free_constants",
    )
    return _frame(
        ("capture", "policy", "function", *(name.replace("_", " ") for name in names), "state"),
        (
            (e.capture, e.policy, row.fn, *(getattr(row, name) for name in names), _state(fact))
            for fact, e in report.found.of(LaunchesExamined)
            for row in e.rows
        ),
    )


def devices(report: Report) -> Frame:
    """The runs that gave byte verdicts: by what, when, on what, and how many pairs have which verdict."""
    columns = ("by", "what", "device", "driver", "date", "commit", "domain", "pairs", "state")
    rows = []
    for fact, e in report.found.of(BytesJudged):
        commit = (e.commit or "unknown")[:12] + (" dirty" if e.dirty else "")
        # What a stale run said is no evidence; the row stays, so that a reader sees that it is owed.
        counts = {"": {}} if fact.stale else e.counts
        for domain, words in counts.items():
            said = ", ".join(f"{n} {word}" for word, n in words.items())
            rows.append(
                (
                    e.by,
                    e.what,
                    e.device,
                    e.driver,
                    e.date,
                    commit,
                    domain,
                    said,
                    _state(fact) + ("; owed" if fact.stale else ""),
                )
            )
    return _frame(columns, rows)


def byte_verdicts(report: Report) -> Frame:
    """A row a pair of variants, launch and domain: the word on each device and by symbolic replay, side by side."""
    merged: dict[tuple[str, frozenset[str], str], dict[str, str]] = {}
    about: dict[frozenset[str], tuple[str, str, str, str]] = {}
    details: dict[tuple[str, frozenset[str], str], str] = {}
    judges: dict[str, None] = {}
    for fact, e in report.found.of(BytesJudged):
        if fact.stale or e.what != "replay":
            continue
        judge = "symbolic" if e.by == "symbolic" else e.device
        judges[judge] = None
        for row in e.rows:
            pair = frozenset((row.first, row.second))
            about.setdefault(pair, (row.fn, row.change, row.first, row.second))
            for domain, word in row.words.items():
                key = (row.launch, pair, domain)
                merged.setdefault(key, {})[judge] = word
                # What differs on one judge says more than why another could not tell.
                if row.detail and word not in ("equal", "owed") and (word == "differs" or key not in details):
                    details[key] = row.detail
    return _frame(
        ("function", "change", "first", "second", "launch", "domain", *judges, "first difference"),
        (
            (
                *about[pair],
                launch,
                domain,
                *(words.get(judge, "owed") for judge in judges),
                details.get((launch, pair, domain), ""),
            )
            for (launch, pair, domain), words in merged.items()
        ),
    )


def mutants(report: Report) -> Frame:
    """Planted faults of a policy, and what caught each."""
    rows = ((e.policy, *row) for _, e in report.found.of(MutantsHunted) for row in e.rows)
    return _frame(("policy", "mutant", "fault", "caught by"), rows)


def owed(report: Report) -> Frame:
    """What nothing shows, and the command that would: open obligations first, then what the stages said themselves."""
    rows = [(row.what, row.observed + (f"; {row.why}" if row.why else ""), row.settle) for row in report.open]
    rows += [(e.what, e.why, e.settle) for _, e in report.found.of(Owed)]
    return _frame(("what", "why", "what would settle it"), rows)


def runs(report: Report) -> Frame:
    """Every run of the folder."""
    rows = []
    for run in report.found.runs:
        began, code = run.started, run.finished.exit_code if run.finished else None
        commit = NOT_MEASURED if began.commit is None else began.commit[:12] + (" dirty" if began.dirty else "")
        told = (began.started, began.command, _or_blank(code), run.state, _or_blank(began.seed), commit)
        rows.append((*told, run.records, began.tool))
    return _frame(("started", "command", "exit", "state", "seed", "commit", "records", "tool"), rows)


def versions(report: Report) -> Frame:
    """The versions that the newest run used."""
    last = report.found.runs[-1].started.versions if report.found.runs else {}
    return _frame(("part", "version"), last.items())


def changes(report: Report) -> Frame:
    """What changed since the earlier release, the worse first; without rows where none was named."""
    found = report.compared.changes if report.compared else ()
    return _frame(("what", "subject", "old", "new"), ((c.what, c.subject, c.old, c.new) for c in found))


MAKERS: dict[str, Callable[[Report], Frame]] = {
    "obligations": obligations,
    "changes": changes,
    "scope": scope,
    "matrix": matrix,
    "theorems": theorems,
    "scripts": scripts,
    "cases": cases,
    "campaigns": campaigns,
    "outcomes": outcomes,
    "coverage": coverage,
    "launches": launches,
    "devices": devices,
    "bytes": byte_verdicts,
    "mutants": mutants,
    "owed": owed,
    "runs": runs,
    "versions": versions,
}
"""Each table by its name, which is the name of its CSV file."""
