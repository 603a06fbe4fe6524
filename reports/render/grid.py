"""Tables for the page: columns with a kind, rows with the word that they are filtered by, and how many fit.

A page stays small whatever a release has: a table takes rows while its budget of bytes lasts, those that need a reader
first, and says how many it leaves out. The CSV file of the table has every row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from foldproof.impl.errors import one_line

MOST_ROWS = 5_000
FIRST_ROWS = 400
"""A browser lays out so many at once; a reader who asks gets the rest."""
MOST_BYTES = {"bytes": 1_000_000, "obligations": 600_000}
"""For one table, by its name."""
PAGE_BYTES = 2_300_000
"""For all tables of a page together; the rest of it takes less than half a megabyte."""
LONGEST = 600
"""Characters of a cell; a command has `COMMAND`, and can be copied only if it is whole."""
COMMAND = 4_000
HASH = 16
"""A hash of up to so many characters is shown whole, a longer one by its first 12."""
_GOOD = {"holds", "proved", "equal", "complete", "fresh", "caught", "unsat"}
_BAD = {"fails", "refuted", "differs", "unstable", "damaged", "survives", "sat", "failed"}
_PLAIN = {"", "missing", "faster", "new launches"}
_MARKS = {"command": 120, "copied": 140, "hash": 18, "code": 18, "word": 16, "head": 16, "hex": 200, "link": 60}
"""About how many bytes stand around the text of a cell, by its kind."""
_RANK = {"bad": 0, "warn": 1, "": 2, "good": 3}


@dataclass(frozen=True, slots=True)
class Column:
    """A title and how its cells are shown: text, number, word, hash, copied (a hash to copy), command, code, head.

    "head" is the cell that names its row.
    """

    title: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row, the words that it is filtered by, the telling one first, and the id that links lead to."""

    cells: tuple[Any, ...]
    words: tuple[str, ...] = ()
    id: str = ""

    @property
    def word(self) -> str:
        """The telling word, "" without."""
        return self.words[0] if self.words else ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as the page shows it. `left_out` counts the rows by word that did not fit; `file` has them all."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The CSV file of the table."""
        return f"tables/{self.name}.csv"

    @property
    def total(self) -> int:
        """Rows shown and left out."""
        return len(self.rows) + sum(self.left_out.values())

    @property
    def words(self) -> dict[str, int]:
        """The rows shown by word, worst first; empty where all are alike."""
        counted = Counter(word for row in self.rows for word in row.words)
        ordered = sorted(counted, key=lambda word: (_RANK[tone(word)], word))
        return {word: counted[word] for word in ordered} if len(ordered) > 1 else {}

    @property
    def filtered(self) -> bool:
        """Whether there is something to filter."""
        return bool(self.words) or len(self.rows) > 8

    @property
    def numeric(self) -> str:
        """The classes that align the columns of numbers: `n3` for the third."""
        return " ".join(f"n{place}" for place, column in enumerate(self.columns, 1) if column.kind == "number")


@dataclass(slots=True)
class Budget:
    """What the page has left for tables, in bytes."""

    left: int = PAGE_BYTES

    def take(self, rows: Sequence[Row], kinds: Sequence[str], most: int) -> int:
        """How many of the rows fit in `most` bytes and in what is left, which becomes less by their size."""
        room, used = min(most, self.left), 0
        for fits, row in enumerate(rows[:MOST_ROWS]):
            size = cost(row, kinds)
            if used + size > room:
                self.left -= used
                return fits
            used += size
        self.left -= used
        return min(len(rows), MOST_ROWS)


def grid(name: str, caption: str, columns: Iterable[Column], rows: Iterable[Row], budget: Budget) -> Grid:
    """The table of the rows, worst first, as many as the budget lets in. A column without any text is left out."""
    given, ordered = tuple(columns), sorted(rows, key=lambda row: _RANK[tone(row.word)])
    kept = [place for place in range(len(given)) if any(row.cells[place] != "" for row in ordered)]
    titles = tuple(given[place] for place in kept)
    if len(kept) < len(given):
        ordered = [Row(tuple(row.cells[place] for place in kept), row.words, row.id) for row in ordered]
    fits = budget.take(ordered, [column.kind for column in titles], MOST_BYTES.get(name, 800_000))
    return Grid(name, caption, titles, tuple(ordered[:fits]), dict(Counter(row.word for row in ordered[fits:])))


def of_frame(frame: Any, words: Callable[[dict[str, Any]], Iterable[str]] = lambda _: ()) -> list[Row]:
    """The rows of a pandas frame; `words` tells what a row is filtered by."""
    names = list(frame.columns)
    rows = frame.itertuples(index=False, name=None)
    return [Row(tuple(cells), tuple(words(dict(zip(names, cells, strict=True))))) for cells in rows]


def tone(word: str) -> str:
    """good, bad, warn, or "" for a word that judges nothing. What follows a colon is the reason."""
    word = word.partition(":")[0]
    if word in _GOOD:
        return "good"
    if word in _BAD:
        return "bad"
    return "" if word in _PLAIN else "warn"


def shown(value: object, most: int = LONGEST) -> str:
    """A cell as text: numbers in groups of three digits, the rest on one line and cut at `most` characters."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = value if isinstance(value, str) else str(value)
        text = text if len(text) <= most else f"{text[: most - 3]}..."
        # In pieces, since `one_line` cuts where an error message should end.
        return text if text.isprintable() else "".join(one_line(text[at : at + 50]) for at in range(0, len(text), 50))
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}" if isinstance(value, float) else f"{value:,}"
    return f"{value:.3g}"


def short(digest: str) -> str:
    """A hash as far as a reader compares it."""
    text = shown(digest)
    return text if len(text) <= HASH else f"{text[:12]}…"


def cost(row: Row, kinds: Iterable[str] = ()) -> int:
    """About how many bytes a row takes in the page: its text, escaped, and the marks around each cell."""
    size = 30 + sum(map(len, row.words)) + len(row.id)
    for cell, kind in zip_longest(row.cells, kinds, fillvalue="text"):
        if cell == "":
            size += len("<td>")
            continue
        text = shown(cell, COMMAND if kind == "command" else LONGEST)
        size += len(text.encode("utf-8", "replace")) + 4 * sum(map(text.count, "<>&\"'")) + _MARKS.get(str(kind), 8)
        if kind in {"hash", "copied"} and len(text) > HASH:
            size += len(text) * (1 if kind == "hash" else 2)
    return size
