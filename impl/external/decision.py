"""Deciding a batch by a library that may break: what was decided is kept, and the launch to blame is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

import msgspec
import numpy as np
from foldproof.impl.external.answers import Fault, FaultKind
from foldproof.impl.external.blame import MOST_WAITS, WAITED
from foldproof.impl.external.channel import CALL, Halt, Results
from foldproof.impl.external.records import UNWRITTEN, Encoded, Records, launch_at
from foldproof.impl.external.wire import launch_text
from numpy.typing import NDArray

FAULTS_TOLD = 100
INVALID_CAPTURE = -4
FAULTY = -101
"""In `Decided.picks`: the selector broke on this launch, or its pick is none."""
UNASKED = -102
"""In `Decided.picks`: not decided, because the selector had broken too often."""

Run: TypeAlias = Callable[[Records, bool], tuple[Results, Halt | None, list[int]]]
"""Do jobs (carefully?): what was decided, why it stopped, and the slots that were loaded first."""


class Decided(msgspec.Struct, frozen=True, eq=False):
    """The picks of a batch: an index into `kernels`; -1 to -4 as in the header; FAULTY; or UNASKED.

    `passes`: 0 unsaid, 1 exact, 2 general, 3 runtime-one. `faults`, by place, tells of FAULTY ones: of each on which
    the selector broke, and of the first 100 whose pick is none.
    """

    picks: NDArray[np.int32]
    passes: NDArray[np.uint8]
    faults: dict[int, Fault]


class Decision:
    """One batch under way: `total` picks, written as they come."""

    def __init__(self, encoded: Encoded, total: int) -> None:
        self.encoded = encoded
        self.picks = np.full(total, UNWRITTEN, np.int32)
        self.passes = np.zeros(total, np.uint8)
        self.faults: dict[int, Fault] = {}

    def decide(self, run: Run, jobs: Records, max_faults: int) -> None:
        """Do the jobs; after each fault go on behind the launch that caused it, until there are `max_faults`.

        Two that each took all the time allowed end it, too.
        """
        pending, waits = jobs, 0
        while len(pending) and len(self.faults) < max_faults and waits < MOST_WAITS:
            results, halt, loaded = run(pending, False)
            self._keep(results)
            if halt is None:
                return
            if halt.kind == FaultKind.NO_GREETING:
                self._blame(halt, pending[0], 0)
                return
            waits += halt.kind in WAITED
            if not halt.loading:
                halt, loaded, pending = self._isolate(run, halt, pending)
            if halt.loading:
                pending = self._without_capture(halt, pending, loaded[halt.at])

    def _keep(self, results: Results) -> None:
        count = len(results.picks)
        written = results.picks != UNWRITTEN
        np.copyto(self.picks[:count], results.picks, where=written)
        np.copyto(self.passes[:count], results.passes, where=written)

    def _isolate(self, run: Run, halt: Halt, pending: Records) -> tuple[Halt, list[int], Records]:
        """Repeat the call that broke, launch by launch in a fresh process; what remains to be done after it."""
        job, later = pending[halt.at], pending[halt.at + 1 :]
        part = _part(job, halt.launch, CALL)
        results, again, loaded = run(part, True)
        self._keep(results)
        if again is None:
            self._blame(halt, job, halt.launch, reproduced=False)
            return halt, loaded, np.concatenate([_part(job, halt.launch + CALL), later])
        if again.loading:
            return again, loaded, np.concatenate([_part(job, halt.launch), later])
        at = halt.launch + again.launch
        self._blame(again, job, at)
        return again, loaded, np.concatenate([_part(job, at + 1), later])

    def _without_capture(self, halt: Halt, pending: Records, slot: int) -> Records:
        """Blame the first launch against a capture that the library does not survive loading; drop the others."""
        of_slot = pending["slot"] == slot
        self._blame(halt, pending[of_slot][0], 0)
        rest: Records = pending[~of_slot]
        return rest

    def _blame(self, halt: Halt, job: Any, at: int, *, reproduced: bool = True) -> None:
        place = int(job["place"]) + at
        detail = f"{halt.detail}, while loading the capture" if halt.loading else halt.detail
        text = self._text(int(job["first"]) + at)
        self.faults[place] = Fault(halt.kind, detail, text, halt.stderr, reproduced)

    def _text(self, position: int) -> str:
        return launch_text(launch_at(self.encoded, position)).decode()

    def settled(self, jobs: Records, variants: Mapping[int, int], invalid: AbstractSet[int]) -> Decided:
        """The picks, checked: what is no index into `kernels` and no word of the header is a fault."""
        counts = jobs["count"].astype(np.intp)
        limits = np.repeat([variants[slot] for slot in jobs["slot"].tolist()], counts)
        refused = np.repeat([slot in invalid for slot in jobs["slot"].tolist()], counts)
        unwritten = self.picks == UNWRITTEN
        unasked = unwritten & ~refused if self.faults else np.zeros(len(self.picks), bool)
        bad = ((self.picks >= limits) | (self.picks < INVALID_CAPTURE) | (self.passes > 3)) & ~refused & ~unasked
        firsts = np.repeat(jobs["first"] - jobs["place"], counts)
        for place in np.flatnonzero(bad)[:FAULTS_TOLD].tolist():
            position = int(firsts[place] + np.uint64(place))
            self.faults.setdefault(place, self._bad(place, int(limits[place]), position))
        self.picks[bad] = FAULTY
        self.picks[refused] = INVALID_CAPTURE
        self.picks[unasked] = UNASKED
        self.picks[list(self.faults)] = FAULTY
        return Decided(self.picks, self.passes, self.faults)

    def _bad(self, place: int, limit: int, position: int) -> Fault:
        pick, word = int(self.picks[place]), int(self.passes[place])
        if pick == UNWRITTEN:
            return Fault(FaultKind.UNWRITTEN, "the call left the pick as it was", self._text(position))
        if word > 3:
            return Fault(FaultKind.GARBAGE, f"the pass {word} is none", self._text(position))
        return Fault(FaultKind.OUT_OF_RANGE, f"pick {pick} of {limit} variants", self._text(position))


def _part(job: Any, start: int, count: int | None = None) -> Records:
    """The job from its launch `start` on, `count` launches at most; an empty table where nothing is left."""
    left = int(job["count"]) - start
    part = np.array([job])
    part["first"] += np.uint64(start)
    part["place"] += np.uint64(start)
    part["count"] = max(left, 0) if count is None else min(left, count)
    return part if left > 0 else part[:0]
