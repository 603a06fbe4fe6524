"""One conversation with one process: launches out in big writes, answers in by big reads, neither ever blocking."""

from __future__ import annotations

import fcntl
import struct
import termios
import time
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from foldproof.impl.errors import one_line
from foldproof.impl.external.answers import Answer, FaultKind, Reply, SelectorError
from foldproof.impl.external.child import Child
from foldproof.impl.external.wire import (
    WINDOW,
    Hello,
    WireLaunch,
    contradiction,
    hello_from,
    launch_messages,
    replies_from,
)
from foldproof.impl.strictjson import NOT_JSON

BATCH = WINDOW // 2
"""Launches are written in batches of half a window: while the selector works on one, the next is prepared."""
MAX_LINE = 1 << 20
WiresOf: TypeAlias = Callable[[list[int]], list[WireLaunch | msgspec.Raw]]


class Stop(msgspec.Struct, frozen=True):
    """Why a conversation cannot go on.

    `place` is the launch to blame where the answers say which, `last` the one answered last before it, `sent` how
    many launches of the exchange were sent. `stray`: it belongs to no launch of this exchange.
    """

    kind: FaultKind
    detail: str
    stderr: str = ""
    place: int | None = None
    last: int | None = None
    sent: int = 0
    stray: bool = False


class Question(msgspec.Struct, frozen=True):
    """What one exchange asks: launches against a capture of `variants` variants, by their places in `answers`."""

    capture: int
    variants: int
    places: list[int]
    answers: list[Answer | None]
    wires_of: WiresOf
    fault_of: Callable[[Stop, int], Answer]


def greeting(child: Child, start_s: float) -> Hello | Stop:
    """The selector's first line, within `start_s` seconds."""
    deadline = time.monotonic() + start_s
    text = bytearray()
    while b"\n" not in text:
        left = deadline - time.monotonic()
        ended = child.ended
        data = child.read()
        if data:
            text += data
        if data == b"" or (data is None and ended):
            return _no_greeting(child, f"{child.ending()} without a greeting")
        if left <= 0:
            return _no_greeting(child, f"no greeting within {start_s:g} s")
        if child.floods(0) or len(text) > MAX_LINE:
            return _no_greeting(child, "text without end, and no greeting")
        if data is None:
            child.wait(left)
    line, _, rest = bytes(text).partition(b"\n")
    try:
        hello = hello_from(line)
    except SelectorError as problem:
        return _no_greeting(child, problem.why)
    return _no_greeting(child, f"text after the greeting: {_shown(rest)}") if rest else hello


def _no_greeting(child: Child, why: str) -> Stop:
    child.drain()
    return Stop(FaultKind.NO_GREETING, why, child.stderr_tail)


def _shown(data: bytes | bytearray) -> str:
    return one_line(bytes(data[:200]).decode("utf-8", "replace"))


