"""Which launch a broken selector broke on, and which faults cost the whole time that an answer may take."""

from __future__ import annotations

from collections.abc import Callable

from foldproof.impl.external.answers import Answer, FaultKind
from foldproof.impl.external.talk import Stop

SETTLE_S = 0.25
WAITED = frozenset({FaultKind.TIMEOUT, FaultKind.NOT_READING})
"""Faults that are seen only when the time for an answer is over."""
MOST_WAITS = 2
"""Such faults in one batch, after which the rest of it is not asked: each takes that time once or twice."""


def culprit(
    stop: Stop, todo: list[int], answers: list[Answer | None], exchange: Callable[[list[int], float], Stop | None]
) -> tuple[int, Stop, bool]:
    """The launch to blame, for what, and whether it broke a fresh process when asked alone.

    If none does it is the first that was without an answer, or the last of all where none was.
    """
    if stop.place is not None:
        return stop.place, stop, True
    if stop.kind == FaultKind.NO_GREETING:
        return todo[0], stop, True
    suspects = [place for place in todo[: stop.sent] if answers[place] is None]
    first = suspects[0] if suspects else todo[stop.sent - 1]
    if stop.last is not None:
        # It may as well have been the launch that was answered last, after its answer.
        suspects.insert(0, stop.last)
        answers[stop.last] = None
    for place in suspects:
        again = exchange([place], SETTLE_S if place == stop.last else 0.0)
        if again is not None:
            return place, again, True
    return first, stop, False
