"""Running a bout on a device: identical bytes before each run, three runs a variant, everything compared.

A batch is many input sets, a slot each. Per batch: the inputs go up once; a second image differs only in the fill
pattern of what holds no input; each variant runs on image one, image two and image one again; then the comparisons run,
all into one result buffer, and one copy brings it back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from foldproof.gpu.replay.abi import packed
from foldproof.gpu.replay.arena import COMPARED, Arena, lay_out
from foldproof.gpu.replay.backend import Backend, Code, Comparison, DeviceMemoryError, Shape
from foldproof.gpu.replay.bouts import Bout
from foldproof.gpu.replay.comparing import DIFFERING, Found, as_found, first_offset, found_bytes
from foldproof.gpu.replay.inputs import CLASSES, Bytes, SetClass, kind_of, payload
from foldproof.gpu.replay.tally import BoutCount, Difference, PairCount, VariantCount, merged, merged_pair
from foldproof.impl.capture import Variant

FILLS = (0xA5, 0x5A)
"""The two fill patterns; no bit is equal in both."""
RUNS = (0, 1, 0)
"""Which image each of a variant's runs starts from."""
WINDOW = 32
"""Bytes copied back around the first difference, from each side."""
MAX_SLOTS = 256
CACHE_BYTES = 2 << 30
Announce = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A variant on the device: its code and how many scratch pointers that takes."""

    variant: Variant
    code: Code
    scratch_pointers: int


@dataclass(slots=True)
class Phases:
    """Host seconds by phase. `kernels` is submitting and waiting for the variants' own launches."""

    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = 0.0

    def start(self) -> None:
        """Begin to measure."""
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        """What passed since the last lap belongs to `name`."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now


class Inputs:
    """Input sets by function, region and index, drawn by several threads and kept, because bouts share them."""

    def __init__(self, seed: int, threads: int) -> None:
        self._seed = seed
        self._pool = ThreadPoolExecutor(threads)
        self._kept: dict[tuple[object, ...], Bytes] = {}
        self._size = 0

    def image(self, fn: str, arena: Arena, cls: SetClass, indices: range, out: Bytes) -> None:
        """Write the inputs of these sets into `out`, of shape (sets, stride)."""
        places = [r for r in arena.regions if r.kind in {"in", "inout"}]
        todo = [(slot, index, region) for region in places for slot, index in enumerate(indices)]
        drawn = self._pool.map(lambda t: self._payload(fn, t[2], cls, t[1]), todo)
        for (slot, _, region), data in zip(todo, drawn, strict=True):
            out[slot, region.begin : region.end] = data

    def _payload(self, fn: str, region: object, cls: SetClass, index: int) -> Bytes:
        key = (fn, region.title, region.size, region.type, region.below, cls, index)  # type: ignore[attr-defined]
        found = self._kept.get(key)
        if found is None:
            found = payload(self._seed, fn, region, cls, index)  # type: ignore[arg-type]
            if self._size > CACHE_BYTES:
                self._kept.clear()
                self._size = 0
            self._kept[key] = found
            self._size += found.nbytes
        return found


@dataclass(frozen=True, slots=True)
class Terms:
    """How bouts are run: input sets a class, where they come from, who hears each variant, device bytes at most."""

    sets: Mapping[SetClass, int]
    inputs: Inputs
    announce: Announce
    memory: int


@dataclass(frozen=True, slots=True)
class _Batch:
    """The addresses of one bout's buffers: two images, a result a variant and run, and what the comparisons find."""

    arena: Arena
    slots: int
    images: tuple[int, int]
    results: Mapping[str, tuple[int, ...]]
    found: int
    one: int


