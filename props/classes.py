"""Classes of args and places for them: what of a value and of a param a decision can turn on (T15)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from foldproof.impl.capture import Const, Param, Variant
from foldproof.impl.launch import INT_KINDS, Arg, Kind
from foldproof.impl.rules import RANGE32_BYTES
from foldproof.props.mutate import Numbers
from numpy.typing import NDArray

NOWHERE = "-"
"""The place of an arg in a launch that gets no variant."""
SWITCHES = ("div16", "nospec", "noalign", "annotated", "range32")
_INT_CLASSES = ("other", "multiple of 16", "1")


def each_class() -> Iterator[Arg]:
    """One arg of each class, all named "a"."""
    for kind, numbers in ((Kind.I32, (7, 16, 1)), (Kind.I64, (2**31 + 1, 2**31, 1)), (Kind.U64, (7, 16, 1))):
        yield from (Arg("a", kind, number) for number in numbers)
    yield from (Arg("a", kind) for kind in (Kind.U1, Kind.FP32, Kind.NONE))
    for number, size in itertools.product((0x1004, 0x1000), (None, 1, 2**31)):
        yield Arg("a", Kind.PTR, number, "*bf16", size)


def each_place(arg: Arg) -> Iterator[tuple[Param | None, Const | None]]:
    """The places that the generators make: a constant, or a param with one switch, with or without div16."""
    yield None, Const(int_=1)
    yield None, Const(none=True)
    type_name = arg.type or "i32"
    for switch in ("", "nospec", "noalign", "annotated", "range32"):
        if switch == "annotated" and arg.kind not in INT_KINDS:
            continue
        for div16 in (False, True):
            more = {switch: True} if switch in ("noalign", "annotated", "range32") else {}
            yield Param("a", type_name, div16, switch == "nospec", **more), None


def class_of(arg: Arg) -> str:
    """The class of an arg in a word or two."""
    return labels(arg)[int(codes(arg.kind, np.array([arg.number & (2**64 - 1)], np.uint64))[0])]


def labels(arg: Arg) -> tuple[str, ...]:
    """The words of the classes that the arg can be in by its number, by code; its size is part of each word."""
    if arg.kind in INT_KINDS:
        return tuple(f"{arg.kind.value} {word}" for word in _INT_CLASSES)
    if arg.kind == Kind.PTR:
        size = "" if arg.bytes is None else ", small" if arg.bytes <= RANGE32_BYTES else ", large"
        return f"ptr unaligned{size}", f"ptr aligned{size}"
    return (arg.kind.value,)


def codes(kind: Kind, numbers: Numbers) -> NDArray[np.intp]:
    """The class of each number, as a place in `labels`."""
    if kind in INT_KINDS:
        return np.where(numbers == 1, 2, np.where(numbers & np.uint64(15) == 0, 1, 0))
    if kind == Kind.PTR:
        return np.where(numbers & np.uint64(15) == 0, 1, 0)
    return np.zeros(len(numbers), np.intp)


def place_of(variant: Variant, name: str) -> str:
    """How a variant takes the arg of that name, in a word: folded, none, or its param's switches."""
    return place_word(variant.param(name), variant.consts.get(name))


def place_word(param: Param | None, const: Const | None) -> str:
    """The word of a place."""
    if param is not None:
        return " ".join(switch for switch in SWITCHES if getattr(param, switch)) or "runtime"
    return NOWHERE if const is None else "none" if const.kind == "none" else "folded"
