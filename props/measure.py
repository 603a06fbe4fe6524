"""Two sides measured in one run, taking turns, so that a busy machine is busy for both; and curves over a size.

Only ratios of such medians are worth comparing between machines and days: a time alone says what else was running.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

import msgspec
import numpy as np

REGRESSION = 2.0
"""A ratio that is worse by this factor than the kept one is a regression."""
Action = Callable[[], object]
Clock = Literal["cpu", "wall"]


@dataclass(frozen=True, slots=True)
class Side:
    """One way to do the work: `units` of it (launches, theorems, rows) a call of `action`."""

    name: str
    action: Action
    units: float = 1.0


@dataclass(frozen=True, slots=True)
class Measure:
    """What is compared: our way with another one, in seconds a unit.

    `clock`: "cpu" counts what this process and its finished children computed, so that waiting for a core costs
    nothing; "wall" is for work that a process beside this one does. `warm`: each side runs once uncounted before.
    """

    name: str
    what: str
    unit: str
    ours: Side
    theirs: Side
    repeats: int
    clock: Clock = "cpu"
    warm: bool = True


@dataclass(frozen=True, slots=True)
class Curve:
    """One action at growing sizes: `sides` has a side for each of `sizes`, the least size first."""

    name: str
    what: str
    axis: str
    unit: str
    sizes: Sequence[int]
    sides: Sequence[Side] = field(repr=False)
    repeats: int
    warm: bool = True


class NotMeasured(msgspec.Struct, frozen=True):
    """Something that was asked for and cannot be measured here, and why."""

    name: str
    why: str


class Spread(msgspec.Struct, frozen=True):
    """Seconds a unit: the median of the runs, the least and the most."""

    name: str
    median: float
    least: float
    most: float


class Measured(msgspec.Struct, frozen=True):
    """A measure taken. `ratio`: how many times the seconds of ours theirs takes; more is better for us."""

    name: str
    what: str
    unit: str
    ours: Spread
    theirs: Spread
    ratio: float
    repeats: int
    clock: Clock


class Point(msgspec.Struct, frozen=True):
    """Seconds a unit at one size."""

    size: int
    seconds: Spread


class Grown(msgspec.Struct, frozen=True):
    """A curve taken. `exponent` is the least squares slope of log seconds over log size, from `first` to `last`.

    `ratio` is the cost for one of the size at the least size over that at the largest: 1 for a straight line through
    zero, less for a curve that bends up. More is better, as with a measure.
    """

    name: str
    what: str
    axis: str
    unit: str
    points: tuple[Point, ...]
    exponent: float
    first: int
    last: int
    ratio: float
    repeats: int


Item = Measure | Curve | NotMeasured
Taken = Measured | Grown | NotMeasured


def take(item: Item) -> Taken:
    """Measure it, here and at once."""
    if isinstance(item, Measure):
        return _compared(item)
    return _grown(item) if isinstance(item, Curve) else item


def _compared(of: Measure) -> Measured:
    ours, theirs = in_turn((of.ours, of.theirs), of.repeats, of.clock, warm=of.warm)
    return Measured(of.name, of.what, of.unit, ours, theirs, theirs.median / ours.median, of.repeats, of.clock)


def _grown(of: Curve) -> Grown:
    spreads = in_turn(of.sides, of.repeats, "cpu", warm=of.warm)
    points = tuple(Point(size, spread) for size, spread in zip(of.sizes, spreads, strict=True))
    upper = larger_half(points)
    exponent = slope([p.size for p in upper], [p.seconds.median for p in upper])
    each = [p.seconds.median / p.size for p in points]
    ends = upper[0].size, upper[-1].size
    return Grown(of.name, of.what, of.axis, of.unit, points, exponent, *ends, each[0] / each[-1], of.repeats)


def in_turn(sides: Sequence[Side], repeats: int, clock: Clock = "cpu", *, warm: bool = True) -> list[Spread]:
    """The spread of each side over rounds in which every side runs once; every other round runs them backwards.

    A side that went first each time would find other caches and another clock than one that always follows.
    """
    for side in sides if warm else ():
        side.action()
    found: list[list[float]] = [[] for _ in sides]
    for turn in range(repeats):
        order = range(len(sides)) if turn % 2 == 0 else reversed(range(len(sides)))
        for place in order:
            side = sides[place]
            found[place].append(seconds(side.action, clock) / side.units)
    return [Spread(s.name, median(f), min(f), max(f)) for s, f in zip(sides, found, strict=True)]


def seconds(action: Action, clock: Clock = "cpu") -> float:
    """How long the action takes by the clock; never 0, so that a ratio is a number."""
    read = time.perf_counter if clock == "wall" else _computed
    began = read()
    action()
    return max(read() - began, 1e-9)


def _computed() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def larger_half(points: Sequence[Point]) -> Sequence[Point]:
    """The points of the larger sizes, at least two: below them what does not depend on the size hides the growth."""
    return points[min(len(points) // 2, len(points) - 2) :]


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The least squares slope of log value over log size: the p of a curve that grows as size^p."""
    fitted = np.polyfit([math.log(size) for size in sizes], [math.log(value) for value in values], 1)
    return float(fitted[0])


def ratios(taken: Sequence[Taken]) -> dict[str, float]:
    """The ratio of each measure and curve by its name."""
    return {one.name: one.ratio for one in taken if not isinstance(one, NotMeasured)}


def regressions(now: dict[str, float], kept: dict[str, float]) -> Iterator[str]:
    """A line for each ratio that is worse by `REGRESSION` or more than the kept one."""
    for name in sorted(now.keys() & kept.keys()):
        if now[name] * REGRESSION <= kept[name]:
            yield f"{name}: {now[name]:.3g} x, kept {kept[name]:.3g} x: worse by {kept[name] / now[name]:.1f}"
