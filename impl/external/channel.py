"""The process that a shared library runs in, seen from outside: shared memory, requests, and how one can fail."""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from foldproof.impl.errors import FoldproofError, one_line
from foldproof.impl.external.answers import FaultKind, SelectorError
from foldproof.impl.external.child import MEMORY_MIB, Child
from foldproof.impl.external.records import KINDS, UNWRITTEN, Encoded, Records
from foldproof.impl.launch import Kind
from numpy.typing import NDArray

MEMORY_BYTES = 1 << 28
REQUEST = struct.Struct("<20Q")
PROGRESS = struct.Struct("<3Q")
GREETING = struct.Struct("<IIQ")
CALL = 4096
ERROR_SIZE = 256
LOADING = 1
CAPTURE = np.dtype([("slot", "u8"), ("offset", "u8"), ("length", "u8")])
JOB = np.dtype([("slot", "u8"), ("first", "u8"), ("count", "u8"), ("place", "u8")])
"""One job: decide `count` launches from `first` on against the capture in `slot`; picks go to `place` and on."""


class Halt(msgspec.Struct, frozen=True):
    """Why a request was not finished, and where: loading capture `at`, or in job `at` at its launch `launch`."""

    kind: FaultKind
    detail: str
    stderr: str = ""
    loading: bool = False
    at: int = 0
    launch: int = 0


class Channel:
    """A running worker with its library loaded. `picks` and `passes` are views of the last request's results."""

    def __init__(self, library: Path, timeout_s: float, start_s: float, memory_mib: int = MEMORY_MIB) -> None:
        """Start it. Raises `SelectorError` if the library is no selector or does not load."""
        self.timeout_s = timeout_s
        descriptor = os.memfd_create("foldproof-selector")
        try:
            os.ftruncate(descriptor, MEMORY_BYTES)
            self._memory = mmap.mmap(descriptor, MEMORY_BYTES)
        except (OSError, ValueError) as problem:
            os.close(descriptor)
            why = f"no memory can be shared with it: {getattr(problem, 'strerror', None) or problem}"
            raise SelectorError(why, where=str(library), fix="allow files of 256 MiB, which memory counts as") from None
        try:
            # -I and -S: nothing of the user's environment, and a start in a few hundredths of a second.
            worker = str(Path(__file__).with_name("worker.py"))
            command = (sys.executable, "-I", "-S", "-B", worker, str(library), str(descriptor), str(MEMORY_BYTES))
            self.child = Child(command, pass_fds=(descriptor,), memory_mib=memory_mib)
        finally:
            os.close(descriptor)
        self._bytes = np.frombuffer(self._memory, np.uint8)
        self._in = b""
        self.name, self.kinds = "", frozenset[Kind]()
        try:
            self._greet(library, start_s)
        except BaseException:
            self.child.kill()
            raise

    def _greet(self, library: Path, start_s: float) -> None:
        head = self._receive(GREETING.size, start_s)
        if isinstance(head, Halt):
            raise _unusable(head.detail, head.stderr, library)
        refused, length, kinds = GREETING.unpack(head)
        said = self._receive(length, start_s)
        if isinstance(said, Halt):
            raise _unusable(said.detail, said.stderr, library)
        if refused:
            raise _unusable(one_line(said.decode("utf-8", "replace")), "", library)
        self.name = said.decode("utf-8", "replace")
        self.kinds = frozenset(kind for number, kind in enumerate(KINDS) if kinds >> number & 1)

    def run(
        self, captures: Sequence[tuple[int, bytes]], encoded: Encoded, jobs: Records, *, careful: bool = False
    ) -> tuple[Results, Halt | None]:
        """Load captures into slots, then do the jobs; a launch a call if `careful`.

        The results hold what was done before a halt; they are views, good until the next `run`.
        Raises `FoldproofError` if it does not fit into the shared memory.
        """
        places = int((jobs["place"] + jobs["count"]).max()) if len(jobs) else 0
        layout = _Layout(self._bytes)
        texts = np.zeros(len(captures), CAPTURE)
        for row, (slot, text) in zip(texts, captures, strict=True):
            row["slot"], row["length"], row["offset"] = slot, len(text), layout.put(text)
        tables = [layout.put(table) for table in encoded.tables]
        errors = layout.take(len(captures) * ERROR_SIZE)
        picks, passes = layout.take(places * 4), layout.take(places)
        results = Results(
            self._bytes[picks : picks + places * 4].view(np.int32),
            self._bytes[passes : passes + places],
            self._bytes[errors : errors + len(captures) * ERROR_SIZE].reshape(-1, ERROR_SIZE),
        )
        results.picks[:] = UNWRITTEN
        results.passes[:] = 0
        results.errors[:] = 0
        request = (int(careful), layout.put(texts), len(texts), layout.put(jobs), len(jobs), errors, picks, passes)
        counts = [len(table) for table in encoded.tables]
        PROGRESS.pack_into(self._memory, 0, 0, 0, 0)
        self.child.pardon()
        self.child.write(REQUEST.pack(*request, *tables, *counts, 0, 0))
        reply = self._receive(1, self.timeout_s, answers=int(jobs["count"].sum()))
        return results, reply if isinstance(reply, Halt) else None

    def _receive(self, size: int, timeout_s: float, answers: int = 0) -> bytes | Halt:
        """`size` bytes from the worker, which may take `timeout_s` for each step of its progress."""
        child, progress = self.child, (0, 0, 0)
        glance_s = timeout_s / 8
        deadline = time.monotonic() + timeout_s
        while len(self._in) < size:
            ended = child.ended
            data = child.read()
            if data:
                self._in += data
            elif data == b"" or ended:
                return self._halt(FaultKind.CRASH, child.ending())
            elif child.floods(answers):
                return self._halt(FaultKind.STDERR_FLOOD, f"{child.stderr_seen} bytes on stderr")
            elif (now := PROGRESS.unpack_from(self._memory, 0)) != progress:
                progress, deadline = now, time.monotonic() + timeout_s
            elif time.monotonic() >= deadline:
                return self._halt(FaultKind.TIMEOUT, f"no return within {timeout_s:g} s")
            else:
                child.wait(min(glance_s, deadline - time.monotonic()))
        got, self._in = self._in[:size], self._in[size:]
        return got

    def _halt(self, kind: FaultKind, detail: str) -> Halt:
        phase, at, launch = PROGRESS.unpack_from(self._memory, 0)
        return Halt(kind, detail, self.child.stderr_tail, phase == LOADING, at, launch)


