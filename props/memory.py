"""How much memory a process and all that it starts take, as Linux counts it."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

STEP_S = 0.05


def peak_of(command: Sequence[str]) -> tuple[int, int]:
    """Run a command: its exit code, and the most bytes that it and its descendants had at once.

    Looked at twenty times a second; a page that several share is counted once (the proportional set size).
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 (the caller's)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(_size(pid) for pid in _family(process.pid)))
        time.sleep(STEP_S)
    return process.returncode, peak


def _family(pid: int) -> set[int]:
    """The process and its descendants."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    found, grows = {pid}, True
    while grows:
        more = {child for child, parent in parents.items() if parent in found} - found
        found, grows = found | more, bool(more)
    return found


def _size(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
