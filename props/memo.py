"""A selector that remembers its answers by class of launch, for captures that grow and shrink.

It is right only as far as T15 (an answer depends on each arg's class alone) and T08 (removing another candidate does
not change a selection) hold of the policy: a machine that compares it with a fresh selector tests both.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

import msgspec
from foldproof.impl.capture import INT_TYPES, Capture, Variant
from foldproof.impl.launch import INT_KINDS, Arg, Kind, Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import RANGE32_BYTES, Strictness
from foldproof.impl.select import Outcome, Selection, decide

Key: TypeAlias = Hashable


class Picked(msgspec.Struct, frozen=True):
    """What is remembered: the hash of the picked variant, its pass and the ones read; or the error's code."""

    hash: str
    strictness: Strictness | None = None
    ones: tuple[str, ...] = ()
    error: str = ""

    @classmethod
    def of(cls, outcome: Outcome) -> Picked:
        """The part of an outcome that a memory may keep."""
        if isinstance(outcome, Selection):
            return cls(outcome.variant.hash, outcome.strictness, outcome.ones)
        return cls("", error=outcome.code)


class MemoSelector:
    """Answers by a policy over variants that come and go; what it has answered once it does not decide again."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.variants: list[Variant] = []
        self.decided = 0
        self._known: dict[Key, Picked] = {}

    def add(self, variant: Variant, place: int) -> None:
        """A candidate more, at a place: what was answered for its function is forgotten."""
        self.variants.insert(place, variant)
        self._known = {key: picked for key, picked in self._known.items() if fn_of(key) != variant.fn}

    def remove(self, mark: str) -> None:
        """A candidate less: only its own selections, and refusals of its function, are forgotten (T08)."""
        gone = next(variant for variant in self.variants if variant.hash == mark)
        self.variants.remove(gone)
        self._known = {
            key: picked
            for key, picked in self._known.items()
            if fn_of(key) != gone.fn or (picked.hash and picked.hash != mark)
        }

    def ask(self, launch: Launch) -> Picked:
        """The answer, from memory where a launch of the same classes was answered (T15)."""
        key = classes_of(launch)
        if key not in self._known:
            self.decided += 1
            self._known[key] = Picked.of(decide(Capture(tuple(self.variants)), launch, self.policy))
        return self._known[key]


def fn_of(key: Key) -> str:
    """The function of a remembered launch."""
    assert isinstance(key, tuple)
    return str(key[0])


def classes_of(launch: Launch) -> Key:
    """What of a launch an answer may depend on: all but the numbers, and of each number its class."""
    shape = msgspec.structs.replace(launch, args=())
    return launch.fn, msgspec.json.encode(shape), tuple(_class(arg) for arg in launch.args)


def _class(arg: Arg) -> tuple[object, ...]:
    named = arg.name, arg.kind, arg.pointee
    if arg.kind in INT_KINDS:
        # Annotated params cut the number line: which of their types hold the value is part of its class.
        fits = tuple(low <= arg.number <= high for low, high in INT_TYPES.values())
        return *named, arg.number == 1, arg.number % 16 == 0, fits
    if arg.kind == Kind.PTR:
        return *named, arg.number % 16 == 0, arg.bytes is not None and arg.bytes <= RANGE32_BYTES
    return named
