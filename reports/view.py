"""A report as data: obligations with their verdicts, the evidence that counts, and the sentence on top.

Every renderer is a pure function of a `Report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foldproof.reports.changes import Comparison
from foldproof.reports.duty import Row
from foldproof.reports.events import CaseFound, TheoremJudged
from foldproof.reports.evidence import AtHand, Evidence, Fact, evidence
from foldproof.reports.newest import newest
from foldproof.reports.obligations import Config
from foldproof.reports.settling import settle
from foldproof.reports.store import Damage, Stored

EXIT_HOLDS, EXIT_FAILS, EXIT_OWED = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Report:
    """What a report shows. `rows` are the obligations; `found` has the newest fact of each subject.

    `compared` is what changed since an earlier release, None where none was named.
    """

    config: Config
    rows: tuple[Row, ...]
    found: Evidence
    at_hand: AtHand
    damaged: tuple[Damage, ...] = ()
    compared: Comparison | None = None

    @property
    def policy(self) -> str:
        """The policy that the release is about."""
        return self.config.policy.name

    @property
    def failing(self) -> tuple[Row, ...]:
        """The obligations that do not hold."""
        return tuple(row for row in self.rows if row.verdict == "fails" and row.required)

    @property
    def open(self) -> tuple[Row, ...]:
        """The obligations that nothing settles: owed, stale or undecided, required or not."""
        return tuple(row for row in self.rows if row.verdict in ("owed", "undecided"))

    @property
    def exit_code(self) -> int:
        """1 an obligation fails or a record is damaged, 3 one that is required is owed or undecided, else 0."""
        if self.failing or self.damaged:
            return EXIT_FAILS
        return EXIT_OWED if any(row.required for row in self.open) else EXIT_HOLDS

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        holding = sum(row.verdict == "holds" for row in self.rows)
        if self.damaged:
            return (
                f"{len(self.damaged)} files of the evidence are damaged: {self.damaged[0].file} {self.damaged[0].why}."
            )
        if self.failing:
            names = ", ".join(row.what for row in self.failing[:3]) + (", ..." if len(self.failing) > 3 else "")
            return f"{self.policy} fails {len(self.failing)} of {len(self.rows)} obligations: {names}."
        owed = sum(row.required for row in self.open)
        if owed:
            return f"{owed} of {len(self.rows)} obligations of {self.policy} are owed; {holding} hold."
        later = f"; {len(self.open)} that nothing asks for are owed" if self.open else ""
        return f"{self.policy} keeps all {holding} obligations{later}."

    def cases(self, stage: str = "") -> list[tuple[Fact, CaseFound]]:
        """The counterexamples and findings, of one stage or of all."""
        return [(fact, case) for fact, case in self.found.of(CaseFound) if stage in ("", case.stage)]

    def promised_refuted(self) -> list[tuple[Fact, TheoremJudged]]:
        """The theorems that are promised and refuted, fresh ones alone."""
        return [
            (fact, event)
            for fact, event in self.found.of(TheoremJudged)
            if event.promised and event.verdict == "refuted" and not fact.stale
        ]


def build(
    config: Config, stored: Sequence[Stored], at_hand: AtHand, promises: tuple[str, ...], damaged: Sequence[Damage] = ()
) -> Report:
    """The report of the records. `promises` are those of the policy at hand."""
    found = newest(evidence(stored, at_hand))
    return Report(config, settle(config, found, at_hand, promises), found, at_hand, tuple(damaged))
