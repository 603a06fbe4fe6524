"""Exhaustive small scopes: a selector against the batch reference on every case of a universe, counted.

A run over a range of captures is a pure function of that range; tallies of ranges that do not overlap add up to
the tally of the whole, whoever computed them and in whatever order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from foldproof.impl.batch import (
    AMBIGUOUS,
    MISSING,
    STRICTNESS_CODES,
    Decisions,
    Verdicts,
    sweep,
    verdicts_of,
)
from foldproof.impl.capture import Capture
from foldproof.impl.choose import TIE_BREAKS
from foldproof.impl.errors import FoldproofError, MissingTritonVariant
from foldproof.impl.launch import Launch
from foldproof.impl.policy import Policy
from foldproof.impl.select import Selection, decide
from foldproof.props.tally import NO_ANSWER, Finding, Tally, pick_text
from foldproof.props.universe import Universe

BLOCK_DECISIONS = 1 << 16
"""Decisions in one block: a few MB of arrays, which stay near the core, whatever the size of the universe."""
Picks = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive captures of a universe, each to be decided for every launch of the universe."""

    universe: Universe
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches, the same for every block of a universe."""
        return self.universe.launches

    @property
    def type_ids(self) -> npt.NDArray[np.intp]:
        """A row a capture: which of `universe.plain_variants` stands at each place."""
        return self.universe.type_ids(self.start, self.stop)


class BatchSelector(Protocol):
    """A selector under test that decides whole blocks. Adapters wrap a C ABI, a process, or the reference."""

    def decide_many(self, block: Block) -> Picks:
        """The picks, int32 of shape (captures of the block, launches); what it raises ends the run.

        Each is an index into the capture's `kernels`, `MISSING`, `AMBIGUOUS` or `NO_ANSWER`. The captures are
        `block.universe.capture(n)` (or, as bytes, `capture_json(n)`) for n from `block.start` to `block.stop`.
        """


def exhaust(  # noqa: PLR0913 - a range, and three choices that have a plain default
    selector: BatchSelector,
    universe: Universe,
    policy: Policy,
    *,
    start: int = 0,
    stop: int | None = None,
    keep: int = 5,
    progress: Callable[[Tally], None] | None = None,
) -> Tally:
    """Compare the selector with the reference on captures `start` to `stop` of the universe, with every launch.

    `progress` is told the tally so far after each block. Raises `InvalidPolicy` for a policy that the batch
    reference cannot decide, `FoldproofError` for a range outside the universe or picks that are no answer.
    """
    end = universe.captures if stop is None else stop
    if not 0 <= start <= end <= universe.captures:
        why = f"captures {start} to {end} are outside the {universe.captures} of the universe"
        raise FoldproofError(why, where="the shard", fix="use Universe.shards")
    step = max(1, BLOCK_DECISIONS // universe.launch_count)
    tally = Tally(universe, policy.name, (), {}, {}, (), keep)
    for first in range(start, end, step):
        block = Block(universe, first, min(first + step, end))
        tally += _compared(block, selector.decide_many(block), reference(block, policy), policy, keep)
        if progress is not None:
            progress(tally)
    return tally


def reference(block: Block, policy: Policy) -> Decisions:
    """The reference decisions of a block, launches counting fastest (`ones` is left 0: a pick says it)."""
    table, types, launches = _verdicts(block.universe, policy), block.type_ids, block.universe.launch_count
    verdicts = Verdicts(
        _gathered(table.bits, types, launches),
        {
            key: _ranks(key, types, launches) if key in TIE_BREAKS else _gathered(rows, types, launches)
            for key, rows in table.keys.items()
        },
        {name: _gathered(rows, types, launches) for name, rows in table.traits.items()},
    )
    picks, strictness = sweep(verdicts, policy)
    return Decisions(picks, strictness, np.zeros(picks.size, np.uint64))


@dataclass(frozen=True, slots=True)
class ReferenceSelector:
    """The batch reference of a policy as a selector under test."""

    policy: Policy

    def decide_many(self, block: Block) -> Picks:
        """See `BatchSelector`."""
        return reference(block, self.policy).picks.reshape(len(block), -1)


@dataclass(frozen=True, slots=True)
class DecideSelector:
    """`impl.select.decide`, case by case: `exhaust` of it proves the batch reference equal to it on a universe."""

    policy: Policy

    def decide_many(self, block: Block) -> Picks:
        """See `BatchSelector`."""
        captures = (block.universe.capture(number) for number in range(block.start, block.stop))
        picks = [[_pick(capture, launch, self.policy) for launch in block.launches] for capture in captures]
        return np.array(picks, np.int32)


def _pick(capture: Capture, launch: Launch, policy: Policy) -> int:
    outcome = decide(capture, launch, policy)
    if isinstance(outcome, Selection):
        return outcome.index
    return MISSING if outcome.code == MissingTritonVariant.code else AMBIGUOUS


@cache
def _verdicts(universe: Universe, policy: Policy) -> Verdicts:
    """The verdicts of every kind of variant on every launch: a few thousand questions to the rules."""
    return verdicts_of(universe.plain_variants, universe.launches, policy)


def _gathered(rows: npt.NDArray[Any], types: npt.NDArray[np.intp], launches: int) -> npt.NDArray[Any]:
    """From a row a kind to a row a place: columns are captures, then launches."""
    cells = rows[types.T]
    return np.broadcast_to(cells, (*cells.shape[:2], launches)).reshape(types.shape[1], -1)


def _ranks(key: str, types: npt.NDArray[np.intp], launches: int) -> npt.NDArray[np.int32]:
    """What a tie-break says of each place: it looks at the place, or at the hash, which is kind, then place."""
    places = np.arange(types.shape[1])
    by_place = types * len(places) + places if key == "hash" else np.broadcast_to(-places, types.shape)
    return np.repeat(by_place.T.astype(np.int32), launches, axis=1)


def _compared(block: Block, picks: Picks, wanted: Decisions, policy: Policy, keep: int) -> Tally:
    universe, shape = block.universe, (len(block), block.universe.launch_count)
    if picks.shape != shape or picks.dtype != np.int32:
        why = f"gave {picks.dtype} picks of shape {picks.shape}, not int32 of {shape}"
        raise FoldproofError(why, where="decide_many", fix="answer each launch of each capture of the block")
    given = picks.ravel()
    wrong = np.flatnonzero(given != wanted.picks)
    pairs = _words(wanted.picks[wrong], universe) * len(_WORDS) + _words(given[wrong], universe)
    counts = np.bincount(pairs, minlength=len(_WORDS) ** 2)
    kinds = {(_WORDS[i // len(_WORDS)], _WORDS[i % len(_WORDS)]): int(counts[i]) for i in np.flatnonzero(counts)}
    findings = []
    for weight, place in _smallest(block, wrong, keep):
        capture, launch = block.start + place // shape[1], place % shape[1]
        case = universe.case(capture, launch)
        findings.append(Finding((weight, capture, launch), case, int(wanted.picks[place]), int(given[place])))
    return Tally(universe, policy.name, ((block.start, block.stop),), _outcomes(wanted), kinds, tuple(findings), keep)


def _smallest(block: Block, wrong: npt.NDArray[np.intp], keep: int) -> list[tuple[int, int]]:
    """The weights and places in the block of the smallest cases among `wrong`, smallest first."""
    if not wrong.size:
        return []
    weights = block.universe.capture_weights(block.type_ids)[wrong // block.universe.launch_count]
    order = (weights << 32) + wrong
    chosen = np.sort(np.partition(order, keep - 1)[:keep] if keep < order.size else order)
    return [divmod(int(rank), 1 << 32) for rank in chosen[:keep]]


_WORDS = ("a variant", pick_text(MISSING), pick_text(AMBIGUOUS), pick_text(NO_ANSWER), "out of range")


def _words(picks: Picks, universe: Universe) -> npt.NDArray[np.intp]:
    """Each pick as a place in `_WORDS`."""
    words = np.where(picks >= 0, 0, np.minimum(-picks.astype(np.intp), 3))
    words[picks >= universe.variants] = 4
    return words


def _outcomes(decisions: Decisions) -> dict[str, int]:
    """How often the reference answered with each strictness or error."""
    counts = {
        name or "no strictness": int((decisions.strictness == code).sum()) for code, name in enumerate(STRICTNESS_CODES)
    }
    counts |= {pick_text(pick): int((decisions.picks == pick).sum()) for pick in (MISSING, AMBIGUOUS)}
    return {name: count for name, count in counts.items() if count}
