"""Tallies of ranges as bytes, so that an exhaustive run that was killed goes on from what it had counted.

A file's name holds the digest of its bytes: one that was cut or changed is passed over, and its range decided again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec
from foldproof.impl.strictjson import NOT_JSON
from foldproof.props.exhaust_external import Exhausted, Run
from foldproof.props.tally import Finding, Tally


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    start: int
    stop: int
    outcomes: dict[str, int]
    kinds: tuple[tuple[str, str, int], ...]
    findings: tuple[tuple[tuple[int, int, int], int, int], ...]
    """Of each the rank, which says the case (its weight, capture and launch), and both picks."""


def shard_file(done: Exhausted) -> tuple[str, bytes] | None:
    """The name and the bytes of a tally; None where the selector broke: that is for the next run to see again."""
    tally = done.tally
    if done.faults or len(tally.ranges) != 1:
        return None
    kinds = tuple((*pair, count) for pair, count in sorted(tally.kinds.items()))
    findings = tuple((found.rank, found.expected, found.got) for found in tally.findings)
    kept = _Kept(*tally.ranges[0], dict(sorted(tally.outcomes.items())), kinds, findings)
    content = msgspec.json.encode(kept) + b"\n"
    return f"{kept.start}-{kept.stop}-{_digest(content)}.json", content


def known_shards(run: Run, files: Mapping[str, bytes]) -> list[Exhausted]:
    """The tallies that files hold for a run, by range; none that is damaged, or overlaps one before it."""
    found, reached = [], 0
    for kept in sorted(_whole(run, files.items()), key=lambda one: (one.start, -one.stop)):
        if kept.start >= reached:
            found.append(Exhausted(_tally(run, kept), ()))
            reached = kept.stop
    return found


def _whole(run: Run, files: Iterable[tuple[str, bytes]]) -> list[_Kept]:
    found = []
    for name, content in files:
        if name.endswith(f"-{_digest(content)}.json"):
            try:
                kept = msgspec.json.decode(content, type=_Kept)
            except NOT_JSON:
                continue
            if 0 <= kept.start < kept.stop <= run.universe.captures:
                found.append(kept)
    return found


def _tally(run: Run, kept: _Kept) -> Tally:
    findings = tuple(
        Finding(rank, run.universe.case(rank[1], rank[2]), expected, got) for rank, expected, got in kept.findings
    )
    kinds = {(expected, got): count for expected, got, count in kept.kinds}
    ranges = ((kept.start, kept.stop),)
    return Tally(run.universe, run.policy.name, ranges, kept.outcomes, kinds, findings, run.keep)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
