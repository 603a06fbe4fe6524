"""Tables: the decisions of one launch shape, looked up by the class codes of its args.

Where all combinations of classes fit one table, a launch is one look-up. Else the args are cut into runs
(`states`); where even states are too many there is no table, and launches are decided by a plain sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from foldproof.impl.batch.classes import Codes
from foldproof.impl.batch.keys import KeyPlan, Places, runs
from foldproof.impl.batch.states import States, interned, of_codes
from foldproof.impl.policy import Policy

ONE_TABLE = 1 << 16
"""Combinations of classes up to which one table serves: 64 Ki entries stay in a core's second cache."""
RUN_TABLE = 1 << 10
"""Combinations in one run, where one table does not serve."""
MOST_CELLS = 1 << 23
"""Candidates x pairs of states up to which two runs are combined: a table costs a second and 100 MB at most."""


IsOne: TypeAlias = Sequence[npt.NDArray[np.bool_]]
"""By arg and code: whether the class is a 1 in the sense of the fold."""


@dataclass(frozen=True, slots=True)
class Run:
    """Some consecutive args: their keys, and by key the number of its state and the 1s it holds."""

    plan: KeyPlan
    numbers: Places
    ones: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Chain:
    """Runs combined from the left: `joins[i]` numbers the states of the first i + 2 runs, by state and next state.

    A single run needs no state numbers: its keys serve as such.
    """

    runs: tuple[Run, ...]
    widths: tuple[int, ...]
    joins: tuple[Places, ...]

    def look_up(self, codes: Codes) -> tuple[Places, npt.NDArray[np.uint64] | None]:
        """The final state number of each launch and, where the state does not tell them, the 1s it holds."""
        head = self.runs[0]
        keys = head.plan.keys(codes)
        if not self.joins:
            return keys, None
        total = head.numbers.take(keys, mode="clip")
        ones = head.ones.take(keys, mode="clip")
        for run, width, join in zip(self.runs[1:], self.widths, self.joins, strict=True):
            keys = run.plan.keys(codes)
            ones |= run.ones.take(keys, mode="clip")
            total *= width
            total += run.numbers.take(keys, mode="clip")
            total = join.take(total, mode="clip")
        return total, ones

    def state_ones(self, is_one: IsOne) -> npt.NDArray[np.uint64]:
        """The 1s of each final state, every bit where the state does not tell them."""
        if self.joins:
            return np.array([2**64 - 1], np.uint64)
        return launch_ones(self.runs[0].plan.all_codes(), is_one)


def chain_of(by_arg: Sequence[States], start: States, is_one: IsOne, policy: Policy) -> tuple[Chain, States] | None:
    """The tables and the final states of a launch shape; None where they would be too large.

    `by_arg` holds the states of each arg's classes, `start` what the candidates say before any arg is seen.
    """
    radices = [len(states) for states in by_arg]
    everything = range(len(by_arg))
    plans = [KeyPlan.over(everything, radices)]
    if plans[0].size <= ONE_TABLE:
        codes = plans[0].all_codes()
        nothing = np.zeros(0, np.intp)
        return Chain((Run(plans[0], nothing, nothing.astype(np.uint64)),), (), ()), of_codes(by_arg, codes, start)
    plans = [KeyPlan.over(args, radices) for args in runs(radices, RUN_TABLE)]
    chained: list[Run] = []
    widths: list[int] = []
    joins: list[Places] = []
    total = start
    for plan in plans:
        args, codes = slice(plan.args.start, plan.args.stop), plan.all_codes()
        states, numbers = interned(of_codes(by_arg[args], codes, start), policy)
        ones = launch_ones(codes, is_one[args]) << np.uint64(args.start)
        chained.append(Run(plan, numbers, ones))
        if len(chained) == 1:
            total = states
            continue
        if len(total) * len(states) * len(start.bits) > MOST_CELLS:
            return None
        total, join = interned(total.paired(states), policy)
        widths.append(len(states))
        joins.append(join)
    return Chain(tuple(chained), tuple(widths), tuple(joins)), total


def launch_ones(codes: Codes, is_one: IsOne) -> npt.NDArray[np.uint64]:
    """Bit i of each launch: whether arg i is a 1 in the sense of the fold."""
    found = np.zeros(codes.shape[1], np.uint64)
    for place, (row, ones) in enumerate(zip(codes, is_one, strict=True)):
        if ones.any():
            found |= ones.astype(np.uint64)[row] << np.uint64(place)
    return found
