"""Evidence: the facts of a folder, each with its run, and whether it still speaks of what is at hand.

A fact is fresh while every digest in it is that of the capture, selector and policy at hand; else it is stale, is shown
so, and counts as owed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from foldproof.reports.events import (
    AnyEvent,
    BytesJudged,
    CampaignRan,
    CaptureSeen,
    CaseFound,
    Event,
    LaunchesExamined,
    MutantsHunted,
    PolicySeen,
    RunFinished,
    RunStarted,
    SelectorSeen,
    TheoremJudged,
)
from foldproof.reports.store import Stored

E = TypeVar("E", bound=Event)
CAMPAIGNS = {"campaign": "check", "fuzz": "fuzz", "exhaust": "exhaust"}
"""The stage of a case -> the stage of the campaign that found it."""
FOLDER = "foldproof-report"
"""The evidence folder that every verb takes by default, and where hosts look from the root of the repository."""
BUNDLED = "the bundled capture"
"""What records call the capture in the package; no command line names it."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run: how it began, how it ended (None: it was killed), and how many records it has."""

    name: str
    started: RunStarted
    finished: RunFinished | None
    records: int

    @property
    def state(self) -> str:
        """complete, failed, interrupted, or killed where no last record stands."""
        return self.finished.state if self.finished else "killed"


@dataclass(frozen=True, slots=True)
class Fact:
    """An event, the digest of its record and its run. `stale` says why it counts no more, "" if it does."""

    event: AnyEvent
    digest: str
    run: Run
    stale: str = ""


@dataclass(frozen=True, slots=True)
class AtHand:
    """What is here while the report is made, by digest: what a record must match to count.

    `captures` has the cubins' digests by the capture's own; `policies` the digest by name; `selectors` the digests of
    its files by spec; `pairs` the interchangeable pairs of each capture; `names` how the captures are called;
    `named` how a command line names a policy, by its name; `folder` how it names the folder of the records.
    """

    captures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    selectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pairs: Mapping[str, frozenset[frozenset[str]]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    folder: str = FOLDER


@dataclass(frozen=True, slots=True)
class Evidence:
    """Every fact of a folder in the order of the runs, the oldest first."""

    runs: tuple[Run, ...]
    facts: tuple[Fact, ...]

    def of(self, kind: type[E]) -> Iterator[tuple[Fact, E]]:
        """The facts of one kind, oldest first, each with its event."""
        return ((fact, fact.event) for fact in self.facts if isinstance(fact.event, kind))


def evidence(stored: Iterable[Stored], at_hand: AtHand) -> Evidence:
    """The evidence of the records that `store.read` found. Records of a run without a beginning are left out."""
    grouped: dict[str, list[Stored]] = {}
    for one in stored:
        grouped.setdefault(one.record.run, []).append(one)
    runs, facts = [], []
    for name, records in grouped.items():
        first, last = records[0].record.event, records[-1].record.event
        if not isinstance(first, RunStarted):
            continue
        run = Run(name, first, last if isinstance(last, RunFinished) else None, len(records))
        runs.append(run)
        told = [Fact(one.record.event, one.digest, run, staleness(one.record.event, at_hand)) for one in records]
        facts += _with_their_campaign(told)
    return Evidence(tuple(runs), tuple(facts))


def _with_their_campaign(told: list[Fact]) -> list[Fact]:
    """The facts of a run, each case of a campaign as stale as its campaign: a case names no selector of its own."""
    ended = {(e.stage, e.policy): fact.stale for fact in told if isinstance(e := fact.event, CampaignRan)}
    return [
        replace(fact, stale=fact.stale or ended.get((CAMPAIGNS[e.stage], e.policy), ""))
        if isinstance(e := fact.event, CaseFound) and e.stage in CAMPAIGNS
        else fact
        for fact in told
    ]


def staleness(event: AnyEvent, at_hand: AtHand) -> str:
    """Why the event speaks of something that is not at hand, "" if it speaks of what is."""
    policy, capture = partial(_policy, at_hand), partial(_capture, at_hand)
    if isinstance(event, TheoremJudged):
        return policy(event.policy, event.policy_sha256) or (policy(event.old, event.old_sha256) if event.old else "")
    if isinstance(event, CaseFound | MutantsHunted):
        return policy(event.policy, event.policy_sha256)
    if isinstance(event, PolicySeen):
        return policy(event.name, event.sha256)
    if isinstance(event, LaunchesExamined):
        return policy(event.policy, event.policy_sha256) or capture(event.capture_sha256, {})
    if isinstance(event, CampaignRan):
        said = policy(event.policy, event.policy_sha256)
        if not said and event.selector:
            said = _selector(at_hand, event.selector, event.selector_files)
        return said or (capture(event.capture_sha256, {}) if event.capture_sha256 else "")
    if isinstance(event, SelectorSeen):
        return _selector(at_hand, event.spec, event.files)
    if isinstance(event, BytesJudged):
        return capture(event.capture_sha256, event.cubins)
    if isinstance(event, CaptureSeen):
        return capture(event.sha256, event.cubins)
    return ""


def _policy(at_hand: AtHand, name: str, sha256: str) -> str:
    known = at_hand.policies.get(name)
    if known is None:
        return f"the policy {name} is not at hand"
    return "" if known == sha256 else f"the policy {name} has changed"


def _selector(at_hand: AtHand, spec: str, files: Mapping[str, str]) -> str:
    if at_hand.selectors.get(spec) == files:
        return ""
    return f"the selector {'has other bytes' if spec in at_hand.selectors else 'is not at hand'}"


def _capture(at_hand: AtHand, sha256: str, cubins: Mapping[str, str]) -> str:
    here = at_hand.captures.get(sha256)
    if here is None:
        return "made on another capture"
    changed = sorted(name for name, digest in here.items() if name in cubins and cubins[name] != digest)
    added = sorted(name for name in here if cubins and name not in cubins)
    if changed:
        return f"{len(changed)} cubins have other bytes, {changed[0]} among them"
    if added:
        return f"{len(added)} cubins were not there, {added[0]} among them"
    gone = sorted(name for name in cubins if name not in here)
    return f"{len(gone)} cubins are not at hand, {gone[0]} among them" if gone else ""
