"""The ladder from counts to verdicts: pure, so that it can be tested without a device.

no reference, owed, fault, unstable, differs, equal: the first that applies. `equal` is never a default: it needs sets
that were compared and a variant that wrote something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec
from foldproof.gpu.replay.bouts import Bout, Matchup, Missing
from foldproof.gpu.replay.inputs import DOMAINS, DomainName
from foldproof.gpu.replay.tally import BoutCount, Difference, PairCount, Refusal, VariantCount, merged, merged_pair

Word: TypeAlias = Literal["equal", "differs", "unstable", "no reference", "owed", "fault"]
WORDS: tuple[Word, ...] = ("equal", "differs", "unstable", "fault", "no reference", "owed")


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The verdict of one pair on one input domain: over how many sets and bytes, and the first difference.

    `why` is what the numbers do not say. `written` bytes changed in the buffers, by the variant that wrote less.
    """

    word: Word
    why: str = ""
    sets: int = 0
    differing: int = 0
    bytes: int = 0
    written: int = 0
    difference: Difference | None = None

    @property
    def reason(self) -> str:
        """The verdict's grounds in words."""
        if self.why:
            return self.why
        if self.word == "differs":
            place = f": {_place(self.difference)}" if self.difference else ""
            return f"in {self.differing} of {self.sets} sets{place}"
        return f"{self.sets} sets, {self.bytes} bytes compared, {self.written} written"


class PairVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The verdicts of two variants under one launch, by input domain.

    `expected` is what a label predicts on `domain`; `basis` says whether code was compared or run.
    """

    launch: str
    fn: str
    first: str
    second: str
    change: tuple[str, ...]
    basis: Literal["replay", "identical code", "none"]
    verdicts: dict[DomainName, Verdict]
    expected: str = ""
    domain: DomainName | None = None

    @property
    def confirmed(self) -> bool | None:
        """Whether the label's prediction came true; None where there is none or nothing was run."""
        if not self.expected or self.domain is None:
            return None
        word = self.verdicts[self.domain].word
        return None if word == "owed" else word == self.expected


def pair_verdicts(bout: Bout, count: BoutCount | None, digests: Mapping[str, str]) -> tuple[PairVerdict, ...]:
    """The verdicts of every pair of a bout. `digests` are the sha256 of the cubins, by hash; no count: not run."""
    return tuple(
        _pair(bout, matchup, count or BoutCount(bout.record.name, owed="not run"), digests) for matchup in bout.matchups
    )


def with_instability(verdicts: Iterable[PairVerdict], counts: Iterable[BoutCount]) -> tuple[PairVerdict, ...]:
    """The verdicts, with pairs of identical code corrected: code seen to differ from itself is not equal to itself."""
    unstable = {own.hash: own for count in counts for own in count.variants if own.unstable}
    corrected = []
    for pair in verdicts:
        seen = unstable.get(pair.first) or unstable.get(pair.second)
        if pair.basis == "identical code" and seen is not None:
            why = f"identical code, and under another launch {seen.hash} differs from itself run to run"
            words = {
                d: Verdict("unstable", why) if seen.set_class in DOMAINS[d] else v for d, v in pair.verdicts.items()
            }
            corrected.append(msgspec.structs.replace(pair, verdicts=words))
        else:
            corrected.append(pair)
    return tuple(corrected)


def missing_verdicts(missing: Iterable[Missing]) -> tuple[PairVerdict, ...]:
    """The verdicts of pairs of which one variant does not exist."""
    return tuple(
        PairVerdict(
            launch=f"{row.fn}: {row.first} against {row.second}",
            fn=row.fn,
            first=row.first,
            second=row.second,
            change=row.change,
            basis="none",
            verdicts={domain: Verdict("no reference", row.reason) for domain in DOMAINS},
            expected=row.expected,
            domain="every bit pattern",
        )
        for row in missing
    )


def identical(matchup: Matchup, digests: Mapping[str, str]) -> bool:
    """Whether the two variants are the same code, byte for byte."""
    first, second = digests.get(matchup.first), digests.get(matchup.second)
    return first is not None and first == second


def _pair(bout: Bout, matchup: Matchup, count: BoutCount, digests: Mapping[str, str]) -> PairVerdict:
    same = identical(matchup, digests)
    return PairVerdict(
        launch=bout.record.name,
        fn=bout.record.launch.fn,
        first=matchup.first,
        second=matchup.second,
        change=matchup.change,
        basis="identical code" if same else "replay",
        verdicts={domain: _verdict(domain, matchup, count, same=same) for domain in DOMAINS},
        expected=matchup.expected or "",
        domain=matchup.domain,  # type: ignore[arg-type]
    )


def _verdict(domain: DomainName, matchup: Matchup, count: BoutCount, *, same: bool) -> Verdict:
    refused = [r for r in count.refusals if r.hash in {matchup.first, matchup.second}]
    own = {name: _own(count, name, domain) for name in (matchup.first, matchup.second)}
    if refused:
        return _refused(refused)
    for name, counted in own.items():
        if counted is not None and (bad := _own_fault(name, counted)) is not None:
            return bad
    if same:
        return Verdict("equal", "the two cubins are the same bytes; not run")
    met = _met(count, matchup, domain)
    if count.owed or met is None or not met.sets:
        return Verdict("owed", count.owed or "not run")
    if met.differing:
        return Verdict("differs", "", met.sets, met.differing, met.bytes, difference=met.difference)
    written = min(counted.written if counted else 0 for counted in own.values())
    if not written:
        return Verdict("owed", "a variant wrote nothing, so nothing was compared", met.sets)
    return Verdict("equal", sets=met.sets, bytes=met.bytes, written=written)


def _refused(refused: list[Refusal]) -> Verdict:
    for word in ("no reference", "owed", "fault"):
        for refusal in refused:
            if refusal.word == word:
                return Verdict(word, refusal.reason)
    raise AssertionError(f"a refusal of unknown word: {refused}")


def _own_fault(name: str, counted: VariantCount) -> Verdict | None:
    """What a variant does against itself, where that rules out a comparison."""
    if counted.spills:
        return Verdict(
            "fault", f"{name} writes outside its buffers in {counted.spills} of {counted.sets} sets", counted.sets
        )
    if counted.unstable:
        why = f"{name} differs from itself run to run in {counted.unstable} of {counted.sets} sets"
        return Verdict("unstable", why, counted.sets, difference=counted.first)
    if counted.reads_fill:
        why = f"{name} reads bytes that the launch does not give it in {counted.reads_fill} of {counted.sets} sets"
        return Verdict("unstable", why, counted.sets, difference=counted.first)
    return None


def _place(where: Difference) -> str:
    first, second = where.values
    return (
        f"first in {where.buffer} at byte {where.offset}, 0x{first} against 0x{second} ({where.kind} set {where.index})"
    )


def _own(count: BoutCount, name: str, domain: DomainName) -> VariantCount | None:
    total: VariantCount | None = None
    for one in count.variants:
        if one.hash == name and one.set_class in DOMAINS[domain]:
            total = one if total is None else merged(total, one)
    return total


def _met(count: BoutCount, matchup: Matchup, domain: DomainName) -> PairCount | None:
    total: PairCount | None = None
    for one in count.pairs:
        if (one.first, one.second) == (matchup.first, matchup.second) and one.set_class in DOMAINS[domain]:
            total = one if total is None else merged_pair(total, one)
    return total
