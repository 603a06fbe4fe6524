"""What comes back from a selector under test: a reply, a fault, or nothing because it was not asked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

import msgspec
from foldproof.impl.capture import Capture
from foldproof.impl.errors import FoldproofError
from foldproof.impl.launch import Kind, Launch

PassWord: TypeAlias = Literal["exact", "general", "runtime-one"]
ErrorWord: TypeAlias = Literal["MissingTritonVariant", "AmbiguousTritonVariant", "InvalidCapture", "InvalidLaunch"]
ERROR_WORDS: tuple[ErrorWord, ...] = (
    "MissingTritonVariant",
    "AmbiguousTritonVariant",
    "InvalidLaunch",
    "InvalidCapture",
)
"""The errors in the order of their negative picks in the C interface: -1 to -4."""


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A well-formed answer to one launch: `pick` is an index into `kernels`, or None with an `error`.

    `strictness` (JSON: `pass`) and `log` are None where the selector does not say them; then they are not
    compared. `id` is that of the message, and means nothing once the reply stands in its place of the list.
    """

    id: int
    pick: int | None = None
    strictness: PassWord | None = msgspec.field(default=None, name="pass")
    error: ErrorWord | None = None
    log: tuple[str, ...] | None = None


class FaultKind(StrEnum):
    """How a selector under test can break the protocol."""

    NO_GREETING = "no-greeting"
    TIMEOUT = "timeout"
    CRASH = "crash"
    GARBAGE = "garbage"
    WRONG_ID = "wrong-id"
    REPEATED_ID = "repeated-id"
    OUT_OF_RANGE = "pick-out-of-range"
    NOT_READING = "not-reading"
    STDERR_FLOOD = "stderr-flood"
    UNWRITTEN = "pick-unwritten"
    NOT_ENDING = "not-ending"
    LEFT_PROCESSES = "left-processes"


class Fault(msgspec.Struct, frozen=True):
    """A finding about the selector itself, and the input that caused it.

    `launch` is the JSON text of the launch, "" where no launch is to blame. `reproduced` is False where the
    selector broke while this launch was the first without an answer, and answered all of them when they were asked
    again one at a time. `stderr` is the end of what the selector wrote there.
    """

    kind: FaultKind
    detail: str
    launch: str = ""
    stderr: str = ""
    reproduced: bool = True

    def __str__(self) -> str:
        again = "" if self.reproduced else " (not again when asked alone)"
        return f"{self.kind}: {self.detail}{again}"


class Unasked(msgspec.Struct, frozen=True):
    """The launch was not sent: the selector does not know one of its kinds, or has broken too often to go on."""

    reason: Literal["kind-unknown", "too-many-faults"]


Answer: TypeAlias = Reply | Fault | Unasked


class SelectorError(FoldproofError):
    """The selector cannot be used at all: it does not start, does not greet, or speaks another version."""

    code = "SelectorUnusable"


class Selector(Protocol):
    """A selector under test, whatever it is written in. A context manager: leaving it ends the process."""

    faults: list[Fault]
    """Faults that belong to no launch that was asked for: late answers, a process that does not end."""

    @property
    def name(self) -> str:
        """The name that the selector gives itself."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of arg that it knows; launches with others are not sent."""

    def ask(self, capture_id: Hashable, capture: Capture, launches: Sequence[Launch]) -> list[Answer]:
        """One answer a launch, in order. Equal ids mean the same capture. Never raises for what the selector does."""

    def close(self) -> None:
        """End the selector; nothing that it started outlives this."""


def knows(kinds: frozenset[Kind], launch: Launch) -> bool:
    """Whether a selector that knows `kinds` can be asked for the launch."""
    return all(arg.kind in kinds for arg in launch.args)
