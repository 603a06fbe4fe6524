"""A selector that is a shared library (foldproof_selector.h), run in a process of its own so that it cannot end ours.

Launches and picks lie in memory shared with that process. When it breaks, a fresh one repeats the few launches that
it was at, one call each, and the one that it does not survive is named.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np
from foldproof.impl.capture import Capture
from foldproof.impl.external.answers import (
    ERROR_WORDS,
    Answer,
    Fault,
    FaultKind,
    PassWord,
    Reply,
    SelectorError,
    Unasked,
    knows,
)
from foldproof.impl.external.channel import JOB, Channel, Halt, Results, no_results
from foldproof.impl.external.child import MEMORY_MIB
from foldproof.impl.external.decision import FAULTY, Decided, Decision
from foldproof.impl.external.ending import GRACE_S, end_politely
from foldproof.impl.external.records import Encoded, Records, encode
from foldproof.impl.external.wire import kernels_text
from foldproof.impl.launch import Kind, Launch
from numpy.typing import NDArray

TIMEOUT_S = 5.0
START_S = 20.0
MAX_FAULTS = 4
_KEPT_SLOTS = 64
_PASSES: tuple[PassWord | None, ...] = (None, "exact", "general", "runtime-one")


class Source(msgspec.Struct, frozen=True):
    """A capture as the library loads it: the JSON text of the object with `kernels`, and how many there are."""

    text: Callable[[], bytes]
    variants: int


class AbiSelector:
    """A selector as a shared library; see `answers.Selector` for what it offers, `ProcessSelector` for the limits."""

    def __init__(
        self,
        library: Path | str,
        *,
        timeout_s: float = TIMEOUT_S,
        start_s: float = START_S,
        max_faults: int = MAX_FAULTS,
        memory_mib: int = MEMORY_MIB,
    ) -> None:
        self.library = Path(library).resolve()
        self.timeout_s = timeout_s
        self.start_s = start_s
        self.max_faults = max_faults
        self.memory_mib = memory_mib
        self.faults: list[Fault] = []
        self.name = ""
        self.kinds: frozenset[Kind] = frozenset()
        self._channel: Channel | None = None
        self._loaded: dict[int, bool] = {}
        self._slots: dict[Hashable, int] = {}

    def __enter__(self) -> Self:
        """Load the library. Raises `SelectorError` if it does not load, or lacks a function, or has another version."""
        channel = self._opened()
        self.name, self.kinds = channel.name, channel.kinds
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; what was wrong with its end is added to `faults`."""
        channel, self._channel = self._channel, None
        self._loaded.clear()
        if channel is not None and (fault := end_politely(channel.child, GRACE_S)):
            self.faults.append(fault)

    def ask(self, capture_id: Hashable, capture: Capture, launches: Sequence[Launch]) -> list[Answer]:
        """One answer a launch, in order. Equal ids mean the same capture.

        Raises `InvalidLaunch` or `InvalidCapture` only for numbers that 64 bits do not hold, and `FoldproofError`
        for more launches than the shared memory holds.
        """
        asked = [i for i, launch in enumerate(launches) if knows(self.kinds, launch)]
        answers: list[Answer] = [Unasked("kind-unknown")] * len(launches)
        slot = self._slot_of(capture_id)
        text = b"" if slot in self._loaded else _capture_text(kernels_text(capture))
        source = Source(lambda: text or _capture_text(kernels_text(capture)), len(capture.kernels))
        encoded = encode([launches[i] for i in asked])
        jobs = np.array([(slot, 0, len(asked), 0)], JOB)
        decided = self._decide({slot: source}, encoded, jobs)
        for i, answer in zip(asked, _answers(decided), strict=True):
            answers[i] = answer
        return answers

    def decide(
        self,
        captures: Sequence[bytes],
        variants: Sequence[int],
        encoded: Encoded,
        jobs: Sequence[tuple[int, int, int]] | NDArray[Any],
    ) -> Decided:
        """Many decisions at once, against one capture or thousands of small ones.

        `captures` are JSON lists of `kernels` with `variants` entries each. A job is (capture, first, count): launches
        `first` to `first + count` of `encoded` against that capture. The picks of the jobs follow one another.
        """
        table = np.asarray(jobs, np.int64).reshape(-1, 3)
        records = np.zeros(len(table), JOB)
        records["slot"], records["first"], records["count"] = table[:, 0] + _KEPT_SLOTS, table[:, 1], table[:, 2]
        records["place"] = np.cumsum(table[:, 2]) - table[:, 2]
        self._loaded = {slot: loaded for slot, loaded in self._loaded.items() if slot < _KEPT_SLOTS}
        texts = [_capture_text(kernels) for kernels in captures]
        sources = {
            number + _KEPT_SLOTS: Source(lambda text=text: text, count)  # type: ignore[misc]
            for number, (text, count) in enumerate(zip(texts, variants, strict=True))
        }
        return self._decide(sources, encoded, records)

    def _opened(self) -> Channel:
        if self._channel is None:
            self._loaded.clear()
            self._channel = Channel(self.library, self.timeout_s, self.start_s, self.memory_mib)
        return self._channel

    def _slot_of(self, capture_id: Hashable) -> int:
        slot = self._slots.get(capture_id)
        if slot is None:
            slot = len(self._slots)
            if slot >= _KEPT_SLOTS:
                # The capture that was given first makes room.
                slot = self._slots.pop(next(iter(self._slots)))
                self._loaded.pop(slot, None)
            self._slots[capture_id] = slot
        return slot

    def _run(
        self, sources: Mapping[int, Source], encoded: Encoded, jobs: Records, *, careful: bool = False
    ) -> tuple[Results, Halt | None, list[int]]:
        try:
            channel = self._opened()
        except SelectorError as problem:
            return no_results(), Halt(FaultKind.NO_GREETING, problem.why), []
        wanted = [slot for slot in np.unique(jobs["slot"]).tolist() if slot not in self._loaded]
        given = [(slot, sources[slot].text()) for slot in wanted]
        results, halt = channel.run(given, encoded, jobs, careful=careful)
        if halt is None:
            loaded = results.errors[:, 0] == 0
            self._loaded |= dict(zip(wanted, loaded.tolist(), strict=True))
        else:
            channel.child.kill()
            self._channel = None
        return results, halt, wanted

    def _decide(self, sources: Mapping[int, Source], encoded: Encoded, jobs: Records) -> Decided:
        def run(part: Records, careful: bool) -> tuple[Results, Halt | None, list[int]]:
            return self._run(sources, encoded, part, careful=careful)

        decision = Decision(encoded, int(jobs["count"].sum()))
        decision.decide(run, jobs, self.max_faults)
        invalid = {slot for slot, loaded in self._loaded.items() if not loaded}
        variants = {slot: source.variants for slot, source in sources.items()}
        return decision.settled(jobs, variants, invalid)


def _capture_text(kernels: bytes) -> bytes:
    return b'{"kernels":%b}' % kernels


def _answers(decided: Decided) -> list[Answer]:
    answers: list[Answer] = []
    for place, (pick, word) in enumerate(zip(decided.picks.tolist(), decided.passes.tolist(), strict=True)):
        if pick >= 0:
            answers.append(Reply(place, pick, _PASSES[word]))
        elif pick > FAULTY:
            answers.append(Reply(place, error=ERROR_WORDS[-1 - pick]))
        else:
            answers.append(decided.faults[place] if pick == FAULTY else Unasked("too-many-faults"))
    return answers
