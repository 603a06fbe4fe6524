"""`foldproof fuzz`: a differential campaign of the reference against a selector."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from foldproof.cli.campaign_events import emit_fuzz, noted
from foldproof.cli.digests import capture_seen, policy_seen, selector_seen
from foldproof.cli.hunt import examine, hunt_mutants, show_functions
from foldproof.cli.numbers import Finite
from foldproof.cli.recording import into, started, under
from foldproof.cli.remembering import keeper, remembered
from foldproof.cli.ui import Steps, console, say, say_next, show_table, steps
from foldproof.gpu.replay.receipts import capture_id
from foldproof.impl.capture import load_capture
from foldproof.impl.external.answers import Selector, SelectorError
from foldproof.impl.external.child import MEMORY_MIB
from foldproof.impl.policy import Policy, load_policy
from foldproof.props.corpus import Corpus, campaign_key, load_corpus, read_cases_strictly
from foldproof.props.crew import NotRun
from foldproof.props.drive import TIMEOUT_S, SelectorSpec
from foldproof.props.example_patch import example_patch
from foldproof.props.fuzz_record import FuzzRecord, verdict_line
from foldproof.props.fuzz_result import Campaign, to_record
from foldproof.props.fuzz_run import Plan, run
from foldproof.props.mutation import SECONDS as MUTANT_SECONDS
from foldproof.props.pin import recheck
from foldproof.props.rounds import Source
from foldproof.props.selector_campaign import Part
from foldproof.reports.recorder import recording
from foldproof.reports.write import write_folder

EXIT_FOUND, EXIT_NOT_RUN = 1, 3
DEFAULT_SECONDS = 10.0
SHOWN_CELLS = 6
MEMORY_HELP = "Data memory of the selector in MiB; 0 for any."
_PATH = click.Path(path_type=Path)
OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--selector", default="", help="The selector: a command, or the path of a library (.so)."),
    click.option("--against", default="three-pass", show_default=True, help="A policy of the zoo, or a TOML file."),
    click.option("--seconds", type=Finite(min=0), help="Time budget; 10 unless --rounds says how much."),
    click.option("--rounds", type=click.IntRange(min=1), help="Rounds to run: the same work each time."),
    click.option("--round", "only", type=click.IntRange(min=0), help="Run this one round."),
    click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of the campaign."),
    click.option("--capture", type=_PATH, help="Mutate launches derived from this capture, too."),
    click.option("--out", type=_PATH, default=Path("foldproof-report"), show_default=True, help="Report folder."),
    click.option("--corpus", type=_PATH, help="Folder that the campaign remembers by; made if absent."),
    click.option("--replay", type=_PATH, help="Ask for the cases of this file, and nothing else."),
    click.option("-x", "--exitfirst", is_flag=True, help="Stop at the first finding."),
    click.option("--example", metavar="FILE::TEST", help="Write example.patch: the finding as @example of the test."),
    click.option("--functions", is_flag=True, help="Say what each function of --capture leaves open, by policy."),
    click.option("--mutants", is_flag=True, help="Hunt the mutants of --against instead of a selector."),
    click.option("--timeout", type=Finite(min=0.01), default=TIMEOUT_S, show_default=True, help="Seconds an answer."),
    click.option("--memory", type=click.IntRange(min=0), default=MEMORY_MIB, show_default=True, help=MEMORY_HELP),
    click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Local processes."),
    click.option("--scheduler", default="", help="Dask scheduler (tcp://...) whose workers do the rounds."),
)


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options, in the order of the help text."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command(epilog="Example: foldproof fuzz --selector ./my-selector --seconds 60 --corpus corpus")
@options
def fuzz(**chosen: Any) -> int:
    """Put generated captures and launches to a selector, and compare each answer with the reference.

    The selector speaks foldproof-selector/1, or is a library with the C interface (docs/reference/protocol.md).
    Writes fuzz.json and a case file for each kind of finding below --out. Exit 1 for a difference or a fault,
    3 if the selector or the scheduler does not start.
    """
    policy, spec = load_policy(chosen["against"]), SelectorSpec(chosen["selector"], chosen["timeout"], chosen["memory"])
    if chosen["functions"] and not chosen["capture"]:
        raise click.UsageError("--functions needs --capture")
    if chosen["mutants"]:
        each = MUTANT_SECONDS if chosen["seconds"] is None else chosen["seconds"]
        return hunt_mutants(policy, chosen["against"], chosen["seed"], each, chosen["out"])
    if not chosen["selector"]:
        raise click.UsageError("name the selector with --selector")
    try:
        with spec.open() as selector:
            if chosen["replay"] is not None:
                return _replay(selector, policy, chosen["against"], chosen["replay"])
            return _campaign(spec, selector, policy, chosen)
    except (SelectorError, NotRun) as problem:
        click.echo(f"foldproof: {problem.code}: {problem}", err=True)
        return EXIT_NOT_RUN


def _replay(selector: Selector, policy: Policy, named: str, file: Path) -> int:
    checked = recheck(selector, policy, [(case.name, case) for case in read_cases_strictly(file)])
    rows = [(name, seen.expected, seen.got, seen.word) for name, seen in checked]
    show_table(("case", policy.name, selector.name, "difference"), rows)
    if not any(seen.kind for _, seen in checked):
        return 0
    say_next(["foldproof", "explain", str(file), *under(named)])
    return EXIT_FOUND


def _campaign(spec: SelectorSpec, selector: Selector, policy: Policy, chosen: dict[str, Any]) -> int:
    path, folder = chosen["capture"], chosen["corpus"]
    capture = load_capture(path) if path else None
    corpus = load_corpus(folder) if folder else Corpus()
    key = campaign_key(policy, chosen["seed"], selector.kinds, capture)
    reached = corpus.reached(key)
    # What failed once is asked first, then a case for each cell that was ever visited.
    cases = [*corpus.failures.items(), *((" / ".join(cell), case) for cell, case in corpus.cells.items())]
    again = [(*pair, seen) for pair, (_, seen) in zip(cases, recheck(selector, policy, cases), strict=True)]
    stop_now = chosen["exitfirst"] and any(seen.kind for _, _, seen in again)
    seconds, first, rounds = _budget(chosen, reached.next_round, stop_now)
    who = chosen["workers"], chosen["scheduler"]
    plan = Plan(spec, policy, chosen["seed"], capture, first, rounds, seconds, chosen["exitfirst"], *who)
    curve: list[tuple[int, int]] = []
    keep = keeper(folder, corpus, key, plan, Source.of(selector.kinds, capture)) if folder else lambda _: None
    command, out = _command(chosen), chosen["out"]
    with recording(out, started("fuzz", command, plan.seed)) as to:
        digests = capture_id(path) if path else None
        if capture and digests:
            to.emit(capture_seen(str(path), capture, digests))
        to.emit(policy_seen(policy))
        to.emit(selector_seen(spec.text, selector.name, selector.kinds))
        with steps() as shown:
            done = run(plan, selector, _ticker(shown, plan, curve, keep))
            shown.close()
        selector.close()
        stray = [*done.part.stray, *selector.faults]
        words = chosen["against"], str(path) if path else None, command, str(out)
        record, files = to_record(Campaign(plan, done, selector.name, selector.kinds, reached, again, *words, stray))
        sha256 = digests.aot_sha256 if digests else None
        record = emit_fuzz(to, record, files, policy, chosen["against"], curve, sha256)
        if chosen["example"] and done.findings:
            files["example.patch"] = example_patch(chosen["example"], done.findings[0].case).encode()
        functions, more = examine(capture) if capture and chosen["functions"] else ((), {})
        patch = {name: content for name, content in files.items() if name == "example.patch"}
        to.render(patch | more | {"fuzz.json": record.as_json()})
        to.exit_code = record.exit_code
    if folder:
        write_folder(folder, remembered(corpus, key, plan, done))
    if functions:
        show_functions(functions)
    _show(record, chosen["out"], "example.patch" in files)
    return record.exit_code


def _budget(chosen: dict[str, Any], reached: int, stop_now: bool) -> tuple[float | None, int, int | None]:
    """Seconds, the first round and the number of rounds."""
    if stop_now:
        return None, reached, 0
    if chosen["only"] is not None:
        return None, chosen["only"], 1
    if chosen["rounds"] is None and chosen["seconds"] is None:
        return DEFAULT_SECONDS, reached, None
    return chosen["seconds"], reached, chosen["rounds"]


def _ticker(
    shown: Steps, plan: Plan, curve: list[tuple[int, int]], keep: Callable[[Part], None]
) -> Callable[[float, Part], None]:
    shown.step("fuzz", plan.seconds if plan.seconds is not None else plan.rounds or 1)

    def tick(gone: float, part: Part) -> None:
        noted(curve, (part.launches, len(part.coverage.seen)))
        kinds = f", {len(part.kinds)} kinds of finding" if part.kinds else ""
        rate = f"{part.launches:,} launches, {part.launches / max(gone, 1e-9):,.0f}/s"
        shown.at(gone if plan.seconds is not None else part.rounds, rate + kinds)
        keep(part)

    return tick


def _command(chosen: dict[str, Any]) -> str:
    words = ["foldproof", "fuzz"]
    for name in ("selector", "against", "seed", "seconds", "rounds", "only", "capture", "corpus"):
        value = chosen[name]
        if value is not None:
            option = {"only": "round"}.get(name, name)
            words += [f"--{option}", f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join([*words, *(["-x"] if chosen["exitfirst"] else []), *into(chosen["out"])])


def _show(record: FuzzRecord, out: Path, patched: bool) -> None:
    covered = record.coverage
    title = f"visited: {covered.visited} of {covered.possible} (class of arg, place, ending)"
    show_table(("class of arg", *covered.endings), covered.rows, title=title)
    if covered.remaining:
        some = "; ".join(", ".join(cell) for cell in covered.remaining[:SHOWN_CELLS])
        say(f"not visited: {some}" + (" ..." if len(covered.remaining) > SHOWN_CELLS else ""))
    ran = f"{record.launches:,} launches in {record.rounds:,} rounds from round {record.first_round}"
    say(f"{ran}, {record.rate:,.0f}/s")
    if record.chance_of_new is not None:
        say(f"chance that the next round visits something new: about {record.chance_of_new:.2g}")
    if record.chance_of_failure is not None:
        say(f"chance that one more round shows a difference: below {record.chance_of_failure:.2g} (95 % confidence)")
    if record.unasked:
        say(f"{record.unasked:,} launches were not asked: of kinds that the selector does not know, or after faults")
    for finding in record.findings:
        _show_finding(finding)
    for fault in record.stray_faults:
        say(f"\nfault that belongs to no launch: {fault}", style="red")
    console().print()
    say(verdict_line(record), style="bold red" if record.exit_code else "bold green")
    say(f"report: {out / 'fuzz.json'}" + (f", {out / 'example.patch'}" if patched else ""))
    if record.exit_code:
        say(f"next: {record.findings[0].command if record.findings else record.command}")


def _show_finding(finding: Any) -> None:
    met = "" if finding.seconds is None else f", first after {finding.seconds:.2f} s"
    how_often = "known to the corpus" if finding.known else f"{finding.launches:,} launches{met}"
    say(f"\n{finding.kind} ({how_often})", style="red")
    size = f"{finding.variants} variants x {finding.args} args"
    say(f"  reference: {finding.expected}\n  selector:  {finding.got}\n  smallest:  {size}, {finding.file}")
    if not finding.reproduced:
        say("  not again when asked alone: the selector depends on more than the launch and its capture")
    say(f"  {finding.command}")
