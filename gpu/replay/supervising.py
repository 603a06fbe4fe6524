"""The parent of the worker: it watches the clock, and goes on in a fresh process when a kernel faults or hangs."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

import msgspec
from foldproof.gpu.replay.backend import NoDevice
from foldproof.gpu.replay.bouts import Bout
from foldproof.gpu.replay.inputs import SetClass
from foldproof.gpu.replay.messages import Message, bout_to
from foldproof.gpu.replay.tally import BoutCount

PATIENCE_S = 30.0
"""Seconds without a word from the worker after which its device is taken for hung."""
STARTUP_S = 120.0
MAX_FAULTS = 2
"""Faults of one variant after which it is not run again."""


def worker_command(capture: Path, seed: int, lanes: int = 1) -> list[str]:
    """The command line of the real worker."""
    return [sys.executable, "-m", "foldproof.gpu.replay.worker", str(capture), str(seed), str(lanes)]


class Supervisor:
    """Runs jobs in a worker process that is replaced when it dies. Use as a context manager.

    Raises NoDevice when the worker finds no device to work on.
    """

    def __init__(self, command: Sequence[str], patience_s: float = PATIENCE_S, log: IO[bytes] | None = None) -> None:
        self._command, self._patience, self._log = list(command), patience_s, log
        self._process: subprocess.Popen[bytes] | None = None
        self._events: queue.Queue[bytes | None] = queue.Queue()
        self._fresh = True
        self._faults: dict[str, list[str]] = {}
        self.restarts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def ask(self, do: str, body: Mapping[str, Any] | None = None, patience_s: float | None = None) -> dict[str, Any]:
        """The last event of one job. `variant` in it is the variant that was named last.

        `event` is `done`, `owed` (with `reason`) or `fault` (with `reason`, the worker is gone).
        """
        process = self._started()
        named = ""
        pipe = process.stdin
        try:
            if pipe is not None:
                pipe.write(msgspec.json.encode(Message(do, dict(body or {}))) + b"\n")
                pipe.flush()
        except OSError:
            return self._died(named)
        while True:
            wait = (patience_s or self._patience) + (STARTUP_S if self._fresh else 0)
            try:
                line = self._events.get(timeout=wait)
            except queue.Empty:
                self._stop()
                return {"event": "fault", "reason": f"hung: no word in {wait:.0f} s", "variant": named}
            if line is None:
                return self._died(named)
            self._fresh = False
            event: dict[str, Any] = msgspec.json.decode(line)
            if event["event"] == "no device":
                self._stop()
                raise NoDevice(event["reason"])
            if event["event"] == "step":
                continue
            if event["event"] == "variant":
                named = event["hash"]
                continue
            if event["event"] == "fault":
                self._stop()
            return {"variant": named, **event}

    def bout(self, bout: Bout, sets: Mapping[SetClass, int], search: int = 0) -> BoutCount:
        """The counts of a bout. A variant that faults or hangs is left out of the next try, in a fresh process."""
        skip = {n: reasons[-1] for n, reasons in self._faults.items() if len(reasons) >= MAX_FAULTS}
        for _ in range(len(bout.variants) + 2):
            body = {"bout": bout_to(bout), "sets": dict(sets), "skip": skip, "search": search}
            event = self.ask("bout", body)
            if event["event"] == "done":
                return msgspec.convert(event["count"], BoutCount)
            if event["event"] == "owed":
                return BoutCount(bout.record.name, owed=event["reason"])
            name, reason = event["variant"], event["reason"]
            if not name or name in skip:
                return BoutCount(bout.record.name, owed=f"the worker ended outside any variant: {reason}")
            self._faults.setdefault(name, []).append(reason)
            skip = {**skip, name: reason}
        return BoutCount(bout.record.name, owed="every try ended in a fault")

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stop()
        self._events = queue.Queue()
        self._fresh = True
        self.restarts += 1
        self._process = subprocess.Popen(  # noqa: S603 -- our own worker
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        threading.Thread(target=_pump, args=(self._process.stdout, self._events), daemon=True).start()
        return self._process

    def _died(self, named: str) -> dict[str, Any]:
        process = self._process
        code = process.wait() if process is not None else None
        self._stop()
        return {"event": "fault", "reason": f"the worker process died (exit status {code})", "variant": named}

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(timeout=0.5 if self._fresh else 5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _pump(source: IO[bytes] | None, events: queue.Queue[bytes | None]) -> None:
    """Lines of the worker into the queue, None at its end."""
    try:
        for line in source or ():
            events.put(line)
    except ValueError:
        pass  # closed while a dead worker's last line was read
    events.put(None)
