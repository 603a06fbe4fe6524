"""Input bytes from a counter-based generator: the same seed gives the same bytes on every machine, set by set.

A set belongs to a *class*: finite numbers, numbers with infinities, NaNs. The input domains of a verdict are nested:
"finite" is the first class, "no NaN" the first two, "every bit pattern" all three. Within a class the sets are drawn in
several *kinds*, in turn. Each kind of each buffer is one Philox stream, its sets lie in it one after the other, so that
many sets are drawn at once and any one of them alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from foldproof.gpu.replay.arena import Region
from foldproof.gpu.replay.formats import FLOATS, INTS, FloatFormat, extremes, item_bytes

SetClass: TypeAlias = Literal["finite", "infinite", "nan"]
DomainName: TypeAlias = Literal["finite", "no NaN", "every bit pattern"]
CLASSES: tuple[SetClass, ...] = ("finite", "infinite", "nan")
DOMAINS: Mapping[DomainName, tuple[SetClass, ...]] = {
    "finite": ("finite",),
    "no NaN": ("finite", "infinite"),
    "every bit pattern": CLASSES,
}
KINDS: Mapping[SetClass, tuple[str, ...]] = {
    "finite": ("moderate", "small", "cancelling", "wide", "extremes"),
    "infinite": ("infinities", "mixed"),
    "nan": ("payloads", "bits"),
}
"""How the sets of a class are drawn, in turn."""
SEARCH_FROM = 1 << 20
"""Sets of the class "finite" from this index on are those of a search, drawn in turn as SEARCH_KINDS says.

