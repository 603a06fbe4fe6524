"""`summary.md`: what a CI step summary shows. The sentence, what fails, what is owed, and where the rest is."""

from __future__ import annotations

from foldproof.reports.markdown import escape, table
from foldproof.reports.view import Report

MOST = 15
CELL = 200
MARKS = {"holds": "✅ holds", "fails": "❌ fails", "undecided": "❔ undecided", "owed": "⏳ owed"}


def summary(report: Report) -> str:
    """The text of `summary.md`: never more than a screen or two."""
    order = {"fails": 0, "undecided": 1, "owed": 2, "holds": 3}
    rows = sorted(report.rows, key=lambda row: order[row.verdict])
    shown = [(row.what[:CELL], MARKS[row.verdict], row.observed[:CELL]) for row in rows[:MOST]]
    parts = [f"### foldproof: {escape(report.headline[: 3 * CELL])}"]
    if shown:
        parts.append(table(("obligation", "verdict", "observed"), shown))
    if len(rows) > MOST:
        parts.append(f"{len(rows) - MOST} more obligations are in receipt.md.")
    settle = list(dict.fromkeys(row.settle for row in report.open if row.settle and row.required))
    if settle:
        lines = [f"- {escape(command[: 2 * CELL])}" for command in settle[:MOST]]
        parts.append("What would settle the rest:\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"
