"""The measurements behind docs/performance.md: rates and times on this machine, each beside its goal."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import msgspec
from foldproof.impl.batch.bench import bench_capture
from foldproof.impl.batch.bench import rates as batch_rates
from foldproof.impl.errors import FoldproofError
from foldproof.impl.external.rates import LAUNCHES, Rate, abi_rates, protocol_rates
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.select import decide
from foldproof.props.drive import SelectorSpec
from foldproof.props.fuzz_run import Plan, run
from foldproof.props.memory import peak_of
from foldproof.props.universe import Universe

NATIVE = 2.5e6
"""Launches a second of a native Zig matcher on one core, as measured by the people who asked for this."""
SEEDS = 20


class Row(msgspec.Struct, frozen=True):
    """One line of the table; `goal` and `ratio` are words, "" where there is none."""

    what: str
    measured: str
    goal: str = ""
    ratio: str = ""


class Sizes(msgspec.Struct, frozen=True):
    """How much each measurement does: enough for a stable median, or little for a look."""

    batch: int = 4_000_000
    launches: int = LAUNCHES
    runs: int = 5
    seeds: int = SEEDS
    universe: Universe = Universe(3, 2, 2)
    seconds: float = 10.0
    repeats: int = 7
    """Of each side of a comparison and each point of a curve (`props.measure`); `runs` are those of a rate."""


QUICK = Sizes(200_000, 5_000, 1, 2, Universe(2, 2, 1), 0.5, 3)


class Built(msgspec.Struct, frozen=True):
    """The selectors to measure: a sound one behind both interfaces, and one with `single-guard` planted."""

    command: Path
    library: Path
    planted_command: Path
    planted_library: Path


def batch_rows(sizes: Sizes) -> Iterator[Row]:
    """The batch reference, and the reference one launch at a time."""
    policy = load_policy("three-pass")
    single = _one_by_one(policy, sizes)
    goals = {"encoded": "50 M/s", "from raw": "20 M/s"}
    for rate in batch_rates(sizes.batch, sizes.runs):
        is_goal = (rate.policy, rate.variants, rate.ints, rate.ptrs) == ("three-pass", 8, 4, 4)
        size = f"{rate.variants} variants x ({rate.ints} ints + {rate.ptrs} pointers)"
        words = "encoded launches" if rate.what == "encoded" else "from raw values"
        a_second = rate.million_a_second * 1e6
        same = f", {a_second / single:,.0f} x `decide`" if is_goal else ""
        ratio = f"{a_second / NATIVE:.0f} x the native matcher{same}"
        goal = goals[rate.what] if is_goal else ""
        yield Row(f"batch reference, {rate.policy}, {size}, {words}, one core", _rate(a_second), goal, ratio)
    size = "8 variants x (4 ints + 4 pointers)"
    yield Row(f"`impl.select.decide`, three-pass, {size}, one launch at a time, one core", _rate(single))


def _one_by_one(policy: Policy, sizes: Sizes) -> float:
    """Launches a second of `decide` on the capture of the batch's goal."""
    capture, draw = bench_capture(8, 4, 4, 0), random.Random(0)  # noqa: S311 (no secret)

    def launch() -> Launch:
        values = [draw.choice((1, 16 * draw.randrange(2**20), draw.randrange(2**20))) for _ in range(4)]
        ints = [Arg(f"n{i}", Kind.I32, value) for i, value in enumerate(values)]
        return Launch("k", (*ints, *(Arg(f"p{i}", Kind.PTR, draw.randrange(2**40) * 8, "*bf16") for i in range(4))))

    launches = [launch() for _ in range(min(sizes.launches, 5000))]
    began = time.perf_counter()
    for one in launches:
        decide(capture, one, policy)
    return len(launches) / (time.perf_counter() - began)


