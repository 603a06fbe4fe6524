"""Obligations about bytes: each interchangeable pair has a verdict, by symbolic replay or on a device."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from foldproof.reports.duty import Asked, Row, Word
from foldproof.reports.events import BytesJudged
from foldproof.reports.evidence import BUNDLED, AtHand, Evidence, Fact
from foldproof.reports.obligations import FILE, SYMBOLIC, BitsTable

Judged = Sequence[tuple[Fact, BytesJudged]]
EQUAL = ("equal modulo contraction", "equal")
OPEN = ("unknown", "owed")
RANKS = {word: rank for rank, word in enumerate((*OPEN, *EQUAL), 1)}
"""Of several launches of one pair, the word of the lowest rank speaks for the pair: first all that say "not equal"."""


def byte_rows(bits: BitsTable, found: Evidence, at_hand: AtHand) -> Iterator[Row]:
    """A row a capture, device and domain."""
    for capture in at_hand.captures or ("",):
        pairs = _pairs(bits, at_hand, capture)
        name = at_hand.names.get(capture, capture[:12] or "a capture")
        for device in bits.devices:
            judged = [
                (fact, e)
                for fact, e in found.of(BytesJudged)
                if e.what == "replay" and _is_by(e, device) and (fact.stale or e.capture_sha256 == capture)
            ]
            for domain in bits.domains:
                asked = _asked(bits, (name, at_hand.folder), None if pairs is None else len(pairs), device, domain)
                if pairs is None:
                    yield replace(asked.unmet(), settle=f"name the [[capture]] in {FILE}")
                else:
                    yield _row(asked, bits.must, pairs, domain, judged)


def _pairs(bits: BitsTable, at_hand: AtHand, capture: str) -> frozenset[frozenset[str]] | None:
    """The pairs whose bytes are owed for a capture; None where nothing says which.

    Of pairs that are named one by one, a capture owes those of its own cubins, and those of no capture's.
    """
    if isinstance(bits.pairs, str):
        return at_hand.pairs.get(capture)
    others = [set(cubins) for digest, cubins in at_hand.captures.items() if digest != capture]
    mine = set(at_hand.captures.get(capture, ()))
    named = (frozenset(pair) for pair in bits.pairs)
    return frozenset(pair for pair in named if pair <= mine or not any(pair <= cubins for cubins in others))


def _is_by(event: BytesJudged, device: str) -> bool:
    return event.by == SYMBOLIC if device == SYMBOLIC else device.lower() in event.device.lower()


def _asked(bits: BitsTable, where: tuple[str, str], pairs: int | None, device: str, domain: str) -> Asked:
    """`where` is the capture and the folder that the records go to."""
    name, folder = where
    verb = "bits" if device == SYMBOLIC else "replay"
    return Asked(
        f"bytes of {'the' if pairs is None else pairs} pair{'s' * (pairs != 1)} of {name}, {domain}, by {device}",
        "a verdict for each pair" if bits.must == "judged" else "equal, each pair",
        shlex.join(["foldproof", verb, *([] if name == BUNDLED else [name]), "--out", folder]),
        f"bytes of {name}, {domain}, by {device}",
    )


def _row(asked: Asked, must: str, pairs: frozenset[frozenset[str]], domain: str, judged: Judged) -> Row:
    if not pairs:
        return replace(asked.unmet(), observed="no two variants are interchangeable", verdict="holds", settle="")
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
    verdict: Word = "owed" if any(counts[word] for word in OPEN) else "holds"
    if must == "equal" and any(number for word, number in counts.items() if word not in RANKS):
        verdict = "fails"
    fact, event = fresh[-1]
    return asked.shown(fact, verdict, counted(counts) + (f" on {event.device}, {event.date}" if event.device else ""))


def counted(counts: Mapping[str, int]) -> str:
    """Words with their numbers, `339 equal, 64 differs`; "no pair" where there is none."""
    return ", ".join(f"{number} {word}" for word, number in sorted(counts.items()) if number) or "no pair"


def scenario_row(device: str, found: Evidence, check: str) -> Row:
    """The scenarios on one device: every token and every byte of output. `check` takes the receipt in."""
    asked = Asked(
        f"scenarios on {device}",
        "tokens and bytes equal",
        f"python3 -m foldproof.gpu.replay.device --out receipts, on the device; then {check} --receipts receipts",
        f"scenarios on {device}",
    )
    judged = [pair for pair in found.of(BytesJudged) if pair[1].what == "scenarios" and _is_by(pair[1], device)]
    if not judged:
        return asked.unmet()
    fact, event = next((pair for pair in reversed(judged) if not pair[0].stale), judged[-1])
    counts = event.counts.get("scenarios", {})
    words = {word for word, number in counts.items() if number}
    verdict: Word = "fails" if "differs" in words else "holds" if words == {"equal"} else "owed"
    return asked.shown(fact, verdict, f"{counted(counts)} on {event.device}, {event.date}")
