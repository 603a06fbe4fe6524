"""`receipt.md`: the file that goes on the release pull request. Scope, table of obligations, counts, limits, commands.

A pull request's comment takes 65,536 characters; a receipt has fewer than `LIMIT`. What does not fit is left out
section by section, and row by row within a table, and said.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from foldproof.reports.events import CaseFound, MutantsHunted
from foldproof.reports.evidence import Fact
from foldproof.reports.limits import limits
from foldproof.reports.markdown import code, escape, fence, table
from foldproof.reports.tables import Frame, tables
from foldproof.reports.view import Report

LIMIT = 60_000
MOST_CASES = 12
CELL = 400
"""Characters of a cell; the tables' CSV files have the rest."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and its body as blocks that each stand alone: a paragraph, a whole table, a fenced block.

    `shorter` gives the section with fewer rows, for when the whole does not fit.
    """

    title: str
    blocks: tuple[str, ...]
    shorter: Callable[[], tuple[str, ...]] | None = None

    def text(self, blocks: tuple[str, ...]) -> str:
        """The section with these blocks."""
        return "\n\n".join((f"## {self.title}", *blocks))


def receipt(report: Report) -> str:
    """The text of `receipt.md`, under `LIMIT` characters."""
    made = tables(report)
    head = "\n\n".join((f"# foldproof: {escape(report.policy)}", f"**{escape(report.headline)}**", _counts(report)))
    return fitted(head, _sections(report, made))


def fitted(head: str, sections: list[Section]) -> str:
    """Head and sections within `LIMIT`: a section that does not fit is shortened, or else named as left out."""
    text, left_out = head, list[str]()
    reserve = 200 + sum(len(section.title) + 4 for section in sections)
    for section in sections:
        for blocks in filter(None, (section.blocks, section.shorter() if section.shorter else None)):
            whole = f"{text}\n\n{section.text(blocks)}"
            if len(whole) <= LIMIT - reserve:
                text = whole
                break
        else:
            left_out.append(section.title)
    if left_out:
        text += f"\n\nLeft out, to stay under {LIMIT:,} characters: {', '.join(left_out)}. See report.html or tables/."
    return f"{text}\n"


def _counts(report: Report) -> str:
    words = {word: sum(row.verdict == word for row in report.rows) for word in ("holds", "fails", "undecided", "owed")}
    stale = sum(bool(fact.stale) for fact in report.found.facts)
    said = ", ".join(f"{number} {word}" for word, number in words.items() if number or word != "undecided")
    lines = [f"{len(report.rows)} obligations: {said}." + (f" {stale} records are stale." if stale else "")]
    lines += [
        f"Mutation score of {escape(e.policy)}: {e.caught} of {e.real} planted faults caught."
        for _, e in report.found.of(MutantsHunted)
    ]
    return "\n".join(lines)


def _sections(report: Report, made: dict[str, Frame]) -> list[Section]:
    return [
        _table_section(
            "Obligations", made["obligations"], ("obligation", "command", "exit", "expected", "observed", "verdict")
        ),
        *([_table_section("Since the baseline", made["changes"])] if report.compared else []),
        _table_section("Scope", made["scope"]),
        _owed(made["owed"]),
        *_cases(report.cases()),
        _table_section(
            "Theorems", made["theorems"], ("id", "theorem", "policy", "against", "verdict", "promised", "scope")
        ),
        _table_section(
            "Bytes by device", made["devices"], ("by", "what", "device", "date", "commit", "domain", "pairs", "state")
        ),
        _table_section(
            "Campaigns",
            made["campaigns"],
            ("stage", "policy", "selector", "seed", "cases", "differences", "faults", "seconds", "state"),
        ),
        _table_section("How cases ended", made["outcomes"]),
        _table_section("Launches", made["launches"]),
        _table_section("Mutants", made["mutants"]),
        _limits(report),
        _reproduce(report),
        _table_section("Versions", made["versions"]),
    ]


def _table_section(title: str, frame: Frame, columns: tuple[str, ...] | None = None) -> Section:
    """A table, and for when it does not fit its first rows with a word on the rest."""
    shown = list(frame.columns) if columns is None else list(columns)
    rows = [[_cut(cell) for cell in row] for row in frame[shown].to_numpy().tolist()]
    if not rows:
        return Section(title, ("None.",))

    def shorter() -> tuple[str, ...]:
        few = rows[:20]
        return table(shown, few), f"{len(rows) - len(few):,} rows more: tables/ has all."

    return Section(title, (table(shown, rows),), shorter if len(rows) > 20 else None)


def _cut(cell: object) -> str:
    text = str(cell)
    return text if len(text) <= CELL else f"{text[:CELL]}... ({len(text):,} characters)"


def _owed(frame: Frame) -> Section:
    if not len(frame):
        return Section("Owed", ("Nothing.",))
    return _table_section("Owed", frame)


def _cases(found: list[tuple[Fact, CaseFound]]) -> list[Section]:
    """A section a case, the most telling first: findings, then broken promises, then what nobody promised."""
    ranks = {"fuzz": 0, "exhaust": 0, "campaign": 0, "theorem": 1}
    ordered = sorted(found, key=lambda pair: ranks.get(pair[1].stage, 2))
    sections = []
    for fact, case in ordered[:MOST_CASES]:
        state = f" (stale: {escape(fact.stale)})" if fact.stale else ""
        says = f"{escape(_cut(case.why))}{state}"
        answers = f"expected: {escape(_cut(case.expected))}; got: {escape(_cut(case.got))}" if case.got else ""
        shown = (
            table([_cut(c) for c in case.columns], [[_cut(c) for c in row] for row in case.rows]) if case.rows else ""
        )
        told = f"{code(case.file.path)} replays it:\n\n{fence(case.command)}"
        title = f"Counterexample: {escape(_cut(case.title))} of {escape(_cut(case.policy))}"
        sections.append(Section(title, tuple(block for block in (says, answers, shown, told) if block)))
    if len(ordered) > MOST_CASES:
        rest = f"{len(ordered) - MOST_CASES:,} more are in cases.ndjson.gz."
        sections.append(Section("Further counterexamples", (rest,)))
    return sections


def _limits(report: Report) -> Section:
    return Section("Limits", ("\n".join(f"- {escape(_cut(line))}" for line in limits(report)),))


def _reproduce(report: Report) -> Section:
    commands = dict.fromkeys(run.started.command for run in report.found.runs)
    verify = shlex.join(["foldproof", "verify-receipt", report.at_hand.folder])
    return Section("Reproduce", (fence("\n".join([*commands, verify])),))
