"""What a capture covers: each launch class exact, general, fallback, ambiguous or missing, and why where it misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from foldproof import __version__
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.errors import AmbiguousTritonVariant, one_line
from foldproof.impl.launch import Launch, launch_to
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Rules, Strictness, refusals
from foldproof.impl.select import Outcome, Selection, decide
from foldproof.release.classes import grouped
from foldproof.release.launches import Counted
from foldproof.release.needs import is_gap, needs_json, work_list
from foldproof.release.reachable import Reach
from foldproof.release.shapes import Family
from foldproof.release.solving import holding, without_consts

SCHEMA_VERSION = 1
WORDS = ("exact", "general", "fallback", "ambiguous", "missing", "no rules")
"""How a launch class can end. "no rules": a policy that tests less than section 3 picked what no rules admit."""


class ClassRow(msgspec.Struct, frozen=True):
    """One launch class: a launch of it, how often it happens, how it ends, and for a miss what stands in the way."""

    fn: str
    launches: int
    ends: str
    pick: str | None
    ones: tuple[str, ...]
    why: str
    first_seen: str
    launch: dict[str, Any]


class FunctionRow(msgspec.Struct, frozen=True):
    """The classes of one function by how they end, and the launches behind the classes."""

    fn: str
    variants: int
    launches: int
    classes: int
    ends: dict[str, int]
    unused: int
    """Variants of the function that none of the launches selects."""


class CoverageResult(msgspec.Struct, frozen=True):
    """What `foldproof coverage` found. `needs` is the work list in the needs format, `complete` the verdict."""

    schema_version: int
    tool: str
    capture: str
    launches_from: str
    policy: str
    strict: bool
    complete: bool
    ends: dict[str, int]
    functions: tuple[FunctionRow, ...]
    classes: tuple[ClassRow, ...]
    reachable: tuple[Reach, ...]
    needs: dict[str, Any]


def ending(outcome: Outcome) -> str:
    """The outcome in one of `WORDS`."""
    if isinstance(outcome, Selection):
        return "fallback" if outcome.is_fallback else str(outcome.strictness or "no rules")
    return "ambiguous" if outcome.code == AmbiguousTritonVariant.code else "missing"


def decided(capture: Capture, launches: Iterable[Counted], policy: Policy) -> list[tuple[Counted, Outcome]]:
    """Each launch class once, with the policy's answer."""
    own: dict[object, tuple[Capture, bool]] = {}
    rows = []
    for one in grouped(launches):
        key = one.launch.fn, tuple(sorted(one.launch.consts.items()))
        if key not in own:
            left, settled = holding(capture.kernels, one.launch, policy)
            own[key] = Capture(left), settled
        left_of, settled = own[key]
        rows.append((one, decide(left_of, without_consts(one.launch) if settled else one.launch, policy)))
    return rows


def coverage(  # noqa: PLR0913 (the whole of what is asked)
    capture: Capture,
    launches: Iterable[Counted],
    policy: Policy,
    *,
    strict: bool = False,
    names: tuple[str, str] = ("", ""),
    reachable: Sequence[Reach] = (),
) -> CoverageResult:
    """The coverage of the launches, joined with what was shown of reachable ones. `names` are those of the inputs."""
    rows = decided(capture, launches, policy)
    families = {fn: Family.of(fn, capture.kernels) for fn in dict.fromkeys(one.launch.fn for one, _ in rows)}
    loosest = policy.rules(Strictness.RUNTIME_ONE)
    why = Nearest(loosest)
    classes = [_class_row(one, outcome, families[one.launch.fn], why) for one, outcome in rows]
    gaps: dict[str, list[tuple[Launch, int]]] = {}
    for one, outcome in rows:
        if is_gap(outcome, strict):
            gaps.setdefault(one.launch.fn, []).append((one.launch, one.count))
    work = [pair for fn, found in gaps.items() for pair in work_list(families[fn], found, policy, strict)]
    work += [(need, 0) for reach in reachable for need in reach.needed()]
    served = {(row.fn, row.pick) for row in classes}
    rows_of: dict[str, list[ClassRow]] = {}
    for row in classes:
        rows_of.setdefault(row.fn, []).append(row)
    functions = [_function_row(family, rows_of[fn], served) for fn, family in families.items()]
    ends = Counter(row.ends for row in classes)
    unserved = ends["missing"] + ends["ambiguous"] + (ends["fallback"] if strict else 0)
    return CoverageResult(
        SCHEMA_VERSION,
        f"foldproof {__version__}",
        *names,
        policy.name,
        strict,
        not unserved and all(reach.complete for reach in reachable),
        {word: ends[word] for word in WORDS},
        tuple(functions),
        tuple(classes),
        tuple(reachable),
        needs_json(sorted(work, key=lambda pair: _size(pair[0]))),
    )


def _size(launch: Launch) -> tuple[int, int]:
    """How much a variant for the launch assumes at most, then its args: the smallest work first."""
    return sum(arg.number % 16 == 0 or arg.number == 1 for arg in launch.args), len(launch.args)


def _class_row(one: Counted, outcome: Outcome, family: Family, nearest: Nearest) -> ClassRow:
    picked = outcome if isinstance(outcome, Selection) else None
    if isinstance(outcome, Selection):
        why = ""
    elif outcome.code == AmbiguousTritonVariant.code:
        why = one_line(outcome.detail)
    else:
        why = nearest.of(family, one.launch)
    return ClassRow(
        one.launch.fn,
        one.count,
        ending(outcome),
        None if picked is None else picked.variant.hash,
        () if picked is None else picked.ones,
        why,
        one.place,
        launch_to(one.launch),
    )


@dataclass(frozen=True, slots=True)
class Nearest:
    """Why a launch misses, argument by argument, under the loosest rules: the candidate that fewest of them refuse.

    Among those whose constants differ in fewest, which are kept by the launch's constants; a launch is rarely meant
    for another constant.
    """

    rules: Rules
    _close: dict[object, tuple[tuple[Variant, ...], bool]] = field(default_factory=dict)

    def of(self, family: Family, launch: Launch) -> str:
        """The candidate, and all that refuses it."""
        if not family.variants:
            return "the capture has no variant of this function"
        key = family.fn, tuple(sorted(launch.consts.items()))
        if key not in self._close:
            self._close[key] = self._closest(family, launch)
        close, differ = self._close[key]
        asked = launch if differ else without_consts(launch)
        found = [(list(refusals(variant, asked, self.rules)), variant.hash) for variant in close]
        refused, mark = min(found, key=lambda pair: len(pair[0]))
        return f"nearest is {mark}: {'; '.join(map(str, refused))}"

    @staticmethod
    def _closest(family: Family, launch: Launch) -> tuple[tuple[Variant, ...], bool]:
        wanted = launch.consts.items()
        others = [sum(v.consts.get(name) != const for name, const in wanted) for v in family.variants]
        fewest = min(others)
        return tuple(v for v, other in zip(family.variants, others, strict=True) if other == fewest), fewest > 0


def _function_row(family: Family, rows: Sequence[ClassRow], served: set[tuple[str, str | None]]) -> FunctionRow:
    ends = Counter(row.ends for row in rows)
    unused = sum((family.fn, v.hash) not in served for v in family.variants)
    launches = sum(row.launches for row in rows)
    counts = {word: ends[word] for word in WORDS}
    return FunctionRow(family.fn, len(family.variants), launches, len(rows), counts, unused)