def run_bout(backend: Backend, bout: Bout, loaded: Mapping[str, Loaded], terms: Terms) -> BoutCount:
    """Run the variants in `loaded` and compare the pairs among them; each variant is announced before it runs.

    Raises DeviceFaultError when a kernel faults, DeviceMemoryError when not even one set fits.
    """
    sets = terms.sets
    phases = Phases()
    phases.start()
    arena = lay_out(bout.record, _scratch(bout, loaded))
    backend.prepare(arena)
    pairs = [(m.first, m.second) for m in bout.matchups if m.first in loaded and m.second in loaded]
    own: dict[tuple[str, SetClass], VariantCount] = {}
    both: dict[tuple[str, str, SetClass], PairCount] = {}
    launches = 0
    with _allocated(backend, arena, (list(loaded), len(pairs)), (max(sets.values()), terms.memory)) as batch:
        phases.lap("allocate")
        host = np.zeros((batch.slots, arena.stride), np.uint8)
        for cls in CLASSES:
            for start in range(0, sets.get(cls, 0), batch.slots):
                indices = range(start, min(start + batch.slots, sets[cls]))
                terms.inputs.image(bout.record.launch.fn, arena, cls, indices, host)
                phases.lap("inputs")
                _images(backend, batch, host[: len(indices)])
                phases.lap("upload")
                for name, item in loaded.items():
                    terms.announce(name)
                    _run(backend, bout, batch, item, len(indices))
                    backend.sync()
                    launches += len(RUNS) * len(indices)
                phases.lap("kernels")
                found = _compare(backend, batch, list(loaded), pairs, len(indices))
                phases.lap("compare")
                reader = _Reader(backend, batch, cls, indices)
                for name in loaded:
                    counted = reader.variant(name, found[name])
                    own[name, cls] = merged(own[name, cls], counted) if (name, cls) in own else counted
                for pair in pairs:
                    met = reader.pair(*pair, found[pair], known=both.get((*pair, cls)))
                    both[*pair, cls] = merged_pair(both[*pair, cls], met) if (*pair, cls) in both else met
                phases.lap("decode")
    return BoutCount(bout.record.name, tuple(own.values()), tuple(both.values()), (), "", launches, phases.seconds)


def _scratch(bout: Bout, loaded: Mapping[str, Loaded]) -> tuple[int, int]:
    programs = int(np.prod(bout.record.grid))
    sizes = [(item.variant.global_scratch, item.variant.profile_scratch) for item in loaded.values()]
    return max(s[0] for s in sizes) * programs, max(s[1] for s in sizes) * programs


