"""The times that the suite is made of, a benchmark each, for a history of them (docs/performance.md, "History").

Run as a test, each does its work once, and its answer is looked at.
"""

from __future__ import annotations

from pathlib import Path

from foldproof.cli.bench_bytes import straight
from foldproof.cli.bench_report import fill, render_all, report_of
from foldproof.gpu.symbolic.bits import allocations
from foldproof.gpu.symbolic.compare import Comparer
from foldproof.gpu.symbolic.graph import Graph
from foldproof.impl import Selection, decide, load_policy
from foldproof.impl.batch.bench import bench_capture
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.impl.rules import Strictness
from foldproof.model.matrix import SEARCH, unbounded
from foldproof.model.prove import Bench, Question, ask, questions
from foldproof.model.solvers import decide_text
from foldproof.model.verdict import Status
from pytest_benchmark.fixture import BenchmarkFixture

THREE_PASS = load_policy("three-pass")


def asked(policy: str, theorem: str) -> Question:
    return next(q for q in questions(load_policy(policy), [theorem]) if isinstance(q, Question))


def test_a_launch_is_decided(benchmark: BenchmarkFixture) -> None:
    capture = bench_capture(8, 4, 4, 0)
    first = capture.kernels[0]
    args = [
        Arg(p.name, Kind.PTR, 0x1000, p.type) if p.type[0] == "*" else Arg(p.name, Kind.I32, 16) for p in first.params
    ]
    outcome = benchmark(decide, capture, Launch(first.fn, tuple(args)), THREE_PASS)
    assert isinstance(outcome, Selection)
    assert (outcome.variant, outcome.strictness) == (first, Strictness.GENERAL)


def test_an_obligation_is_decided_by_both_solvers(benchmark: BenchmarkFixture) -> None:
    obligation = unbounded(asked("three-pass", "T01"))
    assert benchmark(decide_text, obligation.name, obligation.says, obligation.smt2()).holds


def test_a_theorem_is_refuted(benchmark: BenchmarkFixture) -> None:
    verdict = benchmark(lambda: ask(Bench(SEARCH), asked("single-guard", "T01")))
    assert verdict.status == Status.REFUTED


def test_a_variant_is_replayed_symbolically(benchmark: BenchmarkFixture) -> None:
    ready = next(straight())
    run = benchmark(lambda: ready.run(Comparer(Graph(), allocations(ready.case))))
    assert len(run.memory.written())


def test_a_report_is_rendered(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    fill(tmp_path, 64)
    assert "receipt.md" in benchmark(render_all, tmp_path, report_of(tmp_path))
