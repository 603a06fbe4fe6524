"""Inputs on which two variants give different bytes: random data and cancelling patterns, through both graphs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from foldproof.gpu.symbolic.cases import LaunchCase
from foldproof.gpu.symbolic.compare import Comparer, Comparison
from foldproof.gpu.symbolic.evaluate import Evaluation, evaluate
from foldproof.gpu.symbolic.graph import Bits, Graph, Ids
from foldproof.gpu.symbolic.memory import Region
from foldproof.gpu.symbolic.softfloat import FORMATS, encode

SEED = 7
OUTPUTS = 64
"""Differing outputs that are evaluated at most."""


class Element(msgspec.Struct, frozen=True):
    """An element of a buffer: its index and its bits."""

    buffer: str
    index: int
    bits: int


class Witness(msgspec.Struct, frozen=True):
    """Inputs that tell two variants apart: elements not listed are zero.

    `exact`: every operation below the output was evaluated as the device computes it, so the device must differ, too;
    otherwise some operation is a model (an approximation, a tensor core) and the device may still agree.
    """

    launch: str
    pattern: str
    seed: int
    inputs: tuple[Element, ...]
    output: Element
    other_bits: int
    exact: bool


def find_witness(comparer: Comparer, result: Comparison, case: LaunchCase, *, contracts: bool) -> Witness | None:
    """The first pattern on which some differing output has different bytes; None if none has.

    Where ptxas may contract, an output counts only if it differs whichever of the four ways the two contract.
    """
    g = comparer.g
    order = np.argsort(np.maximum(g.level[result.first], g.level[result.second]), kind="stable")[:OUTPUTS]
    first, second = result.first[order], result.second[order]
    roots = np.concatenate([first, second])
    cone = g.cone(roots)
    leaves = cone[np.isin(g.op[cone], list(g.leaves.values()))]
    for pattern, bits in patterns(g, leaves, comparer.regions):
        runs = [evaluate(g, cone, leaves, bits, fuse=fuse) for fuse in ((False, True) if contracts else (False,))]
        if any(not run.known[roots].all() for run in runs):
            return None
        pairs = [(one, other) for one in runs for other in runs]
        differs = np.logical_and.reduce([one.bits[first] != other.bits[second] for one, other in pairs])
        if differs.any():
            row = int(np.flatnonzero(differs)[0])
            return _witness(comparer, result, int(order[row]), case, pattern, leaves, bits, runs[0])
    return None


def _witness(
    comparer: Comparer, result: Comparison, row: int, case: LaunchCase, pattern: str, leaves: Ids, bits: Bits, run: Evaluation
) -> Witness:
    g = comparer.g
    pair = np.array([result.first[row], result.second[row]], np.int32)
    below = g.cone(pair)
    mine = np.isin(leaves, below)
    inputs = [_element(comparer.regions, int(g.imm[n]), int(b)) for n, b in zip(leaves[mine], bits[mine], strict=True)]
    output = _element(comparer.regions, int(result.address[row]), int(run.bits[pair[0]]))
    exact = bool(run.exact[pair].all())
    return Witness(case.name, pattern, SEED, tuple(i for i in inputs if i.bits), output, int(run.bits[pair[1]]), exact)


def _element(regions: tuple[Region, ...], address: int, bits: int) -> Element:
    region = next(r for r in regions if r.start <= address < r.stop)
    return Element(region.name, (address - region.start) // region.elem, bits)


def patterns(g: Graph, leaves: Ids, regions: tuple[Region, ...]) -> Iterator[tuple[str, Bits]]:
    """Bits for the leaves, pattern after pattern; no NaNs, so that what differs differs for ordinary inputs."""
    rng = np.random.Generator(np.random.Philox(key=SEED))
    formats = [next((r.floats for r in regions if r.start <= int(g.imm[n]) < r.stop), "") for n in leaves]
    kinds = np.array(formats)
    n = len(leaves)
    sign = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    yield "uniform", _bits(kinds, rng.uniform(-1, 1, n), rng)
    yield "wide exponents", _bits(kinds, sign * np.exp2(rng.integers(-12, 13, n)) * rng.uniform(1, 2, n), rng)
    large = np.where(rng.random(n) < 0.1, sign * 2.0**24, rng.uniform(0.5, 1.5, n))
    yield "cancelling", _bits(kinds, large, rng)
    yield "positive", _bits(kinds, rng.uniform(0.1, 1, n), rng)
    yield "small integers", _bits(kinds, rng.integers(-8, 9, n).astype(np.float64), rng)
    yield "equal", _bits(kinds, np.full(n, 1.0 + 2**-7), rng)
    yield "signed zeros", _bits(kinds, np.where(rng.random(n) < 0.5, -0.0, 0.0), rng)
    yield "subnormal", _bits(kinds, sign * rng.uniform(0, 2.0**-127, n), rng)
    yield "extreme", _bits(kinds, sign * np.where(rng.random(n) < 0.5, np.inf, 3e38), rng)


def _bits(kinds: np.ndarray, values: np.ndarray, rng: np.random.Generator) -> Bits:  # type: ignore[type-arg]
    out = rng.integers(0, 1 << 16, len(values)).astype(np.uint64)
    for kind in set(kinds.tolist()) & set(FORMATS):
        mine = kinds == kind
        out[mine] = encode(FORMATS[kind], values[mine].astype(np.float64))
    return out
