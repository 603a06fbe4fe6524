"""What changed from one release to the next, as data."""

from __future__ import annotations

from dataclasses import dataclass

REFUTED, FAILS, PROVED, HOLDS, UNDECIDED, OWED = "refuted", "fails", "proved", "holds", "undecided", "owed"
DROPPED = "dropped"
SLOWER, FASTER = "slower", "faster"
VARIANT, ENDING, NEW_LAUNCH, LOST_LAUNCH = "another variant", "another ending", "new launches", "lost launches"
WORSE = (REFUTED, FAILS, UNDECIDED, OWED, DROPPED, SLOWER, VARIANT, ENDING, LOST_LAUNCH)
"""The words that a reviewer reads first."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what became of what, and how it was and is; "" where it was not there."""

    what: str
    subject: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every change between two releases, the worse ones first.

    `launches` is how many launches both releases decided, `moved` how many of them select another variant or end in
    another way; `changes` lists the first thousand. `unmeasured` says what could not be compared.
    """

    old: str
    new: str
    changes: tuple[Change, ...]
    launches: int = 0
    moved: int = 0
    unmeasured: tuple[str, ...] = ()

    def of(self, *words: str) -> tuple[Change, ...]:
        """The changes of some kinds."""
        return tuple(change for change in self.changes if change.what in words)
