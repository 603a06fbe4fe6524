"""Inputs on which two variants give different bytes: random data and cancelling patterns, through both graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np
from foldproof.gpu.symbolic.cases import LaunchCase
from foldproof.gpu.symbolic.compare import Comparer, Comparison, outputs_of
from foldproof.gpu.symbolic.evaluate import Evaluation, evaluate, may_fuse
from foldproof.gpu.symbolic.execute import Run
from foldproof.gpu.symbolic.graph import Bits, Ids
from foldproof.gpu.symbolic.memory import Region
from foldproof.gpu.symbolic.softfloat import FORMATS, encode
from numpy.typing import NDArray

Generator = np.random.Generator
Values = NDArray[np.float64]
STAGES = (10, 266, 522, 778, 1034, 1290)
"""Where the trials of each stage end: every pattern once on all outputs; then more on the outputs of one block, because
a narrow output hides nearly all differences of fp32."""
BUDGET = 8_000_000
"""Node evaluations of one run and stage, at most."""


def _signs(rng: Generator, n: int) -> Values:
    return np.where(rng.random(n) < 0.5, -1.0, 1.0)


PATTERNS: Mapping[str, Callable[[Generator, int], Values]] = {
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "wide exponents": lambda rng, n: _signs(rng, n) * np.exp2(rng.integers(-12, 13, n)) * rng.uniform(1, 2, n),
    "cancelling": lambda rng, n: np.where(rng.random(n) < 0.1, _signs(rng, n) * 2.0**24, rng.uniform(0.5, 1.5, n)),
    "positive": lambda rng, n: rng.uniform(0.1, 1, n),
    "normal": lambda rng, n: rng.normal(0, 2, n),
    "small integers": lambda rng, n: rng.integers(-8, 9, n).astype(np.float64),
    "equal": lambda _, n: np.full(n, 1.0 + 2**-7),
    "signed zeros": lambda rng, n: np.where(rng.random(n) < 0.5, -0.0, 0.0),
    "subnormal": lambda rng, n: _signs(rng, n) * rng.uniform(0, 2.0**-127, n),
    "extreme": lambda rng, n: _signs(rng, n) * np.where(rng.random(n) < 0.5, np.inf, 3e38),
}
"""What floating-point inputs hold, by pattern; never a NaN, so that what differs does so for ordinary inputs."""
ORDINARY = ("uniform", "normal", "positive", "wide exponents")


class Element(msgspec.Struct, frozen=True):
    """An element of a buffer: its index and its bits."""

    buffer: str
    index: int
    bits: int


class Witness(msgspec.Struct, frozen=True):
    """Inputs that tell two variants apart: elements not listed do not matter and may be zero.

    `exact`: every operation below the output was evaluated as the device computes it, so the device must differ, too;
    otherwise some operation is a model (an approximation, a tensor core) or ptxas may contract, and it may still agree.
    """

    launch: str
    pattern: str
    trial: int
    inputs: tuple[Element, ...]
    output: Element
    other_bits: int
    exact: bool


def pattern_of(trial: int) -> str:
    """The pattern of a trial: each once, then the ordinary ones in turn."""
    names = list(PATTERNS)
    return names[trial] if trial < len(names) else ORDINARY[trial % len(ORDINARY)]


def inputs_of(region: Region, place: int, trial: int) -> Bits:
    """The bits of every element of a buffer in one trial; `place` is the buffer's position by address."""
    rng = np.random.Generator(np.random.Philox(key=[trial, place]))
    count = (region.stop - region.start) // region.elem
    if not region.floats:
        return rng.integers(0, 1 << (8 * min(region.elem, 4)), count).astype(np.uint64)
    return encode(FORMATS[region.floats], PATTERNS[pattern_of(trial)](rng, count))


def _start(stage: int) -> int:
    return STAGES[stage - 1] if stage else 0


