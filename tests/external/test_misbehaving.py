"""Whatever a selector does, the caller gets a fault with the launch that caused it, in bounded time, and goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foldproof.impl import Arg, Kind, Launch, capture_from, launch_from
from foldproof.impl.external import guarding
from foldproof.impl.external.answers import Fault, FaultKind, Reply, SelectorError, Unasked
from foldproof.impl.external.guard import marked
from foldproof.impl.external.guarding import TOKEN
from foldproof.impl.external.process import ProcessSelector
from foldproof.impl.strictjson import parse

SCRIPT = Path(__file__).with_name("misbehaving.py")
PARAM = {"name": "n", "type": "i32", "div16": False, "nospec": True}
CAPTURE = capture_from(
    {"kernels": [{"fn": "k", "hash": h, "num_warps": 4, "params": [PARAM], "consts": {}} for h in ("a", "b")]}
)
TIMEOUT_S = 1.5
Alive = Callable[[int], bool]


def launch(value: int, kind: Kind = Kind.I32) -> Launch:
    return Launch("k", (Arg("n", kind, value),))


def selector(mode: str, *more: str, **limits: float) -> ProcessSelector:
    limits = {"timeout_s": TIMEOUT_S, "start_s": 10.0} | limits
    return ProcessSelector((sys.executable, "-I", "-S", str(SCRIPT), mode, *more), **limits)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("segfault", FaultKind.CRASH),
        ("exit", FaultKind.CRASH),
        ("close-stdout", FaultKind.CRASH),
        ("hang", FaultKind.TIMEOUT),
        ("stops", FaultKind.TIMEOUT),
        ("garbage", FaultKind.GARBAGE),
        ("garbage-after", FaultKind.GARBAGE),
        ("segfault-after", FaultKind.CRASH),
        ("bytes", FaultKind.GARBAGE),
        ("wrong-type", FaultKind.GARBAGE),
        ("contradiction", FaultKind.GARBAGE),
        ("neither", FaultKind.GARBAGE),
        ("unknown-error", FaultKind.GARBAGE),
        ("endless-line", FaultKind.GARBAGE),
        ("wrong-id", FaultKind.WRONG_ID),
        ("repeated-id", FaultKind.REPEATED_ID),
        ("out-of-range", FaultKind.OUT_OF_RANGE),
        ("negative", FaultKind.OUT_OF_RANGE),
        ("stderr", FaultKind.STDERR_FLOOD),
    ],
)
def test_the_launch_to_blame_gets_the_fault_and_the_others_their_answers(mode: str, kind: FaultKind) -> None:
    launches = [launch(value) for value in (*range(40), 666, *range(41, 80))]
    with selector(mode) as under_test:
        answers = under_test.ask("c", CAPTURE, launches)
    fault = answers.pop(40)
    assert isinstance(fault, Fault)
    assert fault.kind == kind
    assert launch_from(parse(fault.launch, "")) == launches[40]
    assert all(isinstance(answer, Reply) and answer.pick == 0 for answer in answers)
    assert under_test.faults == []


def test_a_fault_tells_how_the_process_ended_and_what_it_wrote_last() -> None:
    with selector("exit") as under_test:
        (fault,) = under_test.ask("c", CAPTURE, [launch(666)])
    assert isinstance(fault, Fault)
    assert "exited with 0" in fault.detail
    assert fault.stderr == "last words"


@pytest.mark.parametrize("mode", ["never-reads", "closes-stdin"])
def test_a_selector_that_never_reads_is_found_without_blocking(mode: str) -> None:
    """More launches than any pipe holds, so that a blocking write would never return."""
    launches = [launch(value) for value in range(100_000)]
    with selector(mode, timeout_s=0.5, max_faults=2) as under_test:
        answers = under_test.ask("c", CAPTURE, launches)
    kinds = [answer.kind for answer in answers if isinstance(answer, Fault)]
    assert kinds == [FaultKind.NOT_READING] * 2
    assert answers[-1] == Unasked("too-many-faults")


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("silent", "no greeting within 0.5 s"),
        ("early-exit", "exited with 1 without a greeting; stderr: no module named tritonfold"),
        ("no-greeting", "no greeting"),
        ("other-version", "no greeting"),
        ("greets-without-end", "text without end"),
        ("complains-without-end", "text without end"),
    ],
)
def test_one_that_does_not_greet_cannot_be_entered(mode: str, said: str) -> None:
    start_s = 0.5 if mode == "silent" else 10.0
    with pytest.raises(SelectorError, match=said), selector(mode, start_s=start_s):
        pass


def test_a_command_that_does_not_exist_cannot_be_entered() -> None:
    with pytest.raises(SelectorError, match="cannot be started"), ProcessSelector(["/no/such/selector"]):
        pass


def test_a_selector_that_always_breaks_is_given_up_after_max_faults() -> None:
    launches = [launch(value) for value in range(50)]
    with selector("always-segfault", max_faults=3) as under_test:
        answers = under_test.ask("c", CAPTURE, launches)
    assert [isinstance(answer, Fault) for answer in answers[:3]] == [True] * 3
    assert set(answers[3:]) == {Unasked("too-many-faults")}


def test_one_that_hangs_is_asked_for_two_launches_of_a_batch() -> None:
    launches = [launch(1), *[launch(666)] * 5]
    with selector("hang", timeout_s=0.3) as under_test:
        first, *answers = under_test.ask("c", CAPTURE, launches)
    assert isinstance(first, Reply)
    assert [isinstance(a, Fault) and a.kind == FaultKind.TIMEOUT and a.reproduced for a in answers[:2]] == [True] * 2
    assert set(answers[2:]) == {Unasked("too-many-faults")}


def test_a_capture_that_kills_the_selector_is_bounded_too() -> None:
    with selector("dies-of-capture", max_faults=2) as under_test:
        answers = under_test.ask("c", CAPTURE, [launch(value) for value in range(50)])
    assert [answer.kind for answer in answers if isinstance(answer, Fault)] == [FaultKind.CRASH] * 2


def test_a_crash_that_does_not_come_again_is_told_as_such(tmp_path: Path) -> None:
    with selector("once", str(tmp_path / "crashed")) as under_test:
        answers = under_test.ask("c", CAPTURE, [launch(value) for value in range(20)])
    faults = [answer for answer in answers if isinstance(answer, Fault)]
    assert [(fault.kind, fault.reproduced) for fault in faults] == [(FaultKind.CRASH, False)]
    assert sum(isinstance(answer, Reply) for answer in answers) == 19


def test_answers_come_in_any_order_and_never_more_than_1024_launches_wait(tmp_path: Path) -> None:
    with selector("window", str(tmp_path / "most")) as under_test:
        answers = under_test.ask("c", CAPTURE, [launch(value) for value in range(5000)])
    assert [answer.pick for answer in answers if isinstance(answer, Reply)] == [0, 1] * 2500
    assert (tmp_path / "most").read_text() == "1024"


def test_a_process_that_holds_many_captures_is_replaced(reference: tuple[str, ...]) -> None:
    with ProcessSelector(reference, recycle_bytes=1000) as under_test:
        picks = [answer.pick for i in range(12) for answer in under_test.ask(i % 5, CAPTURE, [launch(i)])]  # type: ignore[union-attr]
        first = under_test.ask(0, CAPTURE, [launch(1)])[0]
    assert picks == [0] * 12
    # Numbers start again with each process: a low one shows that this is not the first.
    assert isinstance(first, Reply)
    assert first.id < 6
    assert under_test.faults == []


def test_after_a_fault_the_next_batch_runs_in_a_fresh_process() -> None:
    with selector("segfault") as under_test:
        under_test.ask("c", CAPTURE, [launch(666)])
        assert [type(answer) for answer in under_test.ask("c", CAPTURE, [launch(1), launch(2)])] == [Reply, Reply]


def test_a_crash_after_the_last_answer_of_a_batch_is_not_lost() -> None:
    """Seen at once it is the launch's fault; seen by the next batch it is kept, with the launch before it."""
    with selector("segfault-after") as under_test:
        (answer,) = under_test.ask("c", CAPTURE, [launch(666)])
        time.sleep(0.3)
        (after,) = under_test.ask("c", CAPTURE, [launch(1)])
    assert isinstance(after, Reply)
    (fault,) = [answer] if isinstance(answer, Fault) else under_test.faults
    assert fault.kind == FaultKind.CRASH
    assert launch_from(parse(fault.launch, "")) == launch(666)