class Talk:
    """The exchange of messages with a process that has greeted."""

    def __init__(self, child: Child, timeout_s: float) -> None:
        self.child = child
        self.timeout_s = timeout_s
        self._queued = b""
        self._out = memoryview(b"")
        self._in = bytearray()
        self._first = self._sent = self._answered = self._written = 0
        self._last: int | None = None

    def queue(self, message: bytes) -> None:
        """Send this before the next launches."""
        self._queued += message

    def exchange(self, question: Question, settle_s: float = 0.0) -> Stop | None:
        """Ask for the launches and write their answers to their places; None when all are answered.

        What the process does within `settle_s` after the last answer counts too. An answer whose pick is out of range
        is a fault of that launch alone, and no reason to stop.
        """
        self._first += self._sent
        self._sent = self._answered = self._written = 0
        self._last = None
        self.child.pardon()
        child, count = self.child, len(question.places)
        deadline = time.monotonic() + self.timeout_s
        while self._answered < count:
            self._send(question)
            ended = child.ended
            data = child.read()
            if data:
                before = self._answered
                if stop := self._take(data, question):
                    return stop
                if self._answered > before:
                    deadline = time.monotonic() + self.timeout_s
                continue
            if data == b"" or ended:
                return self._stop(FaultKind.CRASH, f"{child.ending()} before all launches were answered")
            if child.floods(self._answered):
                return self._stop(FaultKind.STDERR_FLOOD, f"{child.stderr_seen} bytes on stderr")
            left = deadline - time.monotonic()
            if left <= 0:
                return self._late()
            child.wait(left, writing=len(self._out) > 0)
        return self._rest(question, settle_s)

    def _rest(self, question: Question, settle_s: float) -> Stop | None:
        """What comes after the last answer, and should not."""
        if settle_s > 0:
            self.child.settle(settle_s)
        data = self.child.read()
        if data:
            return self._take(data, question)
        if data == b"":
            return self._stop(FaultKind.CRASH, f"{self.child.ending()} after its last answer")
        return self._stop(FaultKind.GARBAGE, f"unasked text: {_shown(self._in)}") if self._in else None

    def _stop(self, kind: FaultKind, detail: str, place: int | None = None, *, stray: bool = False) -> Stop:
        return Stop(kind, detail, self.child.stderr_tail, place, self._last, self._sent, stray)

    def _send(self, question: Question) -> None:
        while True:
            if not self._out:
                under_way = self._sent - self._answered
                if self._sent == len(question.places) or under_way > WINDOW - BATCH:
                    return
                batch = question.places[self._sent : self._sent + BATCH]
                text = launch_messages(self._first + self._sent, question.capture, question.wires_of(batch))
                self._out, self._queued = memoryview(self._queued + text), b""
                self._sent += len(batch)
            count = self.child.write(self._out)
            if count < 0:
                # Nobody reads: what happens next (its end, or no answer in time) says what this was.
                self._out = memoryview(b"")
                return
            self._written += count
            self._out = self._out[count:]
            if self._out:
                return

    def _late(self) -> Stop:
        if self.child.stdin < 0:
            return self._stop(FaultKind.NOT_READING, "closed its input with launches unanswered")
        unread = struct.unpack("i", fcntl.ioctl(self.child.stdin, termios.FIONREAD, b"\0" * 4))[0]
        if unread >= self._written > 0:
            return self._stop(FaultKind.NOT_READING, f"read nothing of its input for {self.timeout_s:g} s")
        said = f"no answer within {self.timeout_s:g} s (an answer that stays in a buffer is none: flush)"
        return self._stop(FaultKind.TIMEOUT, said)

    def _take(self, data: bytes, question: Question) -> Stop | None:
        self._in += data
        end = self._in.rfind(b"\n") + 1
        if not end:
            return self._stop(FaultKind.GARBAGE, "a line without end") if len(self._in) > MAX_LINE else None
        lines = bytes(self._in[:end])
        del self._in[:end]
        try:
            replies = replies_from(lines)
        except NOT_JSON:
            return self._take_lines(lines, question)
        return self._settle(replies, question)

    def _take_lines(self, lines: bytes, question: Question) -> Stop | None:
        """The same line by line, up to the one that is no answer."""
        for line in lines.splitlines():
            try:
                stop = self._settle(replies_from(line), question)
            except NOT_JSON as problem:
                place = self._place_of(line, question)
                return self._stop(FaultKind.GARBAGE, f"no answer ({one_line(str(problem))}): {_shown(line)}", place)
            if stop:
                return stop
        return None  # pragma: no cover (lines that fail together hold one that fails by itself)

    def _place_of(self, line: bytes, question: Question) -> int | None:
        """The launch that a malformed answer names, if it names one that is unanswered."""
        try:
            at = msgspec.json.decode(line, type=_Numbered).id - self._first
        except NOT_JSON:
            return None
        place = question.places[at] if 0 <= at < self._sent else None
        return place if place is not None and question.answers[place] is None else None

    def _settle(self, replies: list[Reply], question: Question) -> Stop | None:
        answers, places, variants = question.answers, question.places, question.variants
        first, sent = self._first, self._sent
        for reply in replies:
            at = reply.id - first
            if not 0 <= at < sent:
                if 0 <= reply.id < first:
                    why = f"an answer to launch {reply.id}, answered before"
                    return self._stop(FaultKind.REPEATED_ID, why, stray=True)
                return self._stop(FaultKind.WRONG_ID, f"an answer to launch {reply.id}, which was not asked")
            place = places[at]
            if answers[place] is not None:
                return self._stop(FaultKind.REPEATED_ID, f"a second answer to launch {reply.id}", place)
            pick = reply.pick
            if pick is None or reply.error is not None:
                if why := contradiction(reply):
                    return self._stop(FaultKind.GARBAGE, f"no answer: {why}", place)
                answers[place] = reply
            elif 0 <= pick < variants:
                answers[place] = reply
            else:
                why = f"pick {pick} of {variants} variants"
                answers[place] = question.fault_of(self._stop(FaultKind.OUT_OF_RANGE, why), place)
            self._answered += 1
            self._last = place
        return None


class _Numbered(msgspec.Struct):
    id: int