A sum of ordinary numbers differs by an ulp of fp32 in about every third row, and a bf16 output shows that in about one
of 300 rows (a simulation of the trees): where bits are expected to differ and did not, only many ordinary rows tell.
"""
SEARCH_KINDS = ("moderate", "small")

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Words: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_CHUNK = 1 << 18
"""Bytes that are drawn at once, so that what lies between raw words and the result stays in a cache."""
_BLOCK_WORDS = 4
"""64-bit words that Philox gives for one value of its counter."""


def kinds_of(index: int, cls: SetClass) -> tuple[str, ...]:
    """The kinds through which the sets around that index go in turn."""
    return SEARCH_KINDS if index >= SEARCH_FROM else KINDS[cls]


def kind_of(cls: SetClass, index: int) -> str:
    """How the set of that index within its class is drawn."""
    kinds = kinds_of(index, cls)
    return kinds[index % len(kinds)]


def payload(seed: int, fn: str, region: Region, cls: SetClass, index: int) -> Bytes:
    """The input bytes of a region in one set: a function of its arguments alone."""
    only: Bytes = block(seed, fn, region, cls, range(index, index + 1))[0]
    return only


def block(seed: int, fn: str, region: Region, cls: SetClass, indices: range) -> Bytes:
    """The input bytes of a region in several sets of one kind, a row each; `indices` steps by the number of kinds.

    The stream is keyed by seed, function, the names of the arguments, class and kind; sets of a search have their own.
    """
    first = indices[0]
    kinds = kinds_of(first, cls)
    if len(indices) > 1 and indices.step != len(kinds):
        raise ValueError(f"sets {indices} are not of one kind")
    search = first >= SEARCH_FROM
    kind = kinds[first % len(kinds)]
    ordinal = (first - SEARCH_FROM if search else first) // len(kinds)
    name = f"{seed}/{fn}/{region.title}/{cls}/{kind}{'/search' if search else ''}"
    width = item_bytes(region.type)
    count = -(-region.size // width)
    out = np.empty((len(indices), count), f"u{width}")
    step = max(1, _CHUNK // max(region.size, 1))
    for start in range(0, len(indices), step):
        part = out[start : start + step]
        draw = _Draw(name, ordinal + start, part.shape, 8 if region.below else width)
        part[:] = _words(draw, region, kind)
    return out.view(np.uint8)[:, : region.size]


def _words(draw: _Draw, region: Region, kind: str) -> Words:
    element = region.type.removeprefix("*")
    if element in FLOATS:
        return _FLOAT_KINDS[kind](draw, FLOATS[element])
    return _ints(draw, element, kind, region.below)


class _Draw:
    """The random words of some consecutive sets: `raw`, an element each, and `picks`, 16 bits an element."""

    __slots__ = ("_first", "_name", "_shape", "raw")

    def __init__(self, name: str, first: int, shape: tuple[int, ...], width: int) -> None:
        self._name, self._first, self._shape = name, first, shape
        self.raw: Words = self._drawn("raw", width)

    def picks(self) -> Words:
        """From a stream of its own, because most kinds need none."""
        return self._drawn("picks", 2)

    def _drawn(self, what: str, width: int) -> Words:
        sets, count = self._shape
        each = -(-count * width // (8 * _BLOCK_WORDS)) * _BLOCK_WORDS
        key = int.from_bytes(hashlib.sha256(f"{self._name}/{what}".encode()).digest()[:16], "little")
        philox = np.random.Philox(key=key, counter=self._first * each // _BLOCK_WORDS)
        # Over the whole range these are the raw words of the generator.
        words = np.random.Generator(philox).integers(0, 2**64 - 1, (sets, each), np.uint64, endpoint=True)
        return words.view(f"u{width}")[:, :count]


def _ordinary(low: int, high: int) -> Callable[[_Draw, FloatFormat], Words]:
    """Random signs and mantissas, exponents of 2 evenly from `low` to `high`."""

    def draw(draw: _Draw, form: FloatFormat) -> Words:
        raw = draw.raw
        first = max(1, form.bias + low)
        span = min(form.bias + high, (1 << form.exponent) - 2) - first + 1
        field = (raw >> form.mantissa) & ((1 << form.exponent) - 1)
        wide = field.astype(np.uint16) if raw.dtype == np.uint8 else field
        exponent = ((wide * span) >> form.exponent) + first
        words: Words = (raw & (form.sign | ((1 << form.mantissa) - 1))) | (exponent.astype(raw.dtype) << form.mantissa)
        return words

    return draw


_moderate = _ordinary(-4, 2)
_small = _ordinary(-8, -3)


def _cancelling(draw: _Draw, form: FloatFormat) -> Words:
    """Each odd element all but cancels the one before it: what is left is the last bit, or nothing."""
    words = _ordinary(-12, 6)(draw, form)
    even = words.shape[1] // 2 * 2
    words[:, 1:even:2] = (words[:, 0:even:2] ^ form.sign) ^ (words[:, 1:even:2] & 1)
    return words


def _wide(draw: _Draw, form: FloatFormat) -> Words:
    """Any finite bit pattern: what is infinite or NaN loses a bit of its exponent (or, without infinity, of all)."""
    raw = draw.raw
    if not form.infinite:
        magnitude = form.sign - 1
        return np.where((raw & magnitude) == magnitude, raw ^ 1, raw)
    return np.where((raw & form.top) == form.top, raw ^ (1 << form.mantissa), raw)


def _sprinkled(words: Words, draw: _Draw, values: Words | list[int], *, one_in: int) -> Words:
    """About one word in `one_in` (a power of 2) of each set replaced; at least one is.

    By the word at the same place of `values`, or by any of them where they are a list.
    """
    picks = draw.picks()
    hit = (picks & (one_in - 1)) == 0
    if words.shape[1]:
        hit[np.arange(len(hit)), picks[:, 0].astype(np.int64) % words.shape[1]] = True
    out = words.copy()
    if isinstance(values, list):
        out[hit] = np.asarray(values, words.dtype)[picks[hit] // one_in % len(values)]
    else:
        np.copyto(out, values, where=hit)
    return out


def _extreme(draw: _Draw, form: FloatFormat) -> Words:
    return _sprinkled(_moderate(draw, form), draw, extremes(form, infinities=False), one_in=8)


def _mixed(draw: _Draw, form: FloatFormat) -> Words:
    return _sprinkled(_wide(draw, form), draw, extremes(form, infinities=True), one_in=8)


def _infinities(draw: _Draw, form: FloatFormat) -> Words:
    words = _moderate(draw, form)
    return _sprinkled(words, draw, [form.top, form.top | form.sign], one_in=64) if form.infinite else words


def _payloads(draw: _Draw, form: FloatFormat) -> Words:
    """Moderate numbers and NaNs of both signs, quiet and signalling, with any payload (one NaN without infinity)."""
    nans = draw.raw | (form.top if form.infinite else form.sign - 1)
    if form.infinite:
        nans = np.where(nans & ((1 << form.mantissa) - 1), nans, nans | 1)
    return _sprinkled(_moderate(draw, form), draw, nans, one_in=64)


_FLOAT_KINDS: Mapping[str, Callable[[_Draw, FloatFormat], Words]] = {
    "moderate": _moderate,
    "small": _small,
    "cancelling": _cancelling,
    "wide": _wide,
    "extremes": _extreme,
    "infinities": _infinities,
    "mixed": _mixed,
    "payloads": _payloads,
    "bits": lambda draw, _: draw.raw,
}


def _ints(draw: _Draw, name: str, kind: str, below: int) -> Words:
    width, signed = INTS[name]
    if below:
        return (draw.raw % below).astype(f"u{width}")
    if name in {"i1", "u1"}:
        return draw.raw & 1
    if kind in {"moderate", "small", "infinities", "payloads"}:
        near: Words = draw.raw % 201
        return near - np.asarray(100, near.dtype) if signed else near
    if kind in {"extremes", "cancelling", "mixed"}:
        top = 1 << (8 * width)
        return _sprinkled(draw.raw, draw, [0, 1, top - 1, top // 2, top // 2 - 1], one_in=4)
    return draw.raw