def test_kinds_that_the_selector_does_not_know_are_not_sent() -> None:
    with selector("few-kinds") as under_test:
        answers = under_test.ask("c", CAPTURE, [launch(1), launch(666, Kind.I64), launch(2)])
    assert answers[1] == Unasked("kind-unknown")
    assert isinstance(answers[2], Reply)


@pytest.mark.parametrize("mode", ["ignores-sigterm", "ignores-end", "stops-at-end"])
def test_one_that_does_not_end_is_killed_and_told(mode: str) -> None:
    with selector(mode) as under_test:
        under_test.ask("c", CAPTURE, [launch(1)])
    assert [fault.kind for fault in under_test.faults] == [FaultKind.NOT_ENDING]


def test_a_bad_exit_status_at_the_end_is_told() -> None:
    with selector("bad-end") as under_test:
        under_test.ask("c", CAPTURE, [launch(1)])
    assert [(fault.kind, fault.detail) for fault in under_test.faults] == [
        (FaultKind.CRASH, "exited with 7 after the end of input")
    ]


def test_a_process_that_leaves_the_group_does_not_outlive_the_run(tmp_path: Path, alive: Alive) -> None:
    note = tmp_path / "pid"
    with selector("leaves", str(note)) as under_test:
        under_test.ask("c", CAPTURE, [launch(1)])
        assert alive(int(note.read_text()))
    assert [fault.kind for fault in under_test.faults] == [FaultKind.LEFT_PROCESSES]
    assert not alive(int(note.read_text()))


