"""Small universes: every capture and every launch of one size, numbered, none left out and none twice.

An int param is folded, read at run time, read as div16, or nospec; a pointer div16 or not. An int arg is 1, a
multiple of 16 or another value; a pointer is aligned or not. `free_const` adds a constant B of 64 or 128 to the
variants, which a launch names as 64 or leaves free; `options` adds num_warps of 4 or 8, which a launch pins to
4 or leaves open.

No symmetry is reduced: every order of the candidates counts, equal variants under two hashes too, and args keep
their names and places. The one reduction is T15: each class of values is met by one value of it, set here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import msgspec
import numpy as np
import numpy.typing as npt
from foldproof.impl.capture import Capture, Const, Param, Variant
from foldproof.impl.cases import Case, capture_to
from foldproof.impl.errors import FoldproofError
from foldproof.impl.launch import Arg, Kind, Launch

FN = "k"
POINTEE = "*bf16"
MOST_TYPES = 1 << 12
"""Kinds of variant in a universe: beyond, the verdicts of each on each launch would no longer be small."""
INT_STATES = ("runtime", "div16", "nospec", "folded")
_FREE = (64, 128)
_WARPS = (4, 8)


@dataclass(frozen=True, slots=True)
class Universe:
    """The captures of exactly `variants` variants of `ints` int and `ptrs` pointer params, and their launches.

    `div16`, `other` and the two addresses are the values that stand for their classes. Raises `FoldproofError`
    for sizes that are none, or that no machine would finish.
    """

    variants: int = 3
    ints: int = 2
    ptrs: int = 2
    free_const: bool = False
    options: bool = False
    div16: int = 16
    other: int = 7
    aligned: int = 0x1000
    unaligned: int = 0x1008

    def __post_init__(self) -> None:
        if self.variants < 1 or self.ints < 0 or self.ptrs < 0 or self.ints + self.ptrs < 1:
            why = f"{self.variants} variants x {self.ints} ints + {self.ptrs} pointers is no scope"
            raise FoldproofError(why, where="the universe", fix="give at least one variant and one param")
        if self.type_count > MOST_TYPES or self.variants > 8 or self.captures > 2**62:
            why = f"{self.type_count} kinds of variant, {self.variants} a capture, are more than can be exhausted"
            raise FoldproofError(why, where="the universe", fix=f"stay within {MOST_TYPES} kinds and 8 variants")
        values = (self.div16 % 16 == 0, self.other % 16 != 0 and self.other != 1)
        addresses = (self.aligned % 16 == 0, self.unaligned % 16 != 0)
        if not all((*values, *addresses)):
            why = "a value does not stand for its class"
            raise FoldproofError(why, where="the universe", fix="div16 and aligned are multiples of 16, the others not")

    @property
    def type_count(self) -> int:
        """How many different variants there are, hashes aside."""
        return int(4**self.ints * 2**self.ptrs * 2**self.free_const * 2**self.options)

    @property
    def launch_count(self) -> int:
        """How many different launches there are."""
        return int(3**self.ints * 2**self.ptrs * 2**self.free_const * 2**self.options)

    @property
    def captures(self) -> int:
        """How many ordered captures there are."""
        return int(self.type_count**self.variants)

    @property
    def decisions(self) -> int:
        """Captures times launches."""
        return self.captures * self.launch_count

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Every launch, the plainest first."""
        return _launches(self)

    @property
    def plain_variants(self) -> tuple[Variant, ...]:
        """Every kind of variant, the plainest first, with its number as hash."""
        return _kinds(self)[0]

    def type_ids(self, start: int, stop: int) -> npt.NDArray[np.intp]:
        """The kind numbers of the variants of captures `start` to `stop`, a row a capture, candidate order."""
        numbers = np.arange(start, stop)
        weights = [self.type_count**place for place in reversed(range(self.variants))]
        return np.stack([numbers // weight % self.type_count for weight in weights], axis=1)

    def capture(self, number: int) -> Capture:
        """One capture. Hashes are kind, then place: the order of hashes is not the candidate order."""
        return Capture(tuple(self.variant(kind, place) for place, kind in enumerate(self._kinds_of(number))))

    def capture_json(self, number: int) -> bytes:
        """The capture as `aot.json` holds it, put together from prepared pieces (a microsecond)."""
        entries = _json_entries(self)
        return b'{"kernels":[%s]}' % b",".join(map(tuple.__getitem__, entries, self._kinds_of(number)))

    def case(self, capture: int, launch: int) -> Case:
        """One case of the universe, named by its numbers."""
        name = f"exhaust-{self.variants}x{self.ints}+{self.ptrs}-{capture}-{launch}"
        return Case(name, self.capture(capture), self.launches[launch])

    def capture_weights(self, type_ids: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        """How large each capture is for a reader: different variants first, then what is not plain about them."""
        ordered = np.sort(type_ids, axis=1)
        different = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
        weights: npt.NDArray[np.int64] = different * (1 << 20) + _kinds(self)[1][type_ids].sum(axis=1)
        return weights

    def with_variants(self, variants: int) -> Universe:
        """The same universe with another number of variants in a capture."""
        return replace(self, variants=variants)

    def shards(self, count: int) -> tuple[tuple[int, int], ...]:
        """At most `count` ranges of captures that together hold each capture once, all about the same size."""
        ends = [self.captures * part // count for part in range(count + 1)]
        return tuple((start, stop) for start, stop in itertools.pairwise(ends) if start < stop)

    def _kinds_of(self, number: int) -> list[int]:
        return [number // self.type_count**place % self.type_count for place in reversed(range(self.variants))]

    def variant(self, kind: int, place: int) -> Variant:
        """One variant as it stands at a place of a capture."""
        variant = self.plain_variants[kind]
        return msgspec.structs.replace(variant, hash=f"{variant.hash}-{place}")


@cache
def _kinds(universe: Universe) -> tuple[tuple[Variant, ...], npt.NDArray[np.int64]]:
    """The kinds of variant and how much is not plain about each."""
    states = [
        range(2 if universe.options else 1),
        range(2 if universe.free_const else 1),
        *[range(len(INT_STATES))] * universe.ints,
        *[range(2)] * universe.ptrs,
    ]
    found = [(_kind(universe, number, picked), sum(picked)) for number, picked in enumerate(itertools.product(*states))]
    return tuple(variant for variant, _ in found), np.array([weight for _, weight in found], np.int64)


def _kind(universe: Universe, number: int, picked: tuple[int, ...]) -> Variant:
    warps, free, *rest = picked
    ints, ptrs = rest[: universe.ints], rest[universe.ints :]
    states = [INT_STATES[state] for state in ints]
    params = [
        Param(f"n{i}", "i32", state == "div16", state == "nospec")
        for i, state in enumerate(states)
        if state != "folded"
    ]
    params += [Param(f"p{i}", POINTEE, bool(div16), False) for i, div16 in enumerate(ptrs)]
    consts = {f"n{i}": Const(int_=1) for i, state in enumerate(states) if state == "folded"}
    if universe.free_const:
        consts["B"] = Const(int_=_FREE[free])
    return Variant(FN, f"{number:04x}", _WARPS[warps], tuple(params), consts)


@cache
def _launches(universe: Universe) -> tuple[Launch, ...]:
    return tuple(_each_launch(universe))


def _each_launch(universe: Universe) -> Iterator[Launch]:
    pins: tuple[int | None, ...] = (None, _WARPS[0]) if universe.options else (None,)
    names: tuple[dict[str, Const], ...] = ({}, {"B": Const(int_=_FREE[0])}) if universe.free_const else ({},)
    ints = itertools.product((universe.other, universe.div16, 1), repeat=universe.ints)
    ptrs = itertools.product((universe.unaligned, universe.aligned), repeat=universe.ptrs)
    for pin, consts, values, addresses in itertools.product(pins, names, ints, ptrs):
        args = [Arg(f"n{i}", Kind.I32, value) for i, value in enumerate(values)]
        args += [Arg(f"p{i}", Kind.PTR, address, POINTEE) for i, address in enumerate(addresses)]
        yield Launch(FN, tuple(args), consts, num_warps=pin)


@cache
def _json_entries(universe: Universe) -> tuple[tuple[bytes, ...], ...]:
    """Each kind of variant in JSON, by place and kind."""
    return tuple(
        tuple(
            msgspec.json.encode(entry)
            for entry in capture_to(
                Capture(tuple(universe.variant(kind, place) for kind in range(universe.type_count)))
            )["kernels"]
        )
        for place in range(universe.variants)
    )
