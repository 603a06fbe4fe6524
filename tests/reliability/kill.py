"""Kills foldproof at random moments, and holds what is left against what a run that nobody killed leaves.

    python tests/reliability/kill.py [--times 100] [--seed 0] [--jobs 1] [--only check,fuzz,exhaust,dask,worker,report]

Each verb is killed with SIGKILL again and again over one evidence folder, half of the times at a moment drawn over the
time that it takes alone, half soon after something is written. After each kill: every record on disk is whole, none
that was there is gone, every file is whole, no process is left. After the last, a run to the end must count what an
undisturbed run counts, and `verify-receipt` must hold.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib.util
import itertools
import json
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from foldproof.impl.external.guard import marked
from foldproof.reports.store import damage, is_store, read

ROOT = Path(__file__).resolve().parents[2]
SHARD = "from foldproof.props import exhaust_external as of; of.SHARD_DECISIONS = 1 << 15; "
FOLDPROOF = (sys.executable, "-c", f"{SHARD}from foldproof.cli.main import main; main()")
"""The command, with shards so small that a universe of seconds has twenty."""
MARK = "FOLDPROOF_KILLED"
GONE_S = 30.0
"""How long what a killed command started may take to end on a machine with much to do."""
RERENDERED = "was changed: a record has another digest of it"
AIMED = 0.5
"""The share of kills that come within 0.1 s of one of the first eight writes; the others at any moment of the run."""
SHARE = {"check": 2, "fuzz": 6, "exhaust": 5, "dask": 4, "worker": 2, "report": 6}
"""How many of 25 kills go to which verb: `check` takes longest. `worker` kills one worker of an `exhaust`."""


class Broken(AssertionError):
    """What a kill broke."""


def fresh_mark() -> str:
    """A mark that no other command has."""
    return secrets.token_hex(8)


def must(holds: object, what: str) -> None:
    """Raise `Broken` unless it holds."""
    if not holds:
        raise Broken(what)


@dataclass
class Scene:
    """What is run and killed: a folder, two selectors (one that differs from the reference), and the dice."""

    folder: Path
    sound: str
    flawed: str
    dice: random.Random
    rounds: int = 600
    universe: tuple[str, ...] = ("--variants", "3", "--ints", "2", "--ptrs", "1")
    kills: int = 0
    early: int = 0
    """Kills that came before the first record."""
    late: int = 0
    """Runs that were over before their kill."""
    resumed: int = 0


def start(words: tuple[str, ...], mark: str, **more: Any) -> subprocess.Popen[bytes]:
    """Start the command in a session of its own, with a mark on it and all that it starts."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE} | more
    environment = os.environ | {MARK: mark}
    return subprocess.Popen([*FOLDPROOF, *words], env=environment, start_new_session=True, **quiet)


def ended(mark: str) -> None:
    """Nothing that a command started may outlive it by much."""
    sign, deadline = f"{MARK}={mark}".encode(), time.monotonic() + GONE_S
    while (left := marked(sign)) and time.monotonic() < deadline:
        time.sleep(0.05)
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode() for pid in left[:3]]
    must(not left, f"{len(left)} processes outlive it by {GONE_S:g} s: {commands}")


def finished(words: tuple[str, ...], allowed: tuple[int, ...] = (0,)) -> float:
    """Run to the end; the seconds that took."""
    began, mark = time.monotonic(), fresh_mark()
    process = start(words, mark)
    _, said = process.communicate(timeout=900)
    must(process.returncode in allowed, f"{words} ends with {process.returncode}: {said.decode()[-2000:]}")
    took = time.monotonic() - began
    ended(mark)
    return took


def killed(scene: Scene, words: tuple[str, ...], took: float, out: Path, watched: Path | None = None) -> None:
    """Start, kill at a random moment, and look at what is left. Writes are seen below `watched`, or `out`."""
    before = digests(out)
    mark = fresh_mark()
    process = start(words, mark, stderr=subprocess.DEVNULL)  # a pipe that an orphan holds would never end
    moment = scene.dice.uniform(0, took)
    if scene.dice.random() < AIMED:
        await_writes(process, watched or out, scene.dice.randint(1, 8), took)
        moment = scene.dice.uniform(0, 0.1)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    scene.late += process.poll() is not None
    process.kill()
    process.wait()
    scene.kills += 1
    ended(mark)
    after = digests(out)
    must(before <= after, "records are gone")
    scene.early += before == after
    whole(out)


