"""A selector that hangs costs its campaign a few timeouts, however many launches there are to ask."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from foldproof.impl import Capture, Kind, Launch, load_policy
from foldproof.impl.cases import Case
from foldproof.impl.external.answers import Answer, Fault, FaultKind, Reply, Unasked
from foldproof.impl.external.channel import JOB, Halt, no_results
from foldproof.impl.external.decision import FAULTY, UNASKED, Decision
from foldproof.impl.external.process import START_S
from foldproof.impl.external.records import encode
from foldproof.props.drive import SelectorSpec, driver_of
from foldproof.props.exhaust_external import Run, run_all
from foldproof.props.fuzz_run import Done, Plan, run
from foldproof.props.patience import MOST_AT_FIRST, MOST_IN_ALL, Patience
from foldproof.props.pin import recheck
from foldproof.props.rounds import Source
from foldproof.props.selector_campaign import run_rounds
from foldproof.props.universe import Universe

THREE_PASS = load_policy("three-pass")
HUNG = Fault(FaultKind.TIMEOUT, "no answer")
HANGS = {"fault timeout", "fault not-reading"}
"""On a busy machine a timeout this short may end before the selector has read its input."""
HANGING = """
import json, os, sys, time
os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT), b"x")
print(json.dumps({"type": "hello", "protocol": "foldproof-selector/1", "name": "hangs"}), flush=True)
for line in sys.stdin:
    if json.loads(line)["type"] == "launch":
        time.sleep(600)
"""


class Hanging:
    """A selector that greets and never answers, and how often it was started: each start but the first is a wait."""

    def __init__(self, folder: Path) -> None:
        self.note = folder / "starts"
        script = folder / "hangs.py"
        script.write_text(HANGING)
        self.spec = SelectorSpec(f"{sys.executable} -I -S {script} {self.note}", timeout_s=0.05)

    def campaign(self, **more: object) -> Done:
        with self.spec.open() as selector:
            return run(Plan(self.spec, THREE_PASS, **more), selector)  # type: ignore[arg-type]

    @property
    def starts(self) -> int:
        return self.note.stat().st_size


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hanging:
    monkeypatch.setattr("foldproof.props.pin.HUNG_S", 0.0)
    return Hanging(tmp_path)


def test_a_campaign_ends_with_the_batch_in_which_its_time_is_up(hanging: Hanging) -> None:
    done = hanging.campaign(seconds=0.01)
    # Two launches, each of them twice.
    assert (done.part.rounds, done.stop, sum(done.part.kinds.values())) == (1, 1, 2)
    assert {finding.kind for finding in done.findings} <= HANGS
    assert done.findings[0].case.launch


def test_a_campaign_of_rounds_gives_up_after_four_launches_without_an_answer(hanging: Hanging) -> None:
    done = hanging.campaign(rounds=4000, seconds=None)
    assert (done.part.rounds, done.stop, sum(done.part.kinds.values())) == (2, 2, 4)
    assert set(done.part.kinds) <= HANGS
    assert [str(fault) for fault in done.part.stray] == [
        "timeout: hung on 4 launches and answered none: the rest was not asked"
    ]
    # Eight for the rounds, and three to shrink each kind.
    assert hanging.starts <= 16


def test_an_exhaustive_run_gives_up_and_counts_the_rest_as_without_an_answer(hanging: Hanging) -> None:
    universe = Universe(2, 2, 1)
    done = run_all(Run(hanging.spec, THREE_PASS, universe))
    assert done.tally.is_complete
    assert done.tally.disagreements == universe.decisions
    assert done.tally.findings
    assert len(done.faults) == 5
    assert "the rest was not asked" in done.faults[0].detail
    assert hanging.starts <= 9


class Scripted:
    """A selector in this process that hangs on every `each`th batch, and answers the others."""

    def __init__(self, each: int) -> None:
        self.name, self.kinds, self.faults = "scripted", frozenset(Kind), list[Fault]()
        self.each, self.asked = each, 0

    def ask(self, _: object, __: Capture, launches: Sequence[Launch]) -> list[Answer]:
        self.asked += 1
        rest: Answer = Reply(0, error="MissingTritonVariant")
        hangs = self.asked % self.each == 0
        return [HUNG if hangs else rest, *[Unasked("too-many-faults") if hangs else rest] * (len(launches) - 1)]

    def close(self) -> None:
        pass


def test_one_that_answers_in_between_is_given_up_after_sixteen_launches() -> None:
    selector = Scripted(2)
    part = run_rounds(driver_of(selector), Source(), THREE_PASS, 0, range(200))
    assert part.rounds == selector.asked == 2 * MOST_IN_ALL
    assert "hung on 16 launches: the rest was not asked" in str(part.stray)


def test_what_is_known_is_asked_again_until_patience_is_spent() -> None:
    selector, round_ = Scripted(1), Source().round(0, 0)
    cases = [(str(n), Case(str(n), round_.capture, round_.launch(n))) for n in range(20)]
    checked = recheck(selector, THREE_PASS, cases)
    assert [said.kind for _, said in checked] == ["fault timeout"] * MOST_AT_FIRST + [""] * 16
    assert selector.asked == MOST_AT_FIRST
    assert [seen.word for _, seen in checked] == ["fault timeout"] * MOST_AT_FIRST + ["not asked"] * (
        len(cases) - MOST_AT_FIRST
    )


def test_other_faults_and_answers_cost_no_patience() -> None:
    patience = Patience()
    for _ in range(100):
        patience.note([Fault(FaultKind.CRASH, "crashed")], answered=False)
    assert not patience.is_spent
    patience.note([HUNG] * 3, answered=False)
    assert not patience.is_spent
    patience.note([], answered=True)
    patience.note([HUNG] * 12, answered=False)
    assert not patience.is_spent
    patience.note([Fault(FaultKind.NO_GREETING, "silent")], answered=False)
    assert patience.is_spent


def test_a_library_that_does_not_return_is_asked_for_two_launches_of_a_batch() -> None:
    round_ = Source().round(0, 0)
    launches = [round_.launch(n) for n in range(20)]
    jobs = np.array([(0, 0, len(launches), 0)], JOB)
    decision, waits = Decision(encode(launches), len(launches)), 0

    def hangs(*_: object) -> tuple[object, Halt, list[int]]:
        nonlocal waits
        waits += 1
        return no_results(), Halt(FaultKind.TIMEOUT, "no return"), [0]

    decision.decide(hangs, jobs, 4)  # type: ignore[arg-type]
    picks = decision.settled(jobs, {0: len(round_.capture.kernels)}, set()).picks.tolist()
    assert (waits, picks) == (4, [FAULTY] * 2 + [UNASKED] * 18)


def test_the_greeting_has_its_own_time_unless_an_answer_has_more() -> None:
    for text in ("a-command", "a-library.so"):
        assert SelectorSpec(text, timeout_s=1.0).open().start_s == START_S
        assert SelectorSpec(text, timeout_s=60.0).open().start_s == 60.0
