"""Exact arithmetic against rationals, rounded here by another method."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from foldproof.gpu.symbolic import softfloat as sf

RNG = np.random.default_rng(1)
OPS: dict[str, tuple[Callable[..., np.ndarray], Callable[..., Fraction]]] = {
    "fma": (sf.fma, lambda x, y, z: x * y + z),
    "add": (lambda a, b, _: sf.add(a, b), lambda x, y, _: x + y),
    "mul": (lambda a, b, _: sf.multiply(a, b), lambda x, y, _: x * y),
}


def rounded(fmt: sf.Format, value: Fraction) -> int:
    """Nearest, ties to even, by integer division; the value is not zero."""
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    exponent = max(exponent, 1 - fmt.bias)
    units = size / Fraction(2) ** (exponent - fmt.fraction)
    whole, rest = units.numerator // units.denominator, units - units.numerator // units.denominator
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    bits = whole + ((exponent + fmt.bias - 1) << fmt.fraction)
    return min(bits, fmt.inf) | (int(value < 0) << (fmt.width - 1))


def operands(fmt: sf.Format, count: int) -> np.ndarray:
    """Half any bits, half of similar magnitude, where sums cancel and round."""
    exponent = RNG.integers(fmt.bias - 14, fmt.bias + 14, count) << fmt.fraction
    close = exponent | RNG.integers(0, 1 << fmt.fraction, count) | (RNG.integers(0, 2, count) << (fmt.width - 1))
    return np.where(RNG.random(count) < 0.5, RNG.integers(0, 1 << fmt.width, count), close).astype(np.uint64)


@pytest.mark.parametrize("name", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("op", OPS)
def test_one_rounding_as_of_the_exact_result(name: str, op: str) -> None:
    fmt = sf.FORMATS[name]
    values = [sf.decode(fmt, operands(fmt, 3000)) for _ in range(3)]
    fast, exact = OPS[op]
    got = sf.encode(fmt, fast(*values))
    tested = 0
    for row in range(3000):
        inputs = [v[row] for v in values]
        if not np.isfinite(inputs).all():
            continue
        want = exact(*(Fraction(v) for v in inputs))
        if want:
            assert int(got[row]) == rounded(fmt, want), [v.hex() for v in inputs]
            tested += 1
    assert tested > 1500


def test_nans_are_canonical_and_zeros_keep_their_sign() -> None:
    f32 = sf.FORMATS["f32"]
    payload = sf.decode(f32, np.array([0x7F812345, 0xFFC00001], np.uint64))
    assert sf.encode(f32, sf.add(payload, payload)).tolist() == [0x7FFFFFFF] * 2
    zeros = sf.decode(f32, np.array([0x80000000], np.uint64))
    assert sf.encode(f32, sf.add(zeros, zeros)).tolist() == [0x80000000]
    assert sf.encode(f32, sf.add(zeros, -zeros)).tolist() == [0]
    assert sf.encode(f32, sf.fma(zeros, -zeros, zeros)).tolist() == [0x80000000]


def test_all_bf16_and_fp16_survive_widening() -> None:
    for name in ("bf16", "f16"):
        fmt = sf.FORMATS[name]
        bits = np.arange(1 << 16, dtype=np.uint64)
        numbers = bits[~sf.is_nan(fmt, bits)]
        assert (sf.encode(fmt, sf.decode(fmt, numbers)) == numbers).all()
