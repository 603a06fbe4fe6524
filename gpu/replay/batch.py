"""The device memory of one bout: many input sets side by side, and room for what the comparisons find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from foldproof.gpu.replay.arena import Arena
from foldproof.gpu.replay.backend import Backend, Code, DeviceMemoryError
from foldproof.gpu.replay.comparing import found_bytes
from foldproof.gpu.replay.inputs import Bytes
from foldproof.impl.capture import Variant

FILLS = (0xA5, 0x5A)
"""The two fill patterns; no bit is equal in both."""
RUNS = (0, 1, 0)
"""Which image each of a variant's runs starts from."""
MAX_SLOTS = 256
OWN_COMPARISONS = 3
PAIR_COMPARISONS = 2


@dataclass(frozen=True, slots=True)
class Loaded:
    """A variant on the device: its code and how many scratch pointers that takes."""

    variant: Variant
    code: Code
    scratch_pointers: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The addresses of one bout's buffers: two images, a result a variant and run, and what the comparisons find.

    `one` is the bytes that one comparison writes.
    """

    arena: Arena
    slots: int
    images: tuple[int, int]
    results: Mapping[str, tuple[int, ...]]
    found: int
    one: int

    def load(self, backend: Backend, host: Bytes) -> None:
        """Make both images from the inputs of some sets, of shape (sets, stride)."""
        backend.upload(self.images[0], host)
        backend.copy(self.images[1], self.images[0], host.size)
        for image, value in zip(self.images, FILLS, strict=True):
            backend.fill(image, host.shape[0], value)


def slots_for(arena: Arena, variants: int, pairs: int, sets: int, memory: int) -> int:
    """How many slots of a bout fit into `memory` bytes, `sets` at most. Raises DeviceMemoryError for none."""
    comparisons = OWN_COMPARISONS * variants + PAIR_COMPARISONS * pairs
    a_slot = (2 + len(RUNS) * variants) * arena.stride + comparisons * found_bytes(arena, 1)
    slots = min(MAX_SLOTS, sets, memory // a_slot)
    if slots < 1:
        raise DeviceMemoryError(f"one input set takes {a_slot} bytes of device memory; {memory} can be had")
    return slots


@contextmanager
def allocated(backend: Backend, arena: Arena, names: Sequence[str], pairs: int, slots: int) -> Iterator[Batch]:
    """The batch of a bout over these variants and so many pairs; given back at the end."""
    held: list[int] = []
    one = found_bytes(arena, slots)
    runs = len(RUNS)
    try:
        for _ in range(2 + runs * len(names)):
            held.append(backend.allocate(slots * arena.stride))  # noqa: PERF401 -- those before a failure are kept
        held.append(backend.allocate((OWN_COMPARISONS * len(names) + PAIR_COMPARISONS * pairs) * one))
        results = {name: tuple(held[2 + runs * i : 2 + runs * (i + 1)]) for i, name in enumerate(names)}
        yield Batch(arena, slots, (held[0], held[1]), results, held[-1], one)
    finally:
        for address in held:
            backend.release(address)
