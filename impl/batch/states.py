"""Partial verdicts of some args of a launch, and their interning: equal ones are one state with one number.

However many classes a launch of twenty args can take, candidates tell few of them apart. So the args are cut
into runs, each run's combinations are tabled as states, and states are combined two at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from foldproof.impl.batch.classes import ArgClasses, Codes
from foldproof.impl.batch.keys import Places
from foldproof.impl.batch.verdicts import ADDITIVE, BITS, Bits, Ints, arg_bits, arg_scores, keys_used, strictnesses
from foldproof.impl.capture import Variant
from foldproof.impl.policy import Policy


@dataclass(frozen=True, slots=True)
class States:
    """Partial verdicts: bits by candidate and state, and the sum so far of each additive key."""

    bits: Bits
    scores: Mapping[str, Ints]

    def __len__(self) -> int:
        return int(self.bits.shape[1])

    def at(self, which: npt.NDArray[np.integer]) -> States:
        """The states of those numbers."""
        return States(
            self.bits.take(which, axis=1), {key: score.take(which, axis=1) for key, score in self.scores.items()}
        )

    def joined(self, other: States) -> States:
        """State by state both: what either refuses is refused, scores add up."""
        scores = {key: score + other.scores[key] for key, score in self.scores.items()}
        return States(self.bits & other.bits, scores)

    def paired(self, other: States) -> States:
        """Every state of this with every state of the other, the other's counting fastest."""
        mine, others = np.divmod(np.arange(len(self) * len(other)), len(other))
        return self.at(mine).joined(other.at(others))


def class_states(variants: Sequence[Variant], classes: ArgClasses, policy: Policy) -> States:
    """The states of one arg: its classes, in order of their codes."""
    args = classes.representatives
    scores = {key: arg_scores(key, variants, args) for key in keys_used(policy) if key in ADDITIVE}
    return States(arg_bits(variants, args, policy), scores)


def of_codes(by_arg: Sequence[States], codes: Codes, start: States) -> States:
    """The states of launches whose class codes are the rows of `codes`, a row each of `by_arg`, joined to `start`."""
    everywhere = np.zeros(codes.shape[1], np.intp)
    total = start.at(everywhere)
    for states, row in zip(by_arg, codes, strict=True):
        total = total.joined(states.at(row))
    return total


def interned(states: States, policy: Policy) -> tuple[States, Places]:
    """The distinct states as far as the policy can tell, and the number of the distinct one for each given."""
    plain = _plain(states, policy)
    parts = [plain.bits, *(score.view(np.uint8) for score in map(np.ascontiguousarray, plain.scores.values()))]
    rows = np.concatenate([_rows(part, len(states)) for part in parts], axis=1)
    if not rows.shape[1]:
        return plain.at(np.zeros(1, np.intp)), np.zeros(len(states), np.intp)
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
    _, first, number = np.unique(whole, return_index=True, return_inverse=True)
    return plain.at(first), number.astype(np.intp)


def _plain(states: States, policy: Policy) -> States:
    """A candidate that no pass can admit any more has no bits and no score: nothing else of it can matter."""
    tested = sum({BITS[step.rules] for step in policy.passes})
    used = sum(BITS[strictness] for strictness in strictnesses(policy))
    alive = (states.bits & tested) != 0
    scores = {key: np.where(alive, score, 0).astype(np.int32) for key, score in states.scores.items()}
    return States(np.where(alive, states.bits & used, 0).astype(np.uint8), scores)


def _rows(part: npt.NDArray[np.uint8], count: int) -> npt.NDArray[np.uint8]:
    """The bytes of each state side by side."""
    # Not -1 for the bytes of a cell: where there is no candidate, nothing would tell how many they are.
    cells = part.reshape(part.shape[0], count, part.shape[1] // count)
    return cells.transpose(1, 0, 2).reshape(count, -1)
