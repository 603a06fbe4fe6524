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


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from replay.fake_decoder import DECODER  # noqa: PLC0415 -- run as a script, this module must find its neighbour

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
