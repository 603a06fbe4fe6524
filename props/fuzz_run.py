"""A campaign from start to end: shards of rounds until the budget is spent, then each kind of finding shrunk."""

from __future__ import annotations

import atexit
import itertools
from collections.abc import Callable, Iterator
from functools import cache, partial
from time import monotonic

import msgspec
from foldproof.impl.capture import Capture
from foldproof.impl.cases import Case
from foldproof.impl.external.answers import Selector
from foldproof.impl.launch import Kind
from foldproof.impl.policy import Policy
from foldproof.props.coverage import Cell
from foldproof.props.crew import in_order
from foldproof.props.drive import ASKING, Driver, SelectorSpec, driver_of
from foldproof.props.patience import Patience
from foldproof.props.pin import Bench, Finding, Met, pin
from foldproof.props.rounds import Source, own_case
from foldproof.props.selector_campaign import Part, run_rounds

SHARD = 16
"""Rounds in one shard."""


class Plan(msgspec.Struct, frozen=True):
    """What a campaign is: everything that its result depends on, and who does it.

    `rounds` None: as many as the `seconds` allow; `seconds` None: no limit. `exitfirst` ends it after the first shard
    with a finding. A selector that hangs ends it, too: when the time is up, or when patience with it is spent.
    """

    spec: SelectorSpec
    policy: Policy
    seed: int = 0
    capture: Capture | None = None
    first: int = 0
    rounds: int | None = None
    seconds: float | None = 10.0
    exitfirst: bool = False
    workers: int = 1
    scheduler: str = ""


class Shard(msgspec.Struct, frozen=True):
    """A range of rounds, as a worker is told of it."""

    spec: SelectorSpec
    policy: Policy
    seed: int
    kinds: tuple[Kind, ...]
    capture: Capture | None
    start: int
    stop: int

    def __repr__(self) -> str:
        return f"rounds {self.start} to {self.stop} of seed {self.seed}"


class Done(msgspec.Struct, frozen=True):
    """What a campaign showed: its parts summed up, and each kind of finding shrunk. `stop` is the next round.

    `cells` holds a case for each cell that was visited. `seconds` are those of the rounds, without shrinking.
    """

    part: Part
    findings: tuple[Finding, ...]
    cells: dict[Cell, Case]
    start: int
    stop: int
    seconds: float


Tick = Callable[[float, Part], None]
"""Told the seconds gone and what was shown so far."""


def run(plan: Plan, selector: Selector, tick: Tick = lambda _, __: None) -> Done:
    """Run a campaign on a selector that has been entered; workers start their own.

    Raises `NotRun` for a scheduler that is none, and `SelectorError` for a worker that cannot start the selector.
    """
    source = Source.of(selector.kinds, plan.capture)
    began = monotonic()
    part, stop, met = _rounds(plan, driver_of(selector), source, began, tick)
    seconds = monotonic() - began
    bench = Bench(selector, plan.policy)
    findings = [
        pin(bench, raw, Met(source, plan.seed, part.kinds[kind], met.get(kind)))
        for kind, raw in sorted(part.first.items(), key=lambda pair: pair[1].order)
    ]
    cells = {cell: case_at(source, plan.seed, *where) for cell, where in part.cells.items()}
    return Done(part, tuple(findings), cells, plan.first, stop, seconds)


def case_at(source: Source, seed: int, number: int, place: int) -> Case:
    """The case at a place of a round, over the candidates of its function alone."""
    return own_case(source.round(seed, number).case(place, seed))


def _rounds(plan: Plan, driver: Driver, source: Source, began: float, tick: Tick) -> tuple[Part, int, dict[str, float]]:
    """The parts added up, the round after the last, and when each kind of finding was met."""
    part, stop, met = Part(), plan.first, dict[str, float]()
    shards = itertools.takewhile(lambda _: _has_time(plan, began), _shards(plan, source))
    inline = plan.workers == 1 and not plan.scheduler
    until = None if plan.seconds is None else began + plan.seconds
    task = partial(_inline, driver, source, Patience(), until) if inline else in_worker
    for shard, found in in_order(task, shards, workers=plan.workers, scheduler=plan.scheduler):
        part, stop = part + found, shard.start + found.rounds
        for kind in found.kinds:
            met.setdefault(kind, monotonic() - began)
        tick(monotonic() - began, part)
        if stop < shard.stop or (plan.exitfirst and not part.is_clean):
            break
    return part, stop, met


def _has_time(plan: Plan, began: float) -> bool:
    return plan.seconds is None or monotonic() - began < plan.seconds


def _shards(plan: Plan, source: Source) -> Iterator[Shard]:
    last = None if plan.rounds is None else plan.first + plan.rounds
    for start in itertools.count(plan.first, SHARD):
        if last is not None and start >= last:
            return
        stop = start + SHARD if last is None else min(start + SHARD, last)
        yield Shard(plan.spec, plan.policy, plan.seed, source.kinds, plan.capture, start, stop)


def _inline(driver: Driver, source: Source, patience: Patience, until: float | None, shard: Shard) -> Part:
    numbers = range(shard.start, shard.stop)
    return run_rounds(driver, source, shard.policy, shard.seed, numbers, patience, until)


def in_worker(shard: Shard) -> Part:
    """One shard, in a process that keeps the selector for the next one."""
    with ASKING:
        driver, patience = _kept(shard.spec)
        return _inline(driver, _source(shard.kinds, _Same(shard.capture)), patience, None, shard)


@cache
def _kept(spec: SelectorSpec) -> tuple[Driver, Patience]:
    selector = spec.open().__enter__()
    atexit.register(selector.close)
    return driver_of(selector), Patience()


class _Same:
    """A capture as a key of the cache: equal bytes are the same capture, and a `Capture` does not hash."""

    def __init__(self, capture: Capture | None) -> None:
        self.capture = capture
        self._text = msgspec.json.encode(capture)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@cache
def _source(kinds: tuple[Kind, ...], same: _Same) -> Source:
    return Source.of(frozenset(kinds), same.capture)
