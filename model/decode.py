"""From a Z3 model of a `Scope` to a case: capture and launch in the public formats, with readable names."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import z3
from foldproof.impl.capture import Capture, Const, Consts, Param, Variant
from foldproof.impl.cases import Case
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.model.scope import Scope
from foldproof.model.terms import (
    CONST_KINDS,
    FIRST_POINTER,
    KINDS,
    TYPES,
    ArgTerm,
    CandidateTerm,
    ConstTerm,
    LaunchTerm,
    OptionTerm,
    PlaceTerm,
)

POINTER_TYPES = (
    *("*bf16", "*fp32", "*i32", "*fp16", "*i64", "*u8", "*i8", "*fp64"),
    *("*u32", "*u64", "*i16", "*u16", "*i1", "*u1", "*fp8e4nv", "*fp8e5"),
)
"""A name for each pointer type code."""
_LETTERS = {Kind.PTR: "PQXYZ", Kind.U1: "bcd", Kind.FP32: "xyz", Kind.NONE: "opq"}
_INT_LETTERS = "RSTUV"
FN = "k"


class Reader:
    """Reads the values of one Z3 model; a variable that the model leaves open has the value 0 or false."""

    def __init__(self, model: z3.ModelRef, scope: Scope) -> None:
        self._model = model
        self._scope = scope
        self.names = self._arg_names()

    def flag(self, term: z3.BoolRef) -> bool:
        """The value of a Bool term."""
        return bool(z3.is_true(self._model.eval(term, model_completion=True)))

    def number(self, term: z3.BitVecRef, *, signed: bool = False) -> int:
        """The value of a bit-vector term."""
        value = self._model.eval(term, model_completion=True)
        return int(value.as_signed_long() if signed else value.as_long())

    def _arg_names(self) -> list[str]:
        used: list[str] = []
        for arg in self._scope.launch.args:
            letters = _LETTERS.get(KINDS[self.number(arg.kind)], _INT_LETTERS)
            free = [c for c in letters if c not in used]
            used.append(free[0] if free else f"{letters[0]}{len(used)}")
        return used

    def case(self, name: str, candidates: Sequence[int] | None = None) -> Case:
        """The capture (its candidates in the given order, all by default) and the launch."""
        order = range(self._scope.size.candidates) if candidates is None else candidates
        capture = Capture(tuple(self._variant(self._scope.candidates[i]) for i in order))
        launch = self.launch(self._scope.launch)
        warned = any(self.flag(self._scope.has_warned[i]) for i in order)
        return Case(name, capture, launch, (launch,) if warned else ())

    def launch(self, term: LaunchTerm) -> Launch:
        """The launch, or another launch of the same classes over the same names."""
        args = tuple(self._arg(name, arg) for name, arg in zip(self.names, term.args, strict=True))
        consts = {f"K{j}": self._const(const) for j, const in enumerate(term.consts)}
        warps, stages, arch, fusion = (self._option(option) for option in term.options)
        return Launch(
            FN,
            args,
            consts,
            num_warps=warps,
            num_stages=stages,
            arch=None if arch is None else f"sm_{arch}",
            enable_fp_fusion=None if fusion is None else bool(fusion),
            source=self._source(term.source),
        )

    def _arg(self, name: str, term: ArgTerm) -> Arg:
        kind = KINDS[self.number(term.kind)]
        number = self.number(term.number, signed=kind in (Kind.I32, Kind.I64))
        if kind != Kind.PTR:
            return Arg(name, kind, number)
        size = self.number(term.bytes) if self.flag(term.has_bytes) else None
        return Arg(name, kind, number, POINTER_TYPES[self.number(term.pointee) - FIRST_POINTER], size)

    def _variant(self, term: CandidateTerm) -> Variant:
        params, consts = [], {}
        for name, place in zip(self.names, term.places, strict=True):
            if self.flag(place.on_param):
                params.append(self._param(name, place))
            elif self.flag(place.const.present):
                consts[name] = self._const(place.const)
        if self.flag(term.extra):
            params.append(Param("extra", "i32", div16=False, nospec=False))
        consts |= self._present("K", term.named) | self._present("F", term.free)
        warps, stages, arch, fusion = (self._option(option) for option in term.options)
        return Variant(
            FN,
            _hash(self.number(term.rank)),
            warps or 1,
            tuple(params),
            consts,
            num_stages=stages or 0,
            arch=None if arch is None else f"sm_{arch}",
            enable_fp_fusion=None if fusion is None else bool(fusion),
            source=self._source(term.source),
        )

    def _present(self, letter: str, terms: Sequence[ConstTerm]) -> Consts:
        return {f"{letter}{j}": self._const(term) for j, term in enumerate(terms) if self.flag(term.present)}

    def _param(self, name: str, place: PlaceTerm) -> Param:
        term = place.param
        code = self.number(term.type)
        type_name = POINTER_TYPES[code - FIRST_POINTER] if code >= FIRST_POINTER else TYPES[code]
        switches = {s: self.flag(getattr(term, s)) for s in ("div16", "nospec", "noalign", "annotated", "range32")}
        return Param(name, type_name, **switches)

    def _const(self, term: ConstTerm) -> Const:
        kind, value = CONST_KINDS[self.number(term.kind)], self.number(term.value, signed=True)
        as_json = {"bool": bool(value), "str": f"s{value}", "none": True}.get(kind, value)
        return msgspec.convert({kind: as_json}, Const)

    def _option(self, term: OptionTerm) -> int | None:
        return self.number(term.value) if self.flag(term.given) else None

    def _source(self, term: OptionTerm) -> str | None:
        value = self._option(term)
        return None if value is None else f"src{value}"


def _hash(rank: int) -> str:
    """A hash that stands among the others where its rank says."""
    return chr(ord("A") + rank) if rank < 26 else f"Z{rank:03}"
