"""The process that a shared library runs in: `python -I -S worker.py LIBRARY MEMORY_FD BYTES`.

It imports nothing but the standard library, so that a fresh one after a crash is there in a few hundredths of a
second. Requests come through standard input, replies go out through standard output; the library itself sees neither:
its input is empty, and what it prints goes to standard error. Everything large lies in the shared memory, which the
caller lays out (`cabi.Layout`).
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import resource
import struct
import sys

ABI = 1
REQUEST = struct.Struct("<20Q")
CAPTURE = struct.Struct("<3Q")
JOB = struct.Struct("<4Q")
PROGRESS = struct.Struct("<3Q")
LOADING, DECIDING = 1, 2
ERROR_SIZE = 256
CALL = 4096
"""How many launches one call decides at most, so that a slow library shows progress."""

SIGNATURES = (
    ("abi", ctypes.c_uint32, ()),
    ("name", ctypes.c_char_p, ()),
    ("kinds", ctypes.c_uint64, ()),
    ("load", ctypes.c_int32, (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)),
    ("decide", None, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
    ("free", None, (ctypes.c_void_p,)),
)


class Batch(ctypes.Structure):
    """`foldproof_batch`."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("text", "strings", "args", "consts", "launches")),
        *((f"{name}_count", ctypes.c_uint64) for name in ("text", "string", "arg", "const", "launch")),
    )


LAUNCH_SIZE = 48


def opened(path: str) -> ctypes.CDLL:
    """The library with its functions' types. Raises ValueError with the reason if it is no selector."""
    try:
        library = ctypes.CDLL(path)
    except OSError as problem:
        raise ValueError(f"cannot be loaded: {problem}") from None
    for name, result, arguments in SIGNATURES:
        try:
            function = getattr(library, f"foldproof_selector_{name}")
        except AttributeError:
            raise ValueError(f"does not export foldproof_selector_{name}") from None
        function.restype, function.argtypes = result, arguments
        if name == "abi" and (version := function()) != ABI:
            raise ValueError(f"has version {version} of the C interface, not {ABI}")
    return library


class Worker:
    """A library and the shared memory."""

    def __init__(self, library: ctypes.CDLL, memory: mmap.mmap) -> None:
        self.load = library.foldproof_selector_load
        self.decide = library.foldproof_selector_decide
        self.free = library.foldproof_selector_free
        self.memory = memory
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.handles: dict[int, int] = {}

    def run(self, request: tuple[int, ...]) -> None:
        """Load the captures of one request, then do its jobs."""
        careful, captures, capture_count, jobs, job_count, errors, picks, passes = request[:8]
        batch = Batch(*(self.base + offset for offset in request[8:13]), *request[13:18])
        for position in range(capture_count):
            slot, offset, length = CAPTURE.unpack_from(self.memory, captures + position * CAPTURE.size)
            PROGRESS.pack_into(self.memory, 0, LOADING, position, 0)
            self.put(slot, self.base + offset, length, self.base + errors + position * ERROR_SIZE)
        step = 1 if careful else CALL
        launches = batch.launches
        for position in range(job_count):
            slot, first, count, place = JOB.unpack_from(self.memory, jobs + position * JOB.size)
            handle = self.handles.get(slot)
            if handle is None:
                continue
            for at in range(0, count, step):
                PROGRESS.pack_into(self.memory, 0, DECIDING, position, at)
                batch.launches = launches + (first + at) * LAUNCH_SIZE
                batch.launch_count = min(step, count - at)
                picked = place + at
                self.decide(handle, ctypes.byref(batch), self.base + picks + 4 * picked, self.base + passes + picked)

    def put(self, slot: int, text: int, length: int, error: int) -> None:
        """Load a capture into a slot, in place of what it held. The error's first byte says whether it loaded: 0."""
        old = self.handles.pop(slot, None)
        if old is not None:
            self.free(old)
        handle = ctypes.c_void_p()
        if self.load(text, length, ctypes.byref(handle), error + 1, ERROR_SIZE - 1) == 0:
            self.handles[slot] = handle.value or 0
        else:
            ctypes.memset(error, 1, 1)


def main() -> int:
    """Serve requests until the end of input."""
    path, memory_fd, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    memory = mmap.mmap(memory_fd, size)
    try:
        library = opened(path)
    except ValueError as problem:
        said = str(problem).encode("utf-8", "replace")
        os.write(replies, struct.pack("<IIQ", 1, len(said), 0) + said)
        return 1
    name = (library.foldproof_selector_name() or b"")[:200]
    os.write(replies, struct.pack("<IIQ", 0, len(name), library.foldproof_selector_kinds()) + name)
    worker = Worker(library, memory)
    while request := os.read(requests, REQUEST.size):
        worker.run(REQUEST.unpack(request))
        os.write(replies, b"\1")
    for handle in worker.handles.values():
        worker.free(handle)
    with contextlib.suppress(BufferError):
        memory.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
