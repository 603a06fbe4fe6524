"""The reference as a selector: `foldproof-selector/1` on standard input and output, for any policy."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from io import BufferedIOBase
from typing import Any

import msgspec
from foldproof.impl.capture import Capture, capture_from
from foldproof.impl.errors import FoldproofError, InvalidCapture, InvalidLaunch
from foldproof.impl.external.wire import PROTOCOL
from foldproof.impl.launch import Kind, launch_from
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.select import Selection, decide
from foldproof.impl.strictjson import RepeatedKey, parse

READ_BYTES = 1 << 16


def serve(policy: Policy, stdin: BufferedIOBase, stdout: BufferedIOBase) -> None:
    """Answer by the policy until the end of input.

    Everything that was read is answered before more is awaited. Raises `FoldproofError` with the line of a message
    that is none; a capture or a launch that is invalid is answered, not raised.
    """
    session = Session(policy)
    _put(stdout, [hello(policy)])
    rest = b""
    number = 0
    while data := stdin.read1(READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        answers = []
        for line in lines:
            number += 1
            if line.strip():
                answers += session.message(line, f"line {number} of the input")
        _put(stdout, answers)


def _put(stdout: BufferedIOBase, values: Sequence[Any]) -> None:
    stdout.write(b"".join(msgspec.json.encode(value) + b"\n" for value in values))
    stdout.flush()


def hello(policy: Policy) -> dict[str, Any]:
    """The greeting of the reference."""
    return {"type": "hello", "protocol": PROTOCOL, "name": f"reference {policy.name}", "kinds": list(Kind)}


class Session:
    """The captures that were given, and which variants a policy that warns once a variant has warned of."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._captures: dict[int, Capture | InvalidCapture] = {}
        self._warned: dict[int, frozenset[str]] = {}

    def message(self, line: bytes, where: str) -> list[dict[str, Any]]:
        """The answers to one message: one for a launch, none else. Raises `FoldproofError` if it is no message."""
        value = parse(line, where)
        fix = "see docs/reference/protocol.md"
        if not isinstance(value, dict) or isinstance(value, RepeatedKey):
            raise FoldproofError("a message is one JSON object without repeated keys", where=where, fix=fix)
        if value.get("type") not in ("capture", "launch"):
            return []
        if not _is_id(value.get("id")):
            raise FoldproofError("a message has an id, an integer from 0 on", where=where, fix=fix)
        if value["type"] == "capture":
            kernels = {key: value[key] for key in ("kernels",) if key in value}
            self._captures[value["id"]] = _or_error(capture_from, kernels)
            self._warned[value["id"]] = frozenset()
            return []
        if not _is_id(value.get("capture")) or "launch" not in value:
            raise FoldproofError("a launch message has launch, and capture: an id", where=where, fix=fix)
        return [{"id": value["id"], **self._answer(value["capture"], value["launch"])}]

    def _answer(self, number: int, raw: Any) -> dict[str, Any]:
        capture = self._captures.get(number) or InvalidCapture(f"no capture has the id {number}")
        if isinstance(capture, InvalidCapture):
            return _error(capture)
        try:
            launch = launch_from(raw)
        except InvalidLaunch as problem:
            return _error(problem)
        outcome = decide(capture, launch, self.policy, self._warned[number])
        if not isinstance(outcome, Selection):
            return {"pick": None, "error": outcome.code, "detail": outcome.detail}
        if outcome.log:
            self._warned[number] |= {outcome.variant.hash}
        return {"pick": outcome.index, "pass": outcome.strictness, "log": list(outcome.log)}


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _or_error(read: Callable[[Any], Capture], value: Any) -> Capture | InvalidCapture:
    try:
        return read(value)
    except InvalidCapture as problem:
        return problem


def _error(problem: FoldproofError) -> dict[str, Any]:
    return {"pick": None, "error": problem.code, "detail": str(problem)}


def serve_stdio(policy: Policy) -> None:
    """`serve` on the process's own standard input and output; whoever asked may go away at any time."""
    with open(0, "rb", closefd=False) as stdin, open(1, "wb", closefd=False) as stdout:
        try:
            serve(policy, stdin, stdout)
        except BrokenPipeError:
            # Nobody reads any more; closing the stream must not fail on the same pipe.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m foldproof.impl.external.serve --policy NAME`: 0 at the end of input, 2 for what is no message."""
    parser = argparse.ArgumentParser(description="the reference selector behind foldproof-selector/1")
    parser.add_argument("--policy", required=True, help="a policy of the zoo, or a TOML file")
    options = parser.parse_args(arguments)
    try:
        serve_stdio(load_policy(options.policy))
    except FoldproofError as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
