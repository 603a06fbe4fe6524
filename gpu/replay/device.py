"""The whole device run in one script: `python3 -m foldproof.gpu.replay.device --out DIR`.

It tries the device (a self-test), measures the comparison, runs the scenarios, replays every pair and the ablation, and
writes the receipts. What is done is on disk at once, so a run that is cut short goes on with `--resume`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import msgspec
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.replay.arena import lay_out
from foldproof.gpu.replay.inputs import SetClass
from foldproof.gpu.replay.receipts import Owed, Receipt, corrected_labels, silent_controls, write_receipt
from foldproof.gpu.replay.replaying import (
    Plan,
    Schedule,
    ablate,
    device_facts,
    judge,
    plan_replay,
    replay_receipt,
    run_plan,
)
from foldproof.gpu.replay.running import RUNS
from foldproof.gpu.replay.selftest import SURPRISE
from foldproof.gpu.replay.supervising import Supervisor, worker_command
from foldproof.gpu.replay.tally import BoutCount
from foldproof.gpu.scenarios.running import scenario_receipt
from foldproof.impl.errors import FoldproofError

PROGRESS = "progress.ndjson"
LOG = "worker.log"
SELFTEST_S = 240
LAUNCH_S = 8e-6
BYTES_PER_S = 2.5e9
"""What the plan's estimate takes a launch, and a byte of input on its way from the generator to the device, to cost."""
GB10 = Owed("every pair on GB10", "a device of compute capability 12.1, and the capture built for sm_121")


class Kept(msgspec.Struct, frozen=True):
    """One line of the progress file: what the run is of (the first line), or a finished piece of it."""

    key: str
    value: Any


class Progress:
    """Finished pieces by key, on disk as soon as they are there."""

    def __init__(self, file: Path, run: Mapping[str, Any], *, resume: bool) -> None:
        self._file = file
        self.pieces: dict[str, Any] = {}
        if resume and file.is_file():
            lines = [msgspec.json.decode(line, type=Kept) for line in _whole_lines(file)]
            self.pieces = {line.key: line.value for line in lines}
            if self.pieces.pop("run", None) != dict(run):
                why = "is of a run with another capture, seed or number of sets"
                raise FoldproofError(why, where=str(file), fix="name another folder, or leave out --resume")
        else:
            file.write_bytes(b"")
            self._write("run", dict(run))

    def keep(self, key: str, value: Any) -> None:
        """Write a finished piece."""
        self.pieces[key] = value
        self._write(key, value)

    def _write(self, key: str, value: Any) -> None:
        with self._file.open("ab") as stream:
            stream.write(msgspec.json.encode(Kept(key, value)) + b"\n")

    def counts(self) -> dict[str, BoutCount]:
        """The bouts that are done, by launch name."""
        bouts = {key[5:]: value for key, value in self.pieces.items() if key.startswith("bout ")}
        return {name: msgspec.convert(value, BoutCount) for name, value in bouts.items()}


def say(text: str, file: TextIO | None = None) -> None:
    """Print a line at once: the run may be cut short."""
    print(text, file=file, flush=True)


def _whole_lines(file: Path) -> list[bytes]:
    """The lines of a file; a last line that was cut short by a kill is dropped, from the file too."""
    data = file.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        file.write_bytes(whole)
    return whole.splitlines()


