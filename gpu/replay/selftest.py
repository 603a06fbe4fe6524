"""A few seconds on the device before anything else: each thing that the replay needs, tried alone, with a clear word.

Run as `python3 -m foldproof.gpu.replay.selftest`; also what compute-sanitizer is pointed at.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.replay.abi import packed
from foldproof.gpu.replay.arena import COMPARED, POISONED, Arena, lay_out
from foldproof.gpu.replay.backend import Backend, Comparison, DeviceFacts, Shape
from foldproof.gpu.replay.batch import FILLS, Loaded
from foldproof.gpu.replay.bouts import Bout, corpus_bouts
from foldproof.gpu.replay.comparing import as_found, compare_on_host, found_bytes
from foldproof.gpu.replay.cuda_backend import CudaBackend
from foldproof.gpu.replay.inputs import SetClass
from foldproof.gpu.replay.running import Terms, run_bout
from foldproof.gpu.replay.verdicts import pair_verdicts
from foldproof.gpu.replay.worker import Bench

SETS: dict[SetClass, int] = {"finite": 4, "infinite": 2, "nan": 2}
PROBES = (("_copy_stride", "equal"), ("_fma_scale", "differs"), ("_row_sum", "differs"), ("_dot", "equal"))
"""A pair of each of these must get this verdict on a device where the corpus was measured (sm_90)."""
GROUND = frozenset({"device", "memory", "fill", "compare", "load"})
"""Steps without which no verdict could be believed."""
SURPRISE = 4
"""The exit status when the ground holds and a probe or the graph did not do what was expected."""
Say = Callable[[str], None]


class Failed(Exception):
    """A step of the self-test found something wrong."""


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)  # noqa: T201 -- the one place where this script prints


def steps(backend: Backend, capture: Path) -> list[tuple[str, Callable[[], str]]]:
    """The steps in order, each a name and a function that says what it saw or raises."""
    bench = Bench(capture, 7)
    bouts, _ = corpus_bouts(capture)
    return [
        ("device", lambda: _device(backend.facts())),
        ("memory", lambda: _memory(backend)),
        ("fill", lambda: _fill(backend, _arena(bouts))),
        ("compare", lambda: _compare(backend, _arena(bouts))),
        ("load", lambda: _load(backend, bench)),
        *((f"replay {fn}", lambda fn=fn, word=word: _replay(backend, bench, bouts, fn, word)) for fn, word in PROBES),
        ("graph", lambda: _graph(backend, bench, bouts)),
    ]


def run_steps(backend: Backend, capture: Path, tell: Say = say) -> int:
    """Run every step and say how each went: 0 all well, 1 a step of the ground failed, SURPRISE one built on it did."""
    code = 0
    for name, step in steps(backend, capture):
        try:
            tell(f"ok    {name}: {step()}")
        except Exception as problem:  # noqa: BLE001 -- whatever it is, it is what this run is for
            code = 1 if name in GROUND else code or SURPRISE
            tell(f"FAIL  {name}: {type(problem).__name__}: {problem}\n{traceback.format_exc()}")
    return code


def _arena(bouts: tuple[Bout, ...]) -> Arena:
    """An arena with buffers at odd addresses, inputs and outputs."""
    return lay_out(next(b for b in bouts if "misaligned" in b.record.name).record)


def _device(facts: DeviceFacts) -> str:
    return msgspec.json.encode(facts).decode()


def _memory(backend: Backend) -> str:
    data = np.random.default_rng(1).integers(0, 256, 5000, dtype=np.uint8)
    first, second = backend.allocate(5000), backend.allocate(5000)
    backend.upload(first, data)
    backend.copy(second, first, 5000)
    back = backend.download(second, 5000)
    backend.clear(second, 5000)
    zero = backend.download(second, 5000)
    for address in (first, second):
        if address % 1024:
            raise Failed(f"address {address:#x} is no multiple of 1,024")
        backend.release(address)
    if not np.array_equal(back, data) or zero.any():
        raise Failed("bytes did not survive the round trip")
    return f"{backend.free_bytes()} bytes free; 5000 bytes went up, across, down"


def _fill(backend: Backend, arena: Arena) -> str:
    slots = 3
    data = np.random.default_rng(2).integers(0, 256, (slots, arena.stride), dtype=np.uint8)
    base = backend.allocate(data.size)
    backend.prepare(arena)
    backend.upload(base, data)
    backend.fill(base, slots, FILLS[0])
    back = backend.download(base, data.size).reshape(slots, arena.stride)
    backend.release(base)
    for region in arena.regions:
        part = slice(region.begin, region.end)
        wanted = np.full_like(data[:, part], FILLS[0]) if region.kind in POISONED else data[:, part]
        if not np.array_equal(back[:, part], wanted):
            raise Failed(f"region {region.title} at {region.begin} is not as it should be")
    return f"{len(arena.regions)} regions of {slots} slots"


def _compare(backend: Backend, arena: Arena) -> str:
    slots = 5
    draw = np.random.default_rng(3)
    left = draw.integers(0, 256, slots * arena.stride, dtype=np.uint8)
    right = left.copy()
    right[draw.integers(0, right.size, 400)] ^= 1
    for slot in range(slots):
        for region in arena.regions:
            # First and last bytes of regions are where a comparison in 16-byte steps would go wrong.
            right[slot * arena.stride + region.begin] ^= 2
            left[slot * arena.stride + region.end - 1] = FILLS[0]
            right[slot * arena.stride + region.end - 1] = FILLS[1]
    size = found_bytes(arena, slots)
    places = [backend.allocate(n) for n in (left.size, right.size, size)]
    backend.prepare(arena)
    backend.upload(places[0], left)
    backend.upload(places[1], right)
    for fills in (None, FILLS):
        backend.clear(places[2], size)
        backend.compare(Comparison(places[0], places[1], slots, places[2], fills))
        device = as_found(backend.download(places[2], size), arena, slots)
        host = compare_on_host(left, right, arena, fills)
        if not np.array_equal(device, host):
            raise Failed(f"device and host disagree (fills {fills}):\n{device.tolist()}\n{host.tolist()}")
    for place in places:
        backend.release(place)
    return f"the device found what the host found: {int(host[:, :, 0].sum())} differing bytes"


def _load(backend: Backend, bench: Bench) -> str:
    loaded, refused = 0, []
    for name in bench.variants:
        found = bench.load(backend, name)
        if isinstance(found, Loaded):
            loaded += 1
        else:
            refused.append(found.reason)
    if not loaded:
        raise Failed(f"no variant loads: {refused[0]}")
    return f"{loaded} variants load and take the parameters that the capture says; {len(refused)} do not: {refused[:2]}"


def _probe(bouts: tuple[Bout, ...], fn: str) -> Bout:
    bout = next(b for b in bouts if b.record.launch.fn == fn and any("fold" in m.change[0] for m in b.matchups))
    matchup = next(m for m in bout.matchups if "fold" in m.change[0])
    return Bout(bout.record, (matchup.first, matchup.second), (matchup,))


def _loaded(backend: Backend, bench: Bench, bout: Bout) -> dict[str, Loaded]:
    found = {name: bench.load(backend, name) for name in bout.variants}
    refused = [item.reason for item in found.values() if not isinstance(item, Loaded)]
    if refused:
        raise Failed(refused[0])
    return {name: item for name, item in found.items() if isinstance(item, Loaded)}


def _replay(backend: Backend, bench: Bench, bouts: tuple[Bout, ...], fn: str, word: str) -> str:
    bout = _probe(bouts, fn)
    loaded = _loaded(backend, bench, bout)
    count = run_bout(backend, bout, loaded, Terms(SETS, bench.inputs, lambda _: None, 1 << 28))
    verdict = pair_verdicts(bout, count, {})[0].verdicts["no NaN"]
    text = f"{bout.record.name} {bout.matchups[0].change}: {verdict.word}, {verdict.reason}"
    if backend.facts().arch == "sm_90" and verdict.word != word:
        raise Failed(f"{text}; {word} was expected")
    return text


def _graph(backend: Backend, bench: Bench, bouts: tuple[Bout, ...]) -> str:
    bout = _probe(bouts, "_copy_stride")
    item = next(iter(_loaded(backend, bench, bout).values()))
    arena = lay_out(bout.record)
    base = backend.allocate(arena.stride)
    data = np.random.default_rng(4).integers(0, 256, arena.stride, dtype=np.uint8)
    args = packed(item.variant, bout.record.launch, arena.addresses(base), [0] * item.scratch_pointers)
    shape = Shape(bout.record.grid, item.variant.num_warps * 32)
    backend.upload(base, data)
    backend.begin_graph(0)
    backend.launch(item.code, shape, args)
    graph = backend.end_graph(0)
    backend.sync()
    before = backend.download(base, arena.stride)
    backend.run_graph(graph, 0)
    backend.sync()
    after = backend.download(base, arena.stride)
    backend.release(base)
    out = next(r for r in arena.regions if r.kind in COMPARED and r.kind != "in")
    source = next(r for r in arena.regions if r.kind == "in")
    if not np.array_equal(before, data):
        raise Failed("a launch ran while it was being recorded")
    if not np.array_equal(after[out.begin : out.end], data[source.begin : source.begin + out.size]):
        raise Failed("the graph did not copy")
    return "one launch recorded and replayed"


def main() -> int:
    """Run the self-test on the bundled capture; gives what `run_steps` gives, 3 without a device."""
    say(f"python {sys.version.split()[0]}, numpy {np.__version__}, msgspec {msgspec.__version__}")
    try:
        backend = CudaBackend(lanes=2)
    except Exception as problem:  # noqa: BLE001 -- its traceback is the diagnosis
        traceback.print_exc()
        say(f"FAIL  open: {problem}")
        return 3
    return run_steps(backend, bundled_capture())


if __name__ == "__main__":
    raise SystemExit(main())
