"""`foldproof check`: load, prove, fuzz, report."""

from __future__ import annotations

import shlex
from pathlib import Path
from time import perf_counter

import click
from foldproof.cli.evidence import device_verdicts, evidence, receipts
from foldproof.cli.stages import Findings, examine_launches, load, owed, prove, to_result
from foldproof.cli.ui import console, say, show_table, steps
from foldproof.impl.policy import load_policy
from foldproof.props.campaign import run as run_campaign
from foldproof.reports.markdown import headline, report
from foldproof.reports.record import Result, findings
from foldproof.reports.write import write_folder

DEFAULT_SECONDS = 10.0


@click.command(epilog="Example: foldproof check CAPTURE --policy single-guard --seconds 5 --seed 1 --out report")
@click.argument("capture", required=False, type=click.Path(path_type=Path))
@click.option("--policy", default="three-pass", show_default=True, help="A policy of the zoo, or a TOML file.")
@click.option(
    "--launches", type=click.Path(path_type=Path), help="Launches to decide; derived from CAPTURE by default."
)
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=DEFAULT_SECONDS, show_default=True, help="Campaign budget."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the campaign.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("foldproof-report"), show_default=True)
def check(  # noqa: PLR0913, PLR0917 (one parameter an option)
    capture: Path | None, policy: str, launches: Path | None, seconds: float, seed: int, out: Path
) -> int:
    """Say for each theorem whether the policy keeps it, with the smallest counterexample where it does not.

    CAPTURE is a folder with an aot.json, or that file; without it, the bundled capture is checked. Writes
    report.md, result.json and a case file for each counterexample below --out.
    """
    started = perf_counter()
    rules = load_policy(policy)
    subject = load(capture, launches)
    write_folder(out, {})  # a folder that cannot be written is told before the work, not after
    with steps() as shown:
        proofs = prove(rules, shown)
        shown.step("fuzz", seconds)
        campaign = run_campaign(rules, seconds, seed, lambda gone, done: shown.at(gone, f"{done} cases"))
        shown.close(f"{campaign.cases} cases")
        rows = examine_launches(subject, rules, shown)
    command = shlex.join(
        ["foldproof", "check", *([str(capture)] if capture else []), "--policy", policy]
        + (["--launches", str(launches)] if launches else [])
        + ["--seconds", f"{seconds:g}", "--seed", str(seed)]
    )
    shipped = receipts()
    settled = device_verdicts(subject.path, shipped)
    found = Findings(subject, rules, proofs, campaign, rows, evidence(subject.path, shipped), owed(subject, settled))
    result, files = to_result(found, command, seed, perf_counter() - started)
    write_folder(out, files | {"report.md": report(result).encode(), "result.json": result.as_json()})
    _show(result, found, out)
    return result.exit_code


def _show(result: Result, found: Findings, out: Path) -> None:
    rows = [
        (
            r.theorem,
            r.name + (f" (against {r.old})" if r.old else ""),
            r.verdict,
            "promised" if r.promised else "",
            r.scope,
        )
        for r in result.theorems
    ]
    show_table(("id", "theorem", "verdict", "", "scope"), rows, title=f"{result.policy} on {result.capture.name}")
    shown = [e for e in result.counterexamples if any(r.promised and r.theorem == e.theorem for r in result.theorems)]
    for example in shown:
        say(f"\n{example.theorem}: {example.why}", style="red")
        show_table(example.columns, example.rows)
        say(f"  foldproof select --policy {example.policy} --cases {out / example.file}")
    if result.campaign:
        say(
            f"campaign: {result.campaign.cases} cases from seed {result.seed}, "
            f"{result.campaign.disagreements} disagreements between reference and model"
        )
    if result.capture.cubins_missing:
        say(f"capture: {result.capture.cubins_missing} cubins are not here; selection needs none")
    if others := findings(result):
        say(f"findings, not promised: {', '.join(r.theorem for r in others)} (see {out / 'report.md'})")
    for shown_by in result.evidence:
        if shown_by.counts:
            words = shown_by.counts["every bit pattern"]
            listed = ", ".join(f"{number} {word}" for word, number in words.items())
            say(f"evidence: bytes on {shown_by.device}, {shown_by.date}: of {sum(words.values())} pairs {listed}")
    for row in result.owed:
        say(f"owed: {row.what} ({row.settle})")
    console().print()
    say(headline(result), style="bold green" if result.exit_code == 0 else "bold red")
    say(f"report: {out / 'report.md'}")
    if found.next_command(out):
        say(f"next: {found.next_command(out)}")
