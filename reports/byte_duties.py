"""Obligations about bytes: each interchangeable pair has a verdict, by symbolic replay or on a device."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from foldproof.reports.duty import Asked, Row, Word
from foldproof.reports.events import BytesJudged
from foldproof.reports.evidence import BUNDLED, AtHand, Evidence, Fact
from foldproof.reports.obligations import SYMBOLIC, BitsTable

Judged = Sequence[tuple[Fact, BytesJudged]]
EQUAL = ("equal modulo contraction", "equal")
OPEN = ("unknown", "owed")
RANKS = {word: rank for rank, word in enumerate((*OPEN, *EQUAL), 1)}
"""Of several launches of one pair, the word of the lowest rank speaks for the pair: first all that say "not equal"."""


def byte_rows(bits: BitsTable, found: Evidence, at_hand: AtHand) -> Iterator[Row]:
    """A row a capture, device and domain."""
    for capture in at_hand.captures:
        pairs = at_hand.pairs.get(capture, frozenset())
        if not isinstance(bits.pairs, str):
            pairs = frozenset(frozenset(pair) for pair in bits.pairs)
        for device in bits.devices:
            judged = [pair for pair in found.of(BytesJudged) if pair[1].what == "replay" and _is_by(pair[1], device)]
            for domain in bits.domains:
                asked = _asked(bits, at_hand.names.get(capture, capture[:12]), len(pairs), device, domain)
                yield _row(asked, bits.must, pairs, domain, judged)


def _is_by(event: BytesJudged, device: str) -> bool:
    return event.by == SYMBOLIC if device == SYMBOLIC else device.lower() in event.device.lower()


def _asked(bits: BitsTable, name: str, pairs: int, device: str, domain: str) -> Asked:
    verb = "bits" if device == SYMBOLIC else "replay"
    return Asked(
        f"bytes of {pairs} pair{'s' * (pairs != 1)} of {name}, {domain}, by {device}",
        "a verdict for each pair" if bits.must == "judged" else "equal, each pair",
        shlex.join(["foldproof", verb, *([] if name == BUNDLED else [name]), "--out", "foldproof-report"]),
    )


def _row(asked: Asked, must: str, pairs: frozenset[frozenset[str]], domain: str, judged: Judged) -> Row:
    fresh = [(fact, event) for fact, event in judged if not fact.stale]
    if not fresh:
        if not judged:
            return asked.unmet()
        fact, event = judged[-1]
        return asked.shown(fact, "owed", counted(event.counts.get(domain, {})))
    words: dict[frozenset[str], str] = {}
    for _, event in fresh:
        for row in event.rows:
            pair, word = frozenset((row.first, row.second)), row.words.get(domain, "owed")
            words[pair] = min(words.get(pair, word), word, key=lambda w: RANKS.get(w, 0))
    counts = Counter(words.get(pair, "owed") for pair in pairs)
    verdict: Word = "holds" if pairs and not any(counts[word] for word in OPEN) else "owed"
    if must == "equal" and any(number for word, number in counts.items() if word not in RANKS):
        verdict = "fails"
    fact, event = fresh[-1]
    return asked.shown(fact, verdict, counted(counts) + (f" on {event.device}, {event.date}" if event.device else ""))


def counted(counts: Mapping[str, int]) -> str:
    """Words with their numbers, `339 equal, 64 differs`; "no pair" where there is none."""
    return ", ".join(f"{number} {word}" for word, number in sorted(counts.items()) if number) or "no pair"


def scenario_row(device: str, found: Evidence) -> Row:
    """The scenarios on one device: every token and every byte of output."""
    asked = Asked(f"scenarios on {device}", "tokens and bytes equal", "foldproof replay --scenarios on the device")
    judged = [pair for pair in found.of(BytesJudged) if pair[1].what == "scenarios" and _is_by(pair[1], device)]
    if not judged:
        return asked.unmet()
    fact, event = judged[-1]
    counts = Counter(event.counts.get("scenarios", {}))
    verdict: Word = "fails" if counts["differs"] else "holds" if counts["equal"] else "owed"
    return asked.shown(fact, verdict, f"{counted(counts)} on {event.device}, {event.date}")
