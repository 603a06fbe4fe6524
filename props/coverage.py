"""What a campaign has visited: the class of an arg, the place that the picked variant has for it, and the ending.

Which cells there are follows from the rules themselves: a cell (class, place, ending) exists where the rules of that
ending admit an arg of the class at the place. A launch without a variant has the place "-".
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from foldproof.impl.errors import AmbiguousTritonVariant, MissingTritonVariant
from foldproof.impl.launch import Kind
from foldproof.impl.policy import Policy
from foldproof.impl.rules import PUBLIC_KINDS, STRICTEST_FIRST, Strictness, arg_refusal
from foldproof.props.classes import NOWHERE, class_of, codes, each_class, each_place, labels, place_of, place_word
from foldproof.props.rounds import Round
from foldproof.props.verdict_arrays import PASS_WORDS, Answers

NO_RULES = "no rules"
"""The ending of a selection that meets none of the three strictnesses (`linker-order` makes such)."""
MISSING, AMBIGUOUS = MissingTritonVariant.code, AmbiguousTritonVariant.code


class Cell(NamedTuple):
    """One thing to visit."""

    arg: str
    place: str
    ending: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of each cell, in how many rounds it was visited; and how many rounds there were."""

    rounds: int = 0
    seen: Mapping[Cell, int] = field(default_factory=dict)

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.rounds + other.rounds, Counter(self.seen) + Counter(other.seen))

    @property
    def chance_of_new(self) -> float | None:
        """The chance that the next round visits a new cell, by Good and Turing: cells seen in one round alone, a round.

        With no such cell, 3 / rounds: what would have shown itself by now in 19 of 20 campaigns. None without rounds.
        """
        if not self.rounds:
            return None
        once = sum(count == 1 for count in self.seen.values())
        return min(1.0, (once or 3) / self.rounds)


def endings(policy: Policy) -> tuple[str, ...]:
    """How a launch can end under the policy, selections first; the pass of one is the strictest that it meets."""
    order = (*STRICTEST_FIRST, Strictness.LINKER)
    loosest = max(order.index(sweep.rules) for sweep in policy.passes)
    words = [PASS_WORDS[i + 1] if i < len(STRICTEST_FIRST) else NO_RULES for i in range(loosest + 1)]
    refuses = any(sweep.refuse for sweep in policy.passes)
    return (*words, MISSING, *((AMBIGUOUS,) if refuses else ()))


def possible(policy: Policy, kinds: frozenset[Kind] = frozenset(Kind)) -> frozenset[Cell]:
    """Every cell that the policy's rules leave open for args of these kinds."""
    known = [arg for arg in each_class() if arg.kind in kinds]
    found = set()
    for arg, ending in itertools.product(known, endings(policy)):
        if ending in (MISSING, AMBIGUOUS):
            if ending == MISSING or policy.dialect == "section-3" or arg.kind in PUBLIC_KINDS:
                found.add(Cell(class_of(arg), NOWHERE, ending))
            continue
        rules = policy.rules(Strictness.LINKER if ending == NO_RULES else Strictness(ending))
        for param, const in each_place(arg):
            if arg_refusal(arg, param, const, rules) is None:
                found.add(Cell(class_of(arg), place_word(param, const), ending))
    return frozenset(found)


def visited(of: Round, wanted: Answers) -> dict[Cell, int]:
    """The cells that the launches of a round visit by the reference's answers, and the first launch of each."""
    count, found = len(of.numbers), dict[Cell, int]()
    ends = wanted.picks.astype(np.intp) * 4 + np.where(wanted.picks >= 0, wanted.passes, 0)
    for column, arg in enumerate(of.template.args):
        words = labels(arg)
        pairs = (ends[:count] + 16) * 4 + codes(arg.kind, of.numbers[:, column])
        for pair, place in zip(*(half.tolist() for half in np.unique(pairs, return_index=True)), strict=True):
            end, code = divmod(pair, 4)
            _note(found, _cell(of, arg.name, words[code], end - 16), place)
    for place, launch in enumerate(of.others, count):
        for arg in launch.args:
            _note(found, _cell(of, arg.name, class_of(arg), int(ends[place])), place)
    return found


def _note(found: dict[Cell, int], cell: Cell, place: int) -> None:
    found[cell] = min(place, found.get(cell, place))


def _cell(of: Round, name: str, word: str, end: int) -> Cell:
    pick, code = divmod(end, 4)
    if pick < 0:
        return Cell(word, NOWHERE, MISSING if pick == -1 else AMBIGUOUS)
    return Cell(word, place_of(of.capture.kernels[pick], name), PASS_WORDS[code] or NO_RULES)


@dataclass(frozen=True, slots=True)
class Table:
    """Coverage for a reader: a row a class, a column an ending, "visited/possible" places in each; what remains."""

    endings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    visited: int
    possible: int
    remaining: tuple[Cell, ...]


def table(coverage: Coverage, policy: Policy, kinds: frozenset[Kind] = frozenset(Kind)) -> Table:
    """The table of what was visited; a real capture adds cells that the generators do not make."""
    seen, wanted = frozenset(coverage.seen), possible(policy, kinds)
    every, words = seen | wanted, endings(policy)
    classes = [word for arg in each_class() if any(cell.arg == (word := class_of(arg)) for cell in every)]
    rows = []
    for word in dict.fromkeys(classes):
        cells = [{cell for cell in every if cell.arg == word and cell.ending == ending} for ending in words]
        rows.append((word, *(f"{len(group & seen)}/{len(group)}" if group else "" for group in cells)))
    return Table(words, tuple(rows), len(seen), len(every), tuple(sorted(wanted - seen)))
