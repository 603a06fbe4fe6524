"""What ends a selector whose driver was killed: `python -I -S -B guard.py MARK`, one beside each process that drives.

A driver that is killed with SIGKILL ends nothing any more, and its selector may not care that its input ended, or be
stopped, or have left processes behind. The guard reads from a pipe that only the driver holds; at its end, however
that came, it kills every process whose environment holds an entry that starts with MARK. A driver that ends well says
so, and the guard looks once instead of waiting for a selector that was just being started.

It imports nothing but the standard library, so that it is there in a few hundredths of a second.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

AGAIN_S = 0.25
KILL_S = 2.0
"""How long processes that start others faster than they are found are followed."""


def marked(mark: bytes) -> list[int]:
    """The processes whose environment holds an entry that starts with the mark.

    A zombie's environment is empty, so it does not count.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if any(word.startswith(mark) for word in (entry / "environ").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
    return found


def kill_all(pids: Iterable[int]) -> None:
    """End processes; one that is stopped, or ignores other signals, ends too."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def sweep(mark: bytes) -> None:
    """End every marked process, and what those start meanwhile."""
    deadline = time.monotonic() + KILL_S
    while (found := marked(mark)) and time.monotonic() < deadline:
        kill_all(found)
        time.sleep(0.001)


def main() -> int:
    """Wait for the driver's end, then sweep."""
    with contextlib.suppress(OSError):
        os.setsid()  # Ctrl-C and a hang-up are the driver's affair
    mark, well = sys.argv[1].encode(), False
    while data := os.read(0, 1):
        well = well or bool(data)
    sweep(mark)
    if not well:
        time.sleep(AGAIN_S)
        sweep(mark)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
