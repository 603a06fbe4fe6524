"""Measurements of the replay itself: the comparison's bandwidth against a device-to-device copy of the same run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from foldproof.gpu.replay.arena import Arena, Region
from foldproof.gpu.replay.backend import Backend, Comparison
from foldproof.gpu.replay.comparing import DIFFERING, as_found, first_offset, found_bytes
from foldproof.gpu.replay.worker import Bench, Emit, Job

SIZE = 2 << 30
"""Bytes a side: many times any cache."""
REPEATS = 20


def bandwidth_job(backend: Backend, _: Bench, body: dict[str, Any], __: Emit) -> dict[str, Any]:
    """Bytes per second of a copy (read and written) and of a comparison (both sides read), best of three rounds.

    A planted difference must be found at its place, else the measured kernel is not comparing.
    """
    size = min(int(body.get("size", SIZE)), backend.free_bytes() // 8 // 1024 * 1024)
    repeats = int(body.get("repeats", REPEATS))
    arena = Arena(size, (Region(0, size, "in", ("ALL",), "*u8"),), {"ALL": 0}, (0, 0))
    left, right = backend.allocate(size), backend.allocate(size)
    found = backend.allocate(found_bytes(arena, 1))
    try:
        backend.clear(left, size)
        backend.clear(right, size)
        backend.prepare(arena)
        job = Comparison(left, right, 1, found)
        copies, compares = [], []
        for _round in range(3):
            copies.append(_timed(backend, repeats, lambda: backend.copy(right, left, size)))
            backend.clear(found, found_bytes(arena, 1))
            compares.append(_timed(backend, repeats, lambda: backend.compare(job)))
            equal = as_found(backend.download(found, found_bytes(arena, 1)), arena, 1)
        backend.upload(right + size // 3, np.ones(1, np.uint8))
        backend.compare(job)
        planted = as_found(backend.download(found, found_bytes(arena, 1)), arena, 1)
        seen = int(planted[0, 0, DIFFERING]) == 1 and first_offset(planted, 0, 0) == size // 3
    finally:
        for address in (left, right, found):
            backend.release(address)
    copy, compare = 2 * size / min(copies), 2 * size / min(compares)
    return {
        "bytes_a_side": size,
        "copy_bytes_per_s": copy,
        "compare_bytes_per_s": compare,
        "ratio": compare / copy,
        "planted_difference_found": seen and int(equal[0, 0, DIFFERING]) == 0,
    }


def _timed(backend: Backend, repeats: int, work: Any) -> float:
    """Seconds of one call, of `repeats` back to back after one to warm up."""
    work()
    begin = backend.stopwatch()
    for _ in range(repeats):
        work()
    return (backend.stopwatch() - begin) / repeats


MEASURES: Mapping[str, Job] = {"bandwidth": bandwidth_job}
