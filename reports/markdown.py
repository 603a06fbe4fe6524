"""`report.md`: the result for people, rendered from the record with Jinja2. Untrusted names are escaped."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from foldproof.impl.errors import one_line
from foldproof.reports.record import Result, findings, promises_broken
from jinja2 import Environment, StrictUndefined

_SPECIAL = {c: f"\\{c}" for c in "\\`*_[]#|"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def escape(text: object) -> str:
    """`text` on one line, so that Markdown and the HTML inside it show it as it is."""
    return "".join(_SPECIAL.get(c, c) for c in one_line(str(text)))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table whose columns line up in plain text too; cells are escaped."""
    cells = [[escape(c) for c in columns], *([escape(c) for c in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def report(result: Result) -> str:
    """The text of `report.md`."""
    environment = Environment(autoescape=False, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)  # noqa: S701 (Markdown, escaped by `escape`)
    environment.filters["md"] = escape
    environment.globals["table"] = table
    source = (resources.files("foldproof.reports") / "templates" / "report.md.j2").read_text("utf-8")
    return environment.from_string(source).render(
        result=result, broken=promises_broken(result), findings=findings(result), headline=headline(result)
    )


def headline(result: Result) -> str:
    """The verdict of the run in one sentence."""
    broken = promises_broken(result)
    undecided = [row for row in result.theorems if row.verdict == "undecided"]
    proved = sum(row.promised and row.verdict == "proved" for row in result.theorems)
    differing = result.campaign.disagreements if result.campaign else 0
    if broken:
        return f"{result.policy} breaks {len(broken)} of its promises: {', '.join(row.theorem for row in broken)}."
    if differing:
        return f"Model and reference disagree on {differing} generated cases."
    if undecided:
        return f"{len(undecided)} theorems are undecided: {', '.join(row.theorem for row in undecided)}."
    return f"{result.policy} keeps every promise: {proved} proved."
