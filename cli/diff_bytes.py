"""The judge of `diff`: output bytes of a pick of OLD and one of NEW, by device receipts, else by symbolic replay.

A receipt speaks for one capture: it is asked where both picks stand in that capture. Symbolic replay needs the PTX of
both picks and a launch with its grid: that of the trace, else one recorded beside either capture that admits both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import msgspec
from foldproof.cli.diff_sides import Side, joined
from foldproof.cli.evidence import receipts
from foldproof.gpu.replay import PairVerdict
from foldproof.gpu.symbolic.bits import ADMITS, BitsVerdict, Level, Pair, Replay
from foldproof.gpu.symbolic.cases import LaunchCase, case_from
from foldproof.gpu.symbolic.normal import Domain
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.errors import FoldproofError
from foldproof.impl.rules import refusal
from foldproof.release.classes import class_key
from foldproof.release.contradictions import identity
from foldproof.release.launches import Counted
from foldproof.release.pick_bytes import EVERY, Bytes, Word

WORST_FIRST = ("unstable", "differs", "no reference", "equal")
LEVELS: Mapping[Level, Word] = {
    Level.IDENTICAL: "equal",
    Level.PROVED: "equal",
    Level.PROVED_NO_NAN: "equal",
    Level.PROVED_MODULO: "equal",
    Level.DIFFERS: "differs",
    Level.UNSTABLE: "unstable",
}
"""What a verdict of symbolic replay says on its own domain; the other levels leave it open."""


@dataclass(slots=True)
class DiffJudge:
    """Answers `release.pick_bytes.Judge`; each pair is judged once a launch, until `seconds` are spent."""

    sides: tuple[Side, Side]
    replay: Replay | None
    marks: Mapping[tuple[int, str], str]
    """How `replay` calls the variant of a side and a hash."""
    cases: tuple[LaunchCase, ...]
    seconds: float
    given: str
    spent: float = 0.0
    _known: dict[tuple[str, str, str], Bytes] = field(default_factory=dict)

    def __call__(self, old: Variant, new: Variant, launch: Counted) -> Bytes:
        """The verdict on two picks under a launch."""
        device = self._on_device(old, new)
        if device is not None and device.word != "owed":
            return device
        symbolic = self._symbolic(old, new, launch)
        if symbolic.word != "owed" or device is None:
            return symbolic
        return msgspec.structs.replace(device, why=f"{device.why}; {symbolic.why}", settle=symbolic.settle)

    def _on_device(self, old: Variant, new: Variant) -> Bytes | None:
        found = []
        for side in self.sides:
            names = [side.called(v, of.digests) for v, of in zip((old, new), self.sides, strict=True)]
            said = side.told.get(frozenset(name for name in names if name is not None)) if None not in names else None
            if said is not None:
                found.append(_of_receipt(*said))
        return min(found, key=lambda one: _badness(one.word), default=None)

    def _symbolic(self, old: Variant, new: Variant, launch: Counted) -> Bytes:
        case = self._case(old, new, launch)
        if isinstance(case, str):
            return Bytes("owed", why=f"no receipt speaks of the pair, and {case}", settle=self._settle(old, new))
        key = (old.hash, new.hash, case.name)
        if key not in self._known:
            if self.spent >= self.seconds:
                why = f"no receipt speaks of the pair, and symbolic replay has had its {self.seconds:g} s"
                return Bytes("owed", why=why, settle="foldproof diff with more --bits-seconds")
            started = monotonic()
            self._known[key] = self._replayed(old, new, case)
            self.spent += monotonic() - started
        return self._known[key]

    def _replayed(self, old: Variant, new: Variant, case: LaunchCase) -> Bytes:
        marks = self._mark(0, old), self._mark(1, new)
        assert self.replay is not None, "some variant has PTX"
        assert None not in marks, "a launch is found only for variants that have PTX"
        try:
            found = self.replay.verdict(Pair(old.fn, marks[0] or "", marks[1] or "", case))
        except FoldproofError as problem:
            why = f"no receipt speaks of the pair, and its PTX {problem.why}"
            return Bytes("owed", why=why, settle=self._settle(old, new))
        reason = found.reason
        for mark, variant in zip(marks, (old, new), strict=True):
            reason = reason.replace(mark or "", variant.hash)
        return _of_bits(msgspec.structs.replace(found, reason=reason), case, self._settle(old, new))

    def _mark(self, number: int, variant: Variant) -> str | None:
        """What `replay` calls a pick of one side; the other side's PTX is as good where its code is the same."""
        own = self.marks.get((number, variant.hash))
        other = self.sides[1 - number].called(variant, self.sides[number].digests) if own is None else None
        return own if other is None else self.marks.get((1 - number, other))

    def _case(self, old: Variant, new: Variant, launch: Counted) -> LaunchCase | str:
        """The launch to replay, or why there is none."""
        for number, variant in enumerate((old, new)):
            if self._mark(number, variant) is None:
                return f"{variant.hash} has no PTX beside {self.sides[number].path}"
        wanted = class_key(launch.launch)
        fitting = [
            case
            for case in (*_recorded(launch), *self.cases)
            if case.grid is not None
            and case.launch.fn == old.fn
            and all(refusal(v, case.launch, ADMITS) is None for v in (old, new))
        ]
        own = (case for case in fitting if class_key(case.launch) == wanted)
        return next(own, None) or next(iter(fitting), None) or "no launch with its grid admits both"

    def _settle(self, old: Variant, new: Variant) -> str:
        """The command that would settle the pair."""
        trace = f" --trace {self.given}" if self.given else ""
        for side in reversed(self.sides):
            if all(side.called(v, of.digests) for v, of in zip((old, new), self.sides, strict=True)):
                return f"foldproof replay {side.path}{trace}, on a device"
        if identity(old) != identity(new):
            before, after = (side.path for side in self.sides)
            return f"foldproof merge {before} {after} --out joined, then foldproof replay joined{trace}, on a device"
        return "put both entries into one capture, the new one under another hash, and foldproof replay it, on a device"


