"""What `foldproof bench` measures of reports: every format rendered, beside reading the evidence and beside pandas."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from foldproof.cli.recording import started
from foldproof.impl.policy import load_policy
from foldproof.model.theorems import THEOREMS
from foldproof.props.measure import Curve, Item, Measure, Side
from foldproof.reports.events import BytesJudged, BytesRow, CampaignRan, LaunchesExamined, LaunchRow, TheoremJudged
from foldproof.reports.evidence import AtHand
from foldproof.reports.obligations import DOMAINS, FORMATS, Config, PolicyTable
from foldproof.reports.recorder import recording
from foldproof.reports.render import render
from foldproof.reports.store import raw, read
from foldproof.reports.tables import tables
from foldproof.reports.view import Report, build

PAIRS = (64, 128, 256, 512, 1024, 2048)
SIZE = 512
"""Pairs with byte verdicts in the report that is measured: the bundled capture has 451."""
DIGEST = "a" * 64
POLICY = "three-pass"


def rendering(repeats: int, *, quick: bool) -> Iterator[Item]:
    """A report of `SIZE` pairs in every format; report.html beside pandas; growth with the pairs."""
    sizes = PAIRS[::2] if quick else PAIRS
    with tempfile.TemporaryDirectory() as scratch:
        folders = {size: Path(scratch) / str(size) for size in {*sizes, SIZE}}
        for size, folder in folders.items():
            fill(folder, size)
        reports = {size: report_of(folder) for size, folder in folders.items()}
        folder, report = folders[SIZE], reports[SIZE]
        everything = Side("all formats", partial(render_all, folder, report))
        page = Side("report.html", partial(render, report, ["html"], _no_file))
        what = f"report of {SIZE} pairs"
        yield Measure("reading", what, "report", everything, Side("evidence read", partial(report_of, folder)), repeats)
        yield Measure("pandas", what, "report", page, Side("pandas, to_html", partial(_by_pandas, report)), repeats)
        sides = [Side(f"{size} pairs", partial(render_all, folders[size], reports[size])) for size in sizes]
        yield Curve("pairs", "all formats rendered", "pairs", "report", sizes, sides, repeats, warm=False)


def fill(folder: Path, pairs: int) -> None:
    """Evidence of a check with that many pairs judged, a function for every four."""
    theorems = load_policy(POLICY).promises
    with recording(folder, started("check", "foldproof check", 0)) as to:
        for name in theorems:
            base, _, old = name.partition(":")
            to.emit(
                TheoremJudged(
                    policy=POLICY, policy_sha256=DIGEST, theorem=base, name=THEOREMS[base].name,
                    sentence=THEOREMS[base].sentence, verdict="proved", promised=True, scope="unbounded", old=old,
                    old_sha256=DIGEST if old else "", seconds=0.25,
                )
            )  # fmt: skip
        to.emit(
            CampaignRan(
                stage="check", policy=POLICY, policy_sha256=DIGEST, seed="0", cases=10**6, disagreements=0,
                outcomes={"exact": 600_000, "general": 400_000}, endings=("exact", "general"), visited=11, possible=15,
                coverage=(("i32 = 1", "3/3", "2/3"),), curve=tuple((n * n, min(11, n)) for n in range(1, 200)),
                seconds=60.0, rate=16_000.0,
            )
        )  # fmt: skip
        functions = [f"_kernel_{number}" for number in range(-(-pairs // 4))]
        launches = tuple(LaunchRow(fn, 4, 20, 10, 5, 2, 1, 1, 1, 0) for fn in functions)
        to.emit(
            LaunchesExamined(
                source="derived",
                capture="bench",
                capture_sha256=DIGEST,
                policy=POLICY,
                policy_sha256=DIGEST,
                rows=launches,
            )
        )
        words = dict.fromkeys(DOMAINS, "equal")
        rows = tuple(
            BytesRow(functions[n // 4], f"launch {n}", "fold of S", f"a{n:04}", f"b{n:04}", words, "symbolic")
            for n in range(pairs)
        )
        counts = {domain: {"equal": pairs} for domain in DOMAINS}
        to.emit(
            BytesJudged(
                by="symbolic", what="bits", capture_sha256=DIGEST, cubins={}, counts=counts, rows=rows, device=""
            )
        )
        to.exit_code = 0


def report_of(folder: Path) -> Report:
    """The report of what `fill` wrote."""
    stored, damaged = read(folder)
    at_hand = AtHand(captures={DIGEST: {}}, policies={POLICY: DIGEST, "two-pass": DIGEST}, names={DIGEST: "bench"})
    return build(Config(policy=PolicyTable(POLICY)), stored, at_hand, load_policy(POLICY).promises, damaged)


def render_all(folder: Path, report: Report) -> dict[str, bytes]:
    """Every format."""
    return render(report, FORMATS, lambda path: raw(folder / path))


def _no_file(path: str) -> bytes:
    raise FileNotFoundError(path)


def _by_pandas(report: Report) -> str:
    return "".join(frame.to_html() for frame in tables(report).values())
