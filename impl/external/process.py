"""A selector that speaks `foldproof-selector/1`, driven so that nothing it does can hang or end the caller.

One thread writes and reads without blocking. Up to 1,024 launches are under way; when the process breaks, a fresh
one is asked for the unanswered launches one at a time, so that the launch that breaks it is named.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import TracebackType
from typing import Self

import msgspec
from foldproof.impl.capture import Capture
from foldproof.impl.errors import one_line
from foldproof.impl.external.answers import Answer, Fault, FaultKind, SelectorError, Unasked, knows
from foldproof.impl.external.blame import MOST_WAITS, WAITED, culprit
from foldproof.impl.external.child import MEMORY_MIB, Child
from foldproof.impl.external.ending import GRACE_S, end_politely
from foldproof.impl.external.talk import Question, Stop, Talk, WiresOf, greeting
from foldproof.impl.external.wire import Hello, capture_message, kernels_text, launch_text, wire_launch
from foldproof.impl.launch import Kind, Launch

TIMEOUT_S = 5.0
START_S = 20.0
MAX_FAULTS = 4
RECYCLE_BYTES = 64 << 20
MOST_KEPT = 100


class Batch(msgspec.Struct, frozen=True):
    """What one `ask` asks for, as texts that are made when they are needed."""

    capture_id: Hashable
    variants: int
    kernels_of: Callable[[], bytes]
    wires_of: WiresOf
    text_of: Callable[[int], str]


class ProcessSelector:
    """A selector as a command; see `answers.Selector` for what it offers.

    `timeout_s` is how long it may keep all launches under way without one more answer, `start_s` how long it may
    take to greet. After `max_faults` faults within one `ask`, or two that each took all the time allowed, the rest of
    the launches are not asked. A process that was given `recycle_bytes` of captures is replaced, so that a selector
    that keeps them all stays small. It gets `memory_mib` MiB of data memory, 0 for any.
    """

    def __init__(  # noqa: PLR0913 (one limit a keyword)
        self,
        command: Sequence[str],
        *,
        timeout_s: float = TIMEOUT_S,
        start_s: float = START_S,
        max_faults: int = MAX_FAULTS,
        recycle_bytes: int = RECYCLE_BYTES,
        memory_mib: int = MEMORY_MIB,
    ) -> None:
        self.command = tuple(command)
        self.timeout_s = timeout_s
        self.start_s = start_s
        self.max_faults = max_faults
        self.recycle_bytes = recycle_bytes
        self.memory_mib = memory_mib
        self.faults: list[Fault] = []
        self._hello: Hello | None = None
        self._talk: Talk | None = None
        self._numbers: dict[Hashable, int] = {}
        self._given = 0
        self._asked_last: Callable[[], str] = str

    def __enter__(self) -> Self:
        """Start the process. Raises `SelectorError` if it does not start, does not greet or speaks another version."""
        stop = self._start()
        if stop is not None:
            why = f"{stop.detail}; stderr: {one_line(stop.stderr)}" if stop.stderr else stop.detail
            where = one_line(" ".join(self.command))
            raise SelectorError(why, where=where, fix="see docs/reference/protocol.md")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The name in the greeting."""
        assert self._hello is not None, "enter the selector first"
        return self._hello.name

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds in the greeting; all where it names none."""
        assert self._hello is not None, "enter the selector first"
        return frozenset(self._hello.kinds)

    def ask(self, capture_id: Hashable, capture: Capture, launches: Sequence[Launch]) -> list[Answer]:
        """One answer a launch, in order.

        Equal ids mean the same capture. Raises `InvalidLaunch` or `InvalidCapture` only for numbers that the
        protocol does not hold.
        """
        kinds = self.kinds
        answers: list[Answer | None] = [None] * len(launches)
        if len(kinds) < len(Kind):
            unknown = Unasked("kind-unknown")
            answers = [None if knows(kinds, launch) else unknown for launch in launches]
        kernels = b"" if capture_id in self._numbers else kernels_text(capture)

        def kernels_of() -> bytes:
            return kernels or kernels_text(capture)

        batch = Batch(
            capture_id,
            len(capture.kernels),
            kernels_of=kernels_of,
            wires_of=lambda places: [wire_launch(launches[i]) for i in places],
            text_of=lambda i: launch_text(launches[i]).decode(),
        )
        return self._ask(batch, answers)

    def ask_texts(self, capture_id: Hashable, kernels: bytes, variants: int, launches: Sequence[bytes]) -> list[Answer]:
        """As `ask`, for JSON texts: `kernels` is a list of `variants` entries, each launch one line.

        For launches that are asked often, and for captures and launches that no `Capture` or `Launch` can hold.
        """
        batch = Batch(
            capture_id,
            variants,
            kernels_of=lambda: kernels,
            wires_of=lambda places: [msgspec.Raw(launches[i]) for i in places],
            text_of=lambda i: launches[i].decode("utf-8", "replace"),
        )
        return self._ask(batch, [None] * len(launches))

    def close(self) -> None:
        """End the process: the end of input, a second to exit, then no mercy. What was wrong is added to `faults`."""
        talk, self._talk = self._talk, None
        self._numbers.clear()
        self._given = 0
        if talk is None:
            return
        fault = end_politely(talk.child, GRACE_S)
        if fault is not None:
            self._note(fault)

    def _note(self, fault: Fault) -> None:
        """Keep a fault that belongs to no launch, the first hundred: a campaign of hours must not fill memory."""
        self.faults += [fault][: max(0, MOST_KEPT - len(self.faults))]

    def _start(self) -> Stop | None:
        """A fresh process that has greeted; else why there is none."""
        self._kill()
        child = Child(self.command, memory_mib=self.memory_mib)
        try:
            hello = greeting(child, self.start_s)
            if isinstance(hello, Hello):
                self._hello = self._hello or hello
                self._talk = Talk(child, self.timeout_s)
                return None
            return hello
        finally:
            if self._talk is None:
                child.kill()

    def _kill(self) -> None:
        talk, self._talk = self._talk, None
        self._numbers.clear()
        self._given = 0
        if talk is not None:
            talk.child.kill()

    def _ask(self, batch: Batch, answers: list[Answer | None]) -> list[Answer]:
        todo = [i for i, answer in enumerate(answers) if answer is None]
        faults = waits = 0

        def fault_of(stop: Stop, place: int, *, reproduced: bool = True) -> Fault:
            return Fault(stop.kind, stop.detail, batch.text_of(place), stop.stderr, reproduced)

        def exchange(places: list[int], settle_s: float = 0.0) -> Stop | None:
            before = self._talk
            stop = self._prepared(batch)
            if stop is None:
                assert self._talk is not None
                number = self._numbers[batch.capture_id]
                question = Question(number, batch.variants, places, answers, batch.wires_of, fault_of)
                stop = self._talk.exchange(question, settle_s)
                if stop is not None and stop.kind in WAITED and self._talk is not before and len(places) == 1:
                    # A fresh process was asked for this alone: to ask again would wait as long for the same.
                    stop = msgspec.structs.replace(stop, place=places[0])
            if stop is not None:
                self._kill()
            return stop

        while todo and faults < self.max_faults and waits < MOST_WAITS and (stop := exchange(todo)) is not None:
            faults += 1
            waits += stop.kind in WAITED
            if stop.stray:
                self._note(Fault(stop.kind, stop.detail, stderr=stop.stderr))
            else:
                place, stop, reproduced = culprit(stop, todo, answers, exchange)
                answers[place] = fault_of(stop, place, reproduced=reproduced)
            if stop.kind == FaultKind.NO_GREETING:
                break
            todo = [i for i in todo if answers[i] is None]
        if answers:
            self._asked_last = lambda: batch.text_of(len(answers) - 1)
        return [Unasked("too-many-faults") if answer is None else answer for answer in answers]

    def _prepared(self, batch: Batch) -> Stop | None:
        """A process that has the capture, or will have it before the next launch."""
        if self._given >= self.recycle_bytes and batch.capture_id not in self._numbers:
            self.close()
        elif self._talk is not None and self._talk.child.status is not None:
            child = self._talk.child
            said = f"{child.ending()} after its last answer"
            self._note(Fault(FaultKind.CRASH, said, self._asked_last(), child.stderr_tail, reproduced=False))
            self._kill()
        if self._talk is None:
            stop = self._start()
            if stop is not None:
                return stop
        assert self._talk is not None
        if batch.capture_id not in self._numbers:
            number = self._numbers[batch.capture_id] = len(self._numbers) + 1
            message = capture_message(number, batch.kernels_of())
            self._given += len(message)
            self._talk.queue(message)
        return None
