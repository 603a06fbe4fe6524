"""Where two selectors differ: every case of small universes, then a campaign, and what the differences have in common.

Either side may be a policy of the reference. The regions are those of `policy_diff`, recognised on single cases.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

import msgspec
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.cases import Case
from foldproof.impl.choose import ones_read
from foldproof.impl.external.answers import Answer, Fault, Reply
from foldproof.impl.external.compare import reply_of
from foldproof.impl.launch import Kind, Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import STRICTEST_FIRST, Rules, refusal
from foldproof.impl.select import decide
from foldproof.props.generate import make_case, seeded
from foldproof.props.plain import plain_case
from foldproof.props.shrink import shrink
from foldproof.props.universe import Universe
from foldproof.release.features import Feature
from foldproof.release.recognise import Recogniser

UNIVERSES = (Universe(2, 1, 1), Universe(2, 2, 1))
MOST_CLASSIFIED = 60
"""Differing cases of one change whose facts are looked at; the others are counted."""
SHRINK_TRIALS = 300


class Asked(Protocol):
    """What is compared: a selector that has been entered, or a policy."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of arg that it knows."""

    def ask(self, capture_id: Hashable, capture: Capture, launches: Sequence[Launch]) -> list[Answer]:
        """One answer a launch, in order."""


@dataclass(frozen=True, slots=True)
class PolicySide:
    """A policy of the reference, asked as a selector is."""

    policy: Policy

    @property
    def name(self) -> str:
        """The policy's name."""
        return self.policy.name

    @property
    def kinds(self) -> frozenset[Kind]:
        """All of them."""
        return frozenset(Kind)

    def ask(self, capture_id: Hashable, capture: Capture, launches: Sequence[Launch]) -> list[Answer]:
        """The reference's answers; the id is not needed."""
        assert capture_id is not None
        return [reply_of(decide(capture, launch, self.policy)) for launch in launches]


class SelectorRegion(msgspec.Struct, frozen=True):
    """Cases that share a fact and end in another way, with the smallest that was found and both answers to it."""

    id: str
    says: str
    changes: tuple[tuple[str, str], ...]
    example: Case
    old_answer: str
    new_answer: str


class SelectorDiff(msgspec.Struct, frozen=True):
    """How two selectors compare: what was decided, how often they differ and in which way, and the regions."""

    exhausted: tuple[str, ...]
    exhaustive_cases: int
    campaign_cases: int
    seed: int
    differences: int
    changes: tuple[tuple[str, str, int], ...]
    regions: tuple[SelectorRegion, ...]

    @property
    def equal(self) -> bool:
        """Whether no difference was met; no proof beyond the exhausted universes."""
        return self.differences == 0


def selector_diff(old: Asked, new: Asked, seconds: float, seed: int, tick: Callable[[int], None]) -> SelectorDiff:
    """The differences over the universes and a campaign of `seconds`. `tick` is told the cases done."""
    met: dict[tuple[str, str], list[Case]] = {}
    counts: dict[tuple[str, str], int] = {}

    def compare(name: str, capture: Capture, launches: Sequence[Launch]) -> None:
        pairs = zip(old.ask(("old", name), capture, launches), new.ask(("new", name), capture, launches), strict=True)
        for launch, (one, other) in zip(launches, pairs, strict=True):
            if differ(one, other):
                change = ending(one, capture, launch), ending(other, capture, launch)
                counts[change] = counts.get(change, 0) + 1
                kept = met.setdefault(change, [])
                if len(kept) < MOST_CLASSIFIED:
                    kept.append(Case(name, capture, launch))

    exhausted = 0
    for universe in UNIVERSES:
        for number in range(universe.captures):
            compare(f"{universe.ints}+{universe.ptrs}-{number}", universe.capture(number), universe.launches)
            exhausted += universe.launch_count
            tick(exhausted)
    campaign = 0
    for case in _campaign(old.kinds & new.kinds, seconds, seed):
        compare(case.name, case.capture, (case.launch,))
        campaign += 1
        tick(exhausted + campaign)
    regions = _regions(old, new, met)
    return SelectorDiff(
        tuple(f"{u.variants} variants of {u.ints} ints and {u.ptrs} pointers" for u in UNIVERSES),
        exhausted,
        campaign,
        seed,
        sum(counts.values()),
        tuple((was, now, count) for (was, now), count in counts.items()),
        tuple(regions),
    )


