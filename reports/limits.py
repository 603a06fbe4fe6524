"""What a report does not show, in plain sentences: every renderer has these."""

from __future__ import annotations

from foldproof.reports.events import BytesJudged, CampaignRan, TheoremJudged
from foldproof.reports.view import Report

MEANINGS = (
    '"proved" holds within its scope: "unbounded" is every capture, any number of params and every launch.',
    "A campaign shows no absence: it saw no difference in the cases that it ran.",
    '"equal" by a device speaks of the input sets that were run, by symbolic replay of every input of its domain.',
)


def limits(report: Report) -> tuple[str, ...]:
    """What the words do not say, what ran in part, and what did not run. Names in it are as the user wrote them."""
    bounded = sum(e.verdict == "proved" and e.scope not in ("", "unbounded") for _, e in report.found.of(TheoremJudged))
    lines = list(MEANINGS)
    if bounded:
        lines.append(f"{bounded} theorems are proved in a bounded scope alone.")
    for what, kind in (("no theorem was judged", TheoremJudged), ("no campaign ran", CampaignRan)):
        if not any(True for _ in report.found.of(kind)):
            lines.append(f"Not run: {what}.")
    judges = [e for _, e in report.found.of(BytesJudged)]
    if not any(e.by == "device" for e in judges):
        lines.append("Not run: no byte verdict comes from a device.")
    lines += [f"The run on {e.device or e.by} of {e.date} is not complete." for e in judges if not e.complete]
    stale = sum(bool(fact.stale) for fact in report.found.facts)
    if stale:
        lines.append(f"{stale} records speak of something that has changed since: they count as owed.")
    lines += [
        f"The run {run.started.command} is {run.state}: what it wrote counts, the rest is missing."
        for run in report.found.runs
        if run.state != "complete"
    ]
    return tuple(lines)
