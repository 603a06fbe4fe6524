"""The guard of this process, started with its first selector (see `guard`)."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TOKEN = "FOLDPROOF_SELECTOR_RUN"  # noqa: S105  # no secret: the name of a variable that marks descendants


@dataclass(frozen=True, slots=True)
class Guard:
    """A running guard: its process, the pipe that it watches, and the mark of the run that it sweeps."""

    pid: int
    pipe: int
    run: str

    def dismiss(self) -> None:
        """Say that this process ends well, and wait until the guard is gone."""
        with contextlib.suppress(OSError):
            os.write(self.pipe, b".")
        with contextlib.suppress(OSError):
            os.close(self.pipe)
        with contextlib.suppress(OSError):
            os.waitpid(self.pid, 0)


def fresh_token() -> str:
    """A mark for one more selector of this process; the guard runs before it is given. Raises `OSError`."""
    return f"{own_guard().run}.{secrets.token_hex(8)}"


@cache
def own_guard() -> Guard:
    """The guard of this process, started at the first call. Raises `OSError`."""
    run = secrets.token_hex(8)
    command = [sys.executable, "-I", "-S", "-B", str(Path(__file__).with_name("guard.py")), f"{TOKEN}={run}."]
    # Without the mark of a run that this process may itself be the selector of: the guard must outlive it.
    environment = {name: value for name, value in os.environ.items() if name != TOKEN}
    reading, writing = os.pipe()
    try:
        actions = [
            (os.POSIX_SPAWN_DUP2, reading, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        # No Popen: nobody waits for a guard before its own end, and a Popen complains of that.
        pid = os.posix_spawn(sys.executable, command, environment, file_actions=actions)
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    guard = Guard(pid, writing, run)
    atexit.register(guard.dismiss)
    os.register_at_fork(after_in_child=lambda: _leave(guard))
    return guard


def _leave(guard: Guard) -> None:
    """In a forked copy of this process: the guard is the original's, and must not wait for the copy."""
    atexit.unregister(guard.dismiss)
    with contextlib.suppress(OSError):
        os.close(guard.pipe)
    own_guard.cache_clear()
