"""The last step of a batch: from the final states of launches to their decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from foldproof.impl.batch.classes import ArgClasses
from foldproof.impl.batch.states import States
from foldproof.impl.batch.sweep import AMBIGUOUS, MISSING, Decisions, sweep
from foldproof.impl.batch.verdicts import (
    ADDITIVE,
    BITS,
    Verdicts,
    keys_used,
    refusals_used,
    tie_break_rows,
    trait_ids,
)
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.launch import Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import is_foldable_one


@dataclass(frozen=True, slots=True)
class Finals:
    """What a decision needs beside the states: all that does not depend on the values of args.

    `foldable` and `index` are read at pick + 2 and at pick, so that `AMBIGUOUS` and `MISSING` have their places.
    """

    policy: Policy
    start: States
    fixed: Verdicts
    foldable: npt.NDArray[np.uint64]
    index: npt.NDArray[np.int32]

    @classmethod
    def of(
        cls,
        capture: Capture,
        candidates: Sequence[int],
        blank: Launch,
        classes: Sequence[ArgClasses],
        policy: Policy,
    ) -> Finals:
        """The constant parts for some candidates; `blank` is any launch of the shape."""
        variants = [capture.kernels[i] for i in candidates]
        rows = len(variants)
        keys = keys_used(policy)
        zeros = {key: np.zeros((rows, 1), np.int32) for key in keys if key in ADDITIVE}
        start = States(np.full((rows, 1), sum(BITS.values()), np.uint8), zeros)
        ranks = {key: tie_break_rows(key, variants) for key in keys if key not in ADDITIVE}
        traits = {name: trait_ids(name, variants, [blank]) for name in refusals_used(policy)}
        foldable = np.array([0, 0, *(_foldable(v, classes) for v in variants)], np.uint64)
        index = np.array([*candidates, AMBIGUOUS, MISSING], np.int32)
        return cls(policy, start, Verdicts(start.bits, ranks, traits), foldable, index)

    def decide(self, states: States, ones: npt.NDArray[np.uint64]) -> Decisions:
        """The decision of each state; `ones` are the 1s that its launches hold, every bit where that differs."""
        verdicts = Verdicts(states.bits, {**self.fixed.keys, **states.scores}, self.fixed.traits)
        rows, strictness = sweep(verdicts, self.policy)
        return Decisions(self.index[rows], strictness, self.foldable[rows + 2] & ones)


def _foldable(variant: Variant, classes: Sequence[ArgClasses]) -> int:
    """Bit i: whether the variant reads a 1 of arg i as a foldable one."""
    params = [variant.param(of.shape.name) for of in classes]
    return sum(
        1 << place
        for place, (param, of) in enumerate(zip(params, classes, strict=True))
        if param is not None and any(is_foldable_one(arg, param) for arg in of.representatives)
    )
