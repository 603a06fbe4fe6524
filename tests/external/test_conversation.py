"""The turns of a conversation that are rare: input in pieces, answers too many, too late or to nobody."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from foldproof.impl import Arg, Kind, Launch
from foldproof.impl.external.answers import Answer, Fault, FaultKind, Reply
from foldproof.impl.external.talk import Question, Stop, Talk
from foldproof.impl.external.wire import wire_launch


def launch(value: int) -> Launch:
    return Launch("k", (Arg("n", Kind.I32, value),))


class Scripted:
    """A process whose output is given: `reads` are what each read finds, None where nothing stands there yet."""

    stdin, stderr_tail, ended, stderr_seen = 0, "", False, 0

    def __init__(self, reads: Sequence[bytes | None], room: int = 1 << 20) -> None:
        self.reads, self.room, self.written = list(reads), room, b""

    def read(self) -> bytes | None:
        return self.reads.pop(0) if self.reads else None

    def write(self, data: memoryview) -> int:
        taken = bytes(data[: self.room])
        self.written += taken
        return len(taken)

    def pardon(self) -> None: ...

    def floods(self, _: int) -> bool:
        return False

    def wait(self, *_: object, **__: object) -> None: ...

    def settle(self, _: float) -> None: ...

    def ending(self) -> str:
        return "exited with 0"


def _exchange(talk: Talk, answers: list[Answer | None]) -> tuple[list[Answer | None], Stop | None]:
    def fault_of(stop: Stop, _: int) -> Fault:
        return Fault(stop.kind, stop.detail)

    places = list(range(len(answers)))
    question = Question(1, 2, places, answers, lambda some: [wire_launch(launch(i)) for i in some], fault_of)
    return answers, talk.exchange(question)


def converse(
    reads: Sequence[bytes | None], count: int = 2, room: int = 1 << 20
) -> tuple[list[Answer | None], Stop | None, bytes]:
    process = Scripted(reads, room)
    answers, stop = _exchange(Talk(process, 5.0), [None] * count)  # type: ignore[arg-type]
    return answers, stop, process.written


def test_input_that_goes_out_in_pieces_goes_out_whole() -> None:
    good = [b'{"id":0,"pick":0}\n', b'{"id":1,"pick":1}\n']
    _, _, whole = converse(good)
    # Between the pieces nothing stands in the output.
    answers, stop, written = converse([None] * 200 + good, room=7)
    assert stop is None
    assert [a.pick for a in answers if isinstance(a, Reply)] == [0, 1]
    assert written == whole
    assert whole.count(b"\n") == 2


def test_what_comes_after_the_last_answer_is_a_fault() -> None:
    done = b'{"id":0,"pick":0}\n{"id":1,"pick":1}\n'
    assert converse([done])[1] is None
    for more, kind in (
        (b'{"id":1,"pick":1}\n', FaultKind.REPEATED_ID),
        (b"hello\n", FaultKind.GARBAGE),
        (b"", FaultKind.CRASH),
    ):
        stop = converse([done, more])[1]
        assert stop is not None
        assert stop.kind == kind
    half = converse([done + b"hel"])[1]
    assert half is not None
    assert (half.kind, half.detail) == (FaultKind.GARBAGE, "unasked text: hel")


def test_lines_are_taken_one_by_one_up_to_the_one_that_is_none() -> None:
    answers, stop, _ = converse([b'{"id":0,"pick":0}\nhello\n'])
    assert isinstance(answers[0], Reply)
    assert stop is not None
    assert (stop.kind, stop.place, stop.last) == (FaultKind.GARBAGE, None, 0)
    _, stop, _ = converse([b'{"id":9,"pick":0}\nhello\n'])
    assert stop is not None
    assert stop.kind == FaultKind.WRONG_ID
    answers, stop, _ = converse([b'{"id":0,"pick":0}\r{"id":1,"pick":1}\n'])
    assert stop is None
    assert all(isinstance(answer, Reply) for answer in answers)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (b'{"id":1,"pick":"0"}\n', 1),
        (b'{"id":5,"pick":"0"}\n', None),
        (b'{"id":-1,"pick":"0"}\n', None),
        (b'{"pick":0}\n', None),
    ],
)
def test_a_malformed_answer_is_laid_to_the_launch_that_it_names(line: bytes, place: int | None) -> None:
    stop = converse([line])[1]
    assert stop is not None
    assert (stop.kind, stop.place) == (FaultKind.GARBAGE, place)


def test_an_answer_to_a_launch_of_an_earlier_exchange_is_nobodys_fault() -> None:
    process = Scripted([b'{"id":0,"pick":0}\n', None, b'{"id":0,"pick":1}\n'])
    talk = Talk(process, 5.0)  # type: ignore[arg-type]
    assert _exchange(talk, [None])[1] is None
    stop = _exchange(talk, [None])[1]
    assert stop is not None
    assert (stop.kind, stop.stray, stop.place) == (FaultKind.REPEATED_ID, True, None)
