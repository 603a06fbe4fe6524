"""Answers to the launches of a round as arrays, the reference's and the selector's, and where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from foldproof.impl.batch import STRICTNESS_CODES, BatchCapture, Decisions, LaunchShape
from foldproof.impl.errors import AmbiguousTritonVariant, MissingTritonVariant
from foldproof.impl.external.answers import ERROR_WORDS, Answer, Fault, Reply
from foldproof.impl.external.decision import FAULTY, UNASKED
from foldproof.impl.launch import Kind
from foldproof.impl.policy import Policy
from foldproof.impl.rules import STRICTEST_FIRST
from foldproof.impl.select import Outcome, Selection, decide
from foldproof.props.mutate import Numbers
from foldproof.props.rounds import Round
from numpy.typing import NDArray

UNSAID = 0
"""The pass of an answer that says none; such passes are not compared."""
LOG_UNSAID = -1
PASS_WORDS = ("", *(strictness.value for strictness in STRICTEST_FIRST))
PLAIN_SWEEP = 4096
"""Rows up to which a table a capture costs more than it saves."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """One answer a launch. `picks`: an index, -1 to -4 as in foldproof_selector.h, FAULTY or UNASKED; `passes`: 0
    unsaid, else 1 exact, 2 general, 3 runtime-one; `logs`: how many lines, -1 unsaid; `faults` by place.
    """

    picks: NDArray[np.int32]
    passes: NDArray[np.uint8]
    logs: NDArray[np.int8]
    faults: Mapping[int, Fault] = field(default_factory=dict)

    @property
    def has_any(self) -> bool:
        """Whether at least one launch has an answer, right or wrong."""
        return bool(((self.picks != FAULTY) & (self.picks != UNASKED)).any())

    def differs_from(self, wanted: Answers) -> NDArray[np.bool_]:
        """Where these answers are not the wanted ones; faults are answers too, what was not asked is none."""
        selected = wanted.picks >= 0
        passes = selected & (self.passes != UNSAID) & (wanted.passes != UNSAID) & (self.passes != wanted.passes)
        logs = selected & (self.logs != LOG_UNSAID) & (wanted.logs != LOG_UNSAID) & (self.logs != wanted.logs)
        wrong: NDArray[np.bool_] = (self.picks != UNASKED) & ((self.picks != wanted.picks) | passes | logs)
        return wrong

    def kind_at(self, wanted: Answers, place: int) -> str:
        """What is different at a place, in the words by which findings are told apart."""
        if place in self.faults:
            return f"fault {self.faults[place].kind}"
        got, expected = int(self.picks[place]), int(wanted.picks[place])
        if got != expected:
            both = got >= 0 and expected >= 0
            return "another variant" if both else f"{pick_word(got)} instead of {pick_word(expected)}"
        said = self.passes[place] not in (UNSAID, wanted.passes[place])
        return "another pass" if said and wanted.passes[place] != UNSAID else "another number of log lines"

    def text_at(self, place: int) -> str:
        """The answer at a place in words: pick, pass and log lines where they are said."""
        if place in self.faults:
            return str(self.faults[place])
        pick, sweep, lines = int(self.picks[place]), int(self.passes[place]), int(self.logs[place])
        if pick < 0:
            return pick_word(pick)
        said = f", {PASS_WORDS[sweep]}" if sweep else ""
        return f"kernels[{pick}]{said}" + (f", {lines} log lines" if lines != LOG_UNSAID else "")


def pick_word(pick: int) -> str:
    """A pick in a word."""
    if pick >= 0:
        return "a selection"
    words: dict[int, str] = {-1 - place: word for place, word in enumerate(ERROR_WORDS)}
    return words.get(pick, "no answer")


def reference(of: Round, policy: Policy) -> Answers:
    """What the policy answers: the rows by the batch reference, the others by `impl.select.decide`."""
    decided = _decisions(of, policy)
    outcomes = [decide(of.capture, launch, policy) for launch in of.others]
    if decided is None:
        outcomes = [decide(of.capture, launch, policy) for launch in of.launches()]
        return of_outcomes(outcomes, policy)
    one_by_one = of_outcomes(outcomes, policy)
    passes = np.where(decided.strictness >= len(STRICTEST_FIRST), UNSAID, decided.strictness + 1).astype(np.uint8)
    logs = _logs(decided.fallback.astype(np.int8), policy)
    return Answers(
        np.concatenate([decided.picks, one_by_one.picks]),
        np.concatenate([passes, one_by_one.passes]),
        np.concatenate([logs, one_by_one.logs]),
    )


def of_outcomes(outcomes: Sequence[Outcome], policy: Policy) -> Answers:
    """Outcomes of `decide` as arrays."""
    picks = np.empty(len(outcomes), np.int32)
    passes, logs = np.zeros(len(outcomes), np.uint8), np.zeros(len(outcomes), np.int8)
    for i, outcome in enumerate(outcomes):
        if isinstance(outcome, Selection):
            picks[i], passes[i] = outcome.index, (STRICTNESS_CODES.index(outcome.strictness) + 1) % 4
        else:
            picks[i] = {MissingTritonVariant.code: -1, AmbiguousTritonVariant.code: -2}[outcome.code]
        logs[i] = len(outcome.log)
    return Answers(picks, passes, _logs(logs, policy))


def of_replies(answers: Sequence[Answer]) -> Answers:
    """A selector's answers as arrays."""
    picks = np.empty(len(answers), np.int32)
    passes, logs = np.zeros(len(answers), np.uint8), np.full(len(answers), LOG_UNSAID, np.int8)
    faults: dict[int, Fault] = {}
    for i, answer in enumerate(answers):
        if isinstance(answer, Reply):
            picks[i] = answer.pick if answer.pick is not None else -1 - ERROR_WORDS.index(answer.error)
            if answer.strictness is not None:
                passes[i] = _PASS_CODES[answer.strictness]
            if answer.log is not None:
                logs[i] = min(len(answer.log), 127)
        elif isinstance(answer, Fault):
            picks[i], faults[i] = FAULTY, answer
        else:
            picks[i] = UNASKED
    return Answers(picks, passes, logs, faults)


_PASS_CODES = {word.value: code for code, word in enumerate(STRICTEST_FIRST, 1)}


def _logs(lines: NDArray[np.int8], policy: Policy) -> NDArray[np.int8]:
    """The lines a launch: what a policy that logs once a variant does, depends on the launches before."""
    if policy.log == "variant":
        return np.full(len(lines), LOG_UNSAID, np.int8)
    return lines if policy.log == "launch" else np.zeros(len(lines), np.int8)


def _decisions(of: Round, policy: Policy) -> Decisions | None:
    """None where no arg has a number that could differ."""
    args = list(enumerate(of.template.args))
    values = {arg.name: _values(arg.kind, of.numbers, column) for column, arg in args if arg.kind != Kind.NONE}
    if not values:
        return None
    count = len(of.numbers)
    sizes = {arg.name: np.full(count, arg.bytes, np.int64) for _, arg in args if arg.bytes is not None}
    batch = BatchCapture.build(of.capture, LaunchShape.of(of.template), policy, tables=count > PLAIN_SWEEP)
    return batch.decide_values(values, sizes)


def _values(kind: Kind, numbers: Numbers, column: int) -> NDArray[Any]:
    values = np.ascontiguousarray(numbers[:, column])
    if kind in (Kind.I32, Kind.I64):
        return values.view(np.int64)
    if kind == Kind.U1:
        return values.astype(np.bool_)
    return values.astype(np.uint32) if kind == Kind.FP32 else values
