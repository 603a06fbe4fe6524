"""The parts of the page that are more than a table: the matrix, counterexamples, campaigns with curve and heat map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foldproof.reports.events import CampaignRan, CaseFound, TheoremJudged
from foldproof.reports.evidence import Fact
from foldproof.reports.render.grid import Budget, Row, cost, shown, tone
from foldproof.reports.render.plots import discovery, steps
from foldproof.reports.view import Report

MOST_CASES = 100
MOST_CASE_ROWS = 60
MOST_CAMPAIGNS = 8
_BEFORE = {"fuzz": 0, "exhaust": 0, "campaign": 0}
"""Findings come before theorems: they are about the code that is released."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A verdict of the matrix. `promised` theorems decide a release; `href` leads to the row or the counterexample."""

    word: str
    tone: str
    promised: bool
    href: str
    says: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A column of the matrix: the theorem, the older policy that it is about, its name and its sentence."""

    theorem: str
    old: str
    name: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """Policy x theorem; None where nothing was asked."""

    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]

    @staticmethod
    def words_of(cells: Sequence[Cell | None]) -> tuple[str, ...]:
        """The verdicts that a policy has, each once."""
        return tuple(dict.fromkeys(cell.word for cell in cells if cell is not None))

    @property
    def words(self) -> dict[str, int]:
        """How many policies have each verdict."""
        counted = Counter(word for _, cells in self.rows for word in self.words_of(cells))
        return {word: counted[word] for word in sorted(counted)}


@dataclass(frozen=True, slots=True)
class CaseView:
    """A counterexample: the event, its id in the page, and the columns of its table with the deciding one marked.

    `label` says what it is: the stage that found it, or whether it breaks a promise.
    """

    id: str
    event: CaseFound
    label: str
    stale: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    rows_left_out: int


@dataclass(frozen=True, slots=True)
class Heat:
    """A place of the heat map: the text "visited/possible" and its step from 0 (none) to 5 (all), None without."""

    text: str
    step: int | None


@dataclass(frozen=True, slots=True)
class CampaignView:
    """A campaign: the event, its curve as SVG, what the curve says, endings with their share, and the heat map."""

    event: CampaignRan
    stale: str
    plot: str
    says: str
    endings: tuple[tuple[str, int, float], ...]
    heat: tuple[tuple[str, tuple[Heat, ...]], ...]


def theorem_id(event: TheoremJudged, policies: Mapping[str, int]) -> str:
    """The id of a theorem's row. A policy goes in by number: its name is any text."""
    return f"thm-{policies.get(event.policy, 0)}-{event.theorem}-{policies.get(event.old, 0)}"


def policy_numbers(report: Report) -> dict[str, int]:
    """Every policy that a verdict names, numbered from 1."""
    names = [name for _, e in report.found.of(TheoremJudged) for name in (e.policy, e.old) if name]
    return {name: place for place, name in enumerate(dict.fromkeys(names), 1)}


def matrix(report: Report, links: Mapping[str, str], ids: Mapping[str, int]) -> Matrix:
    """The matrix. `links` has the id of the counterexample by the path of its case file."""
    headings: dict[tuple[str, str], Heading] = {}
    cells: dict[str, dict[tuple[str, str], Cell]] = {}
    for fact, e in report.found.of(TheoremJudged):
        headings.setdefault((e.theorem, e.old), Heading(e.theorem, e.old, e.name, e.sentence))
        link = links.get(e.counterexample.path, "") if e.counterexample else ""
        word = "stale" if fact.stale else e.verdict
        colour = "warn" if e.verdict == "refuted" and not e.promised else tone(word)
        said = f"{e.theorem} {e.name}, {e.policy}: {word}{f', {fact.stale}' if fact.stale else ''}"
        says = f"{said}{'' if e.promised else ', not promised'}"
        cell = Cell(word, colour, e.promised, f"#{link or theorem_id(e, ids)}", says)
        cells.setdefault(e.policy, {})[e.theorem, e.old] = cell
    order = sorted(headings)
    return Matrix(
        tuple(headings[key] for key in order),
        tuple((policy, tuple(row.get(key) for key in order)) for policy, row in cells.items()),
    )


