"""A mutation that keeps JSON: one node of a value is replaced, repeated, renamed or taken out."""

from __future__ import annotations

import json
import random
from typing import Any

NASTY: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**300, 0.5, 1e308, "",
    "\0", "../x", "/etc/passwd", "a/b", "\ud800", "\u202e", "x" * 300, "*", "*bf16", "i32", "0x", "0x10", "1", ".",
    "T09:", "sm_90", [], {}, [[]], [{}], {"": {}}, {"int": 1}, {"int": 2**64}, {"none": True}, {"str": "\0"},
)  # fmt: skip
"""Values that stand where others are meant."""


def _nodes(value: Any) -> list[tuple[Any, Any]]:
    """Each place below `value`, as its container and its key."""
    found: list[tuple[Any, Any]] = []
    queue = [value]
    while queue:
        one = queue.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        found += [(one, key) for key in keys]
        queue += [one[key] for key in keys]
    return found


def _nasty(by: random.Random) -> Any:
    """One of the values, a copy, since the next change may change it."""
    return json.loads(json.dumps(by.choice(NASTY)))


def _change(value: Any, by: random.Random) -> Any:
    places = _nodes(value)
    if not places:
        return _nasty(by)
    owner, key = by.choice(places)
    how = by.randrange(5)
    if how == 0:
        other, at = by.choice(places)
        owner[key] = json.loads(json.dumps(other[at]))
    elif how == 1:
        del owner[key]
    elif how == 2 and isinstance(owner, list):
        owner.append(json.loads(json.dumps(owner[key])))
    elif how == 2:
        owner[str(_nasty(by))] = json.loads(json.dumps(owner[key]))
    elif how == 3 and isinstance(owner[key], int):
        owner[key] += by.choice((-1, 1, 2**16, -(2**31)))
    else:
        owner[key] = _nasty(by)
    return value


def mutated(data: bytes, seed: int) -> bytes | None:
    """The data with a few changes in one of its JSON values; None where it holds none."""
    by = random.Random(seed)  # noqa: S311 (no secret is drawn)
    lines = data.splitlines() or [b""]
    try:
        values, whole = [json.loads(data)], True
    except (ValueError, RecursionError):
        whole, at = False, by.randrange(len(lines))
        try:
            values = [json.loads(lines[at])]
        except (ValueError, RecursionError):
            return None
    try:
        for _ in range(by.randrange(1, 4)):
            values[0] = _change(values[0], by)
        made = json.dumps(values[0], separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return None
    return made if whole else b"\n".join([*lines[:at], made, *lines[at + 1 :]])
