"""From a concrete case to the values of a `Scope`'s variables, so that the formulas can be evaluated on it.

What a scope has room for beyond the case is filled with neutral parts: an arg of kind fp32 on a plain fp32 param
of every candidate, a constant that all share, a candidate that no rules admit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import z3
from foldproof.impl.capture import Const, Param, Variant
from foldproof.impl.cases import Case
from foldproof.impl.launch import Arg, Kind
from foldproof.model.scope import Scope
from foldproof.model.terms import (
    CONST_KINDS,
    FIRST_POINTER,
    KINDS,
    LAST_POINTER,
    OPTIONS,
    TYPES,
    ArgTerm,
    CandidateTerm,
    ConstTerm,
    OptionTerm,
    PlaceTerm,
)

A = TypeVar("A")
B = TypeVar("B")
Assignment = list[tuple[z3.ExprRef, z3.ExprRef]]
_FILLER_ARG = Arg("", Kind.FP32, 0)
_FILLER_PARAM = Param("filler", "fp32", div16=False, nospec=False)
_FILLER_CONST = Const(int_=0)


class OutOfScopeError(ValueError):
    """The case has more candidates, args, constants or types than the scope has room for."""


class Encoder:
    """Encodes one case into one scope; codes of pointer types, strings and sources are given out as they appear."""

    def __init__(self, scope: Scope, case: Case) -> None:
        self.scope, self.case = scope, case
        self._codes: dict[tuple[str, object], int] = {}
        self._pairs: Assignment = []

    def assignment(self) -> Assignment:
        """The value of every variable. Raises `OutOfScopeError` if the case does not fit."""
        size, launch = self.scope.size, self.case.launch
        variants = [v for v in self.case.capture.kernels if v.fn == launch.fn]
        free = sorted({n for v in variants for n in v.consts} - {a.name for a in launch.args} - set(launch.consts))
        room = (size.candidates, size.args, size.named, size.free)
        if any(
            n > r for n, r in zip((len(variants), len(launch.args), len(launch.consts), len(free)), room, strict=True)
        ):
            raise OutOfScopeError(f"the case is larger than {size}")
        for term, arg in _filled(self.scope.launch.args, launch.args):
            self._arg(term, arg or _FILLER_ARG)
        for named, const in _filled(self.scope.launch.consts, list(launch.consts.values())):
            self._const(named, const or _FILLER_CONST)
        pinned = dict(launch.options)
        for name, option in zip(OPTIONS, self.scope.launch.options, strict=True):
            self._option(option, name, pinned.get(name))
        self._option(self.scope.launch.source, "source", launch.source)
        hashes = sorted(v.hash for v in variants)
        for index, (candidate, variant) in enumerate(_filled(self.scope.candidates, variants)):
            self._candidate(candidate, variant, free)
            self._number(candidate.rank, index if variant is None else hashes.index(variant.hash))
        warned = {v.hash for v in variants} if self.case.before else set()
        for flag, variant in _filled(self.scope.has_warned, variants):
            self._flag(flag, variant is not None and variant.hash in warned)
        return self._pairs

    def _flag(self, term: z3.BoolRef, value: bool) -> None:
        self._pairs.append((term, z3.BoolVal(value)))

    def _number(self, term: z3.BitVecRef, value: int) -> None:
        self._pairs.append((term, z3.BitVecVal(value, term.size())))

    def _code(self, group: str, value: object, first: int, last: int) -> int:
        used = [code for (name, _), code in self._codes.items() if name == group]
        code = self._codes.setdefault((group, value), first + len(used))
        if code > last:
            raise OutOfScopeError(f"the case has more values of {group} than there are codes")
        return code

    def _type(self, name: str) -> int:
        if name.startswith("*"):
            return self._code("pointer type", name, FIRST_POINTER, LAST_POINTER)
        return TYPES.index(name) if name in TYPES else TYPES.index("fp64")

    def _arg(self, term: ArgTerm, arg: Arg) -> None:
        self._number(term.kind, KINDS.index(arg.kind))
        self._number(term.number, arg.number)
        self._number(term.pointee, self._type(arg.pointee) if arg.kind == Kind.PTR else 0)
        self._flag(term.has_bytes, arg.bytes is not None)
        self._number(term.bytes, min(arg.bytes or 0, 2**64 - 1))

    def _const(self, term: ConstTerm, const: Const | None) -> None:
        self._flag(term.present, const is not None)
        kind = "none" if const is None else const.kind
        self._number(term.kind, CONST_KINDS.index(kind))
        value = True if const is None else const.value
        self._number(term.value, self._code("string", value, 0, 255) if kind == "str" else int(value))

    def _option(self, term: OptionTerm, name: str, value: object) -> None:
        self._flag(term.given, value is not None)
        number = 0 if value is None else int(value) if isinstance(value, int) else self._code(name, value, 0, 255)
        self._number(term.value, number)

    def _place(self, term: PlaceTerm, param: Param | None, const: Const | None) -> None:
        shown = param or _FILLER_PARAM
        self._flag(term.on_param, param is not None)
        self._number(term.param.type, self._type(shown.type))
        for switch in ("div16", "nospec", "noalign", "annotated", "range32"):
            self._flag(getattr(term.param, switch), getattr(shown, switch))
        self._const(term.const, None if param is not None else const)

    def _candidate(self, term: CandidateTerm, variant: Variant | None, free: Sequence[str]) -> None:
        launch = self.case.launch
        names = {arg.name for arg in launch.args}
        for place, arg in _filled(term.places, launch.args):
            if arg is None or variant is None:
                self._place(place, _FILLER_PARAM, None)
            else:
                self._place(place, variant.param(arg.name), variant.consts.get(arg.name))
        consts = {} if variant is None else variant.consts
        for const, name in _filled(term.named, list(launch.consts)):
            self._const(const, _FILLER_CONST if name is None else consts.get(name))
        for const, name in _filled(term.free, free):
            self._const(const, None if name is None else consts.get(name))
        self._flag(term.extra, variant is None or any(p.name not in names for p in variant.params))
        recorded = (4, None, None, None) if variant is None else variant.options
        for name, option, value in zip(OPTIONS, term.options, recorded, strict=True):
            self._option(option, name, None if name == "num_stages" and value == 0 else value)
        self._option(term.source, "source", None if variant is None else variant.source)


def _filled(terms: Sequence[A], values: Sequence[B]) -> Iterator[tuple[A, B | None]]:
    """Each term with its value, None where the values have run out."""
    padded = [*values, *([None] * (len(terms) - len(values)))]
    return zip(terms, padded, strict=True)
