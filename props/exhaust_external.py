"""Exhaustive runs on selectors under test: blocks of a universe through the C interface or the protocol.

A shard is a range of captures; its tally is a pure function of the range, so tallies add up whoever made them.
"""

from __future__ import annotations

import atexit
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, reduce
from operator import add

import msgspec
import numpy as np
from foldproof.impl.external.answers import Fault, Selector
from foldproof.impl.external.cabi import AbiSelector
from foldproof.impl.external.decision import FAULTY
from foldproof.impl.external.process import ProcessSelector
from foldproof.impl.external.records import Encoded, encode
from foldproof.impl.external.wire import launch_text
from foldproof.impl.policy import Policy
from foldproof.props.crew import in_order
from foldproof.props.drive import ASKING, SelectorSpec
from foldproof.props.exhaust import Block, Picks, exhaust
from foldproof.props.patience import Patience
from foldproof.props.tally import NO_ANSWER, Tally
from foldproof.props.universe import Universe
from foldproof.props.verdict_arrays import of_replies

KEPT_FAULTS = 8
"""Faults of a run of which the text is kept; all of them are counted as answers that are none."""
SHARD_DECISIONS = 1 << 19
"""Decisions in one shard: a second or two, so that a worker that dies costs no more."""
_HEAD, _TAIL = b'{"kernels":', b"}"


class LibrarySelector:
    """A library as `exhaust` asks: a capture a job, with every launch of the universe, encoded once."""

    def __init__(self, selector: AbiSelector) -> None:
        self._selector = selector
        self._patience = Patience()
        self.faults: list[Fault] = []

    def decide_many(self, block: Block) -> Picks:
        """See `exhaust.BatchSelector`."""
        count = block.universe.launch_count
        if self._patience.is_spent:
            return np.full((len(block), count), NO_ANSWER, np.int32)
        numbers = range(block.start, block.stop)
        texts = [block.universe.capture_json(number)[len(_HEAD) : -len(_TAIL)] for number in numbers]
        jobs = np.zeros((len(texts), 3), np.int64)
        jobs[:, 0], jobs[:, 2] = np.arange(len(texts)), count
        variants = [block.universe.variants] * len(texts)
        decided = self._selector.decide(texts, variants, _encoded(block.universe), jobs)
        answered = bool((decided.picks > FAULTY).any())
        _keep(self.faults, self._patience, decided.faults.values(), answered=answered)
        return _picks(decided.picks, (len(texts), count))


class AskedSelector:
    """A selector behind the protocol as `exhaust` asks: a capture at a time, launches as texts made once."""

    def __init__(self, selector: ProcessSelector) -> None:
        self._selector = selector
        self._patience = Patience()
        self.faults: list[Fault] = []

    def decide_many(self, block: Block) -> Picks:
        """See `exhaust.BatchSelector`."""
        universe, texts = block.universe, _texts(block.universe)
        picks = np.full((len(block), len(texts)), NO_ANSWER, np.int32)
        for row, number in enumerate(range(block.start, block.stop)):
            if self._patience.is_spent:
                break
            kernels = universe.capture_json(number)[len(_HEAD) : -len(_TAIL)]
            answers = of_replies(self._selector.ask_texts(("exhaust", number), kernels, universe.variants, texts))
            _keep(self.faults, self._patience, answers.faults.values(), answered=answers.has_any)
            picks[row] = answers.picks
        return _picks(picks, picks.shape)


@cache
def _encoded(universe: Universe) -> Encoded:
    return encode(universe.launches)


@cache
def _texts(universe: Universe) -> list[bytes]:
    return [launch_text(launch) for launch in universe.launches]


def _picks(picks: Picks, shape: tuple[int, int]) -> Picks:
    """Picks in the words of `exhaust`: what is neither a variant nor a miss nor an ambiguity is no answer."""
    return np.maximum(picks, np.int32(NO_ANSWER)).reshape(shape)


