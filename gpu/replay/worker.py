"""The worker process: it alone touches the device, so that a fault or a hang costs a process and not the run.

It reads one JSON message a line and answers with events, a line each, the last of which is `done`, `owed` or `fault`.
After a fault it ends, because a CUDA context that has faulted answers nothing more.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from foldproof.gpu.replay.abi import AbiMismatchError, scratch_pointers
from foldproof.gpu.replay.backend import Backend, DeviceFaultError, DeviceMemoryError, LoadRefusedError
from foldproof.gpu.replay.batch import Loaded
from foldproof.gpu.replay.bouts import Bout
from foldproof.gpu.replay.cuda_backend import CudaBackend
from foldproof.gpu.replay.drawing import Inputs
from foldproof.gpu.replay.inputs import SetClass
from foldproof.gpu.replay.messages import Message, bout_from
from foldproof.gpu.replay.running import Source, Terms, run_bout
from foldproof.gpu.replay.tally import BoutCount, Refusal
from foldproof.impl import Capture, load_capture
from foldproof.impl.capture import capture_file
from foldproof.impl.errors import FoldproofError, one_line

MEMORY_SHARE = 0.5
"""How much of the free device memory a bout may take."""
MEMORY_CAP = 6 << 30
Emit = Callable[[dict[str, Any]], None]
Job = Callable[[Backend, "Bench", dict[str, Any], Emit], dict[str, Any]]
"""Does one message: events go to `emit` while it runs, what it returns is the body of `done`."""


class Bench:
    """What a worker keeps between jobs: the capture, the kernels it has loaded, the inputs it has drawn."""

    def __init__(self, capture: Path, seed: int) -> None:
        self.folder = capture_file(capture).parent
        self.capture: Capture = load_capture(capture)
        self.seed = seed
        self.variants = {variant.hash: variant for variant in self.capture.kernels}
        self.inputs = Inputs(seed, max(1, min(8, (os.cpu_count() or 2) - 1)))
        self._loaded: dict[str, Loaded | Refusal] = {}

    def load(self, backend: Backend, name: str) -> Loaded | Refusal:
        """A variant on the device, or why it cannot be there; asked of the driver once."""
        if name not in self._loaded:
            self._loaded[name] = self._load(backend, name)
        return self._loaded[name]

    def _load(self, backend: Backend, name: str) -> Loaded | Refusal:
        variant = self.variants[name]
        arch = backend.facts().arch
        if variant.arch is not None and not runs_on(variant.arch, arch):
            return Refusal(name, "owed", f"it was compiled for {variant.arch}; this device is {arch}")
        try:
            cubin = (self.folder / self.capture.bin_dir / f"{name}{self.capture.bin_ext}").read_bytes()
        except OSError as problem:
            return Refusal(name, "owed", f"its cubin cannot be read: {problem.strerror}")
        try:
            code = backend.load(cubin, variant.name or variant.fn, variant.shared)
            return Loaded(variant, code, scratch_pointers(variant, code.places))
        except (LoadRefusedError, AbiMismatchError) as problem:
            return Refusal(name, "no reference", f"{name}: {problem}")


def runs_on(compiled: str, device: str) -> bool:
    """Whether a cubin for `compiled` runs on `device`: same major compute capability, minor not above the device's.

    Architecture-specific code (`sm_90a`) runs on that architecture alone.
    """
    wanted, have = compiled.removeprefix("sm_"), device.removeprefix("sm_")
    if wanted.rstrip("af") != wanted:
        return wanted.rstrip("af") == have
    if not (wanted.isdigit() and have.isdigit()):
        return wanted == have
    return int(wanted) // 10 == int(have) // 10 and int(wanted) <= int(have)


def facts_job(backend: Backend, bench: Bench, _: dict[str, Any], __: Emit) -> dict[str, Any]:
    """The device, its software, and how many variants of the capture it can run."""
    facts = backend.facts()
    fitting = sum(v.arch is None or runs_on(v.arch, facts.arch) for v in bench.capture.kernels)
    return {"facts": msgspec.to_builtins(facts), "fitting": fitting}


def bout_job(backend: Backend, bench: Bench, body: dict[str, Any], emit: Emit) -> dict[str, Any]:
    """Run one bout: an event before each variant's runs, then its counts. `skip` names variants with a fault before."""
    bout = bout_from(body["bout"])
    sets: dict[SetClass, int] = body["sets"]
    count = counted(backend, bench, bout, emit, Orders(sets, bench.inputs, body.get("search", 0), body.get("skip", {})))
    return {"count": msgspec.to_builtins(count)}


