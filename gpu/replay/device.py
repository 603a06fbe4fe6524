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
from dataclasses import dataclass
from pathlib import Path

import msgspec
from foldproof.gpu.bundle import LAUNCHES, bundled_capture
from foldproof.gpu.replay.inputs import SetClass
from foldproof.gpu.replay.progress import Progress
from foldproof.gpu.replay.receipts import Owed, write_receipt
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
from foldproof.gpu.replay.selftest import SURPRISE
from foldproof.gpu.replay.supervising import Supervisor, worker_command
from foldproof.gpu.replay.tally import BoutCount
from foldproof.gpu.replay.telling import brief, described, profiled, say, summary
from foldproof.gpu.replay.trace import recorded
from foldproof.gpu.replay.witnessing import Confirmation, Predicted, confirm, read_witnesses
from foldproof.gpu.scenarios.running import scenario_receipt
from foldproof.impl.capture import capture_file
from foldproof.impl.errors import FoldproofError

PROGRESS = "progress.ndjson"
LOG = "worker.log"
SELFTEST_S = 240
GB10 = Owed("every pair on GB10", "a device of compute capability 12.1, and the capture built for sm_121")


def sets_of(total: int) -> dict[SetClass, int]:
    """How `total` input sets are spread over the classes: half finite, a quarter each of the others."""
    return {"finite": total - total // 4 * 2, "infinite": total // 4, "nan": total // 4}


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
    parser.add_argument(
        "--search", type=int, default=2048, help="finite sets more where bits that should differ have not"
    )
    parser.add_argument("--witnesses", type=Path, help="byte verdicts of foldproof bits, to confirm their witnesses")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--budget-s", type=float, default=480.0, help="start no new piece after this many seconds")
    parser.add_argument("--resume", action="store_true", help="go on with what is in --out")
    parser.add_argument("--plan", action="store_true", help="say what would be run, and run nothing")
    parser.add_argument("--selftest", action="store_true", help="run the self-test only")
    parser.add_argument("--skip-selftest", action="store_true")
    parser.add_argument("--commit", default=os.environ.get("FOLDPROOF_COMMIT"), help="the commit that is running")
    parser.add_argument("--dirty", default=os.environ.get("FOLDPROOF_DIRTY"), choices=("0", "1"), help="with changes?")
    return parser.parse_args(arguments)


@dataclass(frozen=True, slots=True)
class _Work:
    """What a run is to do."""

    plan: Plan
    sets: Mapping[SetClass, int]
    witnesses: tuple[Predicted, ...]


def _run(options: argparse.Namespace, worker: list[str] | None) -> int:
    if options.selftest:
        return _selftest()
    witnesses = read_witnesses(options.witnesses) if options.witnesses else ()
    work = _Work(plan_replay(options.capture), sets_of(options.sets), witnesses)
    say(described(work.plan, work.sets))
    if options.plan:
        return 0
    if options.out is None:
        raise FoldproofError("--out is missing", fix="name a folder for the receipts")
    code = 0 if options.skip_selftest else _selftest()
    if code not in {0, SURPRISE}:
        say("the self-test failed; nothing else was run", file=sys.stderr)
        return code
    options.out.mkdir(parents=True, exist_ok=True)
    run = {"capture": work.plan.identity.aot_sha256, "seed": options.seed, "sets": dict(work.sets)}
    progress = Progress(options.out / PROGRESS, {**run, "search": options.search}, resume=options.resume)
    command = worker or worker_command(options.capture, options.seed, lanes=8)
    with (options.out / LOG).open("ab") as log, Supervisor(command, log=log) as supervisor:
        return _pieces(options, work, progress, supervisor)


def _selftest() -> int:
    command = [sys.executable, "-m", "foldproof.gpu.replay.selftest"]
    try:
        return subprocess.run(command, timeout=SELFTEST_S, check=False).returncode  # noqa: S603 -- our own module
    except subprocess.TimeoutExpired:
        say(f"FAIL  the self-test did not end in {SELFTEST_S} s")
        return 1


def _pieces(options: argparse.Namespace, work: _Work, progress: Progress, supervisor: Supervisor) -> int:
    started, begin = dt.datetime.now(dt.UTC), time.monotonic()
    deadline = begin + options.budget_s
    plan, sets = work.plan, work.sets
    facts = device_facts(supervisor, options.capture)
    say(f"{facts.name} ({facts.arch}), driver {facts.driver}, CUDA {facts.cuda_driver}, {facts.compiler}")
    for key, body in (("bandwidth", {}), ("scenarios", {"seed": options.seed})):
        if progress.pieces.get(key, {}).get("event") != "done" and time.monotonic() < deadline:
            progress.keep(key, supervisor.ask(key, body, patience_s=120))
        say(f"{key}: {brief(progress.pieces.get(key))}")

    def tell(done: int, total: int, count: BoutCount) -> None:
        progress.keep(f"bout {count.name}", msgspec.to_builtins(count))
        if done % 20 == 0 or done == total or count.owed or count.refusals:
            note = count.owed or "; ".join(f"{r.word}: {r.reason}" for r in count.refusals)
            say(f"{time.monotonic() - begin:6.1f} s  {done}/{total} {count.name} {note}")

    replay_begin = time.monotonic()
    counts = run_plan(plan, supervisor, sets, Schedule(progress.counts(), deadline, tell, options.search))
    profile = profiled(plan, counts, time.monotonic() - replay_begin)
    confirmed = _witnessed(options.capture, work.witnesses, supervisor)
    receipt = replay_receipt(
        plan,
        counts,
        facts,
        ablation=ablate(options.capture, plan, judge(plan, counts)),
        sets=sets,
        search=options.search,
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
            "witnesses": msgspec.to_builtins(confirmed),
        },
    )
    say(f"wrote {write_receipt(receipt, options.out).name}")
    scenarios = progress.pieces.get("scenarios", {})
    if scenarios.get("event") == "done":
        shown = scenario_receipt(receipt, scenarios)
        say(f"wrote {write_receipt(shown, options.out).name}")
    summary(receipt, profile)
    return 0 if receipt.complete and scenarios.get("event") == "done" else 1


def _witnessed(capture: Path, witnesses: tuple[Predicted, ...], supervisor: Supervisor) -> tuple[Confirmation, ...]:
    """The device's word on each witness, one line each on the way."""
    if not witnesses:
        return ()
    found = confirm(witnesses, recorded(capture_file(capture).parent / LAUNCHES), supervisor)
    for row in found:
        say(f"witness {row.launch} {row.first}/{row.second}: {row.word}, {row.reason}")
    return found


def _command(options: argparse.Namespace) -> str:
    """The command without the places of this machine."""
    return (
        f"python3 -m foldproof.gpu.replay.device --sets {options.sets} --search {options.search} --seed {options.seed}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
