"""A selector's process: its pipes, its end, and what a selector that goes away between two batches costs."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from foldproof.impl import Arg, Kind, Launch, capture_from
from foldproof.impl.external import child
from foldproof.impl.external.answers import Fault, FaultKind, Reply, SelectorError, Unasked
from foldproof.impl.external.child import Child
from foldproof.impl.external.process import ProcessSelector

PARAM = {"name": "n", "type": "i32", "div16": False, "nospec": True}
CAPTURE = capture_from(
    {"kernels": [{"fn": "k", "hash": h, "num_warps": 4, "params": [PARAM], "consts": {}} for h in "ab"]}
)


def launch(value: int) -> Launch:
    return Launch("k", (Arg("n", Kind.I32, value),))


HELLO = (
    "import json, os, sys, time\n"
    'print(json.dumps({"type": "hello", "protocol": "foldproof-selector/1", "name": "x"}), flush=True)\n'
)
LAUNCHES = 'for line in sys.stdin:\n    m = json.loads(line)\n    if m["type"] != "launch": continue\n    n = m["id"]\n'
SAY = '    print(json.dumps({"id": %s, "pick": 0}), flush=True)\n'


def selector(script: str, *more: str) -> ProcessSelector:
    return ProcessSelector((sys.executable, "-I", "-S", "-c", script, *more), timeout_s=5.0, start_s=10.0)


def test_an_old_answer_given_again_is_kept_beside_the_answers() -> None:
    again = "    if n == 1:\n    " + SAY % 0
    with selector(HELLO + LAUNCHES + again + SAY % "n") as under_test:
        assert isinstance(under_test.ask("c", CAPTURE, [launch(1)])[0], Reply)
        assert isinstance(under_test.ask("c", CAPTURE, [launch(2)])[0], Reply)
        assert under_test.ask("c", CAPTURE, []) == []
    assert [fault.kind for fault in under_test.faults] == [FaultKind.REPEATED_ID]


def test_a_selector_that_does_not_greet_again_is_asked_no_more(tmp_path: Path) -> None:
    once = (
        f"import os, sys\nif os.path.exists({str(tmp_path / 'x')!r}): sys.exit(3)\nopen({str(tmp_path / 'x')!r}, 'w')\n"
    )
    with selector(once + HELLO + LAUNCHES + "    os.abort()\n") as under_test:
        first = under_test.ask("c", CAPTURE, [launch(1), launch(2)])
        second = under_test.ask("c", CAPTURE, [launch(3), launch(4)])
    for answers in (first, second):
        assert isinstance(answers[0], Fault)
        assert (answers[0].kind, answers[0].detail) == (FaultKind.NO_GREETING, "exited with 3 without a greeting")
        assert answers[1] == Unasked("too-many-faults")


def test_a_selector_that_ended_between_two_batches_is_told_and_replaced() -> None:
    ends = SAY % "n" + "    if m['launch']['args'][0]['value'] == 666: time.sleep(0.2); sys.exit(4)\n"
    with selector(HELLO + LAUNCHES + ends) as under_test:
        assert isinstance(under_test.ask("c", CAPTURE, [launch(666)])[0], Reply)
        deadline = time.monotonic() + 10
        while under_test._talk.child.status is None and time.monotonic() < deadline:  # type: ignore[union-attr]  # noqa: SLF001
            time.sleep(0.01)
        assert isinstance(under_test.ask("c", CAPTURE, [launch(1)])[0], Reply)
    (fault,) = under_test.faults
    assert (fault.kind, fault.detail, fault.reproduced) == (
        FaultKind.CRASH,
        "exited with 4 after its last answer",
        False,
    )
    assert "666" in fault.launch


@pytest.fixture
def cat() -> Iterator[Child]:
    process = Child((sys.executable, "-I", "-S", "-c", "import os\nwhile d := os.read(0, 9): os.write(1, d)"))
    yield process
    process.kill()


def test_a_child_takes_input_gives_output_and_is_reaped_once(cat: Child) -> None:
    assert cat.stdin in cat.wait(10.0, writing=True, reading=False)
    assert cat.write(b"hello") == 5
    assert cat.wait(10.0) == {cat.stdout}
    assert cat.read() == b"hello"
    assert cat.read() is None
    assert cat.end(10.0)
    assert cat.wait(0.0) <= {cat.stdout}
    assert (cat.read(), cat.read(), cat.write(b"x"), cat.status) == (b"", b"", -1, 0)
    cat.kill()
    cat.kill()
    assert (cat.stdin, cat.stdout, cat.stderr) == (-1, -1, -1)


def test_settling_ends_with_the_next_word_or_the_time() -> None:
    script = "import os, time\ntime.sleep(0.1)\nos.write(1, b'x')\ntime.sleep(60)"
    process = Child((sys.executable, "-I", "-S", "-c", script))
    began = time.monotonic()
    process.settle(30.0)
    assert (process.read(), process.status) == (b"x", None)
    assert time.monotonic() - began < 20
    process.settle(0.05)
    assert process.read() is None
    process.kill()


def test_a_child_that_reads_nothing_has_no_room_after_a_pipe() -> None:
    process = Child((sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"))
    block = bytes(1 << 20)
    assert process.write(block) > 0
    while process.write(block) > 0:
        pass
    assert process.write(b"x") == 0
    process.kill()


def test_a_pipe_that_fails_is_at_its_end(cat: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(child.os, "read", fail)
    assert cat.read() == b""
    cat.drain()
    monkeypatch.undo()
    assert (cat.stdout, cat.stderr) == (-1, -1)
    cat.drain()
    assert cat.stderr_tail == ""


def test_a_child_that_cannot_be_watched_is_not_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def forbid(pid: int) -> int:
        seen.append(pid)
        raise OSError(errno.ENOSYS, "function not implemented")

    monkeypatch.setattr(child.os, "pidfd_open", forbid)
    with pytest.raises(SelectorError, match="cannot be watched: function not implemented"):
        Child((sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"))
    with pytest.raises(ProcessLookupError):
        os.kill(seen[0], 0)


def test_the_ending_names_the_signal_where_it_has_a_name() -> None:
    for number, name in ((signal.SIGKILL, "SIGKILL"), (40, "unknown")):
        process = Child((sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"))
        os.kill(process.pid, number)
        assert process.ending() == f"killed by signal {int(number)} ({name})"
        process.kill()


def test_of_faults_without_end_the_first_hundred_are_kept() -> None:
    with selector(HELLO + LAUNCHES + SAY % "n") as under_test:
        for number in range(150):
            under_test._note(Fault(FaultKind.CRASH, str(number)))  # noqa: SLF001
    assert [fault.detail for fault in under_test.faults] == [str(number) for number in range(100)]
