"""The kernels of the decoder in numpy. They need not have the device's bits, only the decoder's meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from replay.fake_device import FakeBackend, Kernel


def _read(device: FakeBackend, address: int, count: int, dtype: str) -> Any:
    if dtype != "bf16":
        return device.view(address, count * np.dtype(dtype).itemsize).view(dtype)
    return (device.view(address, 2 * count).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _write(device: FakeBackend, address: int, values: Any, dtype: str) -> None:
    flat = np.ascontiguousarray(values).reshape(-1)
    if dtype == "bf16":
        words = flat.astype(np.float32).view(np.uint32)
        rounded = ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)
        device.view(address, 2 * flat.size)[:] = rounded.view(np.uint8)
    else:
        data = flat.astype(dtype).view(np.uint8)
        device.view(address, data.size)[:] = data


def _embed(device: FakeBackend, a: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    tokens = _read(device, a["TOKENS"], grid[0], "i4")
    for row, token in enumerate(tokens):
        _write(
            device,
            a["OUT"] + row * a["D"] * 2,
            _read(device, a["TABLE"] + int(token) * a["D"] * 2, a["D"], "bf16"),
            "bf16",
        )


def _rms_norm(device: FakeBackend, a: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    assert a["S"] == 1
    w = _read(device, a["W"], a["N"], "bf16")
    for row in range(grid[0]):
        x = _read(device, a["X"] + row * a["RS"] * 2, a["N"], "bf16")
        squares = x * x
        # The runtime variant adds in another order, as on the device.
        total = np.float32(0)
        for value in squares if "S" in a["variant"].consts else squares[::-1]:
            total = np.float32(total + value)
        out = x * np.float32(1 / np.sqrt(total / a["N"] + 1e-5)) * w
        _write(device, a["OUT"] + row * a["RS"] * 2, out, "bf16")


def _linear(device: FakeBackend, a: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    assert grid[1] * a["BN"] == a["N"]
    w = _read(device, a["W"], a["K"] * a["WS"], "bf16").reshape(a["K"], a["WS"])
    for row in range(a["T"]):
        x = _read(device, a["X"] + row * a["K"] * 2, a["K"], "bf16")
        _write(device, a["OUT"] + row * a["N"] * 2, (x[:, None] * w[:, : a["N"]]).sum(axis=0), "bf16")


def _rotary(device: FakeBackend, a: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    half_ = a["HALF"]
    for row in range(grid[0]):
        at = int(_read(device, a["POS"] + 4 * (row // a["H"]), 1, "i4")[0])
        c, s = (_read(device, a[name] + 4 * at * half_, half_, "f4") for name in ("COS", "SIN"))
        x = _read(device, a["X"] + row * 4 * half_, 2 * half_, "bf16")
        low, high = x[:half_], x[half_:]
        _write(device, a["OUT"] + row * 4 * half_, np.concatenate((low * c - high * s, high * c + low * s)), "bf16")


def _attend(device: FakeBackend, a: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    d, splits, keys, stride = a["D"], a["R"], a["LEN"], a["KS"]
    scale = np.array([a["scale"]], np.uint32).view(np.float32)[0]
    length = -(-keys // splits)
    assert keys > 0
    assert grid[1] == splits
    for row in range(grid[0]):
        head = row % a["H"] // a["G"]
        q = _read(device, a["Q"] + row * d * 2, d, "bf16")
        k, v = (
            _read(device, a[n], keys * stride, "bf16").reshape(keys, stride)[:, head * d : head * d + d] for n in "KV"
        )
        for split in range(splits):
            part = slice(split * length, min((split + 1) * length, keys))
            score = (k[part] * q).sum(axis=1) * scale
            top = score.max(initial=-np.inf)
            p = np.exp2(score - top) if score.size else score
            at = row * splits + split
            _write(device, a["ACC"] + at * d * 4, (p[:, None] * v[part]).sum(axis=0), "f4")
            _write(device, a["MAX"] + at * 4, top, "f4")
            _write(device, a["SUM"] + at * 4, p.sum(), "f4")


def _merge(device: FakeBackend, a: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    d, splits = a["D"], a["R"]
    for row in range(grid[0]):
        acc = _read(device, a["ACC"] + row * splits * d * 4, splits * d, "f4").reshape(splits, d)
        top, total = (_read(device, a[n] + row * splits * 4, splits, "f4") for n in ("MAX", "SUM"))
        weight = np.exp2(top - top.max())
        _write(device, a["OUT"] + row * d * 2, (acc * weight[:, None]).sum(axis=0) / (total * weight).sum(), "bf16")


def _residual_add(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    _write(device, a["OUT"], _read(device, a["X"], a["N"], "bf16") + _read(device, a["DELTA"], a["N"], "bf16"), "bf16")


def _silu_mul(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    gate, up = _read(device, a["GATE"], a["N"], "bf16"), _read(device, a["UP"], a["N"], "bf16")
    _write(device, a["OUT"], gate / (1 + np.exp(-gate)) * up, "bf16")


def _dot_small(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    left = _read(device, a["A"], a["M"] * a["AM"], "bf16").reshape(a["M"], a["AM"])
    right = _read(device, a["B"], a["K"] * a["BK"], "bf16").reshape(a["K"], a["BK"])
    out = np.stack([(left[m][:, None] * right).sum(axis=0) for m in range(a["M"])])
    _write(device, a["OUT"], out, "f4")


def _row_argmax(device: FakeBackend, a: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    for row in range(grid[0]):
        _write(device, a["OUT"] + 4 * row, _read(device, a["X"] + 4 * row * a["RS"], a["N"], "f4").argmax(), "i4")


def _trip_decay(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    rows = _read(device, a["X"], a["R"] * a["N"], "f4").reshape(a["R"], a["N"])
    state = _read(device, a["OUT"], a["N"], "f4").copy()
    for row in rows:
        state = state * np.float32(0.5) + row
    _write(device, a["OUT"], state, "f4")


_STEPS = (_embed, _rms_norm, _linear, _rotary, _attend, _merge, _residual_add, _silu_mul, _dot_small, _row_argmax)
DECODER: dict[str, Kernel] = {f.__name__: f for f in (*_STEPS, _trip_decay)}
