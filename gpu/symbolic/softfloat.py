"""Exact arithmetic of the formats, in NumPy: what one PTX floating-point instruction does to bits.

Values travel as float64, which holds every fp32, bf16 and fp16 exactly. A result is computed in float64 and rounded
once: sums and products of fp32 are made innocent of double rounding by rounding to odd first (53 >= 2 * 24 + 2 bits;
Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). NaN results are the canonical ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Doubles: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: bits of exponent and of stored fraction, and the NaN that arithmetic returns."""

    name: str
    width: int
    exponent: int
    fraction: int
    nan: int

    @property
    def bias(self) -> int:
        """What the stored exponent exceeds the exponent by."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def inf(self) -> int:
        """Bits of plus infinity."""
        return ((1 << self.exponent) - 1) << self.fraction


FORMATS = {
    "f32": Format("f32", 32, 8, 23, 0x7FFFFFFF),
    "bf16": Format("bf16", 16, 8, 7, 0x7FFF),
    "f16": Format("f16", 16, 5, 10, 0x7FFF),
    "f64": Format("f64", 64, 11, 52, 0x7FF8000000000000),
}


def decode(fmt: Format, bits: Bits) -> Doubles:
    """The values of bits, exact."""
    if fmt.name == "f64":
        return bits.astype(np.uint64).view(np.float64)
    if fmt.name == "f16":
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    if fmt.name == "bf16":
        bits = bits << np.uint64(16)
    with np.errstate(invalid="ignore"):
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def encode(fmt: Format, values: Doubles) -> Bits:
    """Bits of the values rounded to nearest, ties to even; NaNs become the format's canonical NaN."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if fmt.name == "f64":
            out = values.view(np.uint64).copy()
        elif fmt.name == "f32":
            out = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        elif fmt.name == "f16":
            out = values.astype(np.float16).view(np.uint16).astype(np.uint64)
        else:
            # Rounding to odd to fp32 first makes the second rounding exact: 24 >= 8 + 2 bits.
            wide = values.astype(np.float32)
            back = wide.astype(np.float64)
            word = wide.view(np.uint32).astype(np.int64)
            inexact = np.isfinite(values) & (back != values)
            too_far = inexact & (np.abs(back) > np.abs(values))
            word = np.where(too_far, word - 1, word)
            word = np.where(inexact, word | 1, word).astype(np.uint64)
            out = (word + np.uint64(0x7FFF) + ((word >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    out[np.isnan(values)] = fmt.nan
    return out


def to_odd(total: Doubles, error: Doubles) -> Doubles:
    """`total`, the nearest float64, changed to the value that rounding the exact sum total + error to odd gives."""
    word = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & np.isfinite(error)
    even = inexact & ((word & 1) == 0)
    outward = np.where(total == 0, True, (error > 0) == (total > 0))
    moved = np.where(even, word + np.where(outward, 1, -1), word)
    return moved.view(np.float64)


def add(a: Doubles, b: Doubles) -> Doubles:
    """The sum, rounded to odd where float64 cannot hold it."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = a + b
        other = total - a
        error = (a - (total - other)) + (b - other)
    return to_odd(total, error)


def multiply(a: Doubles, b: Doubles) -> Doubles:
    """The product: exact for operands of at most 26 significant bits."""
    with np.errstate(invalid="ignore", over="ignore"):
        return a * b


def fma(a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """The sum a * b + c rounded to odd, for operands of at most 26 significant bits."""
    return add(multiply(a, b), c)


def flush(fmt: Format, bits: Bits) -> Bits:
    """Subnormals turned into zeros of their sign (.ftz)."""
    sign = np.uint64(1 << (fmt.width - 1))
    magnitude = bits & np.uint64((1 << (fmt.width - 1)) - 1)
    return np.where(magnitude < np.uint64(1 << fmt.fraction), bits & sign, bits)


def is_nan(fmt: Format, bits: Bits) -> NDArray[np.bool_]:
    """Which bits are NaNs."""
    return (bits & np.uint64((1 << (fmt.width - 1)) - 1)) > np.uint64(fmt.inf)
