"""`foldproof lint`: every fault of a capture."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import click
from foldproof.cli.following import after_lint
from foldproof.cli.release import say_json, schema_option
from foldproof.cli.ui import say, say_next, show_table
from foldproof.impl.policy import load_policy
from foldproof.release.findings import RULES, Finding, Severity, at_or_above
from foldproof.release.lint import LintResult, sarif
from foldproof.release.lint import lint as linted

EXAMPLE = """\b
Examples:
  foldproof lint CAPTURE
  foldproof lint CAPTURE --format sarif --ignore L201 --fail-on error"""


def _show_rules(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        rows = [(rule.id, rule.name, rule.severity, rule.says, rule.fix) for rule in RULES.values()]
        show_table(("id", "name", "severity", "what", "fix"), rows)
        context.exit()


@click.command(epilog=EXAMPLE)
@click.argument("capture", type=click.Path(path_type=Path))
@click.option("--policy", default="three-pass", show_default=True, help="The policy for shadowed variants (L301).")
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True)
@click.option("--select", multiple=True, metavar="RULE", help="Only these rules: id, beginning of ids (L5), or name.")
@click.option("--ignore", multiple=True, metavar="RULE", help="All but these rules.")
@click.option("--notes", is_flag=True, help="List notes too; by default they are counted.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note", "never"]),
    default="warning",
    show_default=True,
    help="Exit 1 on a finding this bad, or worse.",
)
@click.option("--rules", is_flag=True, is_eager=True, expose_value=False, callback=_show_rules, help="List the rules.")
@schema_option(LintResult)
def lint(  # noqa: PLR0913, PLR0917 (one parameter an option)
    capture: Path,
    policy: str,
    form: Literal["text", "json", "sarif"],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    notes: bool,
    fail_on: str,
) -> int:
    """List every fault of a capture: contradictions, open choices, variants that nothing reaches, wrong cubins.

    CAPTURE is a folder with an aot.json, or that file; its cubins are checked where they lie beside it, without a
    device. What the loader would refuse at the first fault is read on here. Exit 1 on findings.
    """
    result = linted(capture, load_policy(policy), select, ignore)
    if form == "text":
        notes = notes or any(name.startswith("L") for name in select)
        _show(result, notes)
    else:
        say_json(result if form == "json" else sarif(result))
    failed = at_or_above(result.findings, fail_on)
    if failed and form == "text":
        say_next(after_lint(str(capture), policy, fail_on, _listed(result, notes), ignore))
    return int(failed)


def _listed(result: LintResult, notes: bool) -> list[Finding]:
    return [f for f in result.findings if notes or f.severity != Severity.NOTE]


def _show(result: LintResult, notes: bool) -> None:
    shown = _listed(result, notes)
    if shown:
        rows = [(f.rule, f.severity, f.where, f.what) for f in shown]
        show_table(("rule", "severity", "where", "what"), rows)
        for rule in dict.fromkeys(f.rule for f in shown):
            say(f"{rule} {RULES[rule].says}: {RULES[rule].why}. Fix: {RULES[rule].fix}.")
    hidden = Counter(f.rule for f in result.findings if f.severity == Severity.NOTE) if not notes else Counter[str]()
    if hidden:
        told = ", ".join(f"{count} x {RULES[rule].name} ({rule})" for rule, count in hidden.items())
        say(f"notes: {told}; --notes lists them")
    counts = result.counts
    cubins = f"{result.cubins} cubins read" if result.cubins else "no cubins here, so none was checked"
    say(
        f"{result.variants} variants, {cubins}: {counts['error']} errors, {counts['warning']} warnings, "
        f"{counts['note']} notes",
        style="bold red" if counts["error"] else "bold yellow" if counts["warning"] else "bold green",
    )
