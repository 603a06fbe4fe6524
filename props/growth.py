"""How the reference grows with a capture: seconds a launch over candidates and over params, at its worst.

At its worst: every candidate is alike and looked at to the last arg. Of `none` no candidate fits, so each pass looks
at all of them; of `all` each fits exactly and scores the same, so a policy that compares candidates compares all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from foldproof.impl.batch.capture import BatchCapture
from foldproof.impl.batch.classes import LaunchShape
from foldproof.impl.capture import Capture, Param, Variant
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.select import decide
from foldproof.props.measure import Curve, Item, Side
from numpy.typing import NDArray

CANDIDATES = (8, 16, 32, 64, 128, 256, 512, 1024)
PARAMS = (2, 4, 8, 16, 32, 64)
FIXED = 8
"""Params of the curves over candidates, and candidates of those over params."""
BUDGET, QUICK_BUDGET = 40_000, 4_000
"""Candidates times params times launches of one point of a curve of `decide`."""
ROWS = 50_000
"""Launches of one point of a curve of the batch reference."""


def growth(repeats: int, *, quick: bool) -> Iterator[Item]:
    """The curves over candidates and over params."""
    budget = QUICK_BUDGET if quick else BUDGET
    three, ours = load_policy("three-pass"), load_policy("recommended")
    for axis, sizes, fixed in (("candidates", CANDIDATES, "params"), ("params", PARAMS, "candidates")):
        shapes = [(size, FIXED) if axis == "candidates" else (FIXED, size) for size in sizes]
        beside = f"{FIXED} {fixed}"
        for policy, fits in ((three, False), (ours, True)):
            sides = [one_by_one(policy, *shape, budget, fits=fits) for shape in shapes]
            what = f"decide, {policy.name}, {'all fit' if fits else 'none fits'}, {beside}"
            yield Curve(f"{axis}-decide-{policy.name}", what, axis, "launch", sizes, sides, repeats, warm=False)
        arrays = [at_once(three, *shape, ROWS) for shape in shapes]
        what = f"batch reference built and asked {ROWS:,} launches, {three.name}, none fits, {beside}"
        yield Curve(f"{axis}-batch-{three.name}", what, axis, "launch", sizes, arrays, repeats, warm=False)


def one_by_one(policy: Policy, candidates: int, params: int, budget: int, *, fits: bool) -> Side:
    """`decide` on as many launches as the budget allows, at least one."""
    capture, launch = alike(candidates, params, fits=fits), plain_launch(params)
    count = max(1, budget // (candidates * params))
    return Side(f"{candidates} x {params}", partial(_decide, capture, [launch] * count, policy), count)


def at_once(policy: Policy, candidates: int, params: int, rows: int) -> Side:
    """The batch reference, built and then asked for that many rows of values."""
    capture, launch = alike(candidates, params, fits=False), plain_launch(params)
    values: dict[str, NDArray[Any]] = {
        arg.name: np.full(rows, arg.number, np.int64 if arg.kind == Kind.I32 else np.uint64) for arg in launch.args
    }

    def action() -> object:
        return BatchCapture.build(capture, LaunchShape.of(launch), policy).decide_values(values)

    return Side(f"{candidates} x {params}", action, rows)


def alike(candidates: int, params: int, *, fits: bool) -> Capture:
    """Candidates that differ in their hash alone; unless `fits`, the last param has another type than the launch's."""
    ints = params // 2
    listed = [Param(f"n{i}", "i32", div16=False, nospec=False) for i in range(ints)]
    listed += [Param(f"p{i}", "*bf16", div16=False, nospec=False) for i in range(params - ints)]
    if not fits:
        listed[-1] = Param(listed[-1].name, "*fp32", div16=False, nospec=False)
    return Capture(tuple(Variant("k", f"h{number}", 4, tuple(listed), {}) for number in range(candidates)))


def plain_launch(params: int) -> Launch:
    """A launch for `alike` whose values meet no assumption: neither 1 nor a multiple of 16."""
    ints = params // 2
    args = [Arg(f"n{i}", Kind.I32, 3 + 2 * i) for i in range(ints)]
    return Launch("k", (*args, *(Arg(f"p{i}", Kind.PTR, 8 + 16 * i, "*bf16") for i in range(params - ints))))


def _decide(capture: Capture, launches: Sequence[Launch], policy: Policy) -> None:
    for one in launches:
        decide(capture, one, policy)
