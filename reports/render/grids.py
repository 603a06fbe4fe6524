"""The tables of the page: how each column is shown, and by which word the rows of each are filtered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foldproof.reports.events import BytesJudged, HexWindow, TheoremJudged
from foldproof.reports.render.grid import Budget, Column, Grid, Row, grid, of_frame, tone
from foldproof.reports.render.sections import policy_numbers, theorem_id, worst
from foldproof.reports.view import Report

ORDER = {"fails": 0, "undecided": 1, "owed": 2, "holds": 3}
"""The verdicts of obligations: what blocks the release comes first."""
_KINDS = {
    "obligation": "head", "function": "head", "mutant": "head", "name": "head", "id": "head", "device": "head",
    "part": "head", "subject": "head", "started": "head", "what": "head", "sha256": "copied", "replay": "command",
    "what would settle it": "command", "command": "command", "verdict": "word", "z3": "word", "cvc5": "word",
    "state": "word", "file": "code", "counterexample": "link", "first difference": "code", "seed": "code",
    "commit": "hash", "evidence": "hash", "first": "hash", "second": "hash", "bytes in hex": "hex",
} | dict.fromkeys(
    ("exit", "seconds", "cases", "differences", "faults", "visited", "possible", "chance of new", "chance of failure",
     "cases/s", "variants", "launches", "exact", "general", "fallback", "ambiguous", "missing", "order dependent",
     "free constants", "records", "verdicts", "equal", "not equal", "open"), "number",
)  # fmt: skip
"""How the column of a table is shown, by its title."""
_LOOKED_FOR = ("fallback", "ambiguous", "order dependent", "free constants", "missing")


def columns(*titles: str) -> list[Column]:
    """The columns of these titles; one that has no kind of its own is text."""
    return [Column(title, _KINDS.get(title, "text")) for title in titles]


def plain(name: str, caption: str, frame: Any, budget: Budget, word: str = "") -> Grid:
    """A table as its frame has it, filtered by its column `word`: what stands before a reason."""
    rows = of_frame(frame, lambda cells: [str(cells[word]).partition(":")[0].partition(",")[0]] if word else [])
    return grid(name, caption, columns(*frame.columns), rows, budget)


def changes(frame: Any, budget: Budget) -> Grid:
    """What changed since the earlier release."""
    what, *rest = columns(*frame.columns)
    rows = of_frame(frame, lambda cells: [cells["what"]])
    return grid("changes", "What changed, the worse first", [Column(what.title, "word"), *rest], rows, budget)


def obligations(report: Report, budget: Budget) -> Grid:
    """Obligation -> evidence -> verdict."""
    rows = [
        Row(
            (row.verdict, row.what if row.required else f"{row.what} (not required)", row.expected,
             row.observed + (f" ({row.why})" if row.why else ""), row.settle, row.command,
             "" if row.exit is None else row.exit, row.date, row.evidence),
            (row.verdict,),
        )
        for row in sorted(report.rows, key=lambda row: ORDER[row.verdict])
    ]  # fmt: skip
    titles = ("verdict", "obligation", "expected", "observed", "what would settle it", "command", "exit", "date")
    return grid(
        "obligations",
        "Obligation, evidence, verdict: what blocks the release first",
        columns(*titles, "evidence"),
        rows,
        budget,
    )


def theorems(report: Report, frame: Any, links: Mapping[str, str], budget: Budget) -> Grid:
    """A row a verdict. `links` has the id of the counterexample by the path of its case file."""
    numbers = policy_numbers(report)
    place, verdict = (list(frame.columns).index(title) for title in ("counterexample", "verdict"))
    rows = []
    for (fact, event), row in zip(report.found.of(TheoremJudged), of_frame(frame), strict=True):
        cells = list(row.cells)
        if cells[place] in links:
            cells[place] = (cells[place], f"#{links[cells[place]]}")
        finding = event.verdict == "refuted" and not event.promised
        cells[verdict] = "refuted, not promised" if finding else event.verdict
        rows.append(Row(tuple(cells), ("stale" if fact.stale else cells[verdict],), theorem_id(event, numbers)))
    return grid("theorems", "Verdicts", columns(*frame.columns), rows, budget)


def byte_verdicts(report: Report, frame: Any, budget: Budget) -> Grid:
    """The byte verdicts, a column a judge; what differs is shown with its hex window where the record has one."""
    windows = dict(_windows(report))
    judges = list(frame.columns)[6:-1]
    rows = []
    for row in of_frame(frame):
        function, change, first, second, launch, domain, *words, difference = row.cells
        window = windows.get((first, second, launch)) if difference else None
        cells = (function, change, domain, *words, difference, window or "", launch, first, second)
        rows.append(Row(cells, (worst(words),)))
    titles = [
        *columns("function", "change", "domain"),
        *(Column(judge, "word") for judge in judges),
        *columns("first difference", "bytes in hex", "launch", "first", "second"),
    ]
    return grid("bytes", "Byte verdicts, by device and by symbolic replay", titles, rows, budget)


def _windows(report: Report) -> Iterator[tuple[tuple[str, str, str], HexWindow]]:
    for fact, event in report.found.of(BytesJudged):
        for row in event.rows if not fact.stale else ():
            if row.window is not None:
                yield (row.first, row.second, row.launch), row.window


def bytes_by_function(frame: Any, budget: Budget) -> Grid:
    """How many verdicts of each function are equal, not equal, and open."""
    counted: dict[str, list[int]] = {}
    for cells in frame.itertuples(index=False, name=None):
        place = {"good": 0, "bad": 1}.get(tone(worst(cells[6:-1])), 2)
        counted.setdefault(cells[0], [0, 0, 0])[place] += 1
    rows = [
        Row((fn, sum(n), *n), ("differs" if n[1] else "open" if n[2] else "equal",))
        for fn, n in sorted(counted.items())
    ]
    titles = columns("function", "verdicts", "equal", "not equal", "open")
    return grid("bytes", "Byte verdicts by function", titles, rows, budget)


def launches(frame: Any, budget: Budget) -> Grid:
    """How launches end, by function; filtered by what a release manager looks for."""

    def words(cells: dict[str, Any]) -> list[str]:
        stale = ["stale"] if str(cells["state"]).startswith("stale") else []
        return stale + [name for name in _LOOKED_FOR if cells[name]]

    rows = of_frame(frame, words)
    return grid("launches", "How launches end, by function", columns(*frame.columns), rows, budget)


def mutants(frame: Any, budget: Budget) -> Grid:
    """Planted faults, and what caught each."""
    found = of_frame(frame, lambda cells: ["caught" if cells["caught by"] else "survives"])
    rows = [Row((row.word, *row.cells), row.words) for row in found]
    return grid("mutants", "Planted faults, and what caught each", columns("verdict", *frame.columns), rows, budget)


def scripts(frame: Any, budget: Budget) -> Grid:
    """The proof obligations; one that two solvers refute to be satisfiable is shown."""

    def words(cells: dict[str, Any]) -> list[str]:
        answers = {cells["z3"], cells["cvc5"]}
        return ["sat" if "sat" in answers else "unsat" if answers == {"unsat"} else "unknown"]

    rows = of_frame(frame, words)
    return grid("scripts", "Scripts: unsat from both solvers is a proof", columns(*frame.columns), rows, budget)
