"""Soak: a long campaign at constant memory.

    python tests/reliability/soak.py [--seconds 1800] [--selector TEXT] [--most 1.0] [--log FILE]

runs `foldproof fuzz` with a corpus on the Zig selector's library (built if `ziglang` is there; else on `foldproof
serve`), looks every 5 seconds at the resident memory of the command and of all that it started, and fits a line to
what it saw after the warm-up. Exit 1 where memory grows by `--most` MB (10^6 bytes) a minute or more, 2 where the
campaign itself does not end with 0.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
EVERY_S = 5.0
WARM_UP_S = 300.0
MOST_MB_A_MINUTE = 1.0
FOLDPROOF = (sys.executable, "-m", "foldproof.cli.main")
Say = Callable[[str], None]


class Sample(NamedTuple):
    """Seconds since the start, resident bytes of the command, and of all that it started."""

    seconds: float
    own: int
    others: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.own + self.others


def family(pid: int) -> set[int]:
    """The processes that descend from a process."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in found | {pid}} - found:
        found |= more
    return found


def resident(pid: int) -> int:
    """Resident bytes of a process; 0 where it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def slope(samples: Sequence[Sample]) -> float:
    """MB a minute, by least squares over all samples."""
    count = len(samples)
    middle_s = sum(s.seconds for s in samples) / count
    middle_b = sum(s.total for s in samples) / count
    spread = sum((s.seconds - middle_s) ** 2 for s in samples)
    rise = sum((s.seconds - middle_s) * (s.total - middle_b) for s in samples)
    return rise / spread * 60 / 1e6


def watch(command: Sequence[str], every_s: float, say: Say) -> tuple[int, list[Sample]]:
    """Run a command; its exit code and what it held. Its output, and a sample a minute, are told to `say`."""
    began, samples, told = time.monotonic(), list[Sample](), 0.0
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    reader = threading.Thread(target=_forward, args=(process.stdout, say))
    reader.start()
    try:
        while process.poll() is None:
            gone = time.monotonic() - began
            sample = Sample(gone, resident(process.pid), sum(map(resident, family(process.pid))))
            if process.poll() is None and sample.own:
                samples.append(sample)
                if gone >= told:
                    say(f"{gone:7.0f} s: {sample.own / 1e6:7.1f} MB, and {sample.others / 1e6:7.1f} MB of the selector")
                    told = gone + 60
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(every_s)
    finally:
        process.kill()
        reader.join()
        process.stdout.close()
    return process.wait(), samples


def _forward(stream: IO[str], say: Say) -> None:
    for line in stream:
        say(f"    {line.rstrip()}")


def zig_library(out: Path) -> str:
    """The Zig selector's library, built into a folder; "" where that needs a package that is absent."""
    if importlib.util.find_spec("ziglang") is None:
        return ""
    subprocess.run([sys.executable, ROOT / "selectors/zig/build.py", "--out", out], check=True)
    return str(out / "libthree_pass.so")


def soak(  # noqa: PLR0913
    seconds: float, selector: str, say: Say, *,
    every_s: float = EVERY_S, warm_up_s: float = WARM_UP_S, most: float = MOST_MB_A_MINUTE,
    campaign: Sequence[str] = FOLDPROOF,
) -> int:  # fmt: skip
    """The whole soak, and its exit code; `selector` "" for ours, `campaign` the words before the verb."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        text = selector or zig_library(Path(folder)) or f"{sys.executable} -m foldproof.impl.external.serve"
        words = [*campaign, "fuzz", "--selector", text, "--seconds", f"{seconds:g}", "--out", f"{folder}/report"]
        say(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, nice {os.nice(0)}")
        code, samples = watch([*words, "--corpus", f"{folder}/corpus"], every_s, say)
        load = f"load {os.getloadavg()[0]:.1f} at the end"
    warm = [sample for sample in samples if warm_up_s <= sample.seconds < seconds]
    if len(warm) < 3:
        say(f"only {len(warm)} samples after a warm-up of {warm_up_s:g} s; the command exited with {code}")
        return 2
    grows = slope(warm)
    first, last = warm[0].total / 1e6, warm[-1].total / 1e6
    say(
        f"{len(warm)} samples from {warm[0].seconds:.0f} s to {warm[-1].seconds:.0f} s: {first:.1f} MB to {last:.1f} MB"
    )
    say(f"slope {grows:+.3f} MB a minute (allowed: below {most:g}); {load}; exit {code}")
    if code:
        return 2
    return int(grows >= most)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="a long campaign at constant memory")
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--selector", default="", help="as of foldproof fuzz; the Zig selector's library by default")
    parser.add_argument("--warm-up", type=float, default=WARM_UP_S, help="seconds that do not count")
    parser.add_argument("--most", type=float, default=MOST_MB_A_MINUTE, help="MB a minute that are too much")
    parser.add_argument("--log", type=Path, help="write the log there too")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(options.log.open("w", encoding="utf-8")) if options.log else None

        def say(text: str) -> None:
            for stream in filter(None, (sys.stdout, log)):
                print(text, file=stream, flush=True)

        return soak(options.seconds, options.selector, say, warm_up_s=options.warm_up, most=options.most)


if __name__ == "__main__":
    raise SystemExit(main())
