"""Of many runs, the facts that count: the newest of each subject, fresh before stale, and no case settled since."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

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
from foldproof.reports.evidence import CAMPAIGNS, Evidence, Fact


def newest(found: Evidence) -> Evidence:
    """The evidence with one fact a subject: the newest fresh one, or where all are stale the newest.

    A counterexample stays while the verdict that it belongs to stays, a finding of a campaign while no later campaign
    of the same subject ran. A campaign that was killed left findings and no verdict: they stay until one ends.
    """
    kept: dict[Hashable, Fact] = {}
    for fact in found.facts:
        subject = _subject(fact.event)
        if subject is None:
            continue
        before = kept.pop(subject, None)
        kept[subject] = fact if before is None or before.stale or not fact.stale else before
    facts = tuple(kept.values())
    # A run that was killed may not have come to say what it owes; one that ended without a word owes nothing more.
    owing = {fact.run.name for fact in found.facts if isinstance(fact.event, Owed)}
    last = {run.started.verb: run.name for run in found.runs if run.finished or run.name in owing}
    campaigns = _campaigns(found, facts)
    shown = {e.counterexample.path for f in facts if isinstance(e := f.event, TheoremJudged) and e.counterexample}
    return Evidence(found.runs, tuple(f for f in facts if _still_counts(f, shown, campaigns, last)))


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
            return "case", event.stage, event.title, event.policy, event.file.path
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


@dataclass(frozen=True, slots=True)
class _Campaigns:
    """Which run speaks for the campaigns of a stage and policy: those that ended, and of them those that count.

    Both are (run, stage, policy) with the selectors; `selectors` has those of every run, `places` the order of runs.
    """

    ended: dict[tuple[str, str, str], set[str]]
    counting: set[tuple[str, str, str]]
    selectors: dict[str, set[str]]
    places: dict[str, int]

    def keep(self, run: str, stage: str, policy: str) -> bool:
        """Whether a case of the run counts: its campaign does, or it never ended and none like it has ended since."""
        if (run, stage, policy) in self.ended:
            return (run, stage, policy) in self.counting
        mine = self.selectors.get(run)
        return not any(
            subject == [stage, policy] and self.places[other] > self.places[run] and (mine is None or mine & specs)
            for (other, *subject), specs in self.ended.items()
        )


def _campaigns(found: Evidence, kept: tuple[Fact, ...]) -> _Campaigns:
    ended: dict[tuple[str, str, str], set[str]] = {}
    selectors: dict[str, set[str]] = {}
    for fact in found.facts:
        if isinstance(e := fact.event, CampaignRan):
            ended.setdefault((fact.run.name, e.stage, e.policy), set()).add(e.selector)
        if isinstance(e := fact.event, SelectorSeen):
            selectors.setdefault(fact.run.name, set()).add(e.spec)
    counting = {(f.run.name, e.stage, e.policy) for f in kept if isinstance(e := f.event, CampaignRan)}
    return _Campaigns(ended, counting, selectors, {run.name: place for place, run in enumerate(found.runs)})


def _still_counts(fact: Fact, shown: set[str], campaigns: _Campaigns, last: dict[str, str]) -> bool:
    event = fact.event
    if isinstance(event, Owed):
        return last[fact.run.started.verb] == fact.run.name
    if not isinstance(event, CaseFound):
        return True
    if event.stage not in CAMPAIGNS:
        return event.file.path in shown
    return campaigns.keep(fact.run.name, CAMPAIGNS[event.stage], event.policy)
