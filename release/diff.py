"""`diff` of any two things that select: what each argument names, and the record of what differs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from foldproof import __version__
from foldproof.impl.capture import Capture
from foldproof.impl.cases import case_to
from foldproof.impl.errors import FoldproofError
from foldproof.impl.policy import ZOO, Policy, load_policy
from foldproof.props.derive import derive
from foldproof.props.drive import SelectorSpec
from foldproof.release.capture_diff import CaptureDiff
from foldproof.release.launches import Counted
from foldproof.release.policy_diff import PolicyDiff, Proof
from foldproof.release.selector_diff import Asked, PolicySide, SelectorDiff

SCHEMA_VERSION = 1
Kind = Literal["capture", "policy", "selector"]


class RegionRow(msgspec.Struct, frozen=True):
    """A region where the two differ: its id and sentence, the changes of ending, what else always holds, the smallest
    example as a case, and both answers to it.
    """

    id: str
    says: str
    changes: tuple[tuple[str, str], ...]
    always: tuple[str, ...]
    example: dict[str, Any]
    old_answer: str
    new_answer: str


class Compared(msgspec.Struct, frozen=True):
    """What a selector diff decided: exhausted universes, cases, and how often the answers differ."""

    exhausted: tuple[str, ...]
    exhaustive_cases: int
    campaign_cases: int
    seed: int
    differences: int
    changes: tuple[tuple[str, str, int], ...]


class DiffResult(msgspec.Struct, frozen=True):
    """What `foldproof diff` found. Of `regions`, `proofs`, `compared` and `captures` those of the kind are filled."""

    schema_version: int
    tool: str
    kind: Kind
    old: str
    new: str
    different: bool
    scope: str
    also: tuple[str, ...] = ()
    regions: tuple[RegionRow, ...] = ()
    proofs: tuple[Proof, ...] = ()
    compared: Compared | None = None
    captures: CaptureDiff | None = None


def kind_of(text: str) -> Kind:
    """What an argument names: a policy of the zoo or a TOML file, a capture, or a selector to start.

    Raises `FoldproofError` for a text that is none of them.
    """
    if text in ZOO or text.endswith(".toml"):
        return "policy"
    path = Path(text)
    if path.is_dir() or text.endswith(".json"):
        return "capture"
    words = SelectorSpec(text).command
    if path.is_file() or shutil.which(words[0]) or Path(words[0]).is_file():
        return "selector"
    why = f"{text!r} is no policy of the zoo, no capture, and no program"
    raise FoldproofError(why, fix=f"name one of {', '.join(ZOO)}, a .toml, a capture folder, or a selector's command")


def kind_of_both(old: str, new: str) -> Kind:
    """What is compared; a policy may stand for a selector. Raises `FoldproofError` for a pair that cannot be."""
    kinds = {kind_of(old), kind_of(new)}
    if len(kinds) == 1:
        return kinds.pop()
    if "capture" in kinds:
        why = f"{old!r} is a {kind_of(old)} and {new!r} a {kind_of(new)}"
        raise FoldproofError(why, fix="compare two captures, or two policies or selectors")
    return "selector"


@contextmanager
def opened(text: str, timeout: float) -> Iterator[Asked]:
    """A selector that has been started, or a policy; ended when the context is left. Raises `SelectorError`."""
    if kind_of(text) == "policy":
        yield PolicySide(load_policy(text))
        return
    with SelectorSpec(text, timeout).open() as selector:
        yield selector


def derived(old: Capture, new: Capture) -> Iterator[Counted]:
    """The launches that derive from the variants of either capture."""
    for capture in (old, new):
        yield from (Counted(d.launch) for d in derive(capture))


def unselected(old: Policy, new: Policy) -> tuple[str, ...]:
    """What two policies do differently besides selecting: what they log, and what a miss lists."""
    found = []
    if old.log != new.log:
        found.append(f"{old.name} logs per {old.log}, {new.name} per {new.log}")
    if old.dump != new.dump:
        lists = {True: "lists every arg of a miss", False: "says nothing of a miss"}
        found.append(f"{old.name} {lists[old.dump]}, {new.name} {lists[new.dump]}")
    return tuple(found)


def of_policies(old: Policy, new: Policy, found: PolicyDiff) -> DiffResult:
    """The record of two policies."""
    rows = [
        RegionRow(r.id, r.says, r.changes, r.always, case_to(r.example), r.old_answer, r.new_answer)
        for r in found.regions
    ]
    also = unselected(old, new)
    return _result("policy", old.name, new.name, bool(rows or also), scope=found.scope, also=also, regions=tuple(rows),
                   proofs=found.proofs)  # fmt: skip


def of_selectors(old: str, new: str, found: SelectorDiff) -> DiffResult:
    """The record of two selectors."""
    rows = [
        RegionRow(r.id, r.says, r.changes, (), case_to(r.example), r.old_answer, r.new_answer) for r in found.regions
    ]
    compared = Compared(
        found.exhausted,
        found.exhaustive_cases,
        found.campaign_cases,
        found.seed,
        found.differences,
        found.changes,
    )
    scope = " and ".join(found.exhausted)
    return _result("selector", old, new, not found.equal, scope=scope, regions=tuple(rows), compared=compared)


def of_captures(old: str, new: str, found: CaptureDiff) -> DiffResult:
    """The record of two captures."""
    return _result("capture", old, new, not found.is_empty, scope="every launch of the old capture", captures=found)


def _result(kind: Kind, old: str, new: str, different: bool, **more: Any) -> DiffResult:
    return DiffResult(SCHEMA_VERSION, f"foldproof {__version__}", kind, old, new, different, **more)
