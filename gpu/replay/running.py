"""Running a bout on a device: identical bytes before each run, three runs a variant, everything compared.

A batch is many input sets, a slot each. Per batch: the inputs go up once; a second image differs only in the fill
pattern of what holds no input; each variant runs on image one, image two and image one again; then the comparisons run,
all into one result buffer, and one copy brings it back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from foldproof.gpu.replay.abi import packed
from foldproof.gpu.replay.arena import Arena, lay_out
from foldproof.gpu.replay.backend import Backend, Comparison, Shape
from foldproof.gpu.replay.batch import FILLS, RUNS, Batch, Loaded, allocated, slots_for
from foldproof.gpu.replay.bouts import Bout
from foldproof.gpu.replay.comparing import Found, as_found
from foldproof.gpu.replay.inputs import CLASSES, SEARCH_FROM, Bytes, SetClass
from foldproof.gpu.replay.reading import Reader
from foldproof.gpu.replay.tally import BoutCount, PairCount, VariantCount, merged, merged_pair

Announce = Callable[[str], None]
Sweep: TypeAlias = tuple[SetClass, range]
"""Sets that run as one batch: their class and their indices."""


@dataclass(slots=True)
class Phases:
    """Host seconds by phase. `kernels` is submitting and waiting for the variants' own launches."""

    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.perf_counter)

    def lap(self, name: str) -> None:
        """What passed since the last lap belongs to `name`."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now


class Source(Protocol):
    """Where the inputs of a bout come from."""

    def room(self, slots: int, stride: int) -> Bytes:
        """Host memory of shape (slots, stride) with any bytes in it."""

    def ahead(self, fn: str, arena: Arena, cls: SetClass, indices: range) -> None:
        """Begin to prepare these sets."""

    def image(self, fn: str, arena: Arena, cls: SetClass, indices: range, out: Bytes) -> None:
        """Write the inputs of these sets into `out`, of shape (sets, stride); other bytes of it do not matter."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How bouts are run: input sets a class, where they come from, who hears each variant, device bytes at most.

    `search` is how many more finite sets all pairs of a bout get when one that its label says differs has not.
    """

    sets: Mapping[SetClass, int]
    inputs: Source
    announce: Announce
    memory: int
    search: int = 0


@dataclass(slots=True)
class _Tally:
    own: dict[tuple[str, SetClass], VariantCount] = field(default_factory=dict)
    both: dict[tuple[str, str, SetClass], PairCount] = field(default_factory=dict)
    launches: int = 0

    def silent(self, bout: Bout) -> bool:
        """Whether some pair that was run is expected to differ and has not on finite inputs."""
        wanted = ((m.first, m.second) for m in bout.matchups if m.expected == "differs")
        return any(
            count is not None and not count.differing for count in (self.both.get((*p, "finite")) for p in wanted)
        )


def run_bout(backend: Backend, bout: Bout, loaded: Mapping[str, Loaded], terms: Terms) -> BoutCount:
    """Run the variants in `loaded` and compare the pairs among them; each variant is announced before it runs.

    Raises DeviceFaultError when a kernel faults, DeviceMemoryError when not even one set fits.
    """
    phases, tally = Phases(), _Tally()
    arena = lay_out(bout.record, _scratch(bout, loaded))
    backend.prepare(arena)
    pairs = [(m.first, m.second) for m in bout.matchups if m.first in loaded and m.second in loaded]
    slots = slots_for(arena, len(loaded), len(pairs), max(terms.sets.values()), terms.memory)
    with allocated(backend, arena, list(loaded), len(pairs), slots) as batch:
        phases.lap("allocate")
        run = _Run(backend, bout, loaded, pairs, terms, batch, phases, tally)
        run.sweeps([(cls, indices) for cls in CLASSES for indices in _split(0, terms.sets.get(cls, 0), slots)])
        if terms.search and tally.silent(bout):
            run.sweeps([("finite", indices) for indices in _split(SEARCH_FROM, terms.search, slots)])
    counts = tuple(tally.own.values()), tuple(tally.both.values())
    return BoutCount(bout.record.name, *counts, (), "", tally.launches, phases.seconds)


def _split(start: int, count: int, slots: int) -> Iterator[range]:
    for begin in range(start, start + count, slots):
        yield range(begin, min(begin + slots, start + count))


def _scratch(bout: Bout, loaded: Mapping[str, Loaded]) -> tuple[int, int]:
    programs = int(np.prod(bout.record.grid))
    sizes = [(item.variant.global_scratch, item.variant.profile_scratch) for item in loaded.values()]
    return max(s[0] for s in sizes) * programs, max(s[1] for s in sizes) * programs


@dataclass(frozen=True, slots=True)
class _Run:
    """What every batch of a bout is run with."""

    backend: Backend
    bout: Bout
    loaded: Mapping[str, Loaded]
    pairs: list[tuple[str, str]]
    terms: Terms
    batch: Batch
    phases: Phases
    tally: _Tally

    def sweeps(self, todo: list[Sweep]) -> None:
        """Run batch after batch; the inputs of the next are drawn while the kernels of one run."""
        inputs, fn, arena = self.terms.inputs, self.bout.record.launch.fn, self.batch.arena
        host = inputs.room(self.batch.slots, arena.stride)
        for place, (cls, indices) in enumerate(todo):
            image = host[: len(indices)]
            inputs.image(fn, arena, cls, indices, image)
            self.phases.lap("inputs")
            self.batch.load(self.backend, image)
            self.phases.lap("upload")
            for after in todo[place + 1 : place + 2]:
                inputs.ahead(fn, arena, *after)
            self._one(cls, indices)

    def _one(self, cls: SetClass, indices: range) -> None:
        own, both = self.tally.own, self.tally.both
        for name, item in self.loaded.items():
            self.terms.announce(name)
            self._launch(item, len(indices))
            self.backend.sync()
            self.tally.launches += len(RUNS) * len(indices)
        self.phases.lap("kernels")
        found = self._compared(len(indices))
        self.phases.lap("compare")
        reader = Reader(self.backend, self.batch, cls, indices)
        for name in self.loaded:
            counted = reader.variant(name, found[name])
            own[name, cls] = merged(own[name, cls], counted) if (name, cls) in own else counted
        for pair in self.pairs:
            met = reader.pair(*pair, found[pair], known=both.get((*pair, cls)))
            both[*pair, cls] = merged_pair(both[*pair, cls], met) if (*pair, cls) in both else met
        self.phases.lap("decode")

    def _launch(self, item: Loaded, slots: int) -> None:
        """The three runs of one variant over a batch, each slot a launch of its own."""
        arena, variant, record = self.batch.arena, item.variant, self.bout.record
        shape = Shape(record.grid, variant.num_warps * 32, variant.num_ctas)
        scratch = arena.scratch[: item.scratch_pointers]
        # Addresses are the only plain ints; as offsets into the slot they are the same for every slot.
        relative = packed(variant, record.launch, arena.offsets, ())
        for image, result in zip(RUNS, self.batch.results[variant.hash], strict=True):
            self.backend.copy(result, self.batch.images[image], slots * arena.stride)
            for base in range(result, result + slots * arena.stride, arena.stride):
                args = [base + value if type(value) is int else value for value in relative]
                args += [base + offset if offset else 0 for offset in scratch]
                self.backend.launch(item.code, shape, args)

    def _compared(self, slots: int) -> dict[str | tuple[str, str], list[Found]]:
        """All comparisons: a variant with itself, with itself under the other fill, with its image; then pairs."""
        batch = self.batch
        jobs: list[tuple[str | tuple[str, str], int, int, tuple[int, int] | None]] = []
        for name in self.loaded:
            first, second, third = batch.results[name]
            jobs += [(name, first, third, None), (name, first, second, FILLS), (name, first, batch.images[0], None)]
        for a, b in self.pairs:
            for left, right in _both_fills(batch.results[a], batch.results[b]):
                jobs.append(((a, b), left, right, None))
        self.backend.clear(batch.found, len(jobs) * batch.one)
        for place, (_, left, right, fills) in enumerate(jobs):
            self.backend.compare(Comparison(left, right, slots, batch.found + place * batch.one, fills))
        data = self.backend.download(batch.found, len(jobs) * batch.one)
        found: dict[str | tuple[str, str], list[Found]] = {}
        for place, (key, *_) in enumerate(jobs):
            part = data[place * batch.one : (place + 1) * batch.one]
            found.setdefault(key, []).append(as_found(part, batch.arena, batch.slots)[:slots])
        return found


def _both_fills(left: tuple[int, ...], right: tuple[int, ...]) -> Iterable[tuple[int, int]]:
    """The results of two variants on the first image, and on the second."""
    return zip(left[:2], right[:2], strict=True)
