"""Work spread over processes: the same result whoever does it, and nothing lost when a worker is killed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foldproof.impl import load_policy
from foldproof.props import crew
from foldproof.props.crew import NotRun, in_order
from foldproof.props.drive import SelectorSpec
from foldproof.props.exhaust_external import Run, run_all
from foldproof.props.fuzz_run import Done, Plan, run
from foldproof.props.universe import Universe

THREE_PASS = load_policy("three-pass")
Zig = Callable[..., SelectorSpec]


def square(number: int) -> int:
    return number * number


def dies_once(job: tuple[int, str]) -> int:
    """Kills its own process the first time that it gets the number 5."""
    number, folder = job
    if number == 5 and not (mark := Path(folder) / "died").exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def always_dies(_: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def fails(number: int) -> int:
    raise ZeroDivisionError(number)


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_and_shards_are_drawn_as_needed(workers: int) -> None:
    drawn: list[int] = []

    def shards() -> Iterator[int]:
        for number in range(100):
            drawn.append(number)
            yield number

    results = in_order(square, shards(), workers=workers)
    assert [next(results) for _ in range(3)] == [(0, 0), (1, 1), (2, 4)]
    results.close()  # type: ignore[attr-defined]
    assert len(drawn) <= 3 + 2 * workers


def test_a_worker_that_dies_loses_nothing(tmp_path: Path) -> None:
    jobs = [(number, str(tmp_path)) for number in range(12)]
    assert [result for _, result in in_order(dies_once, jobs, workers=2)] == [n * n for n in range(12)]
    assert (tmp_path / "died").exists()


def test_a_shard_that_ends_every_worker_is_named() -> None:
    with pytest.raises(NotRun, match="died of one shard"):
        list(in_order(always_dies, range(1), workers=2))


def test_an_error_of_the_task_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_order(fails, range(3), workers=2))


def campaign(spec: SelectorSpec, **more: object) -> Done:
    plan = Plan(spec, THREE_PASS, seed=2, **({"seconds": None, "rounds": 70} | more))  # type: ignore[arg-type]
    with spec.open() as selector:
        return run(plan, selector)


def told(done: Done) -> object:
    return done.part, done.stop, done.cells, [(f.kind, f.case, f.expected, f.got, f.launches) for f in done.findings]


@pytest.mark.parametrize("exitfirst", [False, True])
def test_a_campaign_shows_the_same_with_any_number_of_workers(zig: Zig, exitfirst: bool) -> None:
    spec = zig("last-match", "lib")
    assert told(campaign(spec, exitfirst=exitfirst)) == told(campaign(spec, exitfirst=exitfirst, workers=2))


def test_an_exhaustive_run_counts_the_same_with_any_number_of_workers(
    zig: Zig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foldproof.props.exhaust_external.SHARD_DECISIONS", 30_000)
    plan = Run(zig("single-guard", "lib"), THREE_PASS, Universe(2, 2, 2))
    one = run_all(plan)
    two = run_all(Run(plan.spec, plan.policy, plan.universe, workers=2))
    assert one == two
    assert one.tally.is_complete


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler and two workers, each a process of its own: the address, and the workers."""
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("needs the extra dask")
    with contextlib.ExitStack() as stack:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "cwd": tmp_path}
        head = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        scheduler = subprocess.Popen([*head, "--no-dashboard"], **quiet)  # type: ignore[call-overload]
        stack.callback(end, scheduler)
        address = next(
            found.group(0)
            for line in scheduler.stderr
            if (found := re.search(r"tcp://127\.0\.0\.1:\d+", line.decode()))
        )
        quiet["stderr"] = subprocess.DEVNULL
        words = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
        workers = []
        for _ in range(2):
            workers.append(subprocess.Popen([*words, "--no-nanny"], **quiet))  # type: ignore[call-overload]
            stack.callback(end, workers[-1])
        wait_for_workers(address, 2)
        yield address, workers


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stderr:
        process.stderr.close()


def wait_for_workers(address: str, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(NotRun):
            pool = crew.DaskPool(address)
            width = pool.width()
            pool.close()
            if width >= count:
                return
        time.sleep(0.2)
    pytest.fail("the Dask workers did not come up")


@pytest.mark.filterwarnings("ignore")
def test_dask_workers_show_the_same_and_a_killed_one_loses_nothing(
    zig: Zig, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    address, workers = cluster
    spec = zig("last-match", "lib")
    alone = campaign(spec, rounds=400)
    killed: list[float] = []

    def kill_one(gone: float, _: object) -> None:
        if not killed:
            killed.append(gone)
            workers[0].send_signal(signal.SIGKILL)

    plan = Plan(spec, THREE_PASS, seed=2, seconds=None, rounds=400, scheduler=address)
    with spec.open() as selector:
        spread = run(plan, selector, kill_one)
    assert workers[0].wait(10) == -signal.SIGKILL
    assert told(spread) == told(alone)
    universe = Universe(2, 2, 1)
    exhausted = run_all(Run(spec, THREE_PASS, universe, scheduler=address))
    assert exhausted == run_all(Run(spec, THREE_PASS, universe))


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_none_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("distributed") is not None:
        with pytest.raises(NotRun, match="no scheduler answers"):
            list(in_order(square, [1], scheduler="no address"))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NotRun, match="needs the extra dask"):
        list(in_order(square, [1], scheduler="tcp://127.0.0.1:9"))
