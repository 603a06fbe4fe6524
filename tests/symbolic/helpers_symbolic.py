"""Running PTX on symbolic memory and evaluating what comes out, for the tests of symbolic replay."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.symbolic.bits import Replay, load_cases
from foldproof.gpu.symbolic.cases import LaunchCase, allocations, blocks_of, parameters
from foldproof.gpu.symbolic.compare import Comparer
from foldproof.gpu.symbolic.evaluate import evaluate
from foldproof.gpu.symbolic.execute import Run, execute, launched
from foldproof.gpu.symbolic.graph import Graph
from foldproof.gpu.symbolic.memory import Region
from foldproof.gpu.symbolic.program import Kernel
from foldproof.gpu.symbolic.reader import read_ptx

BASE = 0x7F00_0000_0000
HEAD = """.version 8.4
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 smem[];
.visible .entry probe(
.param .u64 .ptr .global .align 16 p_in,
.param .u64 .ptr .global .align 16 p_out
)
.reqntid 32
{
.reg .pred %p<40>;
.reg .b16 %rs<40>;
.reg .b32 %r<80>;
.reg .b64 %rd<40>;
ld.param.b64 %rd1, [p_in];
ld.param.b64 %rd2, [p_out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
"""


def probe(body: str, threads: int = 32) -> Kernel:
    """A kernel of one warp: %r1 is the thread, [%rd4] its word of the input, [%rd5] its word of the output."""
    return read_ptx(HEAD.replace(".reqntid 32", f".reqntid {threads}") + body + "\nret;\n}\n")


@dataclass
class Probe:
    """An execution of a probe kernel, to be evaluated."""

    g: Graph
    run: Run
    regions: tuple[Region, ...]
    threads: int

    def outputs(self, words: np.ndarray) -> np.ndarray:
        """The words written at the output when the input holds `words`."""
        at = np.arange(self.threads) * 4 + self.regions[1].start
        return values(self.g, self.run, at, {self.regions[0].name: words}, self.regions, 4)


def run_probe(
    body: str, *, threads: int = 32, floats: str = "f32", shared: int = 4096, g: Graph | None = None
) -> Probe:
    """Execute a probe kernel on two buffers of one 32-bit word a thread."""
    kernel = probe(body, threads)
    g = g or Graph()
    size = threads * 4
    regions = (Region(BASE, BASE + size, 4, "IN", floats), Region(BASE + 65536, BASE + 65536 + size, 4, "OUT", floats))
    params = {"p_in": BASE, "p_out": BASE + 65536}
    run = execute(g, launched(kernel, params, (1, 1, 1), shared), regions, ((0, 0, 0),))
    return Probe(g, run, regions, threads)


def values(  # noqa: PLR0913, PLR0917  # what a question is
    g: Graph, run: Run, at: np.ndarray, inputs: dict[str, np.ndarray], regions: tuple[Region, ...], elem: int
) -> np.ndarray:
    """The bits at addresses after a run, for inputs given as element bits by buffer name (others are zero)."""
    nodes = run.memory.final(at, elem)
    cone = g.cone(nodes)
    leaves = cone[np.isin(g.op[cone], list(g.leaves.values()))]
    bits = np.zeros(len(leaves), np.uint64)
    for place, address in enumerate(g.imm[leaves].astype(np.int64)):
        region = next(r for r in regions if r.start <= address < r.stop)
        if region.name in inputs:
            bits[place] = inputs[region.name][(address - region.start) // region.elem]
    found = evaluate(g, cone, leaves, bits[:, None])
    assert found.known[found.rows(nodes)].all()
    return found.bits[found.rows(nodes), 0]


@cache
def bundled() -> tuple[Replay, tuple[LaunchCase, ...]]:
    """The bundled capture and its launches."""
    return Replay.open(bundled_capture()), load_cases(bundled_capture() / "launches.json")


def has_bundle() -> bool:
    """Whether the bundled capture is there with its PTX."""
    return any((Path(bundled_capture()) / "ptx").glob("*.ptx"))


def run_variant(fn: str, **wanted: object) -> tuple[Graph, Run, tuple[Region, ...], LaunchCase]:
    """The run of some variant of a bundled kernel at the first launch whose int args are as wanted."""
    replay, cases = bundled()
    for case in cases:
        args = {a.name: a.number for a in case.launch.args}
        if case.launch.fn != fn or any(args.get(k) != v for k, v in wanted.items()):
            continue
        for pair in replay.pairs([case]):
            variant = next(v for v in replay.capture.kernels if v.hash == pair.first)
            kernel, regions = replay.kernel(pair.first), allocations(case)
            g = Comparer(Graph(), regions).g
            assert case.grid is not None
            start = launched(kernel, parameters(kernel, variant, case.launch), case.grid, variant.shared)
            run = execute(g, start, regions, blocks_of(case.grid)[0])
            return g, run, regions, case
    raise AssertionError(f"no launch of {fn} with {wanted}")
