"""What crosses between the supervisor and its worker: a JSON message a line, and the JSON value of a bout."""

from __future__ import annotations

from typing import Any

import msgspec
from foldproof.gpu.replay.bouts import Bout, Matchup
from foldproof.gpu.replay.trace import record_from, record_to


class Message(msgspec.Struct, frozen=True):
    """A request to the worker: what to do, and its arguments."""

    do: str
    body: dict[str, Any] = {}


def bout_to(bout: Bout) -> dict[str, Any]:
    """The JSON value of a bout."""
    matchups = [msgspec.to_builtins(matchup) for matchup in bout.matchups]
    return {"record": record_to(bout.record), "variants": list(bout.variants), "matchups": matchups}


def bout_from(value: dict[str, Any]) -> Bout:
    """A bout from its JSON value."""
    matchups = tuple(msgspec.convert(matchup, Matchup) for matchup in value["matchups"])
    return Bout(record_from(value["record"]), tuple(value["variants"]), matchups)
