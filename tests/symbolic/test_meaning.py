"""The executor computes what the kernels say: graphs evaluated on random inputs against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from foldproof.gpu.symbolic.softfloat import FORMATS, decode, encode
from helpers_symbolic import has_bundle, run_variant, values

pytestmark = pytest.mark.skipif(not has_bundle(), reason="the bundled capture is not built")
RNG = np.random.default_rng(5)
F32, BF16 = FORMATS["f32"], FORMATS["bf16"]


def outputs(
    fn: str, out: str, data: dict[str, np.ndarray], formats: dict[str, str], count: int, **wanted: object
) -> np.ndarray:
    g, run, regions, _ = run_variant(fn, **wanted)
    inputs = {n: encode(FORMATS[formats[n]], v) if formats[n] else v.astype(np.uint64) for n, v in data.items()}
    region = next(r for r in regions if r.name == out)
    at = region.start + np.arange(count) * region.elem
    bits = values(g, run, at, inputs, regions, region.elem)
    return decode(FORMATS[region.floats], bits) if region.floats else bits


def bf16(values_: np.ndarray) -> np.ndarray:
    return decode(BF16, encode(BF16, values_.astype(np.float64)))


def test_row_sum_sums_each_row() -> None:
    x = RNG.integers(-50, 50, 4 * 4100).astype(np.float64)
    got = outputs("_row_sum", "OUT", {"X": x}, {"X": "f32"}, 4, S=1, RS=4096)
    assert got.tolist() == [x[r * 4096 : r * 4096 + 1024].sum() for r in range(4)]


def test_cumsum_is_the_running_sum() -> None:
    x = RNG.integers(-50, 50, 4 * 4100).astype(np.float64)
    got = outputs("_row_cumsum", "OUT", {"X": x}, {"X": "f32"}, 4096, S=1, RS=4096)
    assert got.tolist() == np.concatenate([np.cumsum(x[r * 4096 : r * 4096 + 1024]) for r in range(4)]).tolist()


def test_argmax_finds_the_first_maximum() -> None:
    x = RNG.integers(0, 200, 4 * 4100).astype(np.float64)
    got = outputs("_row_argmax", "OUT", {"X": x}, {"X": "f32"}, 4, S=1, RS=4096)
    assert got.tolist() == [int(np.argmax(x[r * 4096 : r * 4096 + 1024])) for r in range(4)]


def test_integer_reductions_wrap() -> None:
    x = RNG.integers(0, 1 << 32, 4 * 4100)
    rows = [x[r * 4096 : r * 4096 + 1024] for r in range(4)]
    got = outputs("_row_isum", "OUT", {"X": x}, {"X": ""}, 4, S=1, RS=4096)
    assert got.tolist() == [int(row.sum()) & 0xFFFFFFFF for row in rows]
    got = outputs("_row_xor", "OUT", {"X": x}, {"X": ""}, 4, S=1, RS=4096)
    assert got.tolist() == [int(np.bitwise_xor.reduce(row)) for row in rows]


@pytest.mark.parametrize("r", [1, 3])
def test_integer_arithmetic_divides_like_c(r: int) -> None:
    x = RNG.integers(-(2**31), 2**31, 2048)
    got = outputs("_int_mix", "OUT", {"X": x & 0xFFFFFFFF}, {"X": ""}, 2048, R=r)
    quotient = np.sign(x) * (np.abs(x) // r)
    want = (x * r + quotient) ^ (x - quotient * r)
    assert got.tolist() == (want & 0xFFFFFFFF).tolist()


def test_transpose_moves_every_element() -> None:
    x = RNG.integers(-128, 128, 64 * 64 * 3).astype(np.float64)
    got = outputs("_transpose", "OUT", {"X": x}, {"X": "bf16"}, 4096, XC=1, XR=192)
    assert got.reshape(64, 64).tolist() == x.reshape(64, 192)[:, :64].T.tolist()


@pytest.mark.parametrize(("fn", "ak"), [("_dot", 1), ("_dot", 3), ("_dot_small", 1), ("_dot_small", 3)])
def test_tensor_cores_get_the_right_rows_and_columns(fn: str, ak: int) -> None:
    """Products of small integers are exact in any order, so the model of the tensor core is, too."""
    a = RNG.integers(-8, 9, 64 * 512).astype(np.float64)
    b = RNG.integers(-8, 9, 128 * 64).astype(np.float64)
    got = outputs(fn, "OUT", {"A": a, "B": b}, {"A": "bf16", "B": "bf16"}, 4096, AK=ak)
    rows = a.reshape(64, 512)[:, : 128 * ak : ak]
    assert got.reshape(64, 64).tolist() == (rows @ b.reshape(128, 64)).tolist()


def test_softmax_is_softmax_in_bf16() -> None:
    x = bf16(RNG.normal(0, 2, 4 * 4100))
    got = outputs("_softmax", "OUT", {"X": x}, {"X": "bf16"}, 4096 + 1024, S=1, RS=4096)
    row = x[4096 : 4096 + 1024]
    want = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
    assert np.allclose(got[4096:], want, rtol=2**-7)


def test_attention_weighs_the_values() -> None:
    heads, tokens, d, keys, stride = 4, 3, 64, 96, 256
    q = bf16(RNG.normal(0, 1, heads * tokens * d))
    k, v = (bf16(RNG.normal(0, 1, keys * stride)) for _ in range(2))
    data = {"Q": q, "K": k, "V": v}
    got = outputs("_attend", "ACC", data, dict.fromkeys(data, "bf16"), heads * tokens * d, R=1)
    scale = 0.18033688011112042
    for row in range(heads * tokens):
        shared = row % heads // 2
        kk = k.reshape(keys, stride)[:, shared * d : (shared + 1) * d]
        vv = v.reshape(keys, stride)[:, shared * d : (shared + 1) * d]
        s = kk @ q[row * d : (row + 1) * d] * scale
        want = np.exp2(s - s.max()) @ vv
        assert np.allclose(got[row * d : (row + 1) * d], want, rtol=1e-4, atol=1e-4)


def test_rms_norm_in_bf16() -> None:
    x, w = bf16(RNG.normal(0, 1, 4 * 4100)), bf16(RNG.normal(0, 1, 3072))
    got = outputs("_rms_norm", "OUT", {"X": x, "W": w}, {"X": "bf16", "W": "bf16"}, 1024, S=1, RS=4096)
    row = x[:1024]
    assert np.allclose(got, row / np.sqrt((row * row).mean() + 1e-5) * w[:1024], rtol=2**-7, atol=2**-9)