def sets_of(total: int) -> dict[SetClass, int]:
    """How `total` input sets are spread over the classes: half finite, a quarter each of the others."""
    return {"finite": total - total // 4 * 2, "infinite": total // 4, "nan": total // 4}


def described(plan: Plan, sets: Mapping[SetClass, int]) -> str:
    """The plan in numbers, with an estimate of its time."""
    total = sum(sets.values())
    runnable = plan.runnable
    runs = sum(len(bout.variants) for bout in runnable) * len(RUNS) * total
    strides = {bout.record.name: lay_out(bout.record).stride for bout in runnable}
    moved = sum(strides.values()) * total
    pairs = sum(len(bout.matchups) for bout in plan.bouts)
    compared = sum(len(bout.matchups) for bout in runnable)
    seconds = runs * LAUNCH_S + moved / BYTES_PER_S
    lines = [
        f"{pairs + len(plan.missing)} pairs, {len(plan.bouts)} launches; to run: {compared} and {len(runnable)}",
        f"{pairs - compared} pairs of identical code, {len(plan.missing)} without a second variant",
        f"{total} input sets a launch {dict(sets)}, {runs} kernel launches, {compared * total} pair-input sets",
        f"{moved} bytes of images, the largest slot {max(strides.values(), default=0)} bytes",
        f"expected {seconds:.0f} s for the pairs, about 30 s for the rest",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None, worker: list[str] | None = None) -> int:
    """The exit status: 0 when the run is complete, 1 when something is owed or failed, 2 bad usage, 3 no device."""
    options = _options(arguments)
    try:
        return _run(options, worker)
    except FoldproofError as problem:
        say(str(problem), file=sys.stderr)
        return 3 if problem.code == "NoDevice" else 2


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m foldproof.gpu.replay.device", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for progress, logs and receipts")
    parser.add_argument("--capture", type=Path, default=bundled_capture())
    parser.add_argument("--sets", type=int, default=512, help="input sets a launch")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--budget-s", type=float, default=480.0, help="start no new piece after this many seconds")
    parser.add_argument("--resume", action="store_true", help="go on with what is in --out")
    parser.add_argument("--plan", action="store_true", help="say what would be run, and run nothing")
    parser.add_argument("--selftest", action="store_true", help="run the self-test only")
    parser.add_argument("--skip-selftest", action="store_true")
    parser.add_argument("--commit", default=os.environ.get("FOLDPROOF_COMMIT"), help="the commit that is running")
    parser.add_argument("--dirty", default=os.environ.get("FOLDPROOF_DIRTY"), choices=("0", "1"), help="with changes?")
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace, worker: list[str] | None) -> int:
    if options.selftest:
        return _selftest()
    plan, sets = plan_replay(options.capture), sets_of(options.sets)
    say(described(plan, sets))
    if options.plan:
        return 0
    if options.out is None:
        raise FoldproofError("--out is missing", fix="name a folder for the receipts")
    code = 0 if options.skip_selftest else _selftest()
    if code not in {0, SURPRISE}:
        say("the self-test failed; nothing else was run", file=sys.stderr)
        return code
    options.out.mkdir(parents=True, exist_ok=True)
    run = {"capture": plan.identity.aot_sha256, "seed": options.seed, "sets": dict(sets)}
    progress = Progress(options.out / PROGRESS, run, resume=options.resume)
    command = worker or worker_command(options.capture, options.seed, lanes=8)
    with (options.out / LOG).open("ab") as log, Supervisor(command, log=log) as supervisor:
        return _pieces(options, plan, sets, progress, supervisor)


def _selftest() -> int:
    command = [sys.executable, "-m", "foldproof.gpu.replay.selftest"]
    try:
        return subprocess.run(command, timeout=SELFTEST_S, check=False).returncode  # noqa: S603 -- our own module
    except subprocess.TimeoutExpired:
        say(f"FAIL  the self-test did not end in {SELFTEST_S} s")
        return 1