class Orders(msgspec.Struct, frozen=True):
    """What one run of a bout is asked for: sets a class, their source, sets of a search, variants to leave out."""

    sets: Mapping[SetClass, int]
    source: Source
    search: int = 0
    skip: Mapping[str, str] = {}


def counted(backend: Backend, bench: Bench, bout: Bout, emit: Emit, orders: Orders) -> BoutCount:
    """Load the variants of a bout and run those that load."""
    skip = orders.skip
    refusals = [Refusal(name, "fault", reason) for name, reason in skip.items() if name in bout.variants]
    loaded = {}
    for name in bout.variants:
        if name not in skip:
            emit({"event": "variant", "hash": name})
            found = bench.load(backend, name)
            if isinstance(found, Refusal):
                refusals.append(found)
            else:
                loaded[name] = found
    count = BoutCount(bout.record.name)
    if loaded:
        memory = min(MEMORY_CAP, int(backend.free_bytes() * MEMORY_SHARE))
        announce: Callable[[str], None] = lambda name: emit({"event": "variant", "hash": name})  # noqa: E731
        count = run_bout(backend, bout, loaded, Terms(orders.sets, orders.source, announce, memory, orders.search))
    return msgspec.structs.replace(count, refusals=tuple(refusals))


JOBS: Mapping[str, Job] = {"facts": facts_job, "bout": bout_job}


def serve(backend: Backend, bench: Bench, jobs: Mapping[str, Job], source: BinaryIO, sink: BinaryIO) -> int:
    """Answer the messages of `source` until it ends (gives 0) or the device faults (gives 1)."""

    def emit(event: dict[str, Any]) -> None:
        sink.write(msgspec.json.encode(event) + b"\n")
        sink.flush()

    for line in source:
        message = msgspec.json.decode(line, type=Message)
        try:
            body = jobs[message.do](backend, bench, message.body, emit)
        except DeviceFaultError as problem:
            emit({"event": "fault", "reason": one_line(str(problem))})
            return 1
        except DeviceMemoryError as problem:
            emit({"event": "owed", "reason": f"too little device memory: {problem}"})
        except FoldproofError as problem:
            emit({"event": "owed", "reason": str(problem)})
        except Exception as problem:  # noqa: BLE001 -- a slip of ours is one bout's and said, not the end of the run
            traceback.print_exc()
            emit({"event": "owed", "reason": one_line(f"this program failed: {type(problem).__name__}: {problem}")})
        else:
            emit({"event": "done", **body})
    return 0


def main(arguments: list[str]) -> int:
    """Serve on stdin and stdout: `worker CAPTURE SEED LANES`. What libraries print goes to stderr."""
    capture, seed, lanes = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    with os.fdopen(os.dup(1), "wb") as sink:
        os.dup2(2, 1)
        try:
            backend = CudaBackend(lanes=lanes)
        except FoldproofError as problem:
            sink.write(msgspec.json.encode({"event": "no device", "reason": str(problem)}) + b"\n")
            return 3
        from foldproof.gpu.replay.measuring import MEASURES  # noqa: PLC0415 -- it imports this module
        from foldproof.gpu.replay.witnessing import WITNESS_JOBS  # noqa: PLC0415 -- as above
        from foldproof.gpu.scenarios.jobs import SCENARIO_JOBS  # noqa: PLC0415 -- as above

        jobs = {**JOBS, **MEASURES, **WITNESS_JOBS, **SCENARIO_JOBS}
        return serve(backend, Bench(capture, seed), jobs, sys.stdin.buffer, sink)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
