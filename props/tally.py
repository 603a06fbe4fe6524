"""What an exhaustive run counted, and how the counts of its shards add up."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from foldproof.impl.batch import AMBIGUOUS, MISSING
from foldproof.impl.cases import Case
from foldproof.impl.errors import AmbiguousTritonVariant, FoldproofError, MissingTritonVariant
from foldproof.props.universe import Universe

NO_ANSWER = -3
"""The pick of a selector that answered with neither a variant nor a miss nor an ambiguity (a crash, another error)."""
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Finding:
    """A case on which the selector disagrees: picks as `BatchSelector` gives them; `rank` orders by size."""

    rank: tuple[int, int, int]
    case: Case = field(compare=False)
    expected: int
    got: int

    def __str__(self) -> str:
        return f"{self.case.name}: expected {pick_text(self.expected)}, got {pick_text(self.got)}"


@dataclass(frozen=True, slots=True)
class Tally:
    """What was decided. `ranges` are the captures covered; `outcomes` counts the reference's answers, `kinds` the
    disagreements by (expected, got), each a word; `findings` are the smallest `keep` of them, smallest first.
    """

    universe: Universe
    policy: str
    ranges: tuple[tuple[int, int], ...]
    outcomes: Mapping[str, int]
    kinds: Mapping[tuple[str, str], int]
    findings: tuple[Finding, ...]
    keep: int

    @property
    def captures(self) -> int:
        """Captures decided, each with every launch."""
        return sum(stop - start for start, stop in self.ranges)

    @property
    def decisions(self) -> int:
        """Cases decided and compared."""
        return self.captures * self.universe.launch_count

    @property
    def disagreements(self) -> int:
        """Cases on which the selector does not answer as the reference does: an exact count."""
        return sum(self.kinds.values())

    @property
    def is_complete(self) -> bool:
        """Whether every capture of the universe was decided."""
        return self.ranges == ((0, self.universe.captures),)

    def __add__(self, other: Tally) -> Tally:
        """The tally of both ranges. Raises `FoldproofError` if they overlap or are of different runs."""
        if (self.universe, self.policy, self.keep) != (other.universe, other.policy, other.keep):
            why = "are tallies of different universes or policies"
            raise FoldproofError(why, where="two shards", fix="add up shards of one run only")
        return Tally(
            self.universe,
            self.policy,
            _joined(self.ranges + other.ranges),
            _summed(self.outcomes, other.outcomes),
            _summed(self.kinds, other.kinds),
            tuple(heapq.nsmallest(self.keep, self.findings + other.findings, key=lambda finding: finding.rank)),
            self.keep,
        )


def pick_text(pick: int) -> str:
    """A pick in words, as every report says it."""
    words = {MISSING: MissingTritonVariant.code, AMBIGUOUS: AmbiguousTritonVariant.code}
    return f"kernels[{pick}]" if pick >= 0 else words.get(pick, "no answer")


def _joined(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and start < joined[-1][1]:
            why = f"both decided captures {start} to {min(stop, joined[-1][1])}"
            raise FoldproofError(why, where="two shards", fix="add up shards that do not overlap")
        if joined and start == joined[-1][1]:
            joined[-1] = joined[-1][0], stop
        else:
            joined.append((start, stop))
    return tuple(joined)


def _summed(one: Mapping[K, int], other: Mapping[K, int]) -> dict[K, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in dict.fromkeys((*one, *other))}