def cases(report: Report, budget: Budget) -> tuple[CaseView, ...]:
    """The counterexamples that fit, the most telling first."""
    promised = {e.counterexample.path for _, e in report.promised_refuted() if e.counterexample}

    def rank(found: tuple[Fact, CaseFound]) -> tuple[int, bool, bool]:
        fact, case = found
        return _BEFORE.get(case.stage, 1), bool(fact.stale), case.file.path not in promised

    views: list[CaseView] = []
    for place, (fact, case) in enumerate(sorted(report.cases(), key=rank)[:MOST_CASES], 1):
        rows = case.rows[:MOST_CASE_ROWS]
        about = (
            case.title,
            case.policy,
            case.why,
            case.expected,
            case.got,
            case.command,
            case.file.path,
            *case.columns,
        )
        size = sum(cost(Row(row)) for row in (about, *rows)) + 1_000
        if size > budget.left:
            break
        budget.left -= size
        views.append(
            CaseView(
                f"case-{place}",
                case,
                _label(case, promised),
                fact.stale,
                _titles(case),
                rows,
                len(case.rows) - len(rows),
            )
        )
    return tuple(views)


def _label(case: CaseFound, promised: set[str]) -> str:
    if case.stage != "theorem":
        return case.stage
    return "breaks a promise" if case.file.path in promised else "finding, not promised"


def _titles(case: CaseFound) -> tuple[tuple[str, bool], ...]:
    """The columns without the mark of the deciding one, each with whether it decides."""
    marked = [title for title in case.columns if title.endswith(" *")]
    deciding = set(marked) or {case.decides} - {""}
    return tuple((title.removesuffix(" *") if title in marked else title, title in deciding) for title in case.columns)


def campaigns(report: Report) -> tuple[CampaignView, ...]:
    """The campaigns that measured where they were."""
    measured = [(fact, e) for fact, e in report.found.of(CampaignRan) if e.curve or e.coverage or e.outcomes]
    return tuple(
        CampaignView(
            e,
            fact.stale,
            discovery(e.curve, e.possible, f"plot{place}-"),
            _curve_says(e),
            _endings(e.outcomes),
            tuple((row[0], tuple(_heat(text) for text in row[1:])) for row in e.coverage),
        )
        for place, (fact, e) in enumerate(measured[:MOST_CAMPAIGNS], 1)
    )


def _curve_says(event: CampaignRan) -> str:
    """The curve in a sentence, for those who do not see it."""
    points = steps(event.curve)
    if not points:
        return ""
    rising = [
        cases for before, (cases, cells) in zip([0, *(c for _, c in points)], points, strict=False) if cells > before
    ]
    half = next(cases for cases, cells in points if 2 * cells >= points[-1][1])
    of = f" of {event.possible:,}" if event.possible else ""
    said = f"{points[-1][1]:,}{of} cells visited; half of them after {half:,} cases"
    said += f", the last new one after {rising[-1]:,}." if rising else "."
    if event.chance_of_new is not None:
        said += f" The next round visits a new cell with a chance of about {shown(100 * event.chance_of_new)} %."
    return said


def _endings(outcomes: Mapping[str, int]) -> tuple[tuple[str, int, float], ...]:
    """Each ending, its cases and their share in percent."""
    total = sum(outcomes.values()) or 1
    return tuple((word, n, 100 * n / total) for word, n in outcomes.items())


def _heat(text: str) -> Heat:
    visited, _, possible = text.partition("/")
    if not (visited.isdecimal() and possible.isdecimal() and int(possible)):
        return Heat(text, None)
    return Heat(text, 0 if not int(visited) else max(1, min(5, 5 * int(visited) // int(possible))))


def worst(words: Sequence[str]) -> str:
    """The word of a row of byte verdicts: what differs before what is open, and "equal" only if all are."""
    ordered = sorted(words, key=lambda word: {"bad": 0, "warn": 1}.get(tone(word), 2))
    return ordered[0] if ordered else ""
