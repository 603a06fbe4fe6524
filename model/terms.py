"""Launches and candidates as Z3 terms: the vocabulary that the formulas are written in.

Encoding. A number (value, address, bits) is 64 bits; its kind says whether it is signed. A constant's value is
65 bits, so that every int in [-2^63, 2^64) is another. Types are codes: `TYPES` for scalars, from
`FIRST_POINTER` on for pointers; only their equality, the range of an integer type and the C type are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import z3
from foldproof.impl.capture import INT_TYPES
from foldproof.impl.launch import Kind

Bool: TypeAlias = z3.BoolRef
Bits: TypeAlias = z3.BitVecRef

KINDS = tuple(Kind)
"""Code of a kind: its position."""
TYPES = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "u1", "fp32", "fp64")
"""Scalar types by code; fp64 stands for every scalar type that no arg has."""
NO_TYPE = 15
FIRST_POINTER = 16
LAST_POINTER = 31
CONST_KINDS = ("int", "f32", "bool", "str", "none")

KIND_BITS, TYPE_BITS, CONST_BITS, SMALL = 3, 5, 65, 8


def kind_is(kind: Bits, *kinds: Kind) -> Bool:
    """Whether a kind term is one of the kinds."""
    return z3.Or([kind == KINDS.index(k) for k in kinds])


def type_is(code: Bits, name: str) -> Bool:
    """Whether a type term is the scalar type of that name."""
    return code == TYPES.index(name)


def is_pointer_type(code: Bits) -> Bool:
    """Whether a type term is a pointer type."""
    return z3.UGE(code, FIRST_POINTER)


@dataclass(frozen=True, slots=True)
class ConstTerm:
    """A constant that may be absent: `present`, its kind code and its value."""

    present: Bool
    kind: Bits
    value: Bits

    @classmethod
    def fresh(cls, name: str) -> ConstTerm:
        """A constant of which nothing is known."""
        return cls(z3.Bool(f"{name}.present"), z3.BitVec(f"{name}.ckind", 3), z3.BitVec(f"{name}.cvalue", CONST_BITS))

    def same(self, other: ConstTerm) -> Bool:
        """Both absent, or present with equal kind and value."""
        equal = z3.And(self.kind == other.kind, self.value == other.value)
        return z3.And(self.present == other.present, z3.Implies(self.present, equal))

    @cache  # noqa: B019 (terms live as long as the solver's context)
    def well_formed(self) -> Bool:
        """The kind is one of the five and the value is one of that kind."""
        kind, value = self.kind, self.value
        low = z3.BitVecVal(-(2**63), CONST_BITS)
        return z3.And(
            z3.ULT(kind, len(CONST_KINDS)),
            z3.Implies(kind == 0, value >= low),
            z3.Implies(kind == 1, z3.And(value >= 0, value < 2**32)),
            z3.Implies(kind == 2, z3.And(value >= 0, value < 2)),
            z3.Implies(kind == 3, z3.And(value >= 0, value < 256)),
            z3.Implies(kind == 4, value == 1),
        )


@dataclass(frozen=True, slots=True)
class OptionTerm:
    """A launch option or a source: recorded or pinned at all, and its code."""

    given: Bool
    value: Bits

    @classmethod
    def fresh(cls, name: str) -> OptionTerm:
        """An option of which nothing is known."""
        return cls(z3.Bool(f"{name}.given"), z3.BitVec(f"{name}.option", SMALL))

    def same(self, other: OptionTerm) -> Bool:
        """Both absent, or both given and equal."""
        return z3.And(self.given == other.given, z3.Implies(self.given, self.value == other.value))


@dataclass(frozen=True, slots=True)
class ArgTerm:
    """One arg: kind, number, pointer type, and the size of the allocation where it is said."""

    kind: Bits
    number: Bits
    pointee: Bits
    has_bytes: Bool
    bytes: Bits

    @classmethod
    def fresh(cls, name: str) -> ArgTerm:
        """An arg of which nothing is known."""
        return cls(
            z3.BitVec(f"{name}.kind", KIND_BITS),
            z3.BitVec(f"{name}.number", 64),
            z3.BitVec(f"{name}.pointee", TYPE_BITS),
            z3.Bool(f"{name}.has_bytes"),
            z3.BitVec(f"{name}.bytes", 64),
        )

    @property
    def type(self) -> Bits:
        """The type code that a param must have to take this arg."""
        code: Bits = self.pointee
        for kind in (Kind.I32, Kind.I64, Kind.U64, Kind.U1, Kind.FP32):
            code = z3.If(kind_is(self.kind, kind), z3.BitVecVal(TYPES.index(kind.value), TYPE_BITS), code)
        return z3.If(kind_is(self.kind, Kind.NONE), z3.BitVecVal(NO_TYPE, TYPE_BITS), code)

    @cache  # noqa: B019 (terms live as long as the solver's context)
    def well_formed(self) -> Bool:
        """The kind is one of the seven and the number is one of that kind (else InvalidLaunch)."""
        kind, number = self.kind, self.number
        return z3.And(
            z3.ULT(kind, len(KINDS)),
            z3.Implies(kind_is(kind, Kind.I32), z3.And(number >= -(2**31), number < 2**31)),
            z3.Implies(kind_is(kind, Kind.U1), z3.ULE(number, 1)),
            z3.Implies(kind_is(kind, Kind.FP32), z3.ULT(number, 2**32)),
            z3.Implies(kind_is(kind, Kind.NONE), number == 0),
            z3.Implies(kind_is(kind, Kind.PTR), is_pointer_type(self.pointee)),
            z3.Implies(self.has_bytes, kind_is(kind, Kind.PTR)),
        )


@dataclass(frozen=True, slots=True)
class ParamTerm:
    """One runtime param: its type code and its five switches."""

    type: Bits
    div16: Bool
    nospec: Bool
    noalign: Bool
    annotated: Bool
    range32: Bool

    @classmethod
    def fresh(cls, name: str) -> ParamTerm:
        """A param of which nothing is known."""
        switches = ("div16", "nospec", "noalign", "annotated", "range32")
        return cls(z3.BitVec(f"{name}.type", TYPE_BITS), *(z3.Bool(f"{name}.{s}") for s in switches))

    @cache  # noqa: B019 (terms live as long as the solver's context)
    def well_formed(self) -> Bool:
        """The type is a scalar or a pointer; only an integer type is annotated."""
        code = self.type
        scalar = z3.ULT(code, len(TYPES))
        is_int = z3.ULT(code, len(INT_TYPES))
        return z3.And(z3.Or(scalar, is_pointer_type(code)), z3.Implies(self.annotated, is_int))

    def same(self, other: ParamTerm) -> Bool:
        """Equal in type and switches."""
        pairs = zip(_fields(self), _fields(other), strict=True)
        return z3.And([a == b for a, b in pairs])


def _fields(param: ParamTerm) -> tuple[z3.ExprRef, ...]:
    return param.type, param.div16, param.nospec, param.noalign, param.annotated, param.range32


@dataclass(frozen=True, slots=True)
class PlaceTerm:
    """Where a variant puts the arg of one name: on a param, else on a constant, else nowhere."""

    on_param: Bool
    param: ParamTerm
    const: ConstTerm

    @classmethod
    def fresh(cls, name: str) -> PlaceTerm:
        """A place of which nothing is known."""
        return cls(z3.Bool(f"{name}.on_param"), ParamTerm.fresh(name), ConstTerm.fresh(name))

    @cache  # noqa: B019 (terms live as long as the solver's context)
    def well_formed(self) -> Bool:
        """No name is both a param and a const (else InvalidCapture)."""
        exclusive = z3.Not(z3.And(self.on_param, self.const.present))
        return z3.And(exclusive, self.param.well_formed(), self.const.well_formed())

    def same(self, other: PlaceTerm) -> Bool:
        """The same param, or the same constant, or nowhere in both."""
        params = z3.Implies(self.on_param, self.param.same(other.param))
        return z3.And(self.on_param == other.on_param, params, self.const.same(other.const))


@dataclass(frozen=True, slots=True)
class LaunchTerm:
    """A launch: its args in order, the constants that it names, the pinned options in `OPTIONS` order, its source."""

    args: tuple[ArgTerm, ...]
    consts: tuple[ConstTerm, ...]
    options: tuple[OptionTerm, ...]
    source: OptionTerm


OPTIONS = ("num_warps", "num_stages", "arch", "enable_fp_fusion")


@dataclass(frozen=True, slots=True)
class CandidateTerm:
    """A variant of the launch's function, seen through the launch's names.

    `places` follow the args, `named` the launch's constants, `free` are constants that the launch does not
    name; `extra` says that some param is named by no arg; `rank` orders the hashes.
    """

    places: tuple[PlaceTerm, ...]
    extra: Bool
    named: tuple[ConstTerm, ...]
    free: tuple[ConstTerm, ...]
    options: tuple[OptionTerm, ...]
    source: OptionTerm
    rank: Bits
