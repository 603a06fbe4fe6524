"""A path-forking executor: run plain Python on symbolic values and see every path it can take.

A symbolic truth value forks the run where Python asks for its truth. A run is repeated with other answers until
no feasible path is left. Anything that would silently make a symbol concrete (an index, a hash) is an error, and so
is a solver that does not know: a tie that skips a path proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import z3
from foldproof.model.terms import Bool

T = TypeVar("T")
WIDTH = 66
"""Bits of a symbolic int: enough for [-2^63, 2^64) signed, with room for a comparison's constants."""


class TieError(Exception):
    """The executor cannot follow the code, so nothing may be concluded from it."""


@dataclass(slots=True)
class Paths:
    """The runs of one piece of code. `known` holds what is assumed of the symbols from the start.

    A run is a list of choices, each with whether the other way is still open; the next run turns the last open one.
    """

    known: tuple[Bool, ...]
    most: int = 20_000
    _plan: list[tuple[bool, bool]] = field(default_factory=list)
    _run: list[tuple[bool, bool]] = field(default_factory=list)
    _solver: z3.Solver = field(default_factory=lambda: z3.SolverFor("QF_BV"))

    def explore(self, run: Callable[[], T]) -> Iterator[tuple[Bool, T]]:
        """Each feasible path of `run`: its condition and its result."""
        global _CURRENT  # noqa: PLW0603 (truth tests find their run here; Python gives them no argument)
        self._solver.add(*self.known)
        self._plan = []
        for _ in range(self.most):
            self._run = []
            self._solver.push()
            _CURRENT, outer = self, _CURRENT
            try:
                result = run()
            finally:
                _CURRENT = outer
            conditions = self._solver.assertions()[len(self.known) :]
            yield z3.And(*conditions, z3.BoolVal(True)), result
            self._solver.pop()
            while self._run and not self._run[-1][1]:
                self._run.pop()
            if not self._run:
                return
            self._plan = [*self._run[:-1], (not self._run[-1][0], False)]
        raise TieError(f"more than {self.most} paths")

    def decide(self, condition: Bool) -> bool:
        """Which way this run goes: as planned, then True where that is feasible."""
        if len(self._run) < len(self._plan):
            choice, is_open = self._plan[len(self._run)]
        else:
            can_be_true, can_be_false = self._feasible(condition), self._feasible(z3.Not(condition))
            if not (can_be_true or can_be_false):
                raise TieError("no way on: what is known contradicts itself")
            choice, is_open = can_be_true, can_be_true and can_be_false
        self._run.append((choice, is_open))
        self._solver.add(condition if choice else z3.Not(condition))
        return choice

    def _feasible(self, condition: Bool) -> bool:
        answer = self._solver.check(condition)
        if answer == z3.unknown:
            raise TieError("the solver does not know whether a path is feasible")
        return bool(answer == z3.sat)


_CURRENT: Paths | None = None


def _refuse(what: str) -> Callable[..., NoReturn]:
    def method(*_: object) -> NoReturn:
        raise TieError(f"a symbol would be made concrete by {what}")

    return method


class Symbol:
    """What all symbolic values share: they cannot be hashed, indexed or printed into a decision."""

    __hash__ = _refuse("hash()")
    __index__ = _refuse("an index")
    __int__ = _refuse("int()")
    __float__ = _refuse("float()")
    __iter__ = _refuse("iteration")
    __len__ = _refuse("len()")


class Flag(Symbol):  # noqa: PLW1641 (a symbol has no hash)
    """A symbolic truth value; Python's question for its truth forks the run."""

    def __init__(self, term: Bool) -> None:
        self.term = z3.simplify(term)

    def __bool__(self) -> bool:
        if z3.is_true(self.term) or z3.is_false(self.term):
            return bool(z3.is_true(self.term))
        if _CURRENT is None:
            raise TieError("a symbolic truth is asked for outside a run")
        return _CURRENT.decide(self.term)

    def __eq__(self, other: object) -> Flag:  # type: ignore[override]
        return Flag(self.term == _as_flag(other))

    def __ne__(self, other: object) -> Flag:  # type: ignore[override]
        return Flag(self.term != _as_flag(other))


def _as_flag(value: object) -> Bool:
    if isinstance(value, Flag):
        return value.term
    if isinstance(value, bool):
        return z3.BoolVal(value)
    raise TieError(f"a truth value is compared with {value!r}")


class Whole(Symbol):  # noqa: PLW1641 (a symbol has no hash)
    """A symbolic int: comparisons with ints and remainders by powers of two."""

    def __init__(self, term: z3.BitVecRef) -> None:
        self.term = term

    def __eq__(self, other: object) -> Flag:  # type: ignore[override]
        return Flag(self.term == _as_whole(other))

    def __ne__(self, other: object) -> Flag:  # type: ignore[override]
        return Flag(self.term != _as_whole(other))

    def __lt__(self, other: object) -> Flag:
        return Flag(self.term < _as_whole(other))

    def __le__(self, other: object) -> Flag:
        return Flag(self.term <= _as_whole(other))

    def __gt__(self, other: object) -> Flag:
        return Flag(self.term > _as_whole(other))

    def __ge__(self, other: object) -> Flag:
        return Flag(self.term >= _as_whole(other))

    def __neg__(self) -> Whole:
        return Whole(-self.term)

    def __mod__(self, other: int) -> Whole:
        if other <= 0 or other & (other - 1):
            raise TieError(f"a remainder by {other}, which is no power of two")
        # Python's remainder by a positive power of two is the low bits, for negative ints too.
        return Whole(self.term & (other - 1))


def _as_whole(value: object) -> z3.BitVecRef:
    if isinstance(value, Whole):
        return value.term
    if isinstance(value, int) and -(2 ** (WIDTH - 1)) <= value < 2 ** (WIDTH - 1):
        return z3.BitVecVal(value, WIDTH)
    raise TieError(f"a symbolic int is compared with {value!r}")


class Name(Symbol):  # noqa: PLW1641 (a symbol has no hash)
    """A symbolic type name, of which only equality is known; `codes` gives concrete names their codes."""

    def __init__(self, term: z3.BitVecRef, codes: dict[str, int]) -> None:
        self.term = term
        self._codes = codes

    def _code(self, other: object) -> Any:
        if isinstance(other, Name):
            return other.term
        if isinstance(other, str):
            return z3.BitVecVal(self._codes[other], self.term.size())
        raise TieError(f"a type is compared with {other!r}")

    def __eq__(self, other: object) -> Flag:  # type: ignore[override]
        return Flag(self.term == self._code(other))

    def __ne__(self, other: object) -> Flag:  # type: ignore[override]
        return Flag(self.term != self._code(other))
