"""`foldproof exhaust`: every case of a small universe, counted, against a selector."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import msgspec
from foldproof.cli.campaign_events import Answered, emit_case
from foldproof.cli.digests import policy_digest, policy_seen, selector_files, selector_seen
from foldproof.cli.examples import answered
from foldproof.cli.fuzz import EXIT_FOUND, EXIT_NOT_RUN, MEMORY_HELP
from foldproof.cli.numbers import Finite
from foldproof.cli.recording import TOOL, into, started
from foldproof.cli.resuming import forget, known, shard_keeper, shards_folder
from foldproof.cli.ui import Steps, say, show_table, steps
from foldproof.impl.cases import case_to
from foldproof.impl.external.answers import SelectorError
from foldproof.impl.external.child import MEMORY_MIB
from foldproof.impl.policy import load_policy
from foldproof.impl.strictjson import json_lines
from foldproof.props.crew import NotRun
from foldproof.props.drive import TIMEOUT_S, SelectorSpec
from foldproof.props.exhaust_external import SHARD_DECISIONS, Exhausted, Run, run_all
from foldproof.props.tally import Finding, Tally, pick_text
from foldproof.props.universe import Universe
from foldproof.reports.events import CampaignRan
from foldproof.reports.recorder import Recorder, recording

SCHEMA_VERSION = 1


class ExhaustRecord(msgspec.Struct, frozen=True):
    """`exhaust.json`: the universe, how many cases were decided and how they ended, and what differed.

    Of the decisions, `resumed` were made by runs of the same universe that were stopped; seconds and rate are without.
    """

    schema_version: int
    tool: str
    command: str
    selector: str
    policy: str
    variants: int
    ints: int
    ptrs: int
    free_const: bool
    options: bool
    captures: int
    launches: int
    decisions: int
    resumed: int
    outcomes: dict[str, int]
    disagreements: int
    kinds: dict[str, int]
    files: tuple[str, ...]
    faults: tuple[str, ...]
    run_state: str
    exit_code: int
    workers: int
    seconds: float
    rate: float


@click.command(epilog="Example: foldproof exhaust --selector libmine.so --variants 3 --ints 2 --ptrs 2")
@click.option("--selector", required=True, help="The selector: a command, or the path of a library (.so).")
@click.option("--against", "--policy", "against", default="three-pass", show_default=True, help="Name or TOML file.")
@click.option("--variants", type=click.IntRange(min=1), default=3, show_default=True, help="In each capture.")
@click.option("--ints", type=click.IntRange(min=0), default=2, show_default=True, help="Int params of each variant.")
@click.option("--ptrs", type=click.IntRange(min=0), default=2, show_default=True, help="Pointer params.")
@click.option("--free-const", is_flag=True, help="Add a constant that a launch names or leaves free.")
@click.option("--options", is_flag=True, help="Add num_warps, which a launch pins or leaves open.")
@click.option("--workers", type=click.IntRange(min=1), help="Local processes; one a core by default.")
@click.option("--scheduler", default="", help="Dask scheduler (tcp://...) whose workers do the shards.")
@click.option("--timeout", type=Finite(min=0.01), default=TIMEOUT_S, show_default=True, help="Seconds an answer.")
@click.option("--memory", type=click.IntRange(min=0), default=MEMORY_MIB, show_default=True, help=MEMORY_HELP)
@click.option("--out", type=click.Path(path_type=Path), default=Path("foldproof-report"), show_default=True)
def exhaust(**chosen: Any) -> int:
    """Decide every capture and launch of one size, all orders of candidates, and compare with the reference.

    An int param is folded, runtime, div16 or nospec, a pointer div16 or not; an int arg is 1, a multiple of 16 or
    other, a pointer aligned or not. Exit 1 for a difference or a fault, 3 if the selector does not start.
    """
    policy, spec = load_policy(chosen["against"]), SelectorSpec(chosen["selector"], chosen["timeout"], chosen["memory"])
    names = ("variants", "ints", "ptrs", "free_const", "options")
    universe = Universe(**{name: chosen[name] for name in names})
    workers = chosen["workers"] or min(len(os.sched_getaffinity(0)), -(-universe.decisions // SHARD_DECISIONS))
    run = Run(spec, policy, universe, workers=workers, scheduler=chosen["scheduler"])
    began = perf_counter()
    try:
        with spec.open() as selector:
            # Said once, before any worker starts its own.
            say(f"{selector.name}: {universe.captures:,} captures x {universe.launch_count} launches")
            seen = selector_seen(spec.text, selector.name, selector.kinds)
        with recording(chosen["out"], started("exhaust", _command(chosen))) as to:
            to.emit(policy_seen(policy))
            to.emit(seen)
            folder = shards_folder(chosen["out"], run, selector.name)
            before = known(folder, run)
            resumed = sum(one.tally.decisions for one in before)
            if resumed:
                say(f"{resumed:,} of {universe.decisions:,} decisions were made by a run that was stopped: {folder}")
            with steps() as shown:
                shown.step("exhaust", universe.decisions)
                done = run_all(run, _ticker(shown, began, resumed), before, shard_keeper(folder))
                shown.close()
            record, files = _record(run, done, chosen, perf_counter() - began, resumed)
            record = _emit(to, record, done, run, files)
            to.render({"exhaust.json": json_lines(record, 2) + b"\n"})
            to.exit_code = record.exit_code
        forget(folder)
    except (SelectorError, NotRun) as problem:
        click.echo(f"foldproof: {problem.code}: {problem}", err=True)
        return EXIT_NOT_RUN
    _show(record, done, chosen)
    return record.exit_code


def _ticker(shown: Steps, began: float, resumed: int) -> Callable[[Tally], None]:
    def tick(tally: Tally) -> None:
        rate = (tally.decisions - resumed) / max(perf_counter() - began, 1e-9)
        said = f"{tally.decisions:,} decisions, {rate:,.0f}/s, {tally.disagreements:,} disagreements"
        shown.at(tally.decisions, said)

    return tick


def _record(
    run: Run, done: Exhausted, chosen: dict[str, Any], seconds: float, resumed: int
) -> tuple[ExhaustRecord, dict[str, bytes]]:
    tally = done.tally
    files = {f"cases/exhaust-{n}.json": _case_bytes(found, run) for n, found in enumerate(tally.findings)}
    kinds = {_kind(wanted, got): count for (wanted, got), count in sorted(tally.kinds.items())}
    wrong = bool(tally.disagreements or done.faults)
    size = {name: chosen[name] for name in ("variants", "ints", "ptrs", "free_const", "options")}
    record = ExhaustRecord(
        SCHEMA_VERSION,
        TOOL,
        _command(chosen),
        run.spec.text,
        run.policy.name,
        **size,
        captures=tally.captures,
        launches=run.universe.launch_count,
        decisions=tally.decisions,
        resumed=resumed,
        outcomes=dict(tally.outcomes),
        disagreements=tally.disagreements,
        kinds=kinds,
        files=tuple(files),
        faults=tuple(str(fault) for fault in done.faults),
        run_state="complete" if tally.is_complete else "partial",
        exit_code=EXIT_FOUND if wrong else 0,
        workers=run.workers,
        seconds=seconds,
        rate=(tally.decisions - resumed) / seconds,
    )
    return record, files


def _emit(to: Recorder, record: ExhaustRecord, done: Exhausted, run: Run, files: dict[str, bytes]) -> ExhaustRecord:
    """The cases and the campaign; the record with each case under the name that it was written by."""
    paths = []
    for (path, content), found in zip(files.items(), done.tally.findings, strict=True):
        ref = to.file(path, content)
        paths.append(ref.path)
        wanted, got = pick_text(found.expected), pick_text(found.got)
        words = ["foldproof", "fuzz", "--selector", record.selector, "--against", run.policy.name, "--replay", ref.path]
        said = Answered("exhaust", shlex.join(words), _kind(wanted, got), wanted, got)
        emit_case(to, run.policy, ref, content, said)
    size = f"{record.variants} variants x {record.ints} ints x {record.ptrs} pointers"
    size += ", a constant" * record.free_const + ", num_warps" * record.options
    to.emit(
        CampaignRan(
            stage="exhaust",
            policy=run.policy.name,
            policy_sha256=policy_digest(run.policy),
            seed="",
            cases=record.decisions,
            outcomes=record.outcomes,
            disagreements=record.disagreements,
            selector=record.selector,
            selector_files=selector_files(record.selector),
            scope=f"every capture and launch of {size}",
            faults=record.faults,
            state=record.run_state,
            seconds=round(record.seconds, 3),
            rate=round(record.rate, 1),
        )
    )
    return msgspec.structs.replace(record, files=tuple(paths))


def _kind(wanted: str, got: str) -> str:
    return "another variant" if wanted == got else f"{got} instead of {wanted}"


def _case_bytes(found: Finding, run: Run) -> bytes:
    why = f"expected {pick_text(found.expected)}, got {pick_text(found.got)}"
    expect = answered(found.case, run.policy)
    value = case_to(found.case, policy=run.policy.name, selector=run.spec.text, expect=expect, why=why)
    return msgspec.json.format(msgspec.json.encode([value]), indent=1) + b"\n"


def _command(chosen: dict[str, Any]) -> str:
    words = ["foldproof", "exhaust", "--selector", chosen["selector"], "--against", chosen["against"]]
    words += [f"--{name}={chosen[name]}" for name in ("variants", "ints", "ptrs")]
    words += [f"--{name.replace('_', '-')}" for name in ("free_const", "options") if chosen[name]]
    return shlex.join([*words, *into(chosen["out"])])


def _show(record: ExhaustRecord, done: Exhausted, chosen: dict[str, Any]) -> None:
    show_table(("the reference answers", "cases"), [(word, f"{count:,}") for word, count in record.outcomes.items()])
    if record.kinds:
        show_table(("the selector answers", "cases"), [(word, f"{count:,}") for word, count in record.kinds.items()])
    for fault in record.faults:
        say(f"fault: {fault}", style="red")
    words = ["foldproof", "fuzz", "--selector", chosen["selector"], "--against", chosen["against"]]
    replays = [shlex.join([*words, "--replay", str(chosen["out"] / file)]) for file in record.files]
    for replay, found in zip(replays, done.tally.findings, strict=True):
        say(f"\n{found}", style="red")
        say(f"  {replay}")
    said = f"{record.decisions:,} decisions"
    said += f", {record.resumed:,} of them of a stopped run; the rest" * bool(record.resumed)
    said += f" in {record.seconds:.1f} s ({record.rate:,.0f}/s, {record.workers} workers)"
    good = f"{said}: every one as {record.policy} decides"
    bad = f"{said}: {record.disagreements:,} otherwise than {record.policy} decides"
    say(bad if record.exit_code else good, style="bold red" if record.exit_code else "bold green")
    say(f"report: {chosen['out'] / 'exhaust.json'}")
    if record.exit_code:
        say(f"next: {next(iter(replays), record.command)}")