class _allocated:  # noqa: N801 -- a context manager, used as a function
    """The buffers of a bout, as many slots as fit into `memory`; given back at the end."""

    def __init__(self, backend: Backend, arena: Arena, who: tuple[list[str], int], bounds: tuple[int, int]) -> None:
        self._backend, self._arena = backend, arena
        (self._names, pairs), (sets, memory) = who, bounds
        names = self._names
        self._copies = 2 + len(RUNS) * len(names)
        self._comparisons = 3 * len(names) + 2 * pairs
        a_slot = self._copies * arena.stride + self._comparisons * found_bytes(arena, 1)
        self._slots = min(MAX_SLOTS, sets, memory // a_slot)
        if self._slots < 1:
            raise DeviceMemoryError(f"one input set takes {a_slot} bytes of device memory; {memory} can be had")
        self._held: list[int] = []

    def __enter__(self) -> _Batch:
        size = self._slots * self._arena.stride
        one = found_bytes(self._arena, self._slots)
        try:
            for _ in range(self._copies):
                self._held.append(self._backend.allocate(size))
            self._held.append(self._backend.allocate(self._comparisons * one))
        except DeviceMemoryError:
            self.__exit__()
            raise
        runs = len(RUNS)
        results = {n: tuple(self._held[2 + runs * i : 2 + runs * (i + 1)]) for i, n in enumerate(self._names)}
        return _Batch(self._arena, self._slots, (self._held[0], self._held[1]), results, self._held[-1], one)

    def __exit__(self, *_: object) -> None:
        for address in self._held:
            self._backend.release(address)
        self._held = []


def _images(backend: Backend, batch: _Batch, host: Bytes) -> None:
    size = host.size
    backend.upload(batch.images[0], host)
    backend.copy(batch.images[1], batch.images[0], size)
    for image, value in zip(batch.images, FILLS, strict=True):
        backend.fill(image, host.shape[0], value)


def _run(backend: Backend, bout: Bout, batch: _Batch, item: Loaded, slots: int) -> None:
    """The three runs of one variant over a batch, each slot a launch of its own."""
    arena, variant = batch.arena, item.variant
    shape = Shape(bout.record.grid, variant.num_warps * 32, variant.num_ctas)
    scratch = arena.scratch[: item.scratch_pointers]
    # Addresses are the only plain ints; as offsets into the slot they are the same for every slot.
    relative = packed(variant, bout.record.launch, arena.offsets, ())
    for image, result in zip(RUNS, batch.results[variant.hash], strict=True):
        backend.copy(result, batch.images[image], slots * arena.stride)
        for base in range(result, result + slots * arena.stride, arena.stride):
            args = [base + value if type(value) is int else value for value in relative]
            args += [base + offset if offset else 0 for offset in scratch]
            backend.launch(item.code, shape, args)


def _compare(
    backend: Backend, batch: _Batch, names: list[str], pairs: list[tuple[str, str]], slots: int
) -> dict[str | tuple[str, str], list[Found]]:
    """All comparisons of a batch: a variant with itself, with itself under the other fill, with its image; pairs."""
    jobs: list[tuple[str | tuple[str, str], int, int, tuple[int, int] | None]] = []
    for name in names:
        first, second, third = batch.results[name]
        jobs += [(name, first, third, None), (name, first, second, FILLS), (name, first, batch.images[0], None)]
    for a, b in pairs:
        jobs += [((a, b), left, right, None) for left, right in zip(batch.results[a], batch.results[b], strict=True)][
            :2
        ]
    backend.clear(batch.found, len(jobs) * batch.one)
    for place, (_, left, right, fills) in enumerate(jobs):
        backend.compare(Comparison(left, right, slots, batch.found + place * batch.one, fills))
    data = backend.download(batch.found, len(jobs) * batch.one)
    found: dict[str | tuple[str, str], list[Found]] = {}
    for place, (key, *_) in enumerate(jobs):
        part = data[place * batch.one : (place + 1) * batch.one]
        found.setdefault(key, []).append(as_found(part, batch.arena, batch.slots)[:slots])
    return found


class _Reader:
    """Turns what the comparisons found into counts, and fetches the window of a first difference."""

    def __init__(self, backend: Backend, batch: _Batch, cls: SetClass, indices: range) -> None:
        self._backend, self._batch, self._cls, self._indices = backend, batch, cls, indices
        regions = batch.arena.regions
        self._compared = np.array([r.kind in COMPARED for r in regions])
        self._redzone = np.array([r.kind == "redzone" for r in regions])

    def variant(self, name: str, found: list[Found]) -> VariantCount:
        """The counts of one variant against itself and its image."""
        again, other_fill, image = found
        unstable = self._sets(again)
        reads_fill = self._sets(other_fill)
        first, second, third = self._batch.results[name]
        where = self._difference(again, first, third) or self._difference(other_fill, first, second)
        changed = image[:, self._compared, DIFFERING].sum()
        return VariantCount(
            name,
            self._cls,
            len(self._indices),
            int(unstable.sum()),
            int((reads_fill & ~unstable).sum()),
            int((image[:, self._redzone, DIFFERING].sum(axis=1) > 0).sum()),
            int(changed),
            where,
        )

    def pair(self, first: str, second: str, found: list[Found], known: PairCount | None) -> PairCount:
        """The counts of two variants; the window is fetched for the first difference of the class only."""
        differs = self._sets(found[0]) | self._sets(found[1])
        where = None
        if known is None or known.difference is None:
            for place, one in enumerate(found):
                left, right = self._batch.results[first][place], self._batch.results[second][place]
                where = where or self._difference(one, left, right)
        more = found[0][:, self._compared, DIFFERING].sum()
        size = len(self._indices) * self._batch.arena.compared_bytes
        return PairCount(first, second, self._cls, len(self._indices), int(differs.sum()), int(more), size, where)

    def _sets(self, found: Found) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.asarray(found[:, self._compared, DIFFERING].sum(axis=1) > 0)

    def _difference(self, found: Found, left: int, right: int) -> Difference | None:
        hits = np.argwhere((found[:, :, DIFFERING] > 0) & self._compared)
        if not len(hits):
            return None
        slot, place = int(hits[0][0]), int(hits[0][1])
        region = self._batch.arena.regions[place]
        offset = first_offset(found, slot, place)
        begin = max(region.begin, min(offset - WINDOW // 2, region.end - WINDOW)) // 4 * 4
        size = min(WINDOW, self._batch.arena.stride - begin)
        base = slot * self._batch.arena.stride + begin
        sides = [self._backend.download(side + base, size).tobytes().hex() for side in (left, right)]
        index = self._indices[slot]
        kind = kind_of(self._cls, index)
        return Difference(self._cls, kind, index, region.title, offset - region.begin, offset - begin, *sides)
