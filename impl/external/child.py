"""One process of a selector under test, in a process group of its own; nothing that it starts outlives it.

Linux only: it is watched through a pidfd, and descendants that left the group are found in /proc by a token in
their environment. If this process is killed, its guard ends them (`guarding`).

Longer than 250 lines because one process has one life, from its start to its last descendant, and one state.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Sequence

from foldproof.impl.errors import one_line
from foldproof.impl.external.answers import SelectorError
from foldproof.impl.external.guard import kill_all, marked
from foldproof.impl.external.guarding import TOKEN, fresh_token

PIPE_BYTES = 1 << 20
READ_BYTES = 1 << 18
STDERR_KEPT = 4096
KILL_S = 2.0
END_S = 1.0
STDERR_FREE = 1 << 20
STDERR_PER_ANSWER = 4096
MEMORY_MIB = 4096
"""The most data memory that a selector gets, in MiB, where nothing else is said."""


class Child:
    """A running selector; its pipes never block the caller.

    `stdin`, `stdout` and `stderr` are descriptors, -1 once closed. `stderr_seen` counts bytes since `pardon`.
    """

    def __init__(self, command: Sequence[str], pass_fds: Sequence[int] = (), memory_mib: int = MEMORY_MIB) -> None:
        """Start the command; it and each process that it starts get `memory_mib` MiB of data memory, 0 for any.

        Raises `SelectorError` if the system cannot start it.
        """
        try:
            self._token = fresh_token()
            environment = os.environ | {TOKEN: self._token}
            # No context manager: `end` and `kill` are what ends it, in the order that a process group needs.
            self._process = subprocess.Popen(  # noqa: S603  # running the user's command is what this is for
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=environment,
                pass_fds=tuple(pass_fds),
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            why = f"cannot be started: {getattr(problem, 'strerror', None) or problem}"
            raise SelectorError(why, where=one_line(" ".join(command)), fix="check the command") from None
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.pid = process.pid
        self.stdin, self.stdout, self.stderr = (
            process.stdin.fileno(),
            process.stdout.fileno(),
            process.stderr.fileno(),
        )
        self._pidfd = _watched(process)
        with contextlib.suppress(OSError):  # a core file a crash would slow a campaign and fill a disk
            resource.prlimit(self.pid, resource.RLIMIT_CORE, (0, 0))
        if memory_mib:
            _limit_data(self.pid, memory_mib << 20)
        for end in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(end, False)
        for end in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):  # the user's quota of pipe pages may be spent; then it is only slower
                fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.stderr_seen = 0
        self._tail = b""
        self._status: int | None = None

    def wait(self, timeout_s: float, *, writing: bool = False, reading: bool = True) -> frozenset[int]:
        """Wait for output, for room to write if `writing`, or for the end; stderr is drained on the way.

        The ready descriptors among stdin and stdout; empty when only stderr moved, the process ended, or time is up.
        """
        poll = select.poll()
        if reading and self.stdout >= 0:
            poll.register(self.stdout, select.POLLIN)
        if writing and self.stdin >= 0:
            poll.register(self.stdin, select.POLLOUT)
        if self.stderr >= 0:
            poll.register(self.stderr, select.POLLIN)
        if self._status is None:
            poll.register(self._pidfd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(max(0.0, timeout_s) * 1000)}
        if self.stderr in ready:
            self.drain()
        if self._pidfd in ready:
            self._note_status()
        return frozenset(ready & {self.stdin, self.stdout})

    def read(self) -> bytes | None:
        """What stands in stdout: b"" at its end, None if nothing stands there now."""
        if self.stdout < 0:
            return b""
        try:
            data = os.read(self.stdout, READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            self.stdout = self._close(self.stdout)
        return data

    def write(self, data: memoryview | bytes) -> int:
        """How many bytes went into stdin: 0 if there is no room now, -1 if nobody reads it any more."""
        if self.stdin < 0:
            return -1
        try:
            return os.write(self.stdin, data)
        except BlockingIOError:
            return 0
        except OSError:
            self.close_stdin()
            return -1

    def close_stdin(self) -> None:
        """The end of input."""
        self.stdin = self._close(self.stdin)

    def drain(self) -> None:
        """Take what stands in stderr, keeping only its end; at most a pipe's worth at a time."""
        if self.stderr < 0:
            return
        try:
            data = os.read(self.stderr, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.stderr = self._close(self.stderr)
        self.stderr_seen += len(data)
        self._tail = (self._tail + data)[-STDERR_KEPT:]

    def floods(self, answers: int) -> bool:
        """Whether stderr holds more than 1 MiB, and 4 KiB for each of `answers`, since the last `pardon`."""
        return self.stderr_seen > STDERR_FREE + STDERR_PER_ANSWER * answers

    def pardon(self) -> None:
        """Count stderr anew."""
        self.stderr_seen = 0

    @property
    def stderr_tail(self) -> str:
        """The end of what the selector wrote to stderr."""
        return self._tail.decode("utf-8", "replace")

    @property
    def ended(self) -> bool:
        """Whether `wait` or `status` has seen the process end; asks nobody."""
        return self._status is not None

    @property
    def status(self) -> int | None:
        """None while it runs; else its exit code, negative for a signal. The process stays unreaped for `kill`."""
        if self._status is None:
            self._note_status()
        return self._status

    def _note_status(self) -> None:
        result = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if result is not None:
            code = result.si_status
            self._status = code if result.si_code == os.CLD_EXITED else -code

    def settle(self, timeout_s: float, *, reading: bool = True) -> None:
        """Wait until it has ended, or (if `reading`) said something more, or time is up."""
        deadline = time.monotonic() + timeout_s
        while self.status is None and (left := deadline - time.monotonic()) > 0:
            if self.wait(left, reading=reading):
                return

    def ending(self) -> str:
        """How it ended, in words. The end of its output and its own are two events, a moment apart: waits for it."""
        self.settle(END_S, reading=False)
        self.drain()
        status = self.status
        if status is None:
            return "closed its output"
        return f"killed by signal {-status} ({_signal(-status)})" if status < 0 else f"exited with {status}"

    def end(self, grace_s: float) -> bool:
        """Say the end of input and wait for the process to exit; its output is thrown away. False if it does not."""
        self.close_stdin()
        deadline = time.monotonic() + grace_s
        while self.status is None and (left := deadline - time.monotonic()) > 0:
            if self.stdout in self.wait(left):
                self.read()
        return self.status is not None

    def kill(self) -> None:
        """End the group and every marked descendant, and reap the process. Idempotent."""
        if self._pidfd < 0:
            return
        # The unreaped leader keeps the group's number from being given to another group.
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        deadline = time.monotonic() + KILL_S
        while (others := self.descendants()) and time.monotonic() < deadline:
            kill_all(others)
            time.sleep(0.001)
        self._process.wait()
        self.stdin, self.stdout, self.stderr = (self._close(fd) for fd in (self.stdin, self.stdout, self.stderr))
        os.close(self._pidfd)
        self._pidfd = -1

    def descendants(self) -> list[int]:
        """The processes alive that it started, or that those started."""
        return [pid for pid in marked(f"{TOKEN}={self._token}".encode()) if pid != self.pid]

    def _close(self, fd: int) -> int:
        """Close one of the process's pipes; -1, its new number."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None and not pipe.closed and pipe.fileno() == fd:
                with contextlib.suppress(OSError):
                    pipe.close()
        return -1


def _watched(process: subprocess.Popen[bytes]) -> int:
    try:
        return os.pidfd_open(process.pid)
    except OSError as problem:
        process.kill()
        process.communicate()
        why = f"cannot be watched: {problem.strerror}"
        raise SelectorError(why, fix="run on Linux 5.3 or newer, outside a sandbox that forbids pidfd_open") from None


def _limit_data(pid: int, most: int) -> None:
    """Bound the memory that a process can write to and shares with nobody: what a leak fills.

    Not its addresses: run times reserve many times what they use. Where the limit of this process is lower, that stays.
    """
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
