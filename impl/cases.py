"""Case files: a capture, a launch, and what is expected of them. Counterexamples are written in this format.

A case is `{"name", "capture", "launch"}`, with optional `before` (launches that a policy which warns once a
variant has seen already) and whatever else a writer adds, such as `expect` and `why`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from foldproof.impl.capture import Capture, capture_from
from foldproof.impl.errors import InvalidCapture, InvalidLaunch
from foldproof.impl.launch import Launch, launch_from, launch_to
from foldproof.impl.policy import Policy
from foldproof.impl.select import Outcome, Selection, decide
from foldproof.impl.strictjson import MOST_VALUES, RepeatedKey, located, read_many, whole


class Case(msgspec.Struct, frozen=True):
    """One selection case; `before` are launches decided earlier by the same selector."""

    name: str
    capture: Capture
    launch: Launch
    before: tuple[Launch, ...] = ()


def case_from(value: Any) -> Case:
    """A case from a decoded JSON value. Raises `InvalidCapture` or `InvalidLaunch` with the JSON path."""
    if not isinstance(value, dict):
        raise InvalidCapture("a case is an object", where="$", fix="see docs/reference/formats.md")
    if isinstance(value, RepeatedKey) and value.key in ("launch", "before"):
        raise InvalidLaunch(f"the key {value.key!r} is repeated", where="$", fix="keep one of them")
    if isinstance(value, RepeatedKey):
        raise InvalidCapture(f"the key {value.key!r} is repeated", where="$", fix="keep one of them")
    capture = located("$.capture", lambda: capture_from(value.get("capture")))
    launch = located("$.launch", lambda: launch_from(value.get("launch")))
    before = value.get("before", [])
    if not isinstance(before, list):
        raise InvalidLaunch("before is a list of launches", where="$.before", fix="see docs/reference/formats.md")
    earlier = located("$.before", lambda: tuple(launch_from(item) for item in before))
    return Case(case_name(value), capture, launch, earlier)


def case_name(value: Any) -> str:
    """The name that a JSON case gives itself, "" if it gives none."""
    name = value.get("name", "") if isinstance(value, dict) else ""
    # Halves of surrogate pairs cannot be written again; the answer to a case has its name in any case.
    return str(whole(str(name)))


def case_to(case: Case, **more: Any) -> dict[str, Any]:
    """The JSON value of a case, with further fields (`theorem`, `policy`, `why`) after it."""
    value: dict[str, Any] = {
        "name": case.name,
        "capture": capture_to(case.capture),
        "launch": launch_to(case.launch),
    }
    if case.before:
        value["before"] = [launch_to(launch) for launch in case.before]
    return value | more


def capture_to(capture: Capture) -> dict[str, Any]:
    """The JSON value of a capture as a case holds it: the kernels alone, defaults left out."""
    return {"kernels": msgspec.to_builtins(capture.kernels)}


def case_bytes(value: object) -> bytes:
    """The bytes of a case file that holds the one JSON case."""
    return msgspec.json.format(msgspec.json.encode([value]), indent=1) + b"\n"


def read_cases(path: Path) -> list[Any]:
    """The JSON values of a case file (list or NDJSON, plain or gzip); only an unreadable file is an error."""
    return [value for _, value in read_many(path, most=MOST_VALUES)]


def replay(case: Case, policy: Policy) -> Outcome:
    """What the policy answers to the case, its earlier launches decided first."""
    warned: frozenset[str] = frozenset()
    for launch in case.before:
        outcome = decide(case.capture, launch, policy, warned)
        if isinstance(outcome, Selection) and outcome.log:
            warned |= {outcome.variant.hash}
    return decide(case.capture, case.launch, policy, warned)


def answer(value: Any, policy: Policy) -> dict[str, Any]:
    """The machine-readable answer to one JSON case; an invalid capture or launch is its answer too."""
    row: dict[str, Any] = {"name": case_name(value), "index": None, "pick": None, "pass": None}
    row |= {"ones": [], "log": [], "error": None, "detail": ""}
    try:
        outcome = replay(case_from(value), policy)
    except (InvalidCapture, InvalidLaunch) as problem:
        return row | {"error": problem.code, "detail": str(problem)}
    if isinstance(outcome, Selection):
        row |= {"index": outcome.index, "pick": outcome.variant.hash, "pass": outcome.strictness}
        return row | {"ones": list(outcome.ones), "log": list(outcome.log)}
    return row | {"error": outcome.code, "detail": outcome.detail}


def answers(values: Sequence[Any], policy: Policy) -> Iterator[dict[str, Any]]:
    """The answers to the cases of one file, in order."""
    return (answer(value, policy) for value in values)