def _campaign(kinds: frozenset[Kind], seconds: float, seed: int) -> Iterator[Case]:
    choose, until, number = seeded(seed), monotonic() + seconds, 0
    while monotonic() < until:
        case = plain_case(choose, tuple(kinds)) if number % 2 else make_case(choose)
        if all(arg.kind in kinds for arg in case.launch.args):
            yield msgspec.structs.replace(case, name=f"seed {seed} case {number}")
        number += 1


def differ(one: Answer, other: Answer) -> bool:
    """Whether the answers pick differently; a fault differs from everything but a fault of its kind."""
    return _key(one) != _key(other)


def _key(answer: Answer) -> object:
    if isinstance(answer, Reply):
        return answer.pick, answer.error
    return answer.kind if isinstance(answer, Fault) else None


def ending(answer: Answer, capture: Capture, launch: Launch) -> str:
    """How an answer ends, in the words of the coverage table; the pass is that of section 3, whatever was said."""
    if isinstance(answer, Fault):
        return f"fault: {answer.kind}"
    if not isinstance(answer, Reply) or answer.pick is None:
        return {"MissingTritonVariant": "missing", "AmbiguousTritonVariant": "ambiguous"}.get(
            getattr(answer, "error", None) or "", str(getattr(answer, "error", None) or "unasked")
        )
    return variant_ending(capture.kernels[answer.pick], launch)


def variant_ending(variant: Variant, launch: Launch) -> str:
    """How a launch that gets this variant ends."""
    rules = (Rules(strictness, options=False, source=False) for strictness in STRICTEST_FIRST)
    met = next((r.strictness for r in rules if refusal(variant, launch, r) is None), None)
    if met is None:
        return "no rules"
    return "exact" if met == "exact" else "fallback" if ones_read(variant, launch) else "general"


def _regions(old: Asked, new: Asked, met: dict[tuple[str, str], list[Case]]) -> list[SelectorRegion]:
    """The regions of the differences that were met, each shrunk; the most telling fact of each case names it."""
    recogniser = Recogniser()
    found: dict[str, tuple[Feature, list[tuple[str, str]], Case]] = {}
    for change, cases in met.items():
        for case in cases:
            fact = recogniser.fact(case, *_both(old, new, case))
            known = found.setdefault(fact.id, (fact, [], case))
            if change not in known[1]:
                known[1].append(change)
    rows = []
    for fact, changes, case in found.values():
        small = shrink(case, lambda c, fact=fact: _still(old, new, recogniser, c, fact), SHRINK_TRIALS)  # type: ignore[misc]
        one, other = _both(old, new, small)
        rows.append(SelectorRegion(fact.id, fact.says, tuple(changes), small, _says(one, small), _says(other, small)))
    return rows


def _both(old: Asked, new: Asked, case: Case) -> tuple[Answer, Answer]:
    key = repr((case.capture, case.launch))
    return old.ask(key, case.capture, (case.launch,))[0], new.ask(key, case.capture, (case.launch,))[0]


def _still(old: Asked, new: Asked, recogniser: Recogniser, case: Case, fact: Feature) -> bool:
    one, other = _both(old, new, case)
    return differ(one, other) and recogniser.fact(case, one, other).id == fact.id


def _says(answer: Answer, case: Case) -> str:
    if isinstance(answer, Reply) and answer.pick is not None:
        variant = case.capture.kernels[answer.pick]
        ones = ones_read(variant, case.launch)
        reads = f", reading {', '.join(ones)}" if ones else ""
        return f"{variant.hash} ({variant_ending(variant, case.launch)}{reads})"
    return ending(answer, case.capture, case.launch)
