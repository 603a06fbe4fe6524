"""Whether two answers to one launch agree, and the reference's answer in the form of a selector's."""

from __future__ import annotations

from typing import cast

from foldproof.impl.external.answers import ErrorWord, Reply
from foldproof.impl.rules import Strictness
from foldproof.impl.select import Outcome, Selection


def reply_of(outcome: Outcome) -> Reply:
    """The outcome as the reply that a selector would give. A pass that the protocol has no word for is not said."""
    if isinstance(outcome, Selection):
        known = outcome.strictness not in (None, Strictness.LINKER)
        word = outcome.strictness.value if known and outcome.strictness is not None else None
        return Reply(0, outcome.index, word, log=outcome.log)  # type: ignore[arg-type]  # one of the three words
    return Reply(0, error=cast("ErrorWord", outcome.code), log=outcome.log)


def difference(expected: Reply, reply: Reply) -> str:
    """How `reply` differs from `expected`, "" if it does not.

    A pass and a log count only where both say one. The wording of a log line is the selector's own: what is
    compared is how many lines there are (T10).
    """
    if reply.pick != expected.pick or reply.error != expected.error:
        return f"{_said(reply)}, not {_said(expected)}"
    if None not in (reply.strictness, expected.strictness) and reply.strictness != expected.strictness:
        return f"pass {reply.strictness}, not {expected.strictness}"
    if reply.log is not None and expected.log is not None and len(reply.log) != len(expected.log):
        return f"{len(reply.log)} log lines, not {len(expected.log)}"
    return ""


def _said(reply: Reply) -> str:
    return f"pick {reply.pick}" if reply.pick is not None else str(reply.error)