def _keep(known: list[Fault], patience: Patience, faults: Collection[Fault], *, answered: bool) -> None:
    """Keep the first faults, and what they cost of the patience; that it is spent comes before all of them."""
    known.extend(itertools.islice(faults, max(0, KEPT_FAULTS - len(known))))
    patience.note(faults, answered=answered)
    if patience.is_spent:
        known[:] = [patience.given_up(), *known][:KEPT_FAULTS]


class Shard(msgspec.Struct, frozen=True):
    """A range of captures, as a worker is told of it."""

    spec: SelectorSpec
    policy: Policy
    universe: Universe
    start: int
    stop: int
    keep: int

    def __repr__(self) -> str:
        return f"captures {self.start} to {self.stop}"


class Exhausted(msgspec.Struct, frozen=True):
    """The tally of a whole run, and the texts of its first faults."""

    tally: Tally
    faults: tuple[Fault, ...]

    def __add__(self, other: Exhausted) -> Exhausted:
        return Exhausted(self.tally + other.tally, (self.faults + other.faults)[:KEPT_FAULTS])


class Run(msgspec.Struct, frozen=True):
    """What an exhaustive run is, and who does it."""

    spec: SelectorSpec
    policy: Policy
    universe: Universe
    keep: int = 5
    workers: int = 1
    scheduler: str = ""


def run_all(
    run: Run,
    tick: Callable[[Tally], None] = lambda _: None,
    known: Sequence[Exhausted] = (),
    keep: Callable[[Exhausted], None] = lambda _: None,
) -> Exhausted:
    """Every case of the universe; what is `known` of it is not decided again, and each shard done is told to `keep`.

    Raises `SelectorError` or `NotRun` where something does not start, and what `keep` raises.
    """
    wanted = max(run.workers, -(-run.universe.decisions // SHARD_DECISIONS))
    ranges = run.universe.shards(min(wanted, run.universe.captures))
    total = reduce(add, known) if known else None
    left = [part for each in ranges for part in _without(each, total.tally.ranges if total else ())]
    shards = (Shard(run.spec, run.policy, run.universe, start, stop, run.keep) for start, stop in left)
    for _, done in in_order(run_shard, shards, workers=run.workers, scheduler=run.scheduler):
        keep(done)
        total = done if total is None else total + done
        tick(total.tally)
    assert total is not None, "a universe has at least one capture"
    return Exhausted(total.tally, (*total.faults, *_let_go(run.spec))[:KEPT_FAULTS])


def _without(each: tuple[int, int], known: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What is left of a range without those that are known, which are in order and do not overlap."""
    start, stop = each
    for first, last in known:
        if start < min(first, stop):
            yield start, min(first, stop)
        start = max(start, last)
    if start < stop:
        yield start, stop


def _let_go(spec: SelectorSpec) -> list[Fault]:
    """End the selector that this process kept, if it did; what was wrong with its end."""
    if not kept.cache_info().currsize:
        return []
    selector, _ = kept(spec)
    selector.close()
    kept.cache_clear()
    return selector.faults


def run_shard(shard: Shard) -> Exhausted:
    """One shard, in a process that keeps the selector for the next one."""
    with ASKING:
        selector, adapter = kept(shard.spec)
        tally = exhaust(adapter, shard.universe, shard.policy, start=shard.start, stop=shard.stop, keep=shard.keep)
        faults = (*adapter.faults, *selector.faults)[:KEPT_FAULTS]
        adapter.faults.clear()
        selector.faults.clear()
    return Exhausted(tally, faults)


@cache
def kept(spec: SelectorSpec) -> tuple[Selector, LibrarySelector | AskedSelector]:
    """The selector of a spec, started at the first call and ended with this process."""
    selector = spec.open().__enter__()
    atexit.register(selector.close)
    return selector, LibrarySelector(selector) if isinstance(selector, AbiSelector) else AskedSelector(selector)
