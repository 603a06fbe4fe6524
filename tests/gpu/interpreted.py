"""Runs every kernel of the corpus in Triton's interpreter; a script, because the interpreter is chosen at import.

For each twin's own launch it prints a JSON line: whether the bytes between the buffers survived, whether what lies
there reached an output, and the outputs themselves as hex, for the test that knows what they should be.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import numpy as np
from foldproof.gpu.corpus import BY_NAME, Absent, Buffer, Int, Kernel, Twin
from foldproof.gpu.launches import ITEM_BYTES, grid_of

GAP = 4096


class HostTensor:
    """Enough of a tensor for the interpreter: memory that is on the host already."""

    def __init__(self, address: int, dtype: str) -> None:
        self.address, self.dtype = address, dtype

    def data_ptr(self) -> int:
        return self.address

    def untyped_storage(self) -> HostTensor:
        return self

    def cpu(self) -> HostTensor:
        return self

    def new_empty(self, *_: Any, **__: Any) -> HostTensor:
        return HostTensor(0, self.dtype)

    def set_(self, storage: HostTensor, *_: Any) -> None:
        self.address = storage.address

    def storage_offset(self) -> int:
        return 0

    def size(self) -> int:
        return 0

    def stride(self) -> int:
        return 0

    def copy_(self, other: HostTensor) -> None:
        assert self.address == other.address


def inputs(buffer: Buffer, seed: int) -> np.ndarray:
    """The bytes of a buffer: moderate numbers, so that no output hides behind a NaN."""
    draw = np.random.Generator(np.random.Philox(seed))
    if buffer.type == "*i32":
        high = buffer.below or 1000
        return draw.integers(0, high, buffer.elems, dtype=np.int32).view(np.uint8)
    numbers = draw.uniform(0.25, 2.0, buffer.elems).astype(np.float32)
    if buffer.type == "*bf16":
        return (numbers.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return numbers.view(np.uint8)


def run(kernel: Kernel, twin: Twin, poison: int) -> tuple[bool, dict[str, bytes]]:
    fn = getattr(importlib.import_module(f"foldproof.gpu.kernels.{kernel.module}"), kernel.name)
    buffers = [p for p in kernel.params if isinstance(p, Buffer)]
    places, end = {}, GAP
    for buffer in buffers:
        start = end + (4 if buffer.name in twin.misaligned else 0)
        places[buffer.name] = slice(start, start + buffer.elems * ITEM_BYTES[buffer.type])
        end = -(-(places[buffer.name].stop + GAP) // 256) * 256
    arena = np.full(end + 256, poison, dtype=np.uint8)
    base = -arena.ctypes.data % 256
    view = arena[base : base + end]
    for seed, buffer in enumerate(buffers):
        if buffer.role == "out":
            view[places[buffer.name]] = 0xA5
        else:
            view[places[buffer.name]] = inputs(buffer, seed)
    args: list[Any] = []
    for param in kernel.params:
        if isinstance(param, Buffer):
            args.append(HostTensor(view.ctypes.data + places[param.name].start, param.type[1:]))
        elif isinstance(param, Absent):
            args.append(None)
        else:
            args.append(twin.values.get(param.name, param.value) if isinstance(param, Int) else param.value)
    fn[tuple(grid_of(kernel, twin))](*args, **kernel.consts)
    rest = np.ones(end, dtype=bool)
    for place in places.values():
        rest[place] = False
    outputs = {b.name: view[places[b.name]].tobytes() for b in buffers if b.role != "in"}
    return bool((view[rest] == poison).all()), outputs


def main() -> None:
    for name in sys.argv[1:]:
        kernel = BY_NAME[name]
        for twin in kernel.twins:
            kept, first = run(kernel, twin, 0x7F)
            also_kept, second = run(kernel, twin, 0x01)
            line = {
                "kernel": name,
                "twin": twin.name,
                "gaps_kept": kept and also_kept,
                "gaps_unread": first == second,
                "outputs": {key: value.hex() for key, value in first.items()},
            }
            sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
