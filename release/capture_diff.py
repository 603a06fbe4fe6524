"""Two captures: variants added, removed, and changed in code only; launches whose answer changes; and the proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from foldproof.impl.capture import Capture, Variant, capture_file
from foldproof.impl.errors import InvalidCapture
from foldproof.impl.files import digest_of
from foldproof.impl.launch import launch_to
from foldproof.impl.policy import Policy
from foldproof.impl.select import Outcome, Selection
from foldproof.release.changes import FunctionVerdict, verdicts
from foldproof.release.contradictions import identity
from foldproof.release.coverage import decided, ending
from foldproof.release.launches import Counted
from foldproof.release.pick_bytes import Bytes, Digests, Judge, owed, pick_bytes

FACTS = ("name", "shared", "global_scratch", "global_align", "profile_scratch")
"""What an entry says of its code besides what a launch can tell."""


class VariantRow(msgspec.Struct, frozen=True):
    """A variant that one of the captures does not have: its hash and what it is, in words."""

    fn: str
    hash: str
    says: str


class CodeChange(msgspec.Struct, frozen=True):
    """One variant in both captures whose code differs, or how it is called. `changed` says in what: "code" (both cubins
    were compared), "hash" (they were not), "order of params", or a field of the entry.
    """

    fn: str
    old: str
    new: str
    changed: tuple[str, ...]


class LaunchChange(msgspec.Struct, frozen=True):
    """A launch class whose answer changes: in the pick, in the pass, or in its output bytes alone."""

    fn: str
    launches: int
    old: str
    new: str
    bytes: Bytes
    launch: dict[str, Any]


class CaptureDiff(msgspec.Struct, frozen=True):
    """Everything that differs between two captures; `functions` has the proof for each function of the old one."""

    added: tuple[VariantRow, ...]
    removed: tuple[VariantRow, ...]
    code_only: tuple[CodeChange, ...]
    reordered: tuple[str, ...]
    functions: tuple[FunctionVerdict, ...]
    launches: tuple[LaunchChange, ...]
    launch_classes: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.added or self.removed or self.code_only or self.reordered or self.launches)


def digests(path: Path, capture: Capture) -> Digests:
    """The sha256 of each cubin that is beside the capture, by hash."""
    folder = capture_file(path).parent / capture.bin_dir
    files = {v.hash: folder / f"{v.hash}{capture.bin_ext}" for v in capture.kernels}
    return {mark: digest_of(f, InvalidCapture) for mark, f in files.items() if f.is_file()}


def capture_diff(
    old: tuple[Capture, Digests],
    new: tuple[Capture, Digests],
    launches: Iterable[Counted],
    policy: Policy,
    judge: Judge = owed,
) -> CaptureDiff:
    """What differs. Variants are matched by what they are, not by hash; of equals, in candidate order."""
    pairs, removed, added = _matched(old[0].kernels, new[0].kernels)
    code = [change for a, b in pairs if (change := _code(a, b, old[1], new[1])) is not None]
    rows = grouped_rows(old, new, launches, policy, judge)
    return CaptureDiff(
        tuple(_row(v) for v in added),
        tuple(_row(v) for v in removed),
        tuple(code),
        tuple(_reordered(pairs, new[0].kernels)),
        tuple(verdicts(old[0], new[0], policy)),
        tuple(row for row, _ in rows if row is not None),
        len(rows),
    )


def _matched(
    old: Sequence[Variant], new: Sequence[Variant]
) -> tuple[list[tuple[Variant, Variant]], list[Variant], list[Variant]]:
    waiting: dict[object, list[Variant]] = {}
    for variant in new:
        waiting.setdefault(identity(variant), []).append(variant)
    pairs, removed = [], []
    for variant in old:
        found = waiting.get(identity(variant))
        if found:
            same = next((v for v in found if v.hash == variant.hash), found[0])
            found.remove(same)
            pairs.append((variant, same))
        else:
            removed.append(variant)
    left = {id(v) for found in waiting.values() for v in found}
    return pairs, removed, [v for v in new if id(v) in left]


def _code(one: Variant, other: Variant, old: Digests, new: Digests) -> CodeChange | None:
    a, b = old.get(one.hash), new.get(other.hash)
    compared = a is not None and b is not None
    changed = ["code"] if compared and a != b else ["hash"] if not compared and one.hash != other.hash else []
    if [p.name for p in one.params] != [p.name for p in other.params]:
        changed.append("order of params")
    changed += [name for name in FACTS if getattr(one, name) != getattr(other, name)]
    return CodeChange(one.fn, one.hash, other.hash, tuple(changed)) if changed else None


def _reordered(pairs: Sequence[tuple[Variant, Variant]], new: Sequence[Variant]) -> list[str]:
    """Functions whose common variants stand in another order: chance, until a policy looks at the order."""
    place = {id(v): i for i, v in enumerate(new)}
    seen: dict[str, list[int]] = {}
    for one, other in pairs:
        seen.setdefault(one.fn, []).append(place[id(other)])
    return [fn for fn, places in seen.items() if places != sorted(places)]


def _row(variant: Variant) -> VariantRow:
    folds = [f"{name}={const}" for name, const in variant.consts.items()]
    reads = [f"{p.name} {p.type}{' div16' if p.div16 else ''}{' nospec' if p.nospec else ''}" for p in variant.params]
    options = [f"{n} {v}" for n, v in zip(("num_warps", "num_stages"), variant.options, strict=False) if v]
    return VariantRow(variant.fn, variant.hash, ", ".join((*reads, *folds, *options)))


def grouped_rows(
    old: tuple[Capture, Digests],
    new: tuple[Capture, Digests],
    launches: Iterable[Counted],
    policy: Policy,
    judge: Judge,
) -> list[tuple[LaunchChange | None, Counted]]:
    """For each launch class the change of its answer; None where variant and pass stay, and the bytes are equal."""
    known = list(launches)
    rows = []
    for (one, before), (_, after) in zip(decided(old[0], known, policy), decided(new[0], known, policy), strict=True):
        rows.append((_launch_change(one, (before, old[1]), (after, new[1]), judge), one))
    return rows


def _launch_change(
    one: Counted, old: tuple[Outcome, Digests], new: tuple[Outcome, Digests], judge: Judge
) -> LaunchChange | None:
    before, after = old[0], new[0]
    if isinstance(before, Selection) and isinstance(after, Selection):
        same = identity(before.variant) == identity(after.variant) and ending(before) == ending(after)
        verdict = pick_bytes((before.variant, old[1]), (after.variant, new[1]), one, judge)
        if same and verdict.word == "equal":
            return None
    elif _says(before) == _says(after):
        return None
    else:
        verdict = Bytes("no reference", why="one side selects nothing")
    return LaunchChange(one.launch.fn, one.count, _says(before), _says(after), verdict, launch_to(one.launch))


def _says(outcome: Outcome) -> str:
    return f"{ending(outcome)} {outcome.variant.hash}" if isinstance(outcome, Selection) else ending(outcome)