def test_a_forked_process_that_holds_the_pipes_neither_hangs_nor_survives(tmp_path: Path, alive: Alive) -> None:
    note = tmp_path / "pid"
    with selector("fork", str(note), max_faults=1) as under_test:
        (fault,) = under_test.ask("c", CAPTURE, [launch(666)])
    assert isinstance(fault, Fault)
    assert (fault.kind, "exited with 3" in fault.detail) == (FaultKind.CRASH, True)
    assert not alive(int(note.read_text()))


def test_a_selector_that_takes_too_much_memory_breaks_at_the_launch_that_made_it() -> None:
    with selector("leaks", memory_mib=128, max_faults=1) as under_test:
        first, fault = under_test.ask("c", CAPTURE, [launch(1), launch(666)])
    assert isinstance(first, Reply)
    assert isinstance(fault, Fault)
    assert (fault.kind, "MemoryError" in fault.stderr) == (FaultKind.CRASH, True)
    with selector("leaks", memory_mib=0) as under_test:
        assert isinstance(under_test.ask("c", CAPTURE, [launch(666)])[0], Reply)


def test_processes_that_start_others_in_sessions_of_their_own_all_end() -> None:
    with selector("breeds", max_faults=1) as under_test:
        (fault,) = under_test.ask("c", CAPTURE, [launch(666)])
        started = under_test._talk  # noqa: SLF001
    assert isinstance(fault, Fault)
    assert (fault.kind, started) == (FaultKind.TIMEOUT, None)
    assert marked(f"{TOKEN}={guarding.fresh_token().split('.')[0]}.".encode()) == []