def await_writes(process: subprocess.Popen[bytes], folder: Path, count: int, most_s: float) -> None:
    """Wait until a folder has changed a number of times, the process ended, or time is up."""
    seen, deadline = _stamp(folder), time.monotonic() + most_s
    while count and process.poll() is None and time.monotonic() < deadline:
        now = _stamp(folder)
        count -= now != seen
        seen = now
        time.sleep(0.002)


def _stamp(folder: Path) -> list[int]:
    """What changes when a file below a folder begins to be written."""
    found = []
    with contextlib.suppress(OSError):  # a folder goes while it is walked
        found = [one.stat().st_mtime_ns for one in (folder, *folder.rglob("*/")) if one.is_dir()]
    return found


def digests(out: Path) -> set[str]:
    """The records in a folder."""
    return {file.name for file in (out / "records").glob("*.json")}


def whole(out: Path) -> None:
    """Every record and every file below a folder is whole."""
    if is_store(out):
        stored, damaged = read(out)
        must(not damaged, f"damaged: {damaged[:3]}")
        # A report that was killed between a file and the record of it has written a whole file, newer than its record.
        wrong = [d for d in damage(out, stored) if d.why != RERENDERED]
        must(not wrong, f"contradicts its records: {wrong[:3]}")
    for file in out.rglob("*"):
        if file.is_file() and not file.name.startswith(".writing-"):
            try:
                complete(file)
            except (ValueError, EOFError, OSError, ET.ParseError) as problem:
                raise Broken(f"{file} is not whole: {problem}") from None


def complete(file: Path) -> None:
    """Raise if a file breaks off."""
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    kind = file.name.removesuffix(".gz").rpartition(".")[2]
    if kind in {"json", "sarif"}:
        json.loads(content)
    elif kind in {"ndjson", "jsonl"}:
        for line in content.splitlines():
            json.loads(line)
    elif kind == "xml":
        ET.fromstring(content)  # noqa: S314 (our own)
    elif kind == "html":
        must(content.rstrip().endswith(b"</html>"), f"{file} breaks off")
    else:
        must(not content or content.endswith(b"\n"), f"{file} breaks off")


def holds(out: Path) -> None:
    """The receipt holds."""
    finished(("verify-receipt", str(out)))


def check(scene: Scene, times: int) -> None:
    """`check`, and the report of it."""
    out = scene.folder / "check"
    words = ("check", "--policy", "exact-first", "--seconds", "0.5", "--out")
    took = finished((*words, str(scene.folder / "check-alone")), (0, 1))
    for _ in range(times):
        killed(scene, (*words, str(out)), took, out)
    finished((*words, str(out)), (0, 1))
    whole(out)
    counts = [json.loads((folder / "result.json").read_bytes()) for folder in (scene.folder / "check-alone", out)]
    must(_verdicts(counts[0]) == _verdicts(counts[1]), "the verdicts are not those of an undisturbed run")
    holds(out)


def _verdicts(result: dict[str, Any]) -> Any:
    """What an obligation is called and how it stands, whatever the clock said."""
    return sorted((row["what"], row["verdict"]) for row in result["obligations"])


def fuzz(scene: Scene, times: int) -> None:
    """`fuzz` with a corpus: what was reached once is never gone, and all rounds together are those of one run."""
    alone, corpus, out = (scene.folder / name for name in ("corpus-alone", "corpus", "fuzz"))
    words = ("fuzz", "--selector", scene.sound, "--seed", "7", "--out", str(out))
    rounds = scene.rounds
    took = finished((*words, "--corpus", str(alone), "--rounds", str(rounds)))
    done = 0
    for _ in range(times):
        killed(scene, (*words, "--corpus", str(corpus), "--rounds", str(max(1, rounds - done))), took, out, corpus)
        whole(corpus)
        reached = _reached(corpus)
        must(done <= reached <= rounds, f"reached round {reached} after {done}")
        scene.resumed += reached > 0
        done = 0 if reached == rounds else reached
        if reached == rounds:  # it was faster than the kill: compared, and begun again
            _same(alone, corpus)
            shutil.rmtree(corpus)
    finished((*words, "--corpus", str(corpus), "--rounds", str(rounds - done)))
    _same(alone, corpus)
    holds(out)


def _reached(corpus: Path) -> int:
    """The next round of the only campaign of a corpus."""
    if not (corpus / "corpus.json").exists():
        return 0
    (campaign,) = json.loads((corpus / "corpus.json").read_bytes())["campaigns"].values()
    return int(campaign["next_round"])


