"""`foldproof replay`: run the interchangeable variants of a capture on identical inputs, on a device."""

from __future__ import annotations

import datetime as dt
import shlex
import time
from collections import Counter
from pathlib import Path

import click
from foldproof.cli.digests import capture_seen, identified
from foldproof.cli.emitting import emit_receipt
from foldproof.cli.recording import git_state, into
from foldproof.cli.recording import started as started_run
from foldproof.cli.ui import say, show_table, steps
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.replay import (
    NoDevice,
    Schedule,
    Supervisor,
    ablate,
    device_facts,
    judge,
    plan_replay,
    replay_receipt,
    run_plan,
    worker_command,
    write_receipt,
)
from foldproof.gpu.replay.device import sets_of
from foldproof.gpu.replay.tally import BoutCount
from foldproof.reports.evidence import BUNDLED
from foldproof.reports.recorder import recording

OUT = "foldproof-receipts"
EXAMPLE = """\b
Examples:
  foldproof replay --plan
  foldproof replay CAPTURE --ablate --out receipts
  foldproof replay CAPTURE --trace launches.ndjson"""


@click.command(epilog=EXAMPLE)
@click.argument("capture", required=False, type=click.Path(path_type=Path))
@click.option(
    "--ablate",
    "ablated",
    is_flag=True,
    help="The release check: each folded variant against its fallback, one line each.",
)
@click.option("--trace", type=click.Path(path_type=Path), help="Replay the launches of this trace instead.")
@click.option("--sets", type=click.IntRange(min=4), default=512, show_default=True, help="Input sets a launch.")
@click.option("--seed", type=click.IntRange(min=0), default=20, show_default=True)
@click.option("--plan", "plan_only", is_flag=True, help="Say what would be run, and run nothing.")
@click.option("--out", type=click.Path(path_type=Path), default=Path(OUT), show_default=True)
def replay(  # noqa: PLR0913, PLR0917 (one parameter an option)
    capture: Path | None, ablated: bool, trace: Path | None, sets: int, seed: int, plan_only: bool, out: Path
) -> int:
    """Run each pair of variants that one launch admits on identical inputs, and compare every byte.

    Needs an NVIDIA GPU of the architecture that the capture was compiled for; exit 3 where there is none. Exit 1 if
    an ablation fails.
    """
    folder = bundled_capture() if capture is None else capture
    plan = plan_replay(folder, trace)
    pairs = sum(len(bout.matchups) for bout in plan.bouts)
    running = sum(len(bout.matchups) for bout in plan.runnable)
    say(f"{pairs} pairs, {pairs - running} of identical code, {running} to run under {len(plan.runnable)} launches")
    if plan_only:
        return 0
    commit, dirty = git_state()
    started, begin = dt.datetime.now(dt.UTC), time.monotonic()
    try:
        with Supervisor(worker_command(folder, seed, lanes=8)) as supervisor, steps() as shown:
            facts = device_facts(supervisor, folder)
            shown.step("replay", len(plan.runnable))

            def tell(done: int, _: int, count: BoutCount) -> None:
                shown.at(done, count.name)

            counts = run_plan(plan, supervisor, sets_of(sets), Schedule(progress=tell))
    except NoDevice as problem:
        say(f"owed: {pairs} pairs were not run: {problem}", style="yellow")
        say("next: run this on a machine with an NVIDIA GPU of the capture's architecture, or see foldproof bits")
        return 3
    verdicts = judge(plan, counts)
    rows = ablate(folder, plan, verdicts)
    receipt = replay_receipt(
        plan,
        counts,
        facts,
        ablation=rows,
        sets=sets_of(sets),
        started=started,
        seconds=time.monotonic() - begin,
        seed=seed,
        command=again(capture, trace, sets, seed, out, ablated=ablated),
        commit=commit,
        dirty=dirty,
        owed=[],
        results={},
    )
    words = Counter((domain, verdict.word) for pair in verdicts for domain, verdict in pair.verdicts.items())
    show_table(("input domain", "verdict", "pairs"), [(d, w, n) for (d, w), n in sorted(words.items())])
    if ablated:
        for row in rows:
            say(str(row))
    file = write_receipt(receipt, out)
    failed = int(ablated and any(str(row).startswith("FAIL") for row in rows))
    loaded, digests = identified(folder)
    with recording(out, started_run("replay", receipt.command, seed)) as to:
        to.emit(capture_seen(BUNDLED if capture is None else str(capture), loaded, digests))
        emit_receipt(to, receipt, (file.name, file.read_bytes()))
        to.exit_code = failed
    say(f"receipt: {file}")
    return failed


def again(  # noqa: PLR0913 (one parameter an option)
    capture: Path | None, trace: Path | None, sets: int, seed: int, out: Path, *, ablated: bool
) -> str:
    """The line that runs it again."""
    words = ["foldproof", "replay", *([str(capture)] if capture else []), *(["--ablate"] if ablated else [])]
    words += ["--trace", str(trace)] if trace else []
    return shlex.join([*words, "--sets", str(sets), "--seed", str(seed), *into(out, OUT)])
