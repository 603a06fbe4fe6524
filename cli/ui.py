"""What the verbs share on a terminal: tables, progress, and where text goes.

Results go to standard output, progress to standard error.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from foldproof.impl.errors import one_line
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 180
LINE_S = 60.0
"""Seconds between two lines of progress in a log."""
STYLES = {
    "proved": "green",
    "refuted": "red",
    "undecided": "yellow",
    "picked": "bold green",
    "admissible": "green",
}


def console() -> Console:
    """Standard output; a fixed width where it is no terminal, so that piped tables are the same everywhere."""
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(width=width, highlight=False, soft_wrap=False)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> None:
    """Print a table; cells are plain text, never markup, so names in a capture cannot style the terminal."""
    table = Table(title=title or None, title_justify="left", title_style="bold", header_style="bold")
    for column in columns:
        table.add_column(Text(one_line(column)), overflow="fold")
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row))
    console().print(table)


def _cell(value: object) -> Text:
    text = one_line(str(value))
    return Text(text, style=STYLES.get(text, "red" if text.endswith("REFUTED") else ""))


def say(text: str, style: str = "") -> None:
    """Print one line of plain text, however long: a command that a reader pastes has no line break in it."""
    console().print(Text(text, style=style), soft_wrap=True)


def say_next(words: Iterable[str]) -> None:
    """Print the words of the command to type next, the last line of a verb."""
    say(f"next: {shlex.join(words)}")


class Steps:
    """Progress of a long run: one bar a step. Where standard error is no terminal, a line a minute: a log wants few."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._what, self._began, self._said = "", monotonic(), monotonic()

    def step(self, what: str, total: float) -> None:
        """Start a step of `total` units."""
        self._what, self._began = what, monotonic()
        if self._progress is not None:
            self._task = self._progress.add_task(what, total=total, note="")

    def at(self, done: float, note: str = "") -> None:
        """`done` units of the current step are done."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, note=note)
        elif self._progress is None and note and monotonic() - self._said >= LINE_S:
            self._said = monotonic()
            line = f"foldproof: {self._what} after {self._said - self._began:.0f} s: {one_line(note)}"
            Console(stderr=True, highlight=False, soft_wrap=True).print(Text(line))

    def close(self, note: str = "") -> None:
        """The current step is done."""
        if self._progress is not None and self._task is not None:
            total = self._progress.tasks[self._task].total
            self._progress.update(self._task, completed=total, note=note)


@contextmanager
def steps() -> Iterator[Steps]:
    """A progress display on standard error; lines where that is no terminal."""
    if not sys.stderr.isatty():
        yield Steps(None)
        return
    columns = (TextColumn("{task.description:<9}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield Steps(progress)