def _recorded(launch: Counted) -> Iterator[LaunchCase]:
    """The launch itself as a case, where its record says a grid."""
    if isinstance(launch.record, dict) and "grid" in launch.record:
        yield case_from(launch.record, launch.place)


def _badness(word: str) -> int:
    return WORST_FIRST.index(word) if word in WORST_FIRST else len(WORST_FIRST)


def _of_receipt(judged: PairVerdict, title: str) -> Bytes:
    domains = {str(domain): str(verdict.word) for domain, verdict in judged.verdicts.items()}
    every = judged.verdicts["every bit pattern"]
    if every.word == "fault":
        return Bytes("owed", why=f"a device fault in {title}: {every.reason}", domains=domains)
    return Bytes(every.word, title if every.word != "owed" else "", every.reason, domains=domains)


def _of_bits(found: BitsVerdict, case: LaunchCase, settle: str) -> Bytes:
    at = f"at {case.name}"
    if found.reason.startswith("no reference: "):
        return Bytes("no reference", "symbolic replay", found.reason.removeprefix("no reference: "))
    word: Word = LEVELS.get(found.level, "owed")
    why = ", ".join(filter(None, (f"{found.level} {at}", found.reason, *(f"if {m}" for m in found.modulo))))
    if word == "owed":
        return Bytes("owed", why=why, settle=settle)
    smaller = {"no NaN": "equal", "finite": "equal"} if word == "equal" else {}
    if found.domain == Domain.NO_NAN.value:
        return Bytes("owed", "symbolic replay", why, settle, {**smaller, EVERY: "owed"})
    return Bytes(word, "symbolic replay", why, domains={**smaller, EVERY: word})


@contextmanager
def diff_judge(
    old: tuple[Path, Capture], new: tuple[Path, Capture], folders: Sequence[Path], seconds: float, given: str = ""
) -> Iterator[DiffJudge]:
    """The judge of two captures; `folders` hold receipts besides those that ship. `given`: the file of the launches.

    For symbolic replay the PTX and cubins of both stand in one folder of links while the context is open. Raises
    `FoldproofError` for receipts or recorded launches that cannot be read.
    """
    for folder in folders:
        if not folder.is_dir():
            raise FoldproofError("is no folder", where=str(folder), fix="name a folder that foldproof replay wrote")
    found = receipts(*folders)
    sides = Side.of(*old, found), Side.of(*new, found)
    cases = tuple(case for side in sides for case in side.cases())
    with tempfile.TemporaryDirectory(prefix="foldproof-") as name:
        marks = joined(Path(name), sides)
        yield DiffJudge(sides, Replay.open(Path(name)) if marks else None, marks, cases, seconds, given)
