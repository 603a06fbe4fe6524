"""A differential campaign: the reference of one policy against a selector, over numbered rounds.

A run over a range of rounds is a pure function of seed and range, as long as the selector answers by launch and
capture alone; parts of ranges that do not overlap add up, whoever ran them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

import msgspec
import numpy as np
from foldproof.impl.cases import Case
from foldproof.impl.external.answers import Fault
from foldproof.impl.external.decision import UNASKED
from foldproof.impl.policy import Policy
from foldproof.props.coverage import AMBIGUOUS, MISSING, NO_RULES, Cell, Coverage, visited
from foldproof.props.drive import Driver
from foldproof.props.patience import Patience
from foldproof.props.rounds import Round, Source
from foldproof.props.verdict_arrays import PASS_WORDS, Answers, reference

BATCH = 8
"""Rounds in one batch: enough to fill a call, few enough to see a fault within milliseconds."""
MOST_KINDS = 12
"""Kinds of finding of which an example is kept."""
STRAY_KEPT = 100
"""Faults without a launch that are kept: a selector that never stops making them fills no memory."""


class Raw(msgspec.Struct, frozen=True):
    """A difference or a fault as it was met: where, the case, and both answers in words."""

    kind: str
    round: int
    place: int
    case: Case
    expected: str
    got: str
    fault: Fault | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Which of two was met first."""
        return self.round, self.place


@dataclass(frozen=True, slots=True)
class Part:
    """What a range of rounds showed. `kinds` counts launches by kind of finding, `first` holds the first of each."""

    rounds: int = 0
    launches: int = 0
    unasked: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    kinds: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, Raw] = field(default_factory=dict)
    cells: Mapping[Cell, tuple[int, int]] = field(default_factory=dict)
    """The round and place that visited each cell first."""
    stray: tuple[Fault, ...] = ()
    """The first faults that belong to no launch."""

    def __add__(self, other: Part) -> Part:
        first = dict(self.first)
        for kind, raw in other.first.items():
            if kind not in first or raw.order < first[kind].order:
                first[kind] = raw
        cells = dict(self.cells)
        for cell, where in other.cells.items():
            cells[cell] = min(where, cells.get(cell, where))
        return Part(
            self.rounds + other.rounds,
            self.launches + other.launches,
            self.unasked + other.unasked,
            Counter(self.outcomes) + Counter(other.outcomes),
            self.coverage + other.coverage,
            Counter(self.kinds) + Counter(other.kinds),
            dict(sorted(first.items(), key=lambda pair: pair[1].order)[:MOST_KINDS]),
            cells,
            (self.stray + other.stray)[:STRAY_KEPT],
        )

    @property
    def is_clean(self) -> bool:
        """Whether there is neither a difference nor a fault."""
        return not self.kinds and not self.stray


def run_rounds(  # noqa: PLR0913, PLR0917 - a range, and when to leave the rest of it
    driver: Driver,
    source: Source,
    policy: Policy,
    seed: int,
    numbers: Sequence[int],
    patience: Patience | None = None,
    until: float | None = None,
) -> Part:
    """The rounds of these numbers. Never raises for what the selector does.

    The last of them are left out where `patience` with the selector is spent, and where it hung on a launch and the
    time `until` of the monotonic clock is past; `Part.rounds` says how many were run.
    """
    part, already = Part(), len(driver.stray)
    patience = patience or Patience()
    for of, given in _asked(driver, source, seed, numbers, patience):
        part += compared(of, given, reference(of, policy), seed)
        patience.note(given.faults.values(), answered=given.has_any)
        if patience.is_spent:
            return replace(part, stray=(*driver.stray[already:], patience.given_up()))
        if patience.hung and until is not None and monotonic() >= until:
            break
    return replace(part, stray=tuple(driver.stray[already:]))


def _asked(
    driver: Driver, source: Source, seed: int, numbers: Sequence[int], patience: Patience
) -> Iterator[tuple[Round, Answers]]:
    """Each round with its answers, none once `patience` is spent."""
    for start in range(0, 0 if patience.is_spent else len(numbers), BATCH):
        rounds = [source.round(seed, number) for number in numbers[start : start + BATCH]]
        yield from zip(rounds, driver.answers(rounds), strict=True)


def compared(of: Round, given: Answers, wanted: Answers, seed: int) -> Part:
    """One round: the selector's answers against the reference's."""
    wrong = given.differs_from(wanted)
    kinds, first = Counter[str](), dict[str, Raw]()
    for place in np.flatnonzero(wrong).tolist():
        kind = given.kind_at(wanted, place)
        kinds[kind] += 1
        if kind not in first:
            texts = wanted.text_at(place), given.text_at(place)
            first[kind] = Raw(kind, of.number, place, of.case(place, seed), *texts, given.faults.get(place))
    cells = visited(of, wanted)
    return Part(
        1,
        len(of),
        int((given.picks == UNASKED).sum()),
        outcomes(wanted),
        Coverage(1, dict.fromkeys(cells, 1)),
        kinds,
        first,
        {cell: (of.number, place) for cell, place in cells.items()},
    )


def outcomes(wanted: Answers) -> dict[str, int]:
    """How many launches end in which way, by the reference."""
    codes = np.where(wanted.picks >= 0, wanted.passes, wanted.picks.astype(np.int64) - 4)
    words = {code: word or NO_RULES for code, word in enumerate(PASS_WORDS)} | {-5: MISSING, -6: AMBIGUOUS}
    values, counts = np.unique(codes, return_counts=True)
    return {words[value]: count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}
