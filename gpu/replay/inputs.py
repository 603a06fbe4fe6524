"""Input bytes from a counter-based generator: the same seed gives the same bytes on every machine, set by set.

A set belongs to a *class*: finite numbers, numbers with infinities, NaNs. The input domains of a verdict are nested:
"finite" is the first class, "no NaN" the first two, "every bit pattern" all three.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from foldproof.gpu.replay.arena import Region
from foldproof.impl.errors import InvalidLaunch

SetClass: TypeAlias = Literal["finite", "infinite", "nan"]
DomainName: TypeAlias = Literal["finite", "no NaN", "every bit pattern"]
CLASSES: tuple[SetClass, ...] = ("finite", "infinite", "nan")
DOMAINS: Mapping[DomainName, tuple[SetClass, ...]] = {
    "finite": ("finite",),
    "no NaN": ("finite", "infinite"),
    "every bit pattern": CLASSES,
}
KINDS: Mapping[SetClass, tuple[str, ...]] = {
    "finite": ("moderate", "cancelling", "wide", "extremes"),
    "infinite": ("infinities", "mixed"),
    "nan": ("payloads", "bits"),
}
"""How the sets of a class are drawn, in turn."""

Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Words: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class _Float:
    """A float format by its bits; `infinite` is whether an all-ones exponent means infinity or NaN."""

    bytes: int
    mantissa: int
    exponent: int
    infinite: bool = True

    @property
    def top(self) -> int:
        """The all-ones exponent field, in place."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def sign(self) -> int:
        """The sign bit, in place."""
        return 1 << (self.mantissa + self.exponent)


