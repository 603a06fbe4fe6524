"""A selector that answers 0 to everything, except for the one fault that its argument names.

It shows the fault before it greets, when a launch has an arg of value 666, or at the end of input.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
NOTE = Path(sys.argv[2] if len(sys.argv) > 2 else os.devnull)


def say(value: Any) -> None:
    os.write(1, value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n")


def pick(number: int, index: int = 0) -> None:
    say({"id": number, "pick": index})


def forever(_: int = 0) -> None:
    while True:
        time.sleep(60)


def endless(fd: int, text: bytes) -> None:
    while True:
        os.write(fd, text * 4096)


def sleeper() -> None:
    command = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
    NOTE.write_text(str(subprocess.Popen(command, start_new_session=True).pid))


def stops(_: int = 0) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def leaks(number: int) -> None:
    """Fills a quarter of a GiB, which any machine has, and answers."""
    kept = [b"x" * (1 << 20) for _ in range(256)]
    pick(number, len(kept) - 256)


def breeds(_: int) -> None:
    """Each process starts two in sessions of their own and goes on; four generations deep."""
    breed = "import os, sys, time\nn = int(sys.argv[1])\nif n > 0:\n  for _ in '12':\n    if not os.fork():\n"
    breed += (
        "      os.setsid(); n -= 1; os.execv(sys.executable, [sys.executable, '-I', '-S', '-c', sys.argv[2], str(n), "
    )
    breed += "sys.argv[2]])\ntime.sleep(600)"
    subprocess.Popen([sys.executable, "-I", "-S", "-c", breed, "4", breed], start_new_session=True)
    forever()


def exits(_: int) -> None:
    os.write(2, b"last words")
    os._exit(0)


def forks(_: int) -> None:
    sleeper()
    os._exit(3)


def closes_stdout(_: int) -> None:
    os.close(1)
    forever()


def then(first: Callable[[int], None], second: Callable[[int], None]) -> Callable[[int], None]:
    return lambda number: (first(number), second(number))[0]


BEFORE_GREETING: dict[str, Callable[[], None]] = {
    "silent": forever,
    "early-exit": lambda: sys.exit("no module named tritonfold"),
    "no-greeting": lambda: (say(b"Welcome!\n"), forever())[0],
    "greets-without-end": lambda: endless(1, b"y"),
    "complains-without-end": lambda: endless(2, b"y"),
    "other-version": lambda: (
        say({"type": "hello", "protocol": "foldproof-selector/2", "name": "x"}),
        forever(),
    )[0],
    "ignores-sigterm": lambda: (signal.signal(signal.SIGTERM, signal.SIG_IGN), None)[1],
    "leaves": sleeper,
}
ON_666: dict[str, Callable[[int], None]] = {
    "segfault": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    "exit": exits,
    "hang": forever,
    "stops": stops,
    "leaks": leaks,
    "breeds": breeds,
    "garbage": then(lambda _: say(b"hello world\n"), pick),
    "garbage-after": then(pick, lambda _: say(b"and then some\n")),
    "segfault-after": then(pick, lambda _: os.abort()),
    "bytes": lambda _: say(b"\xff\xfe\x00\n"),
    "wrong-type": lambda number: say({"id": number, "pick": "0"}),
    "contradiction": lambda number: say({"id": number, "pick": 0, "error": "MissingTritonVariant"}),
    "neither": lambda number: say({"id": number}),
    "unknown-error": lambda number: say({"id": number, "error": "Oops"}),
    "endless-line": lambda _: endless(1, b"x"),
    "wrong-id": lambda number: pick(number + 10**6),
    "repeated-id": then(pick, lambda number: pick(number, 1)),
    "out-of-range": lambda number: pick(number, 2),
    "negative": lambda number: pick(number, -1),
    "stderr": lambda _: endless(2, b"all is well\n"),
    "close-stdout": closes_stdout,
    "fork": forks,
}
AT_END: dict[str, Callable[[], None]] = {
    "stops-at-end": stops,
    "ignores-sigterm": forever,
    "ignores-end": forever,
    "bad-end": lambda: sys.exit(7),
}


def message(value: dict[str, Any], count: int) -> None:
    if value["type"] != "launch":
        if MODE == "dies-of-capture":
            os.abort()
        return
    if MODE == "always-segfault":
        os.abort()
    if MODE == "once" and count == 5 and not NOTE.exists():
        NOTE.touch()
        os.abort()
    is_666 = any(arg.get("value") == 666 for arg in value["launch"]["args"])
    (ON_666.get(MODE, pick) if is_666 else pick)(value["id"])


def windowed() -> None:
    """Well-behaved: waits for as many launches as may be under way, then answers backwards, by the value's parity."""
    pending, waiting, most = b"", [], 0
    while True:
        ready = select.select([0], [], [], 0.05)[0]
        if ready:
            data = os.read(0, 65536)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            waiting += [value for line in lines if (value := json.loads(line))["type"] == "launch"]
            most = max(most, len(waiting))
            NOTE.write_text(str(most))
        if not ready or len(waiting) >= 1024:
            for value in reversed(waiting):
                pick(value["id"], value["launch"]["args"][0]["value"] % 2)
            waiting = []


def main() -> None:
    BEFORE_GREETING.get(MODE, lambda: None)()
    hello = {"type": "hello", "protocol": "foldproof-selector/1", "name": MODE}
    say(hello | {"kinds": ["i32"]} if MODE == "few-kinds" else hello)
    if MODE in ("never-reads", "closes-stdin"):
        if MODE == "closes-stdin":
            os.close(0)
        forever()
    if MODE == "window":
        windowed()
        return
    pending, count = b"", 0
    while data := os.read(0, 65536):
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            message(json.loads(line), count)
            count += 1
    AT_END.get(MODE, lambda: None)()


main()
