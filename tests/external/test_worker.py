"""The process that a shared library runs in, with the library's functions written in Python."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from foldproof.impl.external import worker


class Library:
    """A selector's functions in Python: picks the first byte of the capture; refuses one that starts with "!"."""

    def __init__(self) -> None:
        self.freed: list[int] = []
        self.calls: list[tuple[int, int, int]] = []

    def foldproof_selector_load(self, text: int, length: int, handle: Any, error: int, size: int) -> int:
        first = ctypes.string_at(text, length)[0]
        assert size == worker.ERROR_SIZE - 1
        ctypes.memmove(error, b"said", 5)
        ctypes.cast(handle, ctypes.POINTER(ctypes.c_void_p))[0] = first
        return int(first == ord("!"))

    def foldproof_selector_decide(self, handle: int, batch: Any, picks: int, passes: int) -> None:
        table = ctypes.cast(batch, ctypes.POINTER(worker.Batch)).contents
        self.calls.append((handle, table.launches, table.launch_count))
        for at in range(table.launch_count):
            ctypes.c_int32.from_address(picks + 4 * at).value = handle + len(self.calls)
            ctypes.c_uint8.from_address(passes + at).value = 2

    def foldproof_selector_free(self, handle: int) -> None:
        self.freed.append(handle)


def test_the_worker_loads_captures_into_slots_and_decides_in_calls_of_a_bounded_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "CALL", 4)
    memory, library = mmap.mmap(-1, 1 << 16), Library()
    serving = worker.Worker(library, memory)  # type: ignore[arg-type]
    memory[1024:1027] = b"A!B"
    captures = [(7, 1024, 1), (8, 1025, 1), (7, 1026, 1)]
    for number, row in enumerate(captures):
        worker.CAPTURE.pack_into(memory, 2048 + number * worker.CAPTURE.size, *row)
    jobs = [(7, 0, 6, 0), (8, 0, 2, 6), (7, 3, 1, 8)]
    for number, row in enumerate(jobs):
        worker.JOB.pack_into(memory, 3072 + number * worker.JOB.size, *row)
    errors, picks, passes, launches = 4096, 8192, 12288, 16384

    def request(careful: int) -> tuple[int, ...]:
        head = (careful, 2048, len(captures), 3072, len(jobs), errors, picks, passes)
        return (*head, 0, 0, 0, 0, launches, 0, 0, 0, 0, 9, 0, 0)

    serving.run(request(0))
    # What was in slot 7 is freed for what is loaded there; slot 8 was refused and is passed by.
    assert library.freed == [ord("A")]
    assert serving.handles == {7: ord("B")}
    assert [memory[errors + n * worker.ERROR_SIZE] for n in range(3)] == [0, 1, 0]
    assert memory[errors + 1 : errors + 5] == b"said"
    base = serving.base
    at = [(call[1] - base - launches) // worker.LAUNCH_SIZE for call in library.calls]
    assert [(start, call[2]) for start, call in zip(at, library.calls, strict=True)] == [(0, 4), (4, 2), (3, 1)]
    decided = struct.unpack_from("<9i", memory, picks)
    assert decided == (67, 67, 67, 67, 68, 68, 0, 0, 69)
    assert list(memory[passes : passes + 9]) == [2, 2, 2, 2, 2, 2, 0, 0, 2]
    assert worker.PROGRESS.unpack_from(memory, 0) == (worker.DECIDING, 2, 0)
    library.calls.clear()
    serving.run(request(1))
    assert [call[2] for call in library.calls] == [1] * 7
    assert library.freed == [ord("A"), ord("B"), ord("A")]


def exporting(version: int, *, without: str = "") -> SimpleNamespace:
    def make(name: str) -> Callable[[], int]:
        return lambda: version if name == "abi" else 0

    return SimpleNamespace(
        **{f"foldproof_selector_{name}": make(name) for name, *_ in worker.SIGNATURES if name != without}
    )


def test_a_library_is_a_selector_where_it_has_every_function_and_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    good = exporting(1)
    monkeypatch.setattr(worker.ctypes, "CDLL", lambda _: good)
    assert worker.opened("x") is good
    assert good.foldproof_selector_kinds.restype is ctypes.c_uint64
    for library, why in (
        (exporting(2), "has version 2 of the C interface, not 1"),
        (exporting(1, without="free"), "does not export foldproof_selector_free"),
    ):
        monkeypatch.setattr(worker.ctypes, "CDLL", lambda _, library=library: library)
        with pytest.raises(ValueError, match=why):
            worker.opened("x")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="cannot be loaded: "):
        worker.opened("/no/such/library.so")


def test_what_is_no_selector_is_told_in_the_greeting_and_ends_the_worker() -> None:
    descriptor = os.memfd_create("foldproof-test")
    os.ftruncate(descriptor, 4096)
    command = [sys.executable, "-m", "foldproof.impl.external.worker", "/no/such/library.so", str(descriptor), "4096"]
    done = subprocess.run(command, capture_output=True, pass_fds=(descriptor,), timeout=60, check=False)
    os.close(descriptor)
    refused, length, kinds = struct.unpack("<IIQ", done.stdout[:16])
    assert (refused, length, kinds, done.returncode) == (1, len(done.stdout) - 16, 0, 1)
    assert done.stdout[16:].startswith(b"cannot be loaded: ")
