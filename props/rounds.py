"""Rounds of a campaign: a capture and the launches put to it, each a pure function of (seed, number, source).

Numbered rounds make a campaign resumable and divisible: whoever runs round 17, and when, it is the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import msgspec
import numpy as np
from foldproof.impl.capture import Capture
from foldproof.impl.cases import Case
from foldproof.impl.errors import InvalidCapture
from foldproof.impl.launch import Kind, Launch
from foldproof.props.aimed import aimed_case
from foldproof.props.derive import Derived, derive
from foldproof.props.generate import Choose, Shape, make_case, seeded
from foldproof.props.mutate import Numbers, launch_of_row, rows, structural
from foldproof.props.plain import plain_case

ROWS = 96
"""Launches a round that differ in numbers alone: cheap, so many; a new capture finds more than a hundred more rows."""
OTHERS = 8
"""Launches a round with a structural change."""
MOST_OF_A_PART = 8
"""Variants in a part of a real capture."""


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """A capture and its launches: `template` with each row of `numbers`, then `others`. Equal ids: equal captures."""

    number: int
    capture_id: Hashable
    capture: Capture
    template: Launch
    numbers: Numbers
    others: tuple[Launch, ...]

    def __len__(self) -> int:
        return len(self.numbers) + len(self.others)

    def launch(self, place: int) -> Launch:
        """The launch at a place."""
        if place < len(self.numbers):
            return launch_of_row(self.template, self.numbers[place].tolist())
        return self.others[place - len(self.numbers)]

    def launches(self) -> Iterator[Launch]:
        """All of them in order."""
        yield from (launch_of_row(self.template, row) for row in self.numbers.tolist())
        yield from self.others

    def case(self, place: int, seed: int) -> Case:
        """The case at a place."""
        return Case(f"seed {seed} round {self.number} launch {place}", self.capture, self.launch(place))


def own_case(case: Case) -> Case:
    """The case over the candidates of its function alone: no other can be picked."""
    kernels = tuple(v for v in case.capture.kernels if v.fn == case.launch.fn)
    return msgspec.structs.replace(case, capture=Capture(kernels)) if kernels else case


@dataclass(frozen=True, slots=True)
class Source:
    """Where rounds come from, in turn: plain cases, aimed ones, cases of everything, and `capture` if there is one.

    Args are of the `kinds` that the selector knows.
    """

    kinds: tuple[Kind, ...] = tuple(Kind)
    capture: Capture | None = None
    derived: tuple[Derived, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, kinds: frozenset[Kind], capture: Capture | None = None) -> Source:
        """The source for a selector that knows `kinds`. Raises `InvalidCapture` where no launch can be derived."""
        known = tuple(kind for kind in Kind if kind in kinds)
        if capture is None:
            return cls(known)
        derived = tuple(d for d in derive(capture) if all(arg.kind in kinds for arg in d.launch.args))
        if not derived:
            why = "no launch can be derived from any variant"
            raise InvalidCapture(why, where="the capture", fix="give a capture with kinds that the selector knows")
        return cls(known, capture, derived)

    def round(self, seed: int, number: int) -> Round:
        """One round."""
        choose, draw = seeded((seed << 32) | number), np.random.default_rng((seed, number))
        own = ("round", seed, number)
        turn = number % (3 if self.capture is None else 4)
        if self.capture is None or turn < 3:
            case = self._case(choose, turn)
            return _around(choose, draw, own, number, (case.capture, case.launch))
        chosen: Derived = choose(self.derived)
        if choose((False, True)):
            return _around(choose, draw, "capture", number, (self.capture, chosen.launch))
        part = part_of(choose, self.capture, chosen)
        return _around(choose, draw, own, number, (part, chosen.launch))

    def _case(self, choose: Choose, turn: int) -> Case:
        if turn == 0 and (Kind.I32 in self.kinds or Kind.PTR in self.kinds):
            return plain_case(choose, self.kinds)
        return aimed_case(choose, self.kinds) if turn == 1 else make_case(choose, Shape(kinds=self.kinds))


def _around(
    choose: Choose, draw: np.random.Generator, key: Hashable, number: int, case: tuple[Capture, Launch]
) -> Round:
    capture, launch = case
    others = structural(choose, capture, launch, OTHERS)
    return Round(number, key, capture, launch, rows(draw, launch, ROWS), others)


def part_of(choose: Choose, capture: Capture, derived: Derived) -> Capture:
    """Some variants of one function of a real capture, in a drawn order, sometimes one of them with a switch flipped.

    The order of a real capture is by hash, so it is chance: another order is as real.
    """
    own = capture.kernels[derived.variant]
    rest = [v for v in capture.kernels if v.fn == own.fn and v is not own]
    picked = [own]
    while rest and len(picked) < choose(range(2, MOST_OF_A_PART + 1)):
        picked.insert(choose(range(len(picked) + 1)), rest.pop(choose(range(len(rest)))))
    if choose((False, False, True)):
        place = choose(range(len(picked)))
        params = picked[place].params
        if params:
            at, switch = choose(range(len(params))), choose(("div16", "nospec", "noalign"))
            flipped = msgspec.structs.replace(params[at], **{switch: not getattr(params[at], switch)})
            picked[place] = msgspec.structs.replace(picked[place], params=(*params[:at], flipped, *params[at + 1 :]))
    return Capture(tuple(picked))
