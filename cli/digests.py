"""What is at hand, by digest: captures, policies and selectors, as events and as what records are held against."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.replay.receipts import CaptureId, capture_id
from foldproof.impl.capture import Capture, load_capture
from foldproof.impl.launch import Launch
from foldproof.impl.policy import ZOO, Policy, zoo_policy
from foldproof.impl.rules import refusal
from foldproof.props.drive import SelectorSpec
from foldproof.reports.canonical import canonical, sha256
from foldproof.reports.events import CaptureSeen, PolicySeen, SelectorSeen
from foldproof.reports.evidence import BUNDLED


def capture_path(name: str) -> Path:
    """Where a capture lies; `BUNDLED`, and "bundled" as foldproof.toml has it, are the one in the package."""
    return bundled_capture() if name in (BUNDLED, "bundled") else Path(name)


def capture_seen(name: str, capture: Capture, digests: CaptureId) -> CaptureSeen:
    """The event of a capture that was loaded."""
    missing = len({v.hash for v in capture.kernels} - set(digests.cubins))
    return CaptureSeen(
        name=name,
        sha256=digests.aot_sha256,
        variants=len(capture.kernels),
        functions=len(capture.functions),
        cubins=digests.cubins,
        cubins_missing=missing,
    )


def identified(path: Path) -> tuple[Capture, CaptureId]:
    """A capture and its digests. Raises `InvalidCapture`."""
    return load_capture(path), capture_id(path)


def policy_digest(policy: Policy) -> str:
    """The sha256 of the policy's canonical data: its summary is no part of it, since it decides nothing."""
    value = {name: getattr(policy, name) for name in policy.__struct_fields__ if name != "summary"}
    return sha256(canonical(value))


def policy_seen(policy: Policy) -> PolicySeen:
    """The event of a policy at hand."""
    return PolicySeen(
        name=policy.name, sha256=policy_digest(policy), promises=policy.promises, data=msgspec.to_builtins(policy)
    )


def policy_digests(*further: Policy) -> dict[str, str]:
    """The digest of each policy of the zoo, and of further ones, by name."""
    return {policy.name: policy_digest(policy) for policy in (*map(zoo_policy, ZOO), *further)}


def selector_files(spec: str, base: Path | None = None) -> dict[str, str]:
    """The sha256 of each file that the words of a selector name; its program is looked for where the shell does.

    Relative paths start at `base`, by default the current folder.
    """
    found = {}
    for place, word in enumerate(SelectorSpec(spec).command):
        path = (base or Path()) / word
        if place == 0 and not path.is_file():
            path = Path(shutil.which(word) or word)
        if path.is_file():
            with path.open("rb") as stream:
                found[word] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def selector_seen(spec: str, name: str, kinds: Iterable[str]) -> SelectorSeen:
    """The event of a selector that was started."""
    return SelectorSeen(spec=spec, name=name, files=selector_files(spec), kinds=tuple(sorted(map(str, kinds))))


def interchangeable(capture: Capture, launches: Sequence[Launch]) -> frozenset[frozenset[str]]:
    """The pairs of variants, by hash, that the runtime-one rules admit both for some launch."""
    loosest = zoo_policy("three-pass").strictest_first[-1]
    by_function: dict[str, list[int]] = {}
    for index, variant in enumerate(capture.kernels):
        by_function.setdefault(variant.fn, []).append(index)
    pairs: set[frozenset[str]] = set()
    for launch in launches:
        candidates = (capture.kernels[index] for index in by_function.get(launch.fn, ()))
        fitting = [v.hash for v in candidates if refusal(v, launch, loosest) is None]
        pairs.update(frozenset((a, b)) for i, a in enumerate(fitting) for b in fitting[i + 1 :])
    return frozenset(pairs)
