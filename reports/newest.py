"""Of many runs, the facts that count: the newest of each subject, fresh before stale, and no case settled since."""

from __future__ import annotations

from collections.abc import Hashable

from foldproof.reports.events import (
    AnyEvent,
    BytesJudged,
    CampaignRan,
    CaptureSeen,
    CaseFound,
    LaunchesExamined,
    MutantsHunted,
    ObligationDecided,
    Owed,
    PolicySeen,
    Rendered,
    RunFinished,
    RunStarted,
    SelectorSeen,
    TheoremJudged,
)
from foldproof.reports.evidence import Evidence, Fact


def newest(found: Evidence) -> Evidence:
    """The evidence with one fact a subject: the newest fresh one, or where all are stale the newest.

    A counterexample stays while the verdict that it belongs to stays, a finding of a campaign while no later campaign
    of the same subject ran.
    """
    kept: dict[Hashable, Fact] = {}
    for fact in found.facts:
        subject = _subject(fact.event)
        if subject is None:
            continue
        before = kept.pop(subject, None)
        kept[subject] = fact if before is None or before.stale or not fact.stale else before
    facts = tuple(kept.values())
    last_owed = {fact.run.started.verb: fact.run.name for fact in found.facts if isinstance(fact.event, Owed)}
    campaigns = {_campaign_of(f.event): f.run.name for f in facts if isinstance(f.event, CampaignRan)}
    shown = {e.counterexample.path for f in facts if isinstance(e := f.event, TheoremJudged) and e.counterexample}
    return Evidence(found.runs, tuple(f for f in facts if _still_counts(f, shown, campaigns, last_owed)))


def _subject(event: AnyEvent) -> Hashable | None:  # noqa: C901 (one line a kind)
    """What the event is about; None for those that are about the run alone."""
    match event:
        case RunStarted() | RunFinished() | Rendered():
            return None
        case CaptureSeen():
            return "capture", event.sha256
        case PolicySeen():
            return "policy", event.name
        case SelectorSeen():
            return "selector", event.spec
        case TheoremJudged():
            return "theorem", event.policy, event.theorem, event.old
        case ObligationDecided():
            return "obligation", event.name
        case CaseFound():
            return "case", event.stage, event.file.path
        case CampaignRan():
            return "campaign", *_campaign_of(event)
        case MutantsHunted():
            return "mutants", event.policy
        case LaunchesExamined():
            return "launches", event.capture_sha256, event.policy, event.source
        case BytesJudged():
            return "bytes", event.by, event.what, event.device, event.arch, event.capture_sha256
        case Owed():
            return "owed", event.what


def _campaign_of(event: CampaignRan) -> tuple[str, str, str, str]:
    return event.stage, event.policy, event.selector, event.scope


def _still_counts(
    fact: Fact, shown: set[str], campaigns: dict[tuple[str, str, str, str], str], last_owed: dict[str, str]
) -> bool:
    event = fact.event
    if isinstance(event, Owed):
        return last_owed[fact.run.started.verb] == fact.run.name
    if not isinstance(event, CaseFound):
        return True
    if event.stage == "theorem":
        return event.file.path in shown
    return fact.run.name in {run for subject, run in campaigns.items() if subject[1] == event.policy}
