"""The passes of a policy over arrays of verdicts: `impl.select.decide` without the launch-by-launch loop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from foldproof.impl.batch.verdicts import BITS, Ints, Verdicts
from foldproof.impl.choose import REFUSALS, TIE_BREAKS
from foldproof.impl.policy import Pass, Policy
from foldproof.impl.rules import STRICTEST_FIRST, Strictness

MISSING = -1
"""The pick of a launch for which no candidate is admissible (`MissingTritonVariant`)."""
AMBIGUOUS = -2
"""The pick of a launch that is refused as ambiguous (`AmbiguousTritonVariant`)."""
NO_STRICTNESS = -1
"""The strictness of a pick that is no selection."""
STRICTNESS_CODES: tuple[Strictness | None, ...] = (*STRICTEST_FIRST, None)
"""The strictness of a selection by its code; the last: it meets none of the three (`linker-order` can)."""

_WORST = np.iinfo(np.int32).max
Mask: TypeAlias = npt.NDArray[np.bool_]
"""Candidates by launches."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """One decision a launch. `picks`: an index, `MISSING` or `AMBIGUOUS`; `strictness`: a place in
    `STRICTNESS_CODES` or `NO_STRICTNESS`; `ones`: bit i is set where arg i of the launch is a foldable 1 read.
    """

    picks: npt.NDArray[np.int32]
    strictness: npt.NDArray[np.int8]
    ones: npt.NDArray[np.uint64]

    @property
    def fallback(self) -> npt.NDArray[np.bool_]:
        """Whether the launch is served by fallback: a selection with at least one in *ones*."""
        served: npt.NDArray[np.bool_] = self.ones != 0
        return served


def sweep(verdicts: Verdicts, policy: Policy) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int8]]:
    """The pick (a row of `verdicts`, `MISSING` or `AMBIGUOUS`) and strictness code of every column."""
    picks = np.full(verdicts.bits.shape[1], MISSING, np.int32)
    for step in policy.passes:
        admissible = (verdicts.bits & BITS[step.rules]) != 0
        admissible &= picks == MISSING
        if step.choose[0] == "first" and not step.refuse:
            _first(admissible, picks)
        elif (rows := np.flatnonzero(admissible.any(axis=0))).size:
            picks[rows] = _choose(admissible.take(rows, axis=1), verdicts.columns(rows), step)
    return picks, strictness_of(verdicts, picks)


def strictness_of(verdicts: Verdicts, picks: npt.NDArray[np.int32]) -> npt.NDArray[np.int8]:
    """The strictest strictness whose rules each picked variant meets, as a code."""
    met = np.zeros(picks.size, np.uint8)
    for row, bits in enumerate(verdicts.bits):
        np.copyto(met, bits, where=picks == row)
    codes = np.full(256, len(STRICTEST_FIRST), np.int8)
    for code, strictness in reversed(list(enumerate(STRICTEST_FIRST))):
        codes[(np.arange(256) & BITS[strictness]) != 0] = code
    found: npt.NDArray[np.int8] = codes[met]
    found[picks < 0] = NO_STRICTNESS
    return found


def _choose(admissible: Mask, verdicts: Verdicts, step: Pass) -> npt.NDArray[np.int32]:
    """The picks of launches each of which has an admissible candidate in this pass."""
    picks = np.full(admissible.shape[1], MISSING, np.int32)
    scored = _narrowed(admissible, (key for key in step.choose if key not in TIE_BREAKS), verdicts)
    _first(_narrowed(admissible, step.choose, verdicts), picks)
    for name in step.refuse:
        best_only, _, refuses_difference = REFUSALS[name]
        group = scored if best_only else admissible
        clash = _differ if refuses_difference else _repeat
        picks[clash(group, verdicts.traits[name])] = AMBIGUOUS
    return picks


def _narrowed(group: Mask, keys: Iterable[str], verdicts: Verdicts) -> Mask:
    """Of each launch's group those that the keys prefer, key by key; no later key speaks after "first"."""
    for key in keys:
        if key == "first":
            alone = np.zeros_like(group)
            picks = np.full(group.shape[1], MISSING, np.int32)
            _first(group, picks)
            alone[picks, np.arange(picks.size)] = True
            return alone
        score = np.where(group, verdicts.keys[key], _WORST)
        group = score == score.min(axis=0)  # a launch's group is never empty here
    return group


def _first(group: Mask, picks: npt.NDArray[np.int32]) -> None:
    """Write the first member of each launch's group into `picks`, where there is one."""
    for row in reversed(range(len(group))):
        np.copyto(picks, row, where=group[row])


def _differ(group: Mask, traits: Ints) -> npt.NDArray[np.bool_]:
    """Whether two members of each launch's group have different traits."""
    most = np.where(group, traits, -1).max(axis=0)
    least = np.where(group, traits, _WORST).min(axis=0)
    found: npt.NDArray[np.bool_] = most != least
    return found


def _repeat(group: Mask, traits: Ints) -> npt.NDArray[np.bool_]:
    """Whether two members of each launch's group have the same trait."""
    found = np.zeros(group.shape[1], np.bool_)
    for later in range(len(group)):
        for earlier in range(later):
            same = traits[earlier] == traits[later]
            if same.any():
                found |= group[earlier] & group[later] & same
    return found
