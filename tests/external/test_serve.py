"""The reference behind the protocol: every policy, every invalid input, and an end whatever the peer does."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from foldproof.impl import ZOO, Capture, FoldproofError, Launch, decide, load_policy
from foldproof.impl.external.answers import Reply
from foldproof.impl.external.compare import difference, reply_of
from foldproof.impl.external.process import ProcessSelector
from foldproof.impl.external.serve import serve

Case = Callable[..., tuple[Capture, list[Launch]]]
VARIANT = {
    "fn": "k",
    "hash": "a",
    "num_warps": 4,
    "params": [{"name": "n", "type": "i32", "div16": False, "nospec": False}],
    "consts": {},
}
CAPTURE = {"type": "capture", "id": 0, "kernels": [VARIANT]}


def launch(number: int, value: Any = 7, capture: int = 0) -> dict[str, Any]:
    args = [{"name": "n", "kind": "i32", "value": value}]
    return {"type": "launch", "id": number, "capture": capture, "launch": {"fn": "k", "args": args, "consts": {}}}


def answers(*messages: dict[str, Any] | bytes, policy: str = "three-pass") -> list[dict[str, Any]]:
    lines = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
    out = io.BytesIO()
    serve(load_policy(policy), io.BytesIO(b"\n".join(lines) + b"\n"), out)
    hello, *rest = (json.loads(line) for line in out.getvalue().splitlines())
    assert (hello["type"], hello["protocol"]) == ("hello", "foldproof-selector/1")
    return rest


@pytest.mark.parametrize("policy", [name for name in ZOO if name != "most-held"])
def test_it_answers_as_the_policy_decides(policy: str, case: Case, reference: tuple[str, ...]) -> None:
    with ProcessSelector((*reference[:-1], policy)) as selector:
        assert selector.name == f"reference {policy}"
        for seed in range(15):
            capture, launches = case(seed)
            for one, answer in zip(launches, selector.ask(seed, capture, launches), strict=True):
                assert isinstance(answer, Reply)
                expected = reply_of(decide(capture, one, load_policy(policy)))
                assert difference(expected, answer) == ""
                assert (answer.strictness, answer.log or ()) == (expected.strictness, expected.log or ())


def test_a_policy_that_warns_once_a_variant_warns_once_a_capture() -> None:
    again = CAPTURE | {"id": 1}
    got = answers(CAPTURE, again, launch(0, 1), launch(1, 1), launch(2, 1, capture=1), policy="most-held")
    assert [len(answer["log"]) for answer in got] == [1, 0, 1]


def test_invalid_input_is_answered() -> None:
    broken = {"type": "capture", "id": 1, "kernels": []}
    got = answers(CAPTURE, broken, launch(5, 2**31), launch(6, capture=1), launch(7, capture=9), launch(8))
    assert [(answer["id"], answer.get("error")) for answer in got] == [
        (5, "InvalidLaunch"),
        (6, "InvalidCapture"),
        (7, "InvalidCapture"),
        (8, None),
    ]


def test_messages_and_fields_that_it_does_not_know_are_passed_over() -> None:
    got = answers({"type": "later"}, CAPTURE | {"why": 1}, b"", launch(3) | {"more": [1]})
    assert [answer["pick"] for answer in got] == [0]


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'{"type":"launch","id":1,"id":2}',
        b'{"type":"launch","id":true,"capture":0,"launch":{}}',
        b'{"type":"launch","id":-1,"capture":0,"launch":{}}',
        b'{"type":"launch","id":1,"launch":{}}',
        b'{"type":"launch","id":1,"capture":0}',
        b"\xff",
    ],
)
def test_what_is_no_message_is_refused_with_its_line(line: bytes) -> None:
    with pytest.raises(FoldproofError, match="line 2 of the input"):
        answers(CAPTURE, line)


def test_the_command_says_it_in_one_line_and_exits_with_2(reference: tuple[str, ...]) -> None:
    done = subprocess.run(reference, input=b"nonsense\n", capture_output=True, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    done = subprocess.run((*reference[:-1], "nope"), input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


def test_it_ends_quietly_when_nobody_reads(reference: tuple[str, ...]) -> None:
    with subprocess.Popen(reference, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(json.dumps(CAPTURE).encode() + b"\n" + json.dumps(launch(0)).encode() + b"\n")
        process.stdin.close()
        assert process.wait(20) == 0
        assert process.stderr.read() == b""


def test_it_may_be_asked_in_any_chunks(reference: tuple[str, ...]) -> None:
    text = b"".join(json.dumps(m).encode() + b"\n" for m in (CAPTURE, launch(0), launch(1)))
    with subprocess.Popen(reference, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for byte in text:
            process.stdin.write(bytes([byte]))
        process.stdin.close()
        assert process.stdout.read().count(b'"pick":0') == 2
