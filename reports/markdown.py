"""Markdown from untrusted text: cells, tables, code and fenced blocks that show it as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from foldproof.impl.errors import one_line

_SPECIAL = {c: f"\\{c}" for c in "\\`*_[]#|~"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;"}
"""`@` too: a name must not notify anybody whose name it is."""

WIDEST = 72
"""Characters up to which a column lines up: a digest has 64."""


def escape(text: object) -> str:
    """`text` on one line, so that Markdown and the HTML inside it show it as it is."""
    return "".join(_SPECIAL.get(c, c) for c in one_line(str(text))).replace("://", ":&#47;&#47;")


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table whose columns line up in plain text too; cells are escaped."""
    cells = [[escape(c) for c in columns], *([escape(c) for c in row] for row in rows)]
    widths = [min(max(len(row[i]) for row in cells), WIDEST) for i in range(len(columns))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def code(text: object) -> str:
    """`text` as a code span, whatever backticks it holds."""
    shown = one_line(str(text))
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fence(text: str) -> str:
    """The lines of `text` as a fenced block that nothing in it can close."""
    lines = [one_line(line) for line in text.split("\n")]
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return "\n".join([f"{ticks}sh", *lines, ticks])