def _same(alone: Path, corpus: Path) -> None:
    for name in ("corpus.json", "cells.ndjson"):
        must((alone / name).read_bytes() == (corpus / name).read_bytes(), f"{name} is not that of an undisturbed run")


def exhaust(scene: Scene, times: int, more: tuple[str, ...] = ("--workers", "2"), name: str = "exhaust") -> None:
    """`exhaust` on a selector that differs: all counts and cases are those of an undisturbed run."""
    alone, out = scene.folder / f"{name}-alone", scene.folder / name
    words = ("exhaust", "--selector", scene.flawed, *scene.universe, *more, "--out")
    took = finished((*words, str(alone)), (1,))
    for _ in range(times):
        killed(scene, (*words, str(out)), took, out)
        _sums(out)
    kept = any((out / "shards").rglob("*.json"))
    finished((*words, str(out)), (1,))
    _counts(alone, out)
    resumed = json.loads((out / "exhaust.json").read_bytes())["resumed"]
    must(bool(resumed) == kept, f"{resumed} decisions resumed, and shards were {'there' if kept else 'not there'}")
    scene.resumed += bool(resumed)
    must(not (out / "shards").exists(), "shards are left of a run that is recorded")
    holds(out)


def _sums(out: Path) -> None:
    """The shards on disk do not overlap, unless runs cut them otherwise."""
    ranges = sorted(tuple(map(int, file.name.split("-")[:2])) for file in (out / "shards").rglob("[0-9]*.json"))
    must(all(a[1] <= b[0] for a, b in itertools.pairwise(ranges)), f"shards overlap: {ranges}")


def _counts(alone: Path, out: Path) -> None:
    told = [json.loads((folder / "exhaust.json").read_bytes()) for folder in (alone, out)]
    for name in ("captures", "decisions", "outcomes", "disagreements", "kinds", "faults", "run_state", "exit_code"):
        must(told[0][name] == told[1][name], f"{name}: {told[0][name]} and {told[1][name]}")
    cases = [
        [(folder / file).read_bytes() for file in of["files"]] for folder, of in zip((alone, out), told, strict=True)
    ]
    must(cases[0] == cases[1], "the cases are not those of an undisturbed run")


def worker(scene: Scene, times: int) -> None:
    """One of the workers of an `exhaust` is killed, not the command: it ends as if nothing had been."""
    alone = scene.folder / "worker-alone"
    words = ("exhaust", "--selector", scene.flawed, *scene.universe, "--workers", "2", "--out")
    took = finished((*words, str(alone)), (1,))
    for number in range(times):
        out, mark = scene.folder / f"worker-{number}", fresh_mark()
        process = start((*words, str(out)), mark)
        deadline = time.monotonic() + 60
        while not (found := _workers(mark)) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(scene.dice.uniform(0, took / 3))
        with contextlib.suppress(OSError, IndexError):
            os.kill(scene.dice.choice(_workers(mark) or found), signal.SIGKILL)
            scene.kills += 1
        _, said = process.communicate(timeout=900)
        must(process.returncode == 1, f"ends with {process.returncode}: {said.decode()[-2000:]}")
        ended(mark)
        _counts(alone, out)
    holds(out)


def _workers(mark: str) -> list[int]:
    found = []
    for pid in marked(f"{MARK}={mark}".encode()):
        with contextlib.suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return sorted(found)


def dask(scene: Scene, times: int) -> None:
    """`exhaust` on the workers of a scheduler, which live on; then a worker is killed in an undisturbed run."""
    if importlib.util.find_spec("distributed") is None:
        say("dask: needs the extra dask")
        return
    mark = fresh_mark()
    with cluster(scene.folder, mark) as (address, workers):
        more = ("--scheduler", address)
        exhaust(scene, times, more, "dask")
        out = scene.folder / "dask-worker"
        process = start(
            ("exhaust", "--selector", scene.flawed, *scene.universe, *more, "--out", str(out)), fresh_mark()
        )
        time.sleep(scene.dice.uniform(0, 3))
        workers[0].kill()
        scene.kills += 1
        _, said = process.communicate(timeout=900)
        must(process.returncode == 1, f"ends with {process.returncode}: {said.decode()[-2000:]}")
        _counts(scene.folder / "dask-alone", out)
        holds(out)
    ended(mark)


