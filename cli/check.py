"""`foldproof check`: load, prove, fuzz, report."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from foldproof.cli.at_hand import of_check
from foldproof.cli.checked import show_check
from foldproof.cli.digests import policy_digest, policy_seen
from foldproof.cli.emitting import emit_campaign, emit_proofs, emit_receipt
from foldproof.cli.evidence import device_verdicts, receipt_files
from foldproof.cli.numbers import Finite
from foldproof.cli.recording import into, started
from foldproof.cli.rendering import from_here, render_into, rendered
from foldproof.cli.stages import examine_launches, exit_code, load, owed, prove
from foldproof.cli.ui import steps
from foldproof.impl.policy import load_policy
from foldproof.props.campaign import run as run_campaign
from foldproof.reports.events import LaunchesExamined
from foldproof.reports.picks import pick_bytes
from foldproof.reports.recorder import recording

DEFAULT_SECONDS = 10.0
FORMATS = ("receipt", "summary", "html", "json", "cases")


@click.command(epilog="Example: foldproof check CAPTURE --policy single-guard --seconds 5 --seed 1 --out report")
@click.argument("capture", required=False, type=click.Path(path_type=Path))
@click.option("--policy", default="three-pass", show_default=True, help="A policy of the zoo, or a TOML file.")
@click.option(
    "--launches", type=click.Path(path_type=Path), help="Launches to decide; derived from CAPTURE by default."
)
@click.option("--seconds", type=Finite(min=0), default=DEFAULT_SECONDS, show_default=True, help="Campaign budget.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the campaign.")
@click.option("--receipts", type=click.Path(path_type=Path), help="A folder with receipts of device runs.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("foldproof-report"), show_default=True)
def check(  # noqa: PLR0913, PLR0917 (one parameter an option)
    capture: Path | None,
    policy: str,
    launches: Path | None,
    seconds: float,
    seed: int,
    receipts: Path | None,
    out: Path,
) -> int:
    """Say for each theorem whether the policy keeps it, with the smallest counterexample where it does not.

    CAPTURE is a folder with an aot.json, or that file; without it, the bundled capture is checked. Writes evidence
    records, SMT-LIB scripts and counterexamples below --out, and from them receipt.md, summary.md, report.html,
    result.json and cases.ndjson.gz; foldproof report renders them again, and in further formats.
    """
    rules = load_policy(policy)
    subject = load(capture, launches)
    command = shlex.join(
        ["foldproof", "check", *([str(capture)] if capture else []), "--policy", policy]
        + (["--launches", str(launches)] if launches else [])
        + ["--seconds", f"{seconds:g}", "--seed", str(seed), *into(out)]
    )
    device = list(receipt_files(subject.seen.sha256, *([receipts] if receipts else [])))
    with recording(out, started("check", command, seed)) as to, steps() as shown:
        to.emit(subject.seen)
        to.emit(policy_seen(rules))
        proofs = prove(rules, shown)
        emit_proofs(to, proofs.cells, proofs.lemmas, {rules.name: (rules, policy)})
        shown.step("fuzz", seconds)
        campaign = run_campaign(rules, seconds, seed, lambda gone, done: shown.at(gone, f"{done} cases"))
        shown.close(f"{campaign.cases} cases")
        emit_campaign(to, campaign, rules, policy)
        examined = examine_launches(subject, rules, shown)
        to.emit(
            LaunchesExamined(
                source=subject.launches_from,
                capture=subject.seen.name,
                capture_sha256=subject.seen.sha256,
                policy=rules.name,
                policy_sha256=policy_digest(rules),
                rows=examined.rows,
                picks=to.file("picks/launches.ndjson.gz", pick_bytes(examined.picks)),
            )
        )
        for one in device:
            emit_receipt(to, one.receipt, (one.name, one.content))
        settled = device_verdicts(subject.path, [one.receipt for one in device])
        for row in owed(subject, settled, from_here(out)):
            to.emit(row)
        to.exit_code = exit_code(proofs, campaign)
    report = rendered(out, of_check(subject, rules, policy))
    render_into(out, report, FORMATS, command)
    show_check(report, out, policy, to.exit_code)
    return to.exit_code