_FLOATS: Mapping[str, _Float] = {
    "fp64": _Float(8, 52, 11),
    "fp32": _Float(4, 23, 8),
    "fp16": _Float(2, 10, 5),
    "bf16": _Float(2, 7, 8),
    "fp8e5": _Float(1, 2, 5),
    "fp8e4nv": _Float(1, 3, 4, infinite=False),
}
_INTS: Mapping[str, tuple[int, bool]] = {
    f"{sign}{bits}": (bits // 8, sign == "i") for sign in "iu" for bits in (8, 16, 32, 64)
} | {"i1": (1, False), "u1": (1, False)}


def item_bytes(type_: str) -> int:
    """Bytes an element of a pointer type such as `*bf16`. Raises `InvalidLaunch` for one that is not known."""
    name = type_.removeprefix("*")
    if name in _FLOATS:
        return _FLOATS[name].bytes
    if name in _INTS:
        return _INTS[name][0]
    known = ", ".join(sorted({*_FLOATS, *_INTS}))
    raise InvalidLaunch(f"inputs of type {type_} cannot be drawn", fix=f"known element types: {known}")


def kind_of(cls: SetClass, index: int) -> str:
    """How the set of that index within its class is drawn."""
    return KINDS[cls][index % len(KINDS[cls])]


def payload(seed: int, fn: str, region: Region, cls: SetClass, index: int) -> Bytes:
    """The input bytes of a region in one set: a function of its arguments alone.

    Philox, keyed by seed, function and the names of the arguments; the counter is class and index.
    """
    digest = hashlib.sha256(f"{seed}/{fn}/{region.title}".encode()).digest()
    counter = (CLASSES.index(cls) << 192) | (index << 128)
    philox = np.random.Philox(key=int.from_bytes(digest[:16], "little"), counter=counter)
    kind = kind_of(cls, index)
    width = item_bytes(region.type)
    count = -(-region.size // width)
    name = region.type.removeprefix("*")
    if name in _FLOATS:
        words = _floats(philox, _FLOATS[name], count, kind)
    else:
        words = _ints(philox, name, count, kind, region.below)
    return words.view(np.uint8)[: region.size]


def _raw(philox: np.random.Philox, dtype: str, count: int) -> Words:
    width = np.dtype(dtype).itemsize
    words: Words = np.asarray(philox.random_raw(-(-count * width // 8)), np.uint64)
    narrow: Words = words.view(np.dtype(dtype))[:count]
    return narrow


def _floats(philox: np.random.Philox, form: _Float, count: int, kind: str) -> Words:
    dtype = f"u{form.bytes}"
    raw = _raw(philox, dtype, count)
    if kind == "bits":
        return raw
    if kind in {"wide", "mixed"}:
        words = _without_top(raw, form)
    else:
        words = _moderate(raw, form, spread=12 if kind == "cancelling" else 4)
    if kind == "cancelling":
        # Each odd element all but cancels the one before it: what is left is the last bit, or nothing.
        pairs = words[: count // 2 * 2].reshape(-1, 2)
        pairs[:, 1] = pairs[:, 0] ^ np.asarray(form.sign, dtype) ^ (pairs[:, 1] & np.asarray(1, dtype))
    elif kind in {"extremes", "mixed"}:
        words = _sprinkled(philox, words, _extremes(form, infinities=kind == "mixed"), one_in=8)
    elif kind == "infinities" and form.infinite:
        words = _sprinkled(philox, words, [form.top, form.top | form.sign], one_in=64)
    elif kind == "payloads":
        words = _sprinkled(philox, words, _nans(philox, form), one_in=64)
    return words


def _moderate(raw: Words, form: _Float, *, spread: int) -> Words:
    """Random signs and mantissas, magnitudes around 1: exponents from -spread to about spread / 2, evenly."""
    dtype = raw.dtype
    bias = (1 << (form.exponent - 1)) - 1
    low = max(1, bias - spread)
    span = min(bias + spread // 2, (1 << form.exponent) - 2) - low + 1
    field = (raw >> np.asarray(form.mantissa, dtype)) & np.asarray((1 << form.exponent) - 1, dtype)
    exponent = (field % np.asarray(span, dtype) + np.asarray(low, dtype)) << np.asarray(form.mantissa, dtype)
    kept: Words = raw & np.asarray(form.sign | ((1 << form.mantissa) - 1), dtype)
    moderate: Words = kept | exponent.astype(dtype)
    return moderate


def _without_top(raw: Words, form: _Float) -> Words:
    """Any finite bit pattern: what is infinite or NaN loses a bit of its exponent (or, without infinity, of all)."""
    top = np.asarray(form.top, raw.dtype)
    if not form.infinite:
        magnitude = np.asarray(form.sign - 1, raw.dtype)
        return np.where((raw & magnitude) == magnitude, raw ^ np.asarray(1, raw.dtype), raw)
    return np.where((raw & top) == top, raw ^ np.asarray(1 << form.mantissa, raw.dtype), raw)


def _extremes(form: _Float, *, infinities: bool) -> list[int]:
    """Both zeros, the smallest and largest denormal and normal, one and its neighbour, with both signs."""
    ulp = 1 << form.mantissa
    one = ((1 << (form.exponent - 1)) - 1) << form.mantissa
    largest = form.top - 1 if form.infinite else form.sign - 2
    values = [0, 1, ulp - 1, ulp, largest, one, one + 1]
    if infinities and form.infinite:
        values.append(form.top)
    return [value | sign for value in values for sign in (0, form.sign)]


def _nans(philox: np.random.Philox, form: _Float) -> list[int]:
    """NaNs, quiet and signalling, of both signs, with payloads; the format without infinity has one NaN."""
    if not form.infinite:
        return [form.sign - 1, form.sign * 2 - 1]
    quiet = 1 << (form.mantissa - 1)
    drawn = [int(word) % (quiet - 1) + 1 if quiet > 1 else 1 for word in philox.random_raw(6)]
    values = [form.top | quiet, form.top | quiet | drawn[0], form.top | quiet | drawn[1], form.top | drawn[2]]
    values += [form.top | drawn[3], form.sign | form.top | quiet | drawn[4], form.sign | form.top | drawn[5]]
    return values


def _sprinkled(philox: np.random.Philox, words: Words, values: list[int], *, one_in: int) -> Words:
    """`words` with about one in `one_in` replaced by one of `values`; at least one is."""
    draw = _raw(philox, "u2", words.size)
    hit = draw % np.uint16(one_in) == 0
    if words.size:
        hit[int(draw[0]) % words.size] = True
    chosen = np.asarray(values, dtype=words.dtype)[(draw // np.uint16(one_in)) % np.uint16(len(values))]
    return np.where(hit, chosen, words)


def _ints(philox: np.random.Philox, name: str, count: int, kind: str, below: int) -> Words:
    width, signed = _INTS[name]
    raw = _raw(philox, f"u{width}", count)
    if name in {"i1", "u1"}:
        return raw & np.uint8(1)
    if below:
        return (_raw(philox, "u8", count) % np.uint64(below)).astype(f"u{width}")
    if kind in {"moderate", "infinities", "payloads"}:
        small: Words = raw % np.asarray(201, raw.dtype)
        centred: Words = small - np.asarray(100, raw.dtype)
        return centred if signed else small
    if kind in {"extremes", "cancelling", "mixed"}:
        top = 1 << (8 * width)
        return _sprinkled(philox, raw, [0, 1, top - 1, top // 2, top // 2 - 1], one_in=4)
    return raw