def _pieces(
    options: argparse.Namespace,
    plan: Plan,
    sets: Mapping[SetClass, int],
    progress: Progress,
    supervisor: Supervisor,
) -> int:
    started, begin = dt.datetime.now(dt.UTC), time.monotonic()
    deadline = begin + options.budget_s
    facts = device_facts(supervisor, options.capture)
    say(f"{facts.name} ({facts.arch}), driver {facts.driver}, CUDA {facts.cuda_driver}, {facts.compiler}")
    for key, job, body in (("bandwidth", "bandwidth", {}), ("scenarios", "scenarios", {"seed": options.seed})):
        if progress.pieces.get(key, {}).get("event") != "done" and time.monotonic() < deadline:
            progress.keep(key, supervisor.ask(job, body, patience_s=120))
        say(f"{key}: {_brief(progress.pieces.get(key))}")

    def tell(done: int, total: int, count: BoutCount) -> None:
        progress.keep(f"bout {count.name}", msgspec.to_builtins(count))
        if done % 20 == 0 or done == total or count.owed or count.refusals:
            note = count.owed or "; ".join(f"{r.word}: {r.reason}" for r in count.refusals)
            say(f"{time.monotonic() - begin:6.1f} s  {done}/{total} {count.name} {note}")

    replay_begin = time.monotonic()
    counts = run_plan(plan, supervisor, sets, Schedule(progress.counts(), deadline, tell))
    profile = profiled(plan, counts, time.monotonic() - replay_begin)
    verdicts = judge(plan, counts)
    receipt = replay_receipt(
        plan,
        counts,
        facts,
        ablation=ablate(options.capture, plan, verdicts),
        sets=sets,
        started=started,
        seconds=time.monotonic() - begin,
        seed=options.seed,
        command=_command(options),
        commit=options.commit,
        dirty=None if options.dirty is None else options.dirty == "1",
        owed=[GB10] if facts.arch != "sm_121" else [],
        results={
            "bandwidth": progress.pieces.get("bandwidth", {}),
            "profile": profile,
            "worker_starts": supervisor.restarts,
        },
    )
    say(f"wrote {write_receipt(receipt, options.out).name}")
    if progress.pieces.get("scenarios", {}).get("event") == "done":
        shown = scenario_receipt(receipt, progress.pieces["scenarios"])
        say(f"wrote {write_receipt(shown, options.out).name}")
    _summary(receipt, profile)
    return 0 if receipt.complete and progress.pieces.get("scenarios", {}).get("event") == "done" else 1


def profiled(plan: Plan, counts: Mapping[str, BoutCount], wall: float) -> dict[str, Any]:
    """Where the time of the pairs went: seconds by phase, pair-input sets a second, and the share beside kernels."""
    phases: dict[str, float] = {}
    sets = launches = 0
    for count in counts.values():
        launches += count.launches
        sets += sum(pair.sets for pair in count.pairs)
        for name, seconds in count.seconds.items():
            phases[name] = phases.get(name, 0.0) + seconds
    inside = sum(phases.values())
    useful = phases.get("kernels", 0.0) + phases.get("compare", 0.0)
    return {
        "bouts": len(plan.runnable),
        "pair_input_sets": sets,
        "kernel_launches": launches,
        "seconds_by_phase": {name: round(seconds, 4) for name, seconds in phases.items()},
        "seconds_in_bouts": round(inside, 4),
        "seconds_wall": round(wall, 4),
        "pair_input_sets_per_s": round(sets / inside, 1) if inside else 0.0,
        "share_beside_launches_and_compares": round(1 - useful / inside, 4) if inside else 0.0,
    }


def _brief(piece: Any) -> str:
    if not isinstance(piece, dict):
        return "not run"
    shown = {key: value for key, value in piece.items() if isinstance(value, (int, float, str, bool))}
    return msgspec.json.encode(shown).decode()


def _command(options: argparse.Namespace) -> str:
    """The command without the places of this machine."""
    return f"python3 -m foldproof.gpu.replay.device --sets {options.sets} --seed {options.seed}"


def _summary(receipt: Receipt, profile: Mapping[str, Any]) -> None:
    say(f"verdicts: {msgspec.json.encode(receipt.counts).decode()}")
    say(f"profile: {msgspec.json.encode(profile).decode()}")
    passed = sum(row.passed for row in receipt.ablation)
    say(f"ablation: {passed} PASS, {len(receipt.ablation) - passed} FAIL")
    say(f"negative controls that did not differ: {', '.join(silent_controls(receipt)) or 'none'}")
    for pair in corrected_labels(receipt):
        found = pair.verdicts[pair.domain or "every bit pattern"]
        say(
            f"label: {pair.launch} {', '.join(pair.change)} {pair.first}/{pair.second}: "
            f"expected {pair.expected} on {pair.domain}, found {found.word}: {found.reason}"
        )
    for owed in receipt.owed:
        say(f"owed: {owed.what}: {owed.needs}")


if __name__ == "__main__":
    raise SystemExit(main())
