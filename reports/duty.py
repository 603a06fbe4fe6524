"""One obligation of a release: what is asked, and the row that a report has of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from foldproof.reports.evidence import Fact

Word = Literal["holds", "fails", "undecided", "owed"]


@dataclass(frozen=True, slots=True)
class Row:
    """One obligation. `command` made the evidence and ended with `exit`; `settle` would settle what is owed.

    `evidence` is the digest of the record and `date` that of its run, "" where there is none. One that is not
    `required` is shown and decides no exit code. `key` stays the same from release to release, whatever the policy is
    called and how many pairs a capture has: two reports are compared by it.
    """

    what: str
    expected: str
    observed: str
    verdict: Word
    command: str = ""
    exit: int | None = None
    settle: str = ""
    why: str = ""
    evidence: str = ""
    date: str = ""
    required: bool = True
    key: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an obligation asks for: the claim, what is expected, the command that would settle it, the row's `key`."""

    what: str
    expected: str
    settle: str
    key: str = ""

    def unmet(self) -> Row:
        """The row where there is no evidence: owed."""
        return Row(self.what, self.expected, "no evidence", "owed", settle=self.settle, key=self.key)

    def shown(self, fact: Fact, verdict: Word, observed: str) -> Row:
        """The row that rests on a fact. One that is stale is owed, whatever it says."""
        run, finished = fact.run.started, fact.run.finished
        row = Row(
            self.what,
            self.expected,
            observed,
            verdict,
            run.command,
            finished.exit_code if finished else None,
            "" if verdict == "holds" else self.settle,
            evidence=fact.digest,
            date=run.started[:10],
            key=self.key,
        )
        if not fact.stale:
            return row
        said = f"it said: {observed}"
        return replace(row, observed=f"stale: {fact.stale}", verdict="owed", settle=self.settle, why=said)
