"""The class of a launch (T15): launches of one class get one answer, so a trace is as large as its classes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import msgspec
from foldproof.impl.capture import INT_TYPES
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.launch import INT_KINDS, Arg, Kind, Launch
from foldproof.impl.rules import RANGE32_BYTES
from foldproof.release.launches import Counted

MOST_CLASSES = 100_000
"""Launch classes that are kept at once; a day's trace of an engine has some hundreds."""
_ENDS = sorted({end for low, high in INT_TYPES.values() for end in (low, high + 1)})


def class_key(launch: Launch) -> tuple[object, ...]:
    """Equal for launches of one class: everything but the numbers, and of those what a decision may look at."""
    consts = tuple(sorted((name, const.kind, const.value) for name, const in launch.consts.items()))
    return launch.fn, tuple(map(_arg_key, launch.args)), consts, launch.options, launch.source


def _arg_key(arg: Arg) -> tuple[object, ...]:
    if arg.kind in INT_KINDS:
        return arg.name, arg.kind, arg.number == 1, arg.number % 16 == 0, bisect_right(_ENDS, arg.number)
    if arg.kind == Kind.PTR:
        small = arg.bytes is not None and arg.bytes <= RANGE32_BYTES
        return arg.name, arg.pointee, arg.number % 16 == 0, small
    return arg.name, arg.kind


def grouped(launches: Iterable[Counted]) -> list[Counted]:
    """One launch a class, the first of it, with the counts added up; in the order of their first appearance.

    Raises `InvalidLaunch` for more classes than fit a GB.
    """
    first: dict[tuple[object, ...], Counted] = {}
    counts: dict[tuple[object, ...], int] = {}
    for one in launches:
        key = class_key(one.launch)
        first.setdefault(key, one)
        if len(first) > MOST_CLASSES:
            why = f"holds more than {MOST_CLASSES} launch classes"
            raise InvalidLaunch(why, where=one.place, fix="split it, or check that these are launches of one engine")
        counts[key] = counts.get(key, 0) + one.count
    return [msgspec.structs.replace(one, count=counts[key]) for key, one in first.items()]
