"""`foldproof diff`: what a release changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import click
from foldproof.cli.coverage import launch_text
from foldproof.cli.diff_bytes import diff_judge
from foldproof.cli.following import after_diff
from foldproof.cli.numbers import Finite
from foldproof.cli.release import say_json, schema_option, show_some
from foldproof.cli.ui import say, say_next, show_table, steps
from foldproof.impl.capture import load_capture
from foldproof.impl.cases import case_from
from foldproof.impl.explain import case_table
from foldproof.impl.external.answers import SelectorError
from foldproof.impl.policy import load_policy
from foldproof.impl.select import Refused
from foldproof.release.capture_diff import CaptureDiff, capture_diff, digests
from foldproof.release.diff import (
    DiffResult,
    RegionRow,
    derived,
    kind_of_both,
    of_captures,
    of_policies,
    of_selectors,
    opened,
)
from foldproof.release.launches import read_launches
from foldproof.release.policy_diff import policy_diff
from foldproof.release.selector_diff import selector_diff

EXIT_DIFFERENT, EXIT_NOT_RUN = 1, 3
EXAMPLE = """\b
Examples:
  foldproof diff two-pass three-pass
  foldproof diff old-capture new-capture --launches trace.ndjson
  foldproof diff ./selector-1.0 ./selector-1.1 --seconds 60"""


@click.command(epilog=EXAMPLE)
@click.argument("old")
@click.argument("new")
@click.option("--launches", type=click.Path(path_type=Path), help="Captures: launches (as coverage reads them).")
@click.option("--policy", default="three-pass", show_default=True, help="Captures: the policy that selects.")
@click.option(
    "--receipts", type=click.Path(path_type=Path), multiple=True, help="Captures: a folder with receipts of devices."
)
@click.option(
    "--bits-seconds",
    type=Finite(min=0),
    default=60.0,
    show_default=True,
    help="Captures: symbolic replay, where PTX is at hand and no receipt speaks.",
)
@click.option("--seconds", type=Finite(min=0), default=10.0, show_default=True, help="Selectors: campaign.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Selectors: of the campaign.")
@click.option("--timeout", type=Finite(min=0.01), default=5.0, show_default=True, help="Selectors: seconds.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@schema_option(DiffResult)
def diff(  # noqa: PLR0913, PLR0917 (one parameter an option)
    old: str,
    new: str,
    launches: Path | None,
    policy: str,
    receipts: tuple[Path, ...],
    bits_seconds: float,
    seconds: float,
    seed: int,
    timeout: float,
    form: Literal["text", "json"],
) -> int:
    """Show what changes from OLD to NEW: two policies, two selectors (a policy may stand for one), or two captures.

    Policies are compared by proof: a minimal list of regions, each with its smallest example. Selectors by every
    case of small universes and a campaign. Captures by variant, by launch, and by a proof for each function. Exit 0
    for no difference, 1 for differences, 3 if a selector does not start.
    """
    kind = kind_of_both(old, new)
    if kind == "policy":
        one, other = load_policy(old), load_policy(new)
        result = of_policies(one, other, policy_diff(one, other))
    elif kind == "selector":
        try:
            with opened(old, timeout) as before, opened(new, timeout) as after, steps() as shown:
                shown.step("cases", 1)
                found = selector_diff(before, after, seconds, seed, lambda done: shown.at(0, f"{done} cases"))
        except SelectorError as problem:
            click.echo(f"foldproof: {problem.code}: {problem}", err=True)
            return EXIT_NOT_RUN
        result = of_selectors(old, new, found)
    else:
        result = _captures(old, new, launches, policy, receipts, bits_seconds)
    if form == "json":
        say_json(result)
    else:
        _show(result)
        if result.different:
            say_next(after_diff(result, old, new, policy))
    return EXIT_DIFFERENT if result.different else 0


def _captures(  # noqa: PLR0913, PLR0917 (the whole of what is asked)
    old: str, new: str, launches: Path | None, policy: str, receipts: tuple[Path, ...], seconds: float
) -> DiffResult:
    one, other = load_capture(old), load_capture(new)
    given = read_launches(launches, one) if launches is not None else derived(one, other)
    sides = (one, digests(Path(old), one)), (other, digests(Path(new), other))
    named = "" if launches is None else str(launches)
    with diff_judge((Path(old), one), (Path(new), other), receipts, seconds, named) as judge:
        return of_captures(old, new, capture_diff(*sides, given, load_policy(policy), judge))


def _show(result: DiffResult) -> None:
    for proof in dict.fromkeys(result.proofs):
        if proof.verdict == "proved" and proof.old == result.old:
            say(f"{proof.theorem} proved ({proof.scope}): equal on everything {proof.old} served: {proof.sentence}")
        elif proof.old == result.old:
            say(f"{proof.theorem} {proof.verdict}: {proof.new} does not keep all that {proof.old} selected")
    for region in result.regions:
        _show_region(result, region)
    for line in result.also:
        say(f"\nbesides selecting: {line}")
    if result.compared is not None:
        done = result.compared
        say(
            f"\n{done.exhaustive_cases} cases exhausted ({'; '.join(done.exhausted)}), {done.campaign_cases} more from "
            f"seed {done.seed}: {done.differences} differ"
        )
    if result.captures is not None:
        _show_captures(result.captures)
    _show_verdict(result)


def _show_verdict(result: DiffResult) -> None:
    if result.different:
        what = f"{len(result.regions)} regions" if result.regions else "differences"
        tail = f" (whole in {result.scope})" if result.kind == "policy" else ""
        say(f"{result.old} and {result.new}: {what}{tail}", style="bold red")
    else:
        say(f"{result.old} and {result.new}: no difference in {result.scope}", style="bold green")


def _show_region(result: DiffResult, region: RegionRow) -> None:
    changes = ", ".join(f"{was} to {now}" for was, now in region.changes)
    say(f"\n{region.id}: {region.says}", style="bold")
    say(f"  from {result.old} to {result.new}: {changes}")
    for fact in region.always:
        say(f"  always: {fact}")
    case = case_from(region.example)
    show_table(*case_table(case, Refused("", "")))
    say(f"  {result.old}: {region.old_answer}\n  {result.new}: {region.new_answer}")


def _show_captures(found: CaptureDiff) -> None:
    for title, variants in (("added", found.added), ("removed", found.removed)):
        show_some(("function", "hash", "what"), [(r.fn, r.hash, r.says) for r in variants], title)
    code = [(c.fn, c.old, c.new, ", ".join(c.changed)) for c in found.code_only]
    show_some(("function", "old", "new", "changed"), code, "changed in code only")
    if found.reordered:
        say(f"other candidate order: {', '.join(found.reordered)}")
    changed = [(c.fn, c.launches, c.old, c.new, str(c.bytes), launch_text(c.launch)) for c in found.launches]
    show_some(("function", "launches", "old", "new", "bytes", "launch"), changed, "launches whose answer changes", 12)
    if found.launches:
        counts = Counter(str(c.bytes) for c in found.launches)
        say(f"their bytes: {'; '.join(f'{number} {what}' for what, number in counts.most_common())}")
    for settle in dict.fromkeys(c.bytes.settle for c in found.launches if c.bytes.settle):
        say(f"to settle what is owed: {settle}")
    proved = [f for f in found.functions if f.proved and not f.untouched]
    if proved:
        names = ", ".join(f.fn for f in proved)
        say(f"proved: every launch that the old capture serves gets the same variant, for {names}", style="green")
    rows = [
        (c.fn, c.old, c.new or "no variant", c.new_ends, launch_text(c.launch))
        for f in found.functions
        for c in f.changes
    ]
    show_some(("function", "old", "new", "ends", "for example"), rows, "served by another variant (by proof)", 20)
    same = sum(f.untouched for f in found.functions)
    say(f"{same} of {len(found.functions)} functions untouched; {found.launch_classes} launch classes compared")