@dataclass(slots=True)
class Searcher:
    """Evaluates runs of one launch on the same trials, each run once."""

    comparer: Comparer
    case: LaunchCase
    _buffers: dict[tuple[int, int], Bits] = field(default_factory=dict)
    _done: dict[tuple[int, int | None, int, bool, bytes], Evaluation] = field(default_factory=dict)

    def find(self, result: Comparison, first: Run, second: Run) -> Witness | None:
        """Inputs on which some differing output has different bytes; None if none were found.

        Where ptxas may contract, an output counts only if it differs whichever way either is contracted.
        """
        ways = (False, True) if result.contractible else (False,)
        blocks, others_blocks = (run.memory.blocks_at(result.address) for run in (first, second))
        blocks = np.where(blocks < 0, others_blocks, blocks)
        for stage in range(len(STAGES)):
            block = None if stage == 0 else int(blocks[0])
            chosen = np.arange(len(blocks)) if block is None else np.flatnonzero(blocks == block)
            ones, others = result.first[chosen], result.second[chosen]
            asked = ((first, ones), (second, others))
            runs = [[self._evaluated(run, block, stage, nodes, fuse=fuse) for fuse in ways] for run, nodes in asked]
            trials = min((e.bits.shape[1] for run in runs for e in run), default=0)
            differs = np.ones((len(chosen), trials), np.bool_)
            for one in runs[0]:
                for other in runs[1]:
                    rows, columns = one.rows(ones), other.rows(others)
                    differs &= one.bits[rows][:, :trials] != other.bits[columns][:, :trials]
                    differs &= (one.known[rows] & other.known[columns])[:, None]
            if differs.any():
                column = int(np.flatnonzero(differs.any(axis=0))[0])
                rows = np.flatnonzero(differs[:, column])
                row = int(chosen[rows[np.argmin(self.comparer.g.level[ones[rows]])]])
                return self._witness(result, row, column, _start(stage) + column, (runs[0][0], runs[1][0]))
        return None

    def _evaluated(self, run: Run, block: int | None, stage: int, asked: Ids, *, fuse: bool) -> Evaluation:
        """The outputs of a run or of one block of it, and what is asked beside: what the other run alone wrote."""
        wrote = outputs_of(run, self.comparer.regions, block)
        beside = np.setdiff1d(asked, wrote)
        key = (id(run), block, stage, fuse, beside.tobytes())
        if key not in self._done:
            g = self.comparer.g
            roots = np.union1d(wrote, beside)
            cone = g.cone(roots)
            count = min(STAGES[stage] - _start(stage), max(1, BUDGET // max(len(cone), 1)))
            leaves = cone[np.isin(g.op[cone], list(g.leaves.values()))]
            if fuse and not may_fuse(g, cone):
                return self._evaluated(run, block, stage, asked, fuse=False)
            values = self._values(leaves, range(_start(stage), _start(stage) + count))
            whole = evaluate(g, cone, leaves, values, fuse=fuse)
            kept = whole.rows(roots)
            self._done[key] = Evaluation(roots, whole.bits[kept], whole.known[kept], whole.exact[kept])
        return self._done[key]

    def _values(self, leaves: Ids, trials: range) -> Bits:
        """The bits of leaves, a column a trial."""
        out = np.zeros((len(leaves), len(trials)), np.uint64)
        address = self.comparer.g.imm[leaves].astype(np.int64)
        for place, region in enumerate(self.comparer.regions):
            rows = np.flatnonzero((address >= region.start) & (address < region.stop))
            element = (address[rows] - region.start) // region.elem
            for column, trial in enumerate(trials if len(rows) else ()):
                if (place, trial) not in self._buffers:
                    self._buffers[place, trial] = inputs_of(region, place, trial)
                out[rows, column] = self._buffers[place, trial][element]
        return out

    def _witness(
        self, result: Comparison, row: int, column: int, trial: int, runs: tuple[Evaluation, Evaluation]
    ) -> Witness:
        one, other = runs
        g = self.comparer.g
        a, b = result.first[row : row + 1], result.second[row : row + 1]
        below = g.cone(np.concatenate([a, b]))
        leaves = below[np.isin(g.op[below], list(g.leaves.values()))]
        values = zip(leaves, self._values(leaves, range(trial, trial + 1))[:, 0], strict=True)
        inputs = [self._element(int(g.imm[n]), int(v)) for n, v in values]
        left, right = one.rows(a)[0], other.rows(b)[0]
        exact = bool(one.exact[left] and other.exact[right]) and not result.contractible
        output = self._element(int(result.address[row]), int(one.bits[left, column]))
        return Witness(
            self.case.name, pattern_of(trial), trial, tuple(inputs), output, int(other.bits[right, column]), exact
        )

    def _element(self, address: int, bits: int) -> Element:
        region = next(r for r in self.comparer.regions if r.start <= address < r.stop)
        return Element(region.name, (address - region.start) // region.elem, bits)
