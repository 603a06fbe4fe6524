"""Element types of buffers by their bits: what a generator of inputs must know of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foldproof.impl.errors import InvalidLaunch


@dataclass(frozen=True, slots=True)
class FloatFormat:
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

    @property
    def bias(self) -> int:
        """The exponent field of 1.0."""
        return (1 << (self.exponent - 1)) - 1


FLOATS: Mapping[str, FloatFormat] = {
    "fp64": FloatFormat(8, 52, 11),
    "fp32": FloatFormat(4, 23, 8),
    "fp16": FloatFormat(2, 10, 5),
    "bf16": FloatFormat(2, 7, 8),
    "fp8e5": FloatFormat(1, 2, 5),
    "fp8e4nv": FloatFormat(1, 3, 4, infinite=False),
}
INTS: Mapping[str, tuple[int, bool]] = {
    f"{sign}{bits}": (bits // 8, sign == "i") for sign in "iu" for bits in (8, 16, 32, 64)
} | {"i1": (1, False), "u1": (1, False)}
"""Bytes and whether signed, by name."""


def item_bytes(type_: str) -> int:
    """Bytes an element of a pointer type such as `*bf16`. Raises `InvalidLaunch` for one that is not known."""
    name = type_.removeprefix("*")
    if name in FLOATS:
        return FLOATS[name].bytes
    if name in INTS:
        return INTS[name][0]
    known = ", ".join(sorted({*FLOATS, *INTS}))
    raise InvalidLaunch(f"inputs of type {type_} cannot be drawn", fix=f"known element types: {known}")


def extremes(form: FloatFormat, *, infinities: bool) -> list[int]:
    """Both zeros, the smallest and largest denormal and normal, one and its neighbour, with both signs."""
    ulp = 1 << form.mantissa
    one = form.bias << form.mantissa
    largest = form.top - 1 if form.infinite else form.sign - 2
    values = [0, 1, ulp - 1, ulp, largest, one, one + 1]
    if infinities and form.infinite:
        values.append(form.top)
    return [value | sign for value in values for sign in (0, form.sign)]
