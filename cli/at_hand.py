"""What a report is made for: the obligations, and the captures, policies and selectors that are at hand.

From `foldproof.toml`, everything it names must be there, or the evidence of it is owed. Without one, the obligations
are those of the runs in the evidence, and what is no longer where a run found it is taken as the run saw it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import msgspec
from foldproof.cli.digests import (
    capture_path,
    identified,
    interchangeable,
    policy_digest,
    policy_digests,
    selector_files,
)
from foldproof.cli.stages import DERIVED, RECORDED, Subject
from foldproof.impl.capture import Capture, capture_file
from foldproof.impl.errors import FoldproofError
from foldproof.impl.launch import Launch, load_launches
from foldproof.impl.policy import ZOO, Policy, load_policy
from foldproof.props.derive import derive
from foldproof.reports.events import CampaignRan, CaptureSeen, LaunchesExamined, PolicySeen, RunStarted, SelectorSeen
from foldproof.reports.evidence import BUNDLED, AtHand
from foldproof.reports.obligations import CaptureTable, Config, FuzzTable, PolicyTable
from foldproof.reports.store import Stored

Launches = Callable[[Capture], tuple[Launch, ...]]
NAMING = ("--policy", "--against", "--old", "--new")
"""Options that name a policy."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Obligations, what is at hand, and the promises of the policy."""

    config: Config
    at_hand: AtHand
    promises: tuple[str, ...]


def of_check(subject: Subject, policy: Policy, named: str) -> Scene:
    """The scene of a run of `check`: the policy's promises, the campaign, and the launches of the capture."""
    table = CaptureTable(subject.seen.name, _stated(subject.launches_from))
    config = Config(policy=PolicyTable(policy.name), capture=(table,))
    at_hand = AtHand(
        captures={subject.seen.sha256: subject.seen.cubins},
        policies=policy_digests(policy),
        named={policy.name: named},
        names={subject.seen.sha256: subject.seen.name},
    )
    return Scene(config, at_hand, policy.promises)


def _stated(source: str) -> str:
    """The file that a command line gave the launches by, "" where it gave none."""
    return "" if source in (RECORDED, DERIVED) else source


def of_config(config: Config, base: Path) -> Scene:
    """The scene of a `foldproof.toml`; its paths are relative to `base`, the folder that it lies in.

    Raises `FoldproofError` for a policy or a capture that does not load; a selector that is absent has no files.
    """
    policy = load_policy(_below(base, config.policy.name) if config.policy.name not in ZOO else config.policy.name)
    at_hand = AtHand(policies=policy_digests(policy), named={policy.name: config.policy.name})
    for table in config.capture:
        launches = Path(_below(base, table.launches)) if table.launches else None
        path = capture_path(table.path) if table.path == "bundled" else base / table.path
        wanted = _launches(table.path, path, launches) if config.bits else None
        at_hand = _with_capture(at_hand, table.path, path, wanted)
    if config.fuzz:
        at_hand = replace(at_hand, selectors={config.fuzz.selector: selector_files(config.fuzz.selector, base)})
    captures = tuple(msgspec.structs.replace(t, path=_called(t.path)) for t in config.capture)
    resolved = msgspec.structs.replace(config, policy=PolicyTable(policy.name), capture=captures)
    return Scene(resolved, at_hand, policy.promises)


def _called(path: str) -> str:
    return BUNDLED if path == "bundled" else path


def _below(base: Path, path: str) -> str:
    return path if Path(path).is_absolute() else str(base / path)


def _with_capture(at_hand: AtHand, name: str, path: Path, pairs_from: Launches | None = None) -> AtHand:
    """With the capture at `path`; with its interchangeable pairs, which take seconds, where launches are given."""
    capture, digests = identified(path)
    sha256 = digests.aot_sha256
    pairs = {} if pairs_from is None else {sha256: interchangeable(capture, pairs_from(capture))}
    return replace(
        at_hand,
        captures={**at_hand.captures, sha256: digests.cubins},
        pairs={**at_hand.pairs, **pairs},
        names={**at_hand.names, sha256: _called(name)},
    )


def _launches(name: str, path: Path, stated: Path | None) -> Launches:
    """The launches of a capture: those of the file, of a bundled capture the recorded ones, else derived."""
    recorded = capture_file(path).parent / "launches.json"
    file = stated or (recorded if name == "bundled" else None)
    return lambda capture: load_launches(file) if file else tuple(d.launch for d in derive(capture))


def of_evidence(stored: Sequence[Stored]) -> Scene:
    """The scene that the records themselves make. Raises `FoldproofError` where no run says what it was about."""
    events = [one.record.event for one in stored]
    seen = {e.name: e for e in events if isinstance(e, PolicySeen)}
    checked = [e for e in events if isinstance(e, CampaignRan | LaunchesExamined)]
    if not seen:
        raise FoldproofError(
            "no record says which policy it is about", where="records", fix="run foldproof check again"
        )
    name = checked[-1].policy if checked and checked[-1].policy in seen else list(seen)[-1]
    policies, named = policy_digests(), dict[str, str]()
    for policy in (policy for policy in seen.values() if policy.name not in policies):
        file = _policy_file(policy, events)
        policies[policy.name] = policy_digest(load_policy(file)) if file else policy.sha256
        named[policy.name] = file or policy.name
    at_hand = AtHand(policies=policies, named=named)
    for event in events:
        if isinstance(event, CaptureSeen):
            at_hand = _capture_now(at_hand, event)
        if isinstance(event, SelectorSeen):
            files = selector_files(event.spec, Path()) or event.files
            at_hand = replace(at_hand, selectors={**at_hand.selectors, event.spec: files})
    examined = {e.capture: e for e in events if isinstance(e, LaunchesExamined) and e.policy == name}
    fuzzed = [e for e in events if isinstance(e, CampaignRan) and e.stage == "fuzz" and e.policy == name]
    config = Config(
        policy=PolicyTable(name),
        fuzz=FuzzTable(fuzzed[-1].selector, 0, int(fuzzed[-1].seed)) if fuzzed else None,
        capture=tuple(CaptureTable(capture, _stated(e.source)) for capture, e in examined.items()),
    )
    return Scene(config, at_hand, seen[name].promises)


def _policy_file(seen: PolicySeen, events: Sequence[object]) -> str:
    """The file of a policy that the newest run names, "" where none that is here has it."""
    commands = [event.command for event in events if isinstance(event, RunStarted)]
    for word in (word for command in reversed(commands) for word in policy_files(command)):
        if Path(word).is_file() and load_policy(word).name == seen.name:
            return word
    return ""


def policy_files(command: str) -> list[str]:
    """The policy files that a recorded command names; none where a shell could not read it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    return [file for option, file in pairwise(words) if option in NAMING and file.endswith(".toml")]


def _capture_now(at_hand: AtHand, seen: CaptureSeen) -> AtHand:
    path = capture_path(seen.name)
    if path.exists():
        return _with_capture(at_hand, seen.name, path)
    captures = {**at_hand.captures, seen.sha256: seen.cubins}
    return replace(at_hand, captures=captures, names={**at_hand.names, seen.sha256: seen.name})