class Results(msgspec.Struct, frozen=True, eq=False):
    """Views of the shared memory: picks, passes, and an error a capture (its first byte is 0 if it loaded)."""

    picks: NDArray[np.int32]
    passes: NDArray[np.uint8]
    errors: NDArray[np.uint8]


def no_results() -> Results:
    """The results of a request that no process took."""
    return Results(np.zeros(0, np.int32), np.zeros(0, np.uint8), np.zeros((0, ERROR_SIZE), np.uint8))


class _Layout:
    """Hands out the shared memory from its start on, past the progress record, in multiples of 64 bytes."""

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self.memory = memory
        self.next = 64

    def take(self, size: int) -> int:
        offset = self.next
        self.next += -(-size // 64) * 64
        if self.next > len(self.memory):
            why = f"the batch needs more than the {len(self.memory) >> 20} MiB shared with the selector"
            raise FoldproofError(why, fix="ask for fewer launches at once")
        return offset

    def put(self, data: bytes | Records) -> int:
        raw: NDArray[Any] = np.frombuffer(data, np.uint8) if len(data) else np.zeros(0, np.uint8)
        offset = self.take(len(raw))
        self.memory[offset : offset + len(raw)] = raw
        return offset


def _unusable(why: str, stderr: str, library: Path) -> SelectorError:
    tail = f"; stderr: {one_line(stderr)}" if stderr else ""
    return SelectorError(why + tail, where=str(library), fix="see impl/native/foldproof_selector.h")
