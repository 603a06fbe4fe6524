"""A device in plain memory, for tests alone: it runs Python functions as kernels and can fail as a device can.

Run as a script it is a worker: `fake_device.py CAPTURE SEED LANES`.
"""

from __future__ import annotations

import bisect
import ctypes
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from foldproof.gpu.replay.abi import expected_places
from foldproof.gpu.replay.arena import POISONED, Arena
from foldproof.gpu.replay.backend import (
    Code,
    Comparison,
    DeviceFacts,
    DeviceFaultError,
    DeviceMemoryError,
    LoadRefusedError,
    Shape,
)
from foldproof.gpu.replay.comparing import compare_on_host
from foldproof.gpu.replay.measuring import MEASURES
from foldproof.gpu.replay.witnessing import WITNESS_JOBS
from foldproof.gpu.replay.worker import JOBS, Bench, serve
from foldproof.gpu.scenarios.jobs import SCENARIO_JOBS
from foldproof.impl import Variant, load_capture

Kernel = Callable[["FakeBackend", Mapping[str, Any], tuple[int, int, int]], None]


class FakeBackend:
    """Memory is numpy arrays by base address; an access outside every allocation is a fault."""

    def __init__(
        self, capture: Path, kernels: Mapping[str, Kernel], memory: int = 1 << 30, arch: tuple[int, int] = (9, 0)
    ) -> None:
        self.kernels, self.memory, self.arch = kernels, memory, arch
        self._bases: list[int] = []
        self._arrays: dict[int, Any] = {}
        self._next = 1 << 20
        self._arena: Arena | None = None
        self._recorded: dict[int, list[Any]] = {}
        loaded = load_capture(capture)
        folder = capture / loaded.bin_dir
        files = [(v, folder / f"{v.hash}{loaded.bin_ext}") for v in loaded.kernels]
        self._variants = {hashlib.sha256(f.read_bytes()).digest(): v for v, f in files if f.is_file()}
        self.launches = 0
        self.start = time.perf_counter()

    def facts(self) -> DeviceFacts:
        return DeviceFacts("Fake 9000", self.arch, self.memory, 232448, 1, "1.2", "13.0", "none", None, None, "2", "3")

    def free_bytes(self) -> int:
        return self.memory - sum(a.size for a in self._arrays.values())

    def load(self, cubin: bytes, entry: str, shared: int) -> Code:
        variant = self._variants[hashlib.sha256(cubin).digest()]
        if shared > 232448:
            raise LoadRefusedError(f"needs {shared} bytes of shared memory; the device has 232448 a block")
        if cubin.startswith(b"refuse"):
            raise LoadRefusedError("the driver refuses it: CUDA_ERROR_INVALID_IMAGE")
        places = expected_places(variant, 2)
        if cubin.startswith(b"abi"):
            places = places[1:]
        behaviour = cubin.split(b"\n")[0].decode("latin1")
        return Code((variant, behaviour if behaviour in self.kernels else entry), places, shared)

    def allocate(self, size: int) -> int:
        if size > self.free_bytes():
            raise DeviceMemoryError(f"{size} bytes")
        base = self._next
        self._next += (size // 1024 + 3) * 1024
        self._bases.append(base)
        self._arrays[base] = np.full(size, 0xEE, np.uint8)
        return base

    def release(self, address: int) -> None:
        self._bases.remove(address)
        del self._arrays[address]

    def view(self, address: int, size: int) -> Any:
        """The bytes at an address, or a fault where they are not all in one allocation."""
        place = bisect.bisect_right(self._bases, address) - 1
        if place < 0:
            raise DeviceFaultError("CUDA_ERROR_ILLEGAL_ADDRESS")
        base = self._bases[place]
        if address + size > base + self._arrays[base].size or size < 0:
            raise DeviceFaultError("CUDA_ERROR_ILLEGAL_ADDRESS")
        return self._arrays[base][address - base : address - base + size]

    def upload(self, address: int, data: Any) -> None:
        flat = data.reshape(-1)
        self.view(address, flat.size)[:] = flat

    def download(self, address: int, size: int) -> Any:
        return self.view(address, size).copy()

    def copy(self, target: int, source: int, size: int, lane: int = 0) -> None:
        assert lane not in self._recorded
        self.view(target, size)[:] = self.view(source, size)

    def clear(self, address: int, size: int) -> None:
        self.view(address, size)[:] = 0

    def prepare(self, arena: Arena) -> None:
        self._arena = arena

    def fill(self, base: int, slots: int, value: int) -> None:
        assert self._arena is not None
        for slot in range(slots):
            for region in self._arena.regions:
                if region.kind in POISONED:
                    self.view(base + slot * self._arena.stride + region.begin, region.size)[:] = value

    def compare(self, job: Comparison) -> None:
        assert self._arena is not None
        size = job.slots * self._arena.stride
        found = compare_on_host(self.view(job.left, size), self.view(job.right, size), self._arena, job.fills)
        self.upload(job.found, found.view(np.uint8))

    def launch(self, code: Code, shape: Shape, args: Sequence[Any], lane: int = 0) -> None:
        if lane in self._recorded:
            self._recorded[lane].append((code, shape, args))
            return
        self.launches += 1
        variant: Variant
        variant, behaviour = code.handle
        plain = [a if isinstance(a, int) else a.value for a in args]
        for value, (_, size) in zip(args, code.places, strict=True):
            assert (8 if isinstance(value, int) else ctypes.sizeof(value)) == size
        names = [param.name for param in variant.params]
        values = dict(zip(names, plain, strict=False)) | {"scratch": plain[len(names) :], "variant": variant}
        consts = {name: const.value for name, const in variant.consts.items()}
        self.kernels[behaviour](self, {**consts, **values}, shape.grid)

    def sync(self) -> None:
        pass

    def begin_graph(self, lane: int) -> None:
        self._recorded[lane] = []

    def end_graph(self, lane: int) -> Any:
        return self._recorded.pop(lane)

    def run_graph(self, graph: Any, lane: int) -> None:
        for code, shape, args in graph:
            self.launch(code, shape, args, lane)

    def stopwatch(self) -> float:
        return time.perf_counter() - self.start


# Toy kernels: OUT[i] = X[i] for N fp32, each with its own way of going wrong. The first line of a cubin names one.


def _io(device: FakeBackend, a: Mapping[str, Any]) -> tuple[Any, Any]:
    return device.view(a["X"], 4 * a["N"]), device.view(a["OUT"], 4 * a["N"])


def copy(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    x, out = _io(device, a)
    out[:] = x


def quiet(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    """Like a multiplication by 1: a NaN loses its payload."""
    x, out = _io(device, a)
    values = x.view(np.float32)
    out.view(np.uint32)[:] = np.where(np.isnan(values), np.uint32(0x7FFFFFFF), x.view(np.uint32))


def last_bit(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    copy(device, a, _)
    _io(device, a)[1][-1] ^= 0x80


def half(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    """Writes the first half only."""
    x, out = _io(device, a)
    out[: out.size // 2] = x[: x.size // 2]


def rare(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    """Shows another rounding in few sets only, as a narrow output does."""
    copy(device, a, _)
    x, out = _io(device, a)
    if x[0] < 8:
        out[-1] ^= 1


def nothing(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    _io(device, a)


def unstable(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    copy(device, a, _)
    _io(device, a)[1][0] = device.launches % 251


def reads_fill(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    """Copies a byte from before X, which the launch does not give."""
    copy(device, a, _)
    _io(device, a)[1][5] = device.view(a["X"] - 1, 1)[0] ^ 1


def spills(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    copy(device, a, _)
    device.view(a["OUT"] + 4 * a["N"], 1)[0] = 1


def writes_input(device: FakeBackend, a: Mapping[str, Any], _: object) -> None:
    copy(device, a, _)
    device.view(a["X"], 1)[0] ^= 255


def fault(device: FakeBackend, _: Mapping[str, Any], __: object) -> None:
    device.view(0x10, 4)


def hang(_: FakeBackend, __: Mapping[str, Any], ___: object) -> None:
    time.sleep(600)


def die(_: FakeBackend, __: Mapping[str, Any], ___: object) -> None:
    os._exit(9)


def slip(_: FakeBackend, __: Mapping[str, Any], ___: object) -> None:
    raise KeyError("a slip in the harness")


_WRITING = (copy, quiet, last_bit, half, rare, nothing, unstable, reads_fill, spills, writes_input)
TOYS: dict[str, Kernel] = {f.__name__: f for f in (*_WRITING, fault, hang, die, slip)}


# The kernels of the decoder in numpy. They need not have the device's bits, only the decoder's meaning.


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


def main(arguments: list[str]) -> int:
    capture, seed = Path(arguments[0]), int(arguments[1])
    settings = json.loads(os.environ.get("FAKE_DEVICE", "{}"))
    if settings.get("absent"):
        sys.stdout.write('{"event":"no device","reason":"no CUDA device can be used"}\n')
        return 3
    backend = FakeBackend(capture, TOYS | DECODER, settings.get("memory", 1 << 30), tuple(settings.get("arch", (9, 0))))
    jobs = {**JOBS, **MEASURES, **WITNESS_JOBS, **SCENARIO_JOBS}
    return serve(backend, Bench(capture, seed), jobs, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
