"""Rates of the batch reference on one core: `python -m foldproof.impl.batch.bench`.

Every case decides the same number of launches over random classes; a rate is the median of the runs.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from foldproof.impl.batch.capture import BatchCapture
from foldproof.impl.batch.classes import ArgShape, LaunchShape
from foldproof.impl.capture import Capture, Const, Param, Variant
from foldproof.impl.launch import Kind
from foldproof.impl.policy import zoo_policy

POLICIES = ("three-pass", "recommended", "most-held")
LAUNCHES = 4_000_000
RUNS = 7


@dataclass(frozen=True, slots=True)
class Rate:
    """One measured case; `million_a_second` is the median, `spread` the least and the most of the runs."""

    what: str
    policy: str
    variants: int
    ints: int
    ptrs: int
    launches: int
    million_a_second: float
    spread: tuple[float, float]
    tabled: bool
    outcomes: int

    def __str__(self) -> str:
        case = f"{self.what:<9} {self.policy:<12} {self.variants} variants x {self.ints} ints + {self.ptrs} pointers"
        low, high = self.spread
        return f"{case:<62} {self.million_a_second:8.1f} M launches/s  ({low:.1f} to {high:.1f})"


def bench_capture(variants: int, ints: int, ptrs: int, seed: int) -> Capture:
    """A capture of one function, drawn by `seed`: every param folded, plain, div16 or nospec, pointers div16 or not."""
    draw = np.random.default_rng(seed)
    kernels = []
    for number in range(variants):
        folds = draw.integers(0, 4, ints)
        params = [Param(f"n{i}", "i32", fold == 2, fold == 3) for i, fold in enumerate(folds) if fold]
        params += [Param(f"p{i}", "*bf16", bool(draw.integers(0, 2)), False) for i in range(ptrs)]
        consts = {f"n{i}": Const(int_=1) for i, fold in enumerate(folds) if not fold}
        kernels.append(Variant("k", f"h{number}", 4, tuple(params), consts))
    return Capture(tuple(kernels))


def rates(launches: int = LAUNCHES, runs: int = RUNS, seed: int = 0) -> Iterator[Rate]:
    """The rates of each case: encoded launches, and raw values with their encoding, on the calling core."""
    for policy in POLICIES:
        yield from _rates_of(policy, (8, 4, 4), launches, runs, seed)
    for size in ((8, 8, 0), (16, 10, 10)):
        yield from _rates_of("three-pass", size, launches, runs, seed)


def _rates_of(policy: str, size: tuple[int, int, int], launches: int, runs: int, seed: int) -> Iterator[Rate]:
    variants, ints, ptrs = size
    args = [ArgShape(f"n{i}", Kind.I32) for i in range(ints)]
    args += [ArgShape(f"p{i}", Kind.PTR, "*bf16") for i in range(ptrs)]
    capture = bench_capture(variants, ints, ptrs, seed)
    batch = BatchCapture.build(capture, LaunchShape("k", tuple(args), {}), zoo_policy(policy))
    draw = np.random.default_rng(seed)
    # A third each: 1, multiples of 16, anything; half of the pointers are aligned.
    values: dict[str, npt.NDArray[Any]] = {
        f"n{i}": np.where(draw.random(launches) < 1 / 3, 1, draw.integers(-(2**27), 2**27, launches))
        << np.where(draw.random(launches) < 1 / 3, 4, 0)
        for i in range(ints)
    }
    values |= {
        f"p{i}": draw.integers(0, 2**60, launches, np.uint64)
        << (draw.integers(0, 2, launches, np.uint64) * np.uint64(4))
        for i in range(ptrs)
    }
    codes = batch.encode(values)
    outcomes = np.unique(batch.decide(codes).picks).size
    for what, action in (
        ("encoded", lambda: batch.decide(codes)),
        ("from raw", lambda: batch.decide_values(values)),
    ):
        found = [launches / _seconds(action) / 1e6 for _ in range(runs)]
        rate, spread = statistics.median(found), (min(found), max(found))
        yield Rate(what, policy, variants, ints, ptrs, launches, rate, spread, batch.is_tabled, outcomes)


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main(arguments: list[str]) -> None:
    """Print the rates, as text or (`--json`) one JSON object a line."""
    for rate in rates():
        sys.stdout.write((json.dumps(asdict(rate)) if "--json" in arguments else str(rate)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
