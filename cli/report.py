"""`foldproof report`: obligations against evidence, and the files for people and machines."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from foldproof.cli.at_hand import Scene, of_config, of_evidence
from foldproof.cli.checked import show_evidence
from foldproof.cli.comparing import against
from foldproof.cli.rendering import from_here, render_into, rendered
from foldproof.cli.ui import console, say, show_table
from foldproof.impl.errors import FoldproofError
from foldproof.reports.changes import Comparison
from foldproof.reports.obligations import FILE, FORMATS, load_config
from foldproof.reports.store import is_store, read
from foldproof.reports.view import Report

SHOWN = 25
EXAMPLE = """\b
Examples:
  foldproof report
  foldproof report foldproof-report --formats receipt,junit,sarif --out ci
  foldproof report --config foldproof.toml --baseline last-release/foldproof-report"""


def _formats(_: object, __: object, text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if word not in FORMATS:
            raise click.BadParameter(f"{word!r} is no format; there are {', '.join(FORMATS)}")
    return words


@click.command(epilog=EXAMPLE)
@click.argument("evidence", type=click.Path(path_type=Path), default=Path("foldproof-report"))
@click.option("--formats", callback=_formats, metavar="A,B", help=f"Of {', '.join(FORMATS)}; by default all.")
@click.option("--out", type=click.Path(path_type=Path), help="Where the files go; by default into EVIDENCE.")
@click.option(
    "--config", type=click.Path(path_type=Path), help="What is owed; by default foldproof.toml, if it is here."
)
@click.option("--baseline", type=click.Path(path_type=Path), help="Evidence of the last release: show what changed.")
@click.option("--annotations", type=click.Choice(["github"]), help="Print workflow commands for what fails or is owed.")
def report(  # noqa: PLR0913, PLR0917 (one parameter an option)
    evidence: Path,
    formats: tuple[str, ...] | None,
    out: Path | None,
    config: Path | None,
    baseline: Path | None,
    annotations: str | None,
) -> int:
    """Hold the records in EVIDENCE against what a release owes, and write the report.

    Without a foldproof.toml the obligations are those of the runs themselves: the policy's promises, their campaigns
    and captures. Exit 1 if one fails or a record is damaged, 3 if one is owed.
    """
    if not is_store(evidence):
        raise FoldproofError("holds no evidence", where=str(evidence), fix="run foldproof check first")
    scene, asked = _scene(evidence, config)
    made = rendered(evidence, scene)
    if baseline is not None:
        made = against(made, evidence, baseline)
    words = ["foldproof", "report", str(evidence), *(["--config", str(config)] if config else [])]
    words += ["--baseline", str(baseline)] if baseline else []
    files = render_into(evidence, made, formats or asked, shlex.join(words), out)
    if annotations:
        from foldproof.reports.render.annotations import annotations as lines  # noqa: PLC0415 (for CI alone)

        click.echo(lines(made, from_here(evidence)), nl=False)
    else:
        _show(made)
    target = out or evidence
    shown = [file for file in files if not file.startswith("tables/")]
    say(
        f"report: {', '.join(str(target / file) for file in shown)}" + (f", {target}/tables/" if files != shown else "")
    )
    _next(made)
    return made.exit_code


def _scene(evidence: Path, config: Path | None) -> tuple[Scene, tuple[str, ...]]:
    file = config or Path(FILE)
    if config is None and not file.is_file():
        return of_evidence(read(evidence)[0]), FORMATS
    stated = load_config(file)
    return of_config(stated, file.parent), stated.report.formats


def _show(made: Report) -> None:
    rows = [(row.what, row.verdict, row.observed, row.date) for row in made.rows]
    show_table(("obligation", "verdict", "observed", "date"), rows)
    if made.compared is not None:
        _show_changes(made.compared)
    for damage in made.damaged:
        say(f"damaged: {damage.file}: {damage.why}", style="red")
    show_evidence(made)
    for row in made.open:
        say(f"owed: {row.what}: {row.observed} ({row.settle})", style="yellow" if row.required else "")
    console().print()
    say(made.headline, style="bold green" if made.exit_code == 0 else "bold red")


def _show_changes(compared: Comparison) -> None:
    rows = [(c.what, c.subject, c.old, c.new) for c in compared.changes[:SHOWN]]
    show_table(("what", "subject", "was", "is"), rows, title=f"{compared.old} -> {compared.new}")
    if len(compared.changes) > SHOWN:
        say(f"{len(compared.changes) - SHOWN:,} more: tables/changes.csv")
    say(f"{len(compared.changes):,} changes; {compared.moved:,} of {compared.launches:,} launches moved")
    for line in compared.unmeasured:
        say(f"not compared: {line}")


def _next(made: Report) -> None:
    for row in (*made.failing, *(row for row in made.open if row.required)):
        if row.settle:
            say(f"next: {row.settle}")
            return