def driver_rows(built: Built, sizes: Sizes) -> Iterator[Row]:
    """The Zig selector through the protocol and through the C interface."""
    through = protocol_rates([str(built.command)], sizes.launches, sizes.runs)
    yield _driver(through[0], "200,000/s")
    yield _driver(through[1])
    goals = ("1 M/s", "", "")
    for rate, goal in zip(abi_rates(built.library, sizes.launches, sizes.runs), goals, strict=True):
        yield _driver(rate, goal, f"{rate.median / through[0].median:.0f} x the protocol")


def _driver(rate: Rate, goal: str = "", ratio: str = "") -> Row:
    return Row(f"{rate.what}, launches of 4 args, Zig selector", _rate(rate.median), goal, ratio)


def campaign_rows(built: Built, sizes: Sizes) -> Iterator[Row]:
    """How fast a campaign runs, and finds and shrinks what is planted."""
    for file, word in ((built.command, "protocol"), (built.library, "C interface")):
        part, seconds = _campaign(file, Plan(SelectorSpec(str(file)), load_policy("three-pass"), seconds=sizes.seconds))
        yield Row(f"campaign through the {word}, reference included", _rate(part / seconds))
    for file, word in ((built.planted_command, "protocol"), (built.planted_library, "C interface")):
        yield from _finding(file, word, sizes)


def _campaign(file: Path, plan: Plan) -> tuple[int, float]:
    with SelectorSpec(str(file)).open() as selector:
        done = run(plan, selector)
    return done.part.launches, done.seconds


def _finding(file: Path, word: str, sizes: Sizes) -> Iterator[Row]:
    spec, policy = SelectorSpec(str(file)), load_policy("three-pass")
    found, whole, small = [], [], 0
    for seed in range(sizes.seeds):
        began = time.perf_counter()
        with spec.open() as selector:
            done = run(Plan(spec, policy, seed, seconds=60.0, exitfirst=True), selector)
        whole.append(time.perf_counter() - began)
        finding = done.findings[0]
        found.append(finding.seconds or 0.0)
        small += (len(finding.case.capture.kernels), len(finding.case.launch.args)) == (2, 2)
    seeds = f"{sizes.seeds} seeds"
    what = f"planted single-guard found through the {word}"
    yield Row(f"{what}, median of {seeds} (most)", f"{median(found):.2f} s ({max(found):.2f} s)", "1 s")
    yield Row(f"{what}, with start and shrinking, median", f"{median(whole):.2f} s")
    yield Row(f"{what}, shrunk to 2 variants x 2 args", f"{small} of {seeds}", "every time")


def exhaust_rows(built: Built, sizes: Sizes) -> Iterator[Row]:
    """The exhaustive scope through the library, on all cores, as a user runs it: start and report included."""
    of, workers = sizes.universe, len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as out:
        size = [f"--variants={of.variants}", f"--ints={of.ints}", f"--ptrs={of.ptrs}", "--out", out]
        command = [sys.executable, "-m", "foldproof.cli.main", "exhaust", "--selector", str(built.library), *size]
        began = time.perf_counter()
        code, peak = peak_of([*command, "--workers", str(workers)])
        seconds = time.perf_counter() - began
    if code != 0:
        raise FoldproofError(f"exits with {code}", where=" ".join(command), fix="run it by itself")
    said = f"{seconds:.1f} s ({_rate(of.decisions / seconds)})"
    what = f"exhaust, {of.variants} variants x ({of.ints} ints + {of.ptrs} pointers), {of.decisions:,} decisions"
    yield Row(f"{what}, {workers} workers, C interface", said, "30 s")
    yield Row("exhaust, memory of all its processes at their most", f"{peak / 1e9:.2f} GB", "2 GB")


def _rate(a_second: float) -> str:
    return f"{a_second / 1e6:.1f} M/s" if a_second >= 1e6 else f"{a_second:,.0f}/s"


def markdown(rows: list[Row]) -> str:
    """The table as docs/performance.md holds it."""
    lines = ["| what | measured | goal | ratio |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {row.what} | {row.measured} | {row.goal} | {row.ratio} |" for row in rows)])
