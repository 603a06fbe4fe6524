"""What changes for launches between two captures: a proof for each function that nothing does, or who takes over.

The question is asked of every launch that the first capture serves: every class of args, every subset of constants
that it may name, every option that it may pin. T07 and T09 speak of policies; this speaks of two given captures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import z3
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.launch import Launch, launch_to
from foldproof.impl.policy import Policy
from foldproof.impl.select import Outcome, Selection, decide
from foldproof.model.rules import conj
from foldproof.model.selection import answer
from foldproof.model.terms import Bool
from foldproof.release.contradictions import identity
from foldproof.release.shapes import Family
from foldproof.release.solving import is_possible, plainest, solver_for
from foldproof.release.world import ClassWorld

MOST_CHANGES = 20
SameVariant = Callable[[Variant, Variant], bool]


class Change(msgspec.Struct, frozen=True):
    """Launches of one function that get another answer: who served them, who does now (None: no one), an example."""

    fn: str
    old: str
    new: str | None
    new_ends: str
    launch: dict[str, Any]


class FunctionVerdict(msgspec.Struct, frozen=True):
    """What was shown of one function: untouched (equal candidates in equal order), proved unchanged, or changed.

    `proved`: every launch that the old capture serves gets the same variant; else `changes` has who takes over.
    """

    fn: str
    untouched: bool
    proved: bool
    changes: tuple[Change, ...]
    more: bool


def same_identity(one: Variant, other: Variant) -> bool:
    """Equal in everything that a launch can tell, and in what it is launched with."""
    return identity(one) == identity(other)


def verdicts(old: Capture, new: Capture, policy: Policy, same: SameVariant = same_identity) -> list[FunctionVerdict]:
    """A verdict for each function of the old capture."""
    theirs = _by_function(new)
    return [_verdict(fn, own, theirs.get(fn, ()), policy, same) for fn, own in _by_function(old).items()]


def _by_function(capture: Capture) -> Mapping[str, tuple[Variant, ...]]:
    groups: dict[str, list[Variant]] = {}
    for variant in capture.kernels:
        groups.setdefault(variant.fn, []).append(variant)
    return {fn: tuple(own) for fn, own in groups.items()}


def _verdict(
    fn: str, old: tuple[Variant, ...], new: tuple[Variant, ...], policy: Policy, same: SameVariant
) -> FunctionVerdict:
    pairs = list(zip(old, new, strict=False))
    if len(old) == len(new) and all(same(a, b) and same_identity(a, b) for a, b in pairs):
        return FunctionVerdict(fn, untouched=True, proved=True, changes=(), more=False)
    found: list[Change] = []
    for change in _changes(fn, old, new, policy, same):
        if len(found) == MOST_CHANGES:
            return FunctionVerdict(fn, untouched=False, proved=False, changes=tuple(found), more=True)
        found.append(change)
    return FunctionVerdict(fn, untouched=False, proved=not found, changes=tuple(found), more=False)


def _changes(
    fn: str, old: tuple[Variant, ...], new: tuple[Variant, ...], policy: Policy, same: SameVariant
) -> Iterator[Change]:
    for shape in Family.of(fn, (*old, *new)).open_shapes():
        before = ClassWorld.of(shape, old)
        after = before.with_variants(new)
        was, now = answer(before, policy), answer(after, policy)
        kept = [conj_not_kept(was.picks(i), [now.picks(k) for k in _twins(v, new, same)]) for i, v in enumerate(old)]
        solver = solver_for(before, z3.Or(kept))
        while is_possible(solver):
            launch = plainest(before, solver)
            if launch is None:
                break
            one, other = decide(Capture(old), launch, policy), _decide(new, launch, policy)
            assert isinstance(one, Selection), "the reference and the model disagree"
            takes_over = other.index if isinstance(other, Selection) else None
            yield _change(fn, launch, one, other)
            pair = [was.picks(one.index), *([now.picks(takes_over)] if takes_over is not None else [_none(now, new)])]
            solver.add(z3.Not(conj(pair)))


def conj_not_kept(picked: Bool, twins: Sequence[Bool]) -> Bool:
    """The old variant is picked, and none of its twins is."""
    return conj([picked, *(z3.Not(twin) for twin in twins)])


def _none(now: Any, new: Sequence[Variant]) -> Bool:
    return z3.Not(z3.Or([now.picks(i) for i in range(len(new))])) if new else z3.BoolVal(True)


def _twins(variant: Variant, new: Sequence[Variant], same: SameVariant) -> list[int]:
    return [k for k, other in enumerate(new) if same(variant, other)]


def _decide(variants: tuple[Variant, ...], launch: Launch, policy: Policy) -> Outcome | None:
    return decide(Capture(variants), launch, policy) if variants else None


def _change(fn: str, launch: Launch, one: Selection, other: Outcome | None) -> Change:
    if isinstance(other, Selection):
        ends = "fallback" if other.is_fallback else str(other.strictness or "no rules")
        return Change(fn, one.variant.hash, other.variant.hash, ends, launch_to(launch))
    return Change(fn, one.variant.hash, None, "missing" if other is None else other.code, launch_to(launch))