@contextlib.contextmanager
def cluster(folder: Path, mark: str) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler and two workers, each a process of its own; killed at the end."""
    environment, started = os.environ | {MARK: mark}, list[subprocess.Popen[bytes]]()

    def process(module: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *words, "--no-dashboard"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": log, "env": environment, "cwd": folder}
        started.append(subprocess.Popen(command, **quiet))  # type: ignore[call-overload]
        return started[-1]

    with (folder / "dask.log").open("wb") as log:
        try:
            process("dask_scheduler", "--host", "127.0.0.1", "--port", "0")
            address = _said(folder / "dask.log", r"Scheduler at:\s+(tcp://127\.0\.0\.1:\d+)", 1)[0]
            workers = [process("dask_worker", address, "--nthreads", "1", "--no-nanny") for _ in range(2)]
            _said(folder / "dask.log", r"Registered to:", 2)
            yield address, workers
        finally:
            for one in started:
                one.kill()
                one.wait()


def _said(log: Path, pattern: str, times: int) -> list[str]:
    deadline = time.monotonic() + 120
    while len(found := re.findall(pattern, log.read_text())) < times:
        must(time.monotonic() < deadline, f"Dask does not say {pattern!r}: {log.read_text()[-2000:]}")
        time.sleep(0.1)
    return found


def report(scene: Scene, times: int) -> None:
    """`report` over the evidence of an `exhaust`: killed while it renders, it renders again."""
    out = scene.folder / "report"
    finished(("exhaust", "--selector", scene.flawed, "--variants", "1", "--out", str(out)))
    words = ("report", str(out))
    took = finished(words, (0, 1, 3))
    for _ in range(times):
        killed(scene, words, took, out)
    finished(words, (0, 1, 3))
    whole(out)
    holds(out)


VERBS: dict[str, Callable[[Scene, int], None]] = {
    "check": check, "fuzz": fuzz, "exhaust": exhaust, "dask": dask, "worker": worker, "report": report
}  # fmt: skip


def shared(times: int, names: list[str]) -> dict[str, int]:
    """How many kills each verb gets, one at least."""
    whole_share = sum(SHARE[name] for name in names)
    parts = {name: max(1, times * SHARE[name] // whole_share) for name in names}
    parts[names[-1]] += max(0, times - sum(parts.values()))
    return parts


def selectors(folder: Path) -> tuple[str, str]:
    """A sound selector and a flawed one: the Zig libraries, else the reference under two policies."""
    if importlib.util.find_spec("ziglang") is None:
        serve = f"{sys.executable} -m foldproof.impl.external.serve --policy"
        return f"{serve} three-pass", f"{serve} two-pass"
    for bug in ("none", "single-guard"):
        build = [sys.executable, str(ROOT / "selectors/zig/build.py"), "--out", str(folder / bug), "--bug", bug]
        subprocess.run(build, check=True)
    sound, flawed = (folder / bug / "libthree_pass.so" for bug in ("none", "single-guard"))
    return str(sound), str(flawed)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="kill foldproof at random moments")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="verbs under way at once")
    parser.add_argument("--only", default=",".join(VERBS), help="verbs, by comma")
    options = parser.parse_args()
    names, dice = options.only.split(","), random.Random(options.seed)  # noqa: S311 (dice, no secrets)
    with tempfile.TemporaryDirectory(prefix="kill-") as name, ThreadPoolExecutor(options.jobs) as pool:
        sound, flawed = selectors(Path(name))
        under_way = []
        for verb, times in shared(options.times, names).items():
            scene = Scene(Path(name), sound, flawed, random.Random(dice.random()))  # noqa: S311 (as above)
            under_way.append(pool.submit(trial, verb, scene, times))
        wrong = [text for one in under_way if (text := one.result())]
    for text in wrong:
        say(f"{text} (seed {options.seed})")
    if not wrong:
        say("every record and file whole, no process left, every count that of an undisturbed run")
    return int(bool(wrong))


def trial(verb: str, scene: Scene, times: int) -> str:
    """Kill one verb; what broke, "" if nothing did."""
    began, wrong = time.monotonic(), ""
    try:
        VERBS[verb](scene, times)
    except Broken as problem:
        wrong = f"{verb}: after kill {scene.kills}: {problem}"
    said = f"{scene.kills} kills, {scene.early} without a new record, {scene.late} after its end"
    say(f"{verb}: {said}, {scene.resumed} resumed; {time.monotonic() - began:.0f} s")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
