"""`tables/NAME.csv`: each table of a report for a spreadsheet or a script."""

from __future__ import annotations

import csv
import io

from foldproof.reports.tables import tables
from foldproof.reports.view import Report

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'")
"""How a cell starts that a spreadsheet takes for a formula; the last four but one are wide forms of the first.

The apostrophe is among them so that a reader who takes one leading apostrophe away has the cell again.
"""


def table_files(report: Report) -> dict[str, bytes]:
    """Each table as CSV (RFC 4180, UTF-8), by its path.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, which a spreadsheet hides; numbers
    stay as they are. Control characters and those that reorder text are shown as escapes, so that a row is a line.
    """
    return {f"tables/{name}.csv": _csv(frame) for name, frame in tables(report).items()}


def _csv(frame: object) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([cell(column) for column in frame.columns])  # type: ignore[attr-defined]
    writer.writerows([[cell(value) for value in row] for row in frame.itertuples(index=False, name=None)])  # type: ignore[attr-defined]
    return text.getvalue().encode("utf-8")


def cell(value: object) -> object:
    """A cell as it is written: a number as it is, a text harmless in a spreadsheet and on one line."""
    if not isinstance(value, str):
        return value
    text = "'" + value if value.lstrip(" ").startswith(FORMULA) else value
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
