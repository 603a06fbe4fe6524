"""The kernels do what their docstrings say and stay in their buffers, by Triton's interpreter: no device is needed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foldproof.gpu.corpus import BY_NAME, CORPUS, Buffer, Int, Kernel

SCRIPT = Path(__file__).with_name("interpreted.py")
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed: pip install foldproof[triton]"
)


@pytest.fixture(scope="module")
def interpreted() -> dict[tuple[str, str], dict[str, Any]]:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), *BY_NAME],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    return {(row["kernel"], row["twin"]): row for row in rows}


def numbers(data: bytes, type_: str) -> np.ndarray:
    if type_ == "*bf16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, np.int32 if type_ == "*i32" else np.float32)


def given(kernel: Kernel) -> dict[str, np.ndarray]:
    """The inputs that the script drew."""
    spec = importlib.util.spec_from_file_location("interpreted", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    buffers = [p for p in kernel.params if isinstance(p, Buffer)]
    return {b.name: numbers(module.inputs(b, seed).tobytes(), b.type) for seed, b in enumerate(buffers)}


def rows(x: np.ndarray, v: dict[str, int], count: int = 4) -> np.ndarray:
    return np.stack([x[r * v["RS"] : r * v["RS"] + v["N"] * v["S"] : v["S"]] for r in range(count)])


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def merged(x: dict[str, np.ndarray], v: dict[str, int]) -> np.ndarray:
    r = v["R"]
    top = x["MAX"][: 12 * r].reshape(12, r)
    weight = np.exp2(top - top.max(axis=1, keepdims=True))
    acc = (x["ACC"][: 12 * r * 64].reshape(12, r, 64) * weight[..., None]).sum(axis=1)
    return acc / (x["SUM"][: 12 * r].reshape(12, r) * weight).sum(axis=1, keepdims=True)


def rotated(x: dict[str, np.ndarray], v: dict[str, int]) -> np.ndarray:
    heads = x["X"][: 12 * 64 * v["S"] : v["S"]].reshape(12, 64)
    angle = np.repeat(x["POS"], 4)
    c, s = x["COS"].reshape(128, 32)[angle], x["SIN"].reshape(128, 32)[angle]
    low, high = heads[:, :32], heads[:, 32:]
    return np.concatenate([low * c - high * s, high * c + low * s], axis=1)


def attention_scores(x: dict[str, np.ndarray], v: dict[str, int]) -> np.ndarray:
    """The sum of exponentials of each row and split, scaled by the split's maximum."""
    q = x["Q"].reshape(3, 4, 64)
    k = x["K"].reshape(96, 256)[:, :256].reshape(96, 4, 64)[:, np.arange(4) // v["G"]]
    s = np.einsum("thd,nhd->thn", q, k).reshape(12, 96) * 0.18033688011112042
    size = -(-96 // v["R"])
    parts = [s[:, i : i + size] for i in range(0, 96, size)]
    return np.stack([np.exp2(p - p.max(axis=1, keepdims=True)).sum(axis=1) for p in parts], axis=1)


def decayed(x: dict[str, np.ndarray], v: dict[str, int]) -> np.ndarray:
    state = x["OUT"]
    for row in x["X"].reshape(16, N)[: v["R"]]:
        state = state * 0.5 + row
    return state


def hashed(x: dict[str, np.ndarray], v: dict[str, int]) -> np.ndarray:
    state = np.full(N, 17, np.int32)
    for row in x["X"].reshape(16, N)[: v["R"]]:
        state = state * np.int32(31) + row
    return state


N = 2048
EXPECTED: dict[str, Any] = {
    "_fma_scale": lambda x, v: x["A"] * x["B"] * v["R"] + x["C"],
    "_scale": lambda x, v: x["X"] * v["R"],
    "_divide": lambda x, v: x["X"] / v["R"],
    "_cast_scale": lambda x, v: x["X"] * v["R"],
    "_copy_stride": lambda x, v: x["X"][: N * v["S"] : v["S"]],
    "_int_mix": lambda x, v: (x["X"] * v["R"] + x["X"] // v["R"]) ^ (x["X"] % v["R"]),
    "_select_every": lambda x, v: np.where(np.arange(N) % v["R"] == 0, x["X"], x["Y"]),
    "_silu_mul": lambda x, v: (
        (g := x["GATE"][: N * v["S"] : v["S"]]) / (1 + np.exp(-g)) * x["UP"][: N * v["S"] : v["S"]]
    ),
    "_residual_add": lambda x, v: x["X"] + x["DELTA"][: N * v["S"] : v["S"]],
    "_trip_sum": lambda x, v: x["X"].reshape(16, N)[: v["R"]].sum(axis=0),
    "_trip_decay": decayed,
    "_trip_int": hashed,
    "_head_group": lambda x, v: x["K"].reshape(12, 64)[np.arange(12) // v["G"]],
    "_pid_mod": lambda x, v: x["X"].reshape(16, 64)[np.arange(12) % v["B"]],
    "_embed": lambda x, v: x["TABLE"].reshape(64, 64)[x["TOKENS"][: 12 * v["TS"] : v["TS"]]],
    "_transpose": lambda x, v: x["X"].reshape(64, 192)[:, : 64 * v["XC"] : v["XC"]].T,
    "_copy_nospec": lambda x, v: x["X"][: N * v["S"] : v["S"]],
    "_copy_noalign": lambda x, v: x["X"][: N * v["S"] : v["S"]],
    "_copy_annotated": lambda x, v: x["X"][: N * v["S"] : v["S"]],
    "_row_sum": lambda x, v: rows(x["X"], v).sum(axis=1),
    "_row_dot": lambda x, v: (rows(x["X"], v) * rows(x["Y"], v)).sum(axis=1),
    "_row_max": lambda x, v: rows(x["X"], v).max(axis=1),
    "_row_argmax": lambda x, v: rows(x["X"], v).argmax(axis=1),
    "_row_isum": lambda x, v: rows(x["X"], v).sum(axis=1),
    "_row_xor": lambda x, v: np.bitwise_xor.reduce(rows(x["X"], v), axis=1),
    "_row_cumsum": lambda x, v: rows(x["X"], v).cumsum(axis=1),
    "_row_cumsum_int": lambda x, v: rows(x["X"], v).cumsum(axis=1),
    "_row_cummax": lambda x, v: np.maximum.accumulate(rows(x["X"], v), axis=1),
    "_row_cumsum_strided": lambda x, v: rows(x["X"], v).cumsum(axis=1),
    "_rms_norm": lambda x, v: (
        (y := rows(x["X"], v)) / np.sqrt((y * y).mean(axis=1, keepdims=True)) * x["W"][: v["N"] * v["S"] : v["S"]]
    ),
    "_layer_norm": lambda x, v: (
        ((y := rows(x["X"], v)) - y.mean(axis=1, keepdims=True)) / y.std(axis=1, keepdims=True) * x["W"]
    ),
    "_softmax": lambda x, v: softmax(rows(x["X"], v)),
    "_rotary": rotated,
    "_attend": attention_scores,
    "_merge": merged,
    "_atomic_sum": lambda x, v: x["OUT"] + x["X"][: 8192 * v["S"] : v["S"]].reshape(128, 64).sum(axis=0),
    "_atomic_count": lambda x, v: x["OUT"] + np.bincount(x["X"][: 8192 * v["S"] : v["S"]] & 63, minlength=64),
    "_fold_breaks": lambda x, v: x["X"] * v["R"],
}
STRIDED = {"_row_cumsum_strided", "_rms_norm", "_softmax"}
UNCHECKED = {"_dot", "_dot_small", "_linear", "_deep_pipeline"}
"""The interpreter has no bf16 product, so of these only the memory accesses are checked."""


def test_every_kernel_has_a_reference_or_a_reason_for_none() -> None:
    assert set(EXPECTED) | UNCHECKED == set(BY_NAME)
    assert not set(EXPECTED) & UNCHECKED


@pytest.mark.parametrize("kernel", CORPUS, ids=lambda kernel: kernel.name)
def test_a_kernel_stays_within_its_buffers(kernel: Kernel, interpreted: dict[tuple[str, str], dict[str, Any]]) -> None:
    for twin in kernel.twins:
        row = interpreted[kernel.name, twin.name]
        assert row["gaps_kept"], f"{twin.name} writes outside its buffers"
        assert row["gaps_unread"], f"{twin.name} reads outside its buffers"


@pytest.mark.parametrize("name", EXPECTED)
def test_a_kernel_computes_what_it_says(name: str, interpreted: dict[tuple[str, str], dict[str, Any]]) -> None:
    kernel = BY_NAME[name]
    x = given(kernel)
    out = next(p for p in reversed(kernel.params) if isinstance(p, Buffer) and p.role != "in")
    for twin in kernel.twins:
        values = {p.name: twin.values.get(p.name, p.value) for p in kernel.params if isinstance(p, Int)}
        got = numbers(bytes.fromhex(interpreted[name, twin.name]["outputs"][out.name]), out.type)
        wanted = np.asarray(EXPECTED[name](x, values))
        if name in STRIDED:
            got = rows(got, values)
        got = got[: wanted.size].reshape(wanted.shape)
        if out.type == "*i32":
            assert (got == wanted).all(), twin.name
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-2 if out.type == "*bf16" else 1e-4, atol=1e-3)
