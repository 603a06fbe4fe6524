"""The report of an earlier release as it was: its records held against nothing but each other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from foldproof.reports.events import (
    BytesJudged,
    CampaignRan,
    CaptureSeen,
    LaunchesExamined,
    PolicySeen,
    SelectorSeen,
    TheoremJudged,
)
from foldproof.reports.evidence import AtHand
from foldproof.reports.obligations import Config, PolicyTable
from foldproof.reports.store import Damage, Stored
from foldproof.reports.view import Report, build


def report_then(config: Config, stored: Sequence[Stored], damaged: Sequence[Damage] = ()) -> Report:
    """The report of old evidence under today's obligations; the policy is the one that the release was about.

    What was at hand then is what the newest records of it say, so nothing of it is stale for having changed since.
    """
    events = [one.record.event for one in stored]
    names = [e.policy for e in events if isinstance(e, CampaignRan) and e.stage == "check"]
    names = names or [e.policy for e in events if isinstance(e, TheoremJudged)]
    name = config.policy.name if config.policy.name in names else next(reversed(names), config.policy.name)
    promises = [e.promises for e in events if isinstance(e, PolicySeen) and e.name == name]
    then = msgspec.structs.replace(config, policy=PolicyTable(name))
    return build(then, stored, at_hand_then(stored), promises[-1] if promises else (), damaged)


def at_hand_then(stored: Sequence[Stored]) -> AtHand:
    """What was at hand when the newest record of each thing was written."""
    captures: dict[str, dict[str, str]] = {}
    policies: dict[str, str] = {}
    selectors: dict[str, dict[str, str]] = {}
    pairs: dict[str, frozenset[frozenset[str]]] = {}
    names: dict[str, str] = {}
    for one in stored:
        event = one.record.event
        if isinstance(event, CaptureSeen):
            # The newest capture of a name: what was made on an older one was stale even then.
            older = {digest for digest, known in names.items() if known == event.name} - {event.sha256}
            for digest in older:
                del captures[digest], names[digest]
            captures[event.sha256], names[event.sha256] = event.cubins, event.name
        elif isinstance(event, PolicySeen):
            policies[event.name] = event.sha256
        elif isinstance(event, SelectorSeen):
            selectors[event.spec] = event.files
        elif isinstance(event, CampaignRan | LaunchesExamined | TheoremJudged):
            policies[event.policy] = event.policy_sha256
            if isinstance(event, TheoremJudged) and event.old:
                policies[event.old] = event.old_sha256
            if isinstance(event, CampaignRan) and event.selector:
                selectors[event.selector] = event.selector_files
        elif isinstance(event, BytesJudged):
            told = {frozenset((row.first, row.second)) for row in event.rows}
            pairs[event.capture_sha256] = pairs.get(event.capture_sha256, frozenset()) | told
    return AtHand(captures, policies, selectors, pairs, names)
