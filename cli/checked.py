"""What `foldproof check` shows on a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from foldproof.cli.ui import console, say, show_table
from foldproof.reports.events import BytesJudged, CampaignRan, CaptureSeen, Owed, TheoremJudged
from foldproof.reports.view import Report


def show_check(report: Report, out: Path, policy: str, code: int) -> None:
    """The matrix, what is broken, what else was seen, what is owed, the verdict, and the command to type next."""
    theorems = [event for _, event in report.found.of(TheoremJudged) if event.policy == report.policy]
    broken = {e.counterexample.path for e in theorems if e.promised and e.verdict == "refuted" and e.counterexample}
    _matrix(theorems, report)
    _examples(report, broken, out, policy)
    _seen(theorems, report, out)
    show_evidence(report)
    console().print()
    say(headline(theorems, report), style="bold green" if code == 0 else "bold red")
    say(f"report: {out / 'receipt.md'}, {out / 'report.html'}")
    following = _replay(policy, out / min(broken)) if broken else f"foldproof verify-receipt {shlex.quote(str(out))}"
    say(f"next: {following}")


def _matrix(theorems: Sequence[TheoremJudged], report: Report) -> None:
    rows = [
        (
            e.theorem,
            e.name + (f" (against {e.old})" if e.old else ""),
            e.verdict,
            "promised" if e.promised else "",
            e.scope,
        )
        for e in theorems
    ]
    names = [seen.name for _, seen in report.found.of(CaptureSeen)]
    show_table(("id", "theorem", "verdict", "", "scope"), rows, title=f"{report.policy} on {names[-1]}")


def _examples(report: Report, broken: Collection[str], out: Path, policy: str) -> None:
    for _, case in report.cases():
        if case.file.path in broken or case.stage == "campaign":
            say(f"\n{case.title}: {case.why}", style="red")
            show_table(case.columns, case.rows)
            say(f"  {_replay(policy, out / case.file.path)}")


def _seen(theorems: Sequence[TheoremJudged], report: Report, out: Path) -> None:
    for _, campaign in report.found.of(CampaignRan):
        if campaign.stage == "check":
            said = f"campaign: {campaign.cases} cases from seed {campaign.seed}, "
            say(f"{said}{campaign.disagreements} disagreements between reference and model")
    for _, seen in report.found.of(CaptureSeen):
        if seen.cubins_missing:
            say(f"capture: {seen.cubins_missing} cubins are not here; selection needs none")
    if others := [e.theorem for e in theorems if not e.promised and e.verdict == "refuted"]:
        say(f"findings, not promised: {', '.join(others)} (see {out / 'receipt.md'})")


def show_evidence(report: Report) -> None:
    """The device runs that speak of the capture at hand, the stale ones, and what the stages themselves call owed."""
    for fact, event in report.found.of(BytesJudged):
        words = event.counts.get("every bit pattern", {})
        listed = ", ".join(f"{number} {word}" for word, number in words.items())
        if fact.stale:
            say(f"evidence: {event.what} on {event.device}, {event.date}: stale, {fact.stale}; owed", style="yellow")
        elif words:
            say(f"evidence: bytes on {event.device}, {event.date}: of {sum(words.values())} pairs {listed}")
    for _, row in report.found.of(Owed):
        say(f"owed: {row.what} ({row.settle})")


def _replay(policy: str, file: Path) -> str:
    return f"foldproof select --policy {shlex.quote(policy)} --cases {shlex.quote(str(file))}"


def headline(theorems: Sequence[TheoremJudged], report: Report) -> str:
    """The verdict of the run in one sentence."""
    broken = [e.theorem for e in theorems if e.promised and e.verdict == "refuted"]
    undecided = [e.theorem for e in theorems if e.verdict == "undecided"]
    differing = sum(e.disagreements for _, e in report.found.of(CampaignRan) if e.stage == "check")
    if broken:
        return f"{report.policy} breaks {len(broken)} of its promises: {', '.join(broken)}."
    if differing:
        return f"Model and reference disagree on {differing} generated cases."
    if undecided:
        return f"{len(undecided)} theorems are undecided: {', '.join(undecided)}."
    proved = sum(e.promised and e.verdict == "proved" for e in theorems)
    return f"{report.policy} keeps every promise: {proved} proved."
