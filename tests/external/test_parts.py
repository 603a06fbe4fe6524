"""What is said of a fault, how a batch of a library that breaks goes on, and the rates of the drivers."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foldproof.impl import Arg, Capture, Kind, Launch, capture_from
from foldproof.impl.external import cabi, channel, rates
from foldproof.impl.external.answers import Answer, Fault, FaultKind, Reply, SelectorError, Unasked
from foldproof.impl.external.cabi import AbiSelector
from foldproof.impl.external.channel import JOB, Halt, Results, no_results
from foldproof.impl.external.child import Child
from foldproof.impl.external.compare import difference
from foldproof.impl.external.conformance import conform, shipped
from foldproof.impl.external.decision import FAULTY, UNASKED, Decision
from foldproof.impl.external.records import encode
from foldproof.impl.external.wire import kernels_text

PARAM = {"name": "n", "type": "i32", "div16": False, "nospec": True}
CAPTURE = capture_from(
    {"kernels": [{"fn": "k", "hash": h, "num_warps": 4, "params": [PARAM], "consts": {}} for h in "ab"]}
)
KERNELS = kernels_text(CAPTURE)


def launch(value: int) -> Launch:
    return Launch("k", (Arg("n", Kind.I32, value),))


def test_a_fault_says_whether_it_came_again() -> None:
    assert str(Fault(FaultKind.CRASH, "exited with 1")) == "crash: exited with 1"
    once = Fault(FaultKind.TIMEOUT, "no answer", reproduced=False)
    assert str(once) == "timeout: no answer (not again when asked alone)"


@pytest.mark.parametrize(
    ("expected", "reply", "said"),
    [
        (Reply(0, 1), Reply(5, 1), ""),
        (Reply(0, 1), Reply(0, 0), "pick 0, not pick 1"),
        (Reply(0, 0), Reply(0, 1), "pick 1, not pick 0"),
        (Reply(0, 0), Reply(0, error="InvalidLaunch"), "InvalidLaunch, not pick 0"),
        (Reply(0, error="InvalidLaunch"), Reply(0, error="InvalidCapture"), "InvalidCapture, not InvalidLaunch"),
        (Reply(0, 1, "exact"), Reply(0, 1, "general"), "pass general, not exact"),
        (Reply(0, 1, "exact"), Reply(0, 1), ""),
        (Reply(0, 1), Reply(0, 1, "exact"), ""),
        (Reply(0, 1, log=("a",)), Reply(0, 1, log=()), "0 log lines, not 1"),
        (Reply(0, 1, log=("a",)), Reply(0, 1, log=("b", "c")), "2 log lines, not 1"),
        (Reply(0, 1, log=("a",)), Reply(0, 1, log=("b",)), ""),
        (Reply(0, 1, log=("a",)), Reply(0, 1), ""),
        (Reply(0, 1), Reply(0, 1, log=("a",)), ""),
    ],
)
def test_two_answers_agree_in_what_both_say(expected: Reply, reply: Reply, said: str) -> None:
    assert difference(expected, reply) == said


class Answering:
    """A selector that knows some kinds and gives one answer to everything."""

    def __init__(self, kinds: frozenset[Kind], answer: Answer) -> None:
        self.kinds, self.answer, self.asked = kinds, answer, 0

    def ask_texts(self, *_: object) -> list[Answer]:
        self.asked += 1
        return [self.answer]


def test_conformance_tells_faults_and_leaves_out_unknown_kinds() -> None:
    every, few = (
        Answering(frozenset(Kind), Fault(FaultKind.CRASH, "gone")),
        Answering(frozenset(), Unasked("too-many-faults")),
    )
    told = conform(every)  # type: ignore[arg-type]
    launches = [line for line in shipped() if line["send"]["type"] == "launch"]
    assert len(told) == every.asked == len(launches)
    assert all(line.endswith(": crash: gone") for line in told)
    bare = conform(few)  # type: ignore[arg-type]
    without_args = [
        one for one in launches
        if not one["send"]["launch"]["args"] or one["expect"].get("error") == "InvalidLaunch"
    ]  # fmt: skip
    assert len(bare) == few.asked == len(without_args) < len(launches)
    assert all(line.endswith(": not asked: too many faults") for line in bare)


# A batch of a library that breaks.


def jobs_of(*jobs: tuple[int, int, int, int]) -> np.ndarray[Any, Any]:
    return np.array(list(jobs), JOB)


def test_a_library_that_does_not_start_again_is_told_at_the_first_launch_left() -> None:
    decision = Decision(encode([launch(1), launch(2)]), 2)
    runs = iter([(no_results(), Halt(FaultKind.NO_GREETING, "no greeting"), [])])
    jobs = jobs_of((0, 0, 2, 0))
    decision.decide(lambda *_: next(runs), jobs, 4)
    decided = decision.settled(jobs, {0: 2}, set())
    assert decided.picks.tolist() == [FAULTY, UNASKED]
    assert decided.faults[0].kind == FaultKind.NO_GREETING


def test_a_library_that_breaks_while_its_capture_is_loaded_again_is_blamed_for_the_capture() -> None:
    decision = Decision(encode([launch(1), launch(2), launch(3)]), 3)
    jobs = jobs_of((0, 0, 2, 0), (1, 2, 1, 2))
    done = Results(np.array([0, 0, 1], np.int32), np.zeros(3, np.uint8), np.zeros((1, 256), np.uint8))
    runs = iter(
        [
            (no_results(), Halt(FaultKind.CRASH, "gone", at=0, launch=0), [0, 1]),
            (no_results(), Halt(FaultKind.CRASH, "gone again", loading=True, at=0), [0]),
            (done, None, []),
        ]
    )
    decision.decide(lambda *_: next(runs), jobs, 4)
    assert decision.faults[0].detail == "gone again, while loading the capture"
    assert next(runs, None) is None


def test_a_library_that_cannot_be_opened_again_is_a_fault_of_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise SelectorError("cannot be loaded")

    monkeypatch.setattr(cabi, "Channel", refuse)
    decided = AbiSelector("lib.so").decide([KERNELS], [2], encode([launch(1), launch(2)]), [(0, 0, 2)])
    assert decided.picks.tolist() == [FAULTY, UNASKED]
    assert decided.faults[0].detail == "cannot be loaded"


def test_a_library_that_ends_badly_is_told_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Opened:
        name, kinds, child = "x", frozenset(Kind), None

        def __init__(self, *_: object) -> None:
            pass

    fault = Fault(FaultKind.NOT_ENDING, "still running")
    monkeypatch.setattr(cabi, "Channel", Opened)
    monkeypatch.setattr(cabi, "end_politely", lambda *_: fault)
    with AbiSelector("lib.so") as under_test:
        assert under_test.faults == []
    assert under_test.faults == [fault]
    under_test.close()
    assert under_test.faults == [fault]


def test_a_greeting_that_is_cut_short_is_no_selector(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    head = struct.pack("<IIQ", 0, 5, 0)

    def cut(*_: object, **__: object) -> Child:
        return Child((sys.executable, "-I", "-S", "-c", f"import os; os.write(1, {head!r}); os.write(2, b'oh')"))

    monkeypatch.setattr(channel, "Child", cut)
    with pytest.raises(SelectorError, match="exited with 0; stderr: oh"):
        channel.Channel(tmp_path / "lib.so", 5.0, 10.0)


def test_rates_are_measured_through_each_driver_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[Any] = []

    class Driver:
        def __init__(self, subject: Any) -> None:
            self.subject, self.asked = subject, []
            made.append(self)

        def __enter__(self) -> Driver:  # noqa: PYI034 (a stand-in)
            return self

        def __exit__(self, *_: object) -> None: ...

        def ask(self, _: object, capture: Capture, launches: Sequence[Launch]) -> None:
            self.asked.append((len(capture.kernels), len(launches)))

        def ask_texts(self, _: object, __: bytes, variants: int, texts: Sequence[bytes]) -> None:
            self.asked.append((variants, len(texts)))

        def decide(
            self, captures: Sequence[bytes], _: object, encoded: Sequence[object], jobs: Sequence[object]
        ) -> None:
            self.asked.append((len(captures), len(encoded), len(jobs)))

    monkeypatch.setattr(rates, "ProcessSelector", Driver)
    monkeypatch.setattr(rates, "AbiSelector", Driver)
    protocol, c_interface = rates.protocol_rates(["x"], 72, 2), rates.abi_rates(Path("y"), 72, 2)
    assert [rate.what for rate in protocol] == ["protocol", "protocol, texts made before"]
    assert [rate.what for rate in c_interface] == [
        "C interface",
        "encoding for it",
        "C interface, 36 launches a capture",
    ]
    assert all(0 < rate.median <= rate.best for rate in (*protocol, *c_interface))
    assert made[0].asked == [(8, 72)] * 4
    assert made[1].asked == [(1, 72, 1)] * 2 + [(2, 36, 2)] * 2

    monkeypatch.setattr(rates, "protocol_rates", lambda command: [rates.Rate(f"protocol {command}", 1234.5, 2000.0)])
    monkeypatch.setattr(rates, "abi_rates", lambda library: [rates.Rate(f"library {library}", 1.0, 2.0)])
    assert rates.main(["--command", "a", "b"]) == 0
    assert capsys.readouterr().out == "protocol ['a', 'b']: 1,234 launches/s (best 2,000)\n"
    assert rates.main(["--library", "l.so"]) == 0
    assert capsys.readouterr().out == "library l.so: 1 launches/s (best 2)\n"
    assert rates.main([]) == 0
    assert capsys.readouterr().out == ""


def test_the_workload_is_eight_variants_and_launches_that_some_of_them_fit() -> None:
    capture, launches = rates.workload(50)
    assert len(capture.kernels) == 8
    assert len({tuple(arg.type for arg in one.args) for one in launches}) == 1
    assert {arg.number == 1 for one in launches for arg in one.args if arg.name == "s"} == {False, True}
    assert rates.workload(50)[1] == launches
