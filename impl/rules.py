"""The rules: whether one candidate is admissible for one launch (docs/reference/rules.md, stated once, here).

Every function is pure and answers with the first reason for refusal, or None where the rule holds.
`model.rules` states the same rules as formulas and proves them equal to these functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec
from foldproof.impl.capture import INT_TYPES, Const, Param, Variant
from foldproof.impl.launch import INT_KINDS, Arg, Kind, Launch

RANGE32_BYTES = 2**31 - 1
"""The largest allocation, in bytes, that a range32 param takes."""

PUBLIC_KINDS = (Kind.PTR, Kind.I32, Kind.FP32, Kind.U64)
"""The kinds that the public selectors know (docs/reference/rules.md)."""


class Strictness(StrEnum):
    """How much a pass lets a launch deviate from what the variant was compiled for."""

    EXACT = "exact"
    GENERAL = "general"
    RUNTIME_ONE = "runtime-one"
    LINKER = "linker"


STRICTEST_FIRST = (Strictness.EXACT, Strictness.GENERAL, Strictness.RUNTIME_ONE)


class Reason(StrEnum):
    """Why a candidate is refused, as shown by `explain`."""

    SOURCE = "compiled from another source"
    OPTION = "another launch option than the launch pins"
    CONST_ABSENT = "the variant has no such constant"
    CONST_DIFFERS = "the constant has another kind or value"
    UNPLACED = "the variant neither reads nor folds this arg"
    UNNAMED = "the launch gives no arg for this param"
    KIND = "this policy does not know the kind"
    TYPE = "the types differ"
    RANGE = "the annotated type cannot hold the value"
    FOLDED = "folded in the variant, and the arg is no i32 of value 1"
    NOT_NONE = "None matches only a none constant"
    FOLDABLE = "an i32 of value 1 is read at run time (a foldable 1)"
    ONE_I64 = "an i64 of value 1 needs an annotated param"
    NOT_DIV16 = "the variant assumes a multiple of 16"
    DIV16_UNUSED = "a multiple of 16, and the variant was not compiled for one"
    DIV16_INEXACT = "assumes a multiple of 16 through a param whose switches rule that out"
    RANGE32 = "a range32 param takes a pointer of at most 2^31 - 1 bytes, said by the launch"


class Refusal(msgspec.Struct, frozen=True):
    """The first rule that refuses a candidate, and the arg, param, constant or option that it is about."""

    reason: Reason
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}" if self.subject else self.reason


class Rules(msgspec.Struct, frozen=True):
    """What one pass tests: a strictness, the dialect, and whether options and source are looked at."""

    strictness: Strictness
    public: bool = False
    options: bool = True
    source: bool = True


def is_one(arg: Arg) -> bool:
    """Whether the arg is a 1 in the sense of the fold: an i32 of value 1."""
    return arg.kind == Kind.I32 and arg.number == 1


def is_foldable_one(arg: Arg, param: Param) -> bool:
    """Whether reading the arg through this param is what the compiler would have folded away."""
    return is_one(arg) and not param.nospec and not param.annotated


def is_alignable(arg: Arg, param: Param, public: bool) -> bool:
    """Whether the compiler may assume a multiple of 16; the public selectors look at nospec for i32 alone."""
    heeds_nospec = not public or arg.kind == Kind.I32
    return not param.noalign and not (param.nospec and heeds_nospec)


def holds(type_name: str, number: int) -> bool:
    """Whether an annotated integer type can hold the value."""
    low, high = INT_TYPES[type_name]
    return low <= number <= high


def has_alignment(arg: Arg) -> bool:
    """Whether div16 says something about the arg: ints and pointers."""
    return arg.kind in INT_KINDS or arg.kind == Kind.PTR


def param_refusal(arg: Arg, param: Param, rules: Rules) -> Reason | None:
    """The table of docs/reference/rules.md for an arg that the variant reads at run time."""
    if rules.strictness == Strictness.LINKER:
        return guard_refusal(arg, param)
    if rules.public and arg.kind not in PUBLIC_KINDS:
        return Reason.KIND
    if param.range32 and (arg.kind != Kind.PTR or arg.bytes is None or arg.bytes > RANGE32_BYTES):
        return Reason.RANGE32
    if reason := type_refusal(arg, param):
        return reason
    if is_foldable_one(arg, param) and rules.strictness != Strictness.RUNTIME_ONE:
        return Reason.FOLDABLE
    return div16_refusal(arg, param, rules)


def type_refusal(arg: Arg, param: Param) -> Reason | None:
    """The type is equal, or annotated and wide enough; an i64 of value 1 needs an annotated param."""
    if param.annotated and arg.kind in INT_KINDS:
        return None if holds(param.type, arg.number) else Reason.RANGE
    if arg.type != param.type:
        return Reason.TYPE
    return Reason.ONE_I64 if arg.kind == Kind.I64 and arg.number == 1 else None


def div16_refusal(arg: Arg, param: Param, rules: Rules) -> Reason | None:
    """div16 equals what the compiler would assume (exact), or is implied by what holds (general, runtime-one).

    What holds of an int is (alignable and value % 16 == 0), of a pointer its alignment alone.
    """
    if not has_alignment(arg):
        return None
    aligned = arg.number % 16 == 0
    expected = aligned and is_alignable(arg, param, rules.public)
    exact = rules.strictness == Strictness.EXACT
    if param.div16 and not aligned:
        return Reason.NOT_DIV16
    if param.div16 and not expected and (exact or arg.kind != Kind.PTR):
        return Reason.DIV16_INEXACT
    return Reason.DIV16_UNUSED if exact and expected and not param.div16 else None


def const_refusal(arg: Arg, const: Const, rules: Rules) -> Reason | None:
    """The rules for an arg that the variant holds as a constant: a folded 1, or None on none."""
    if rules.public and arg.kind not in PUBLIC_KINDS:
        return Reason.KIND
    if arg.kind == Kind.NONE:
        return None if const.kind == "none" else Reason.NOT_NONE
    folded = is_one(arg) and const.kind == "int" and const.value == 1
    return None if folded else Reason.FOLDED


C_TYPES = {
    "fp16": "double",
    "bf16": "double",
    "fp32": "double",
    "f32": "double",
    "fp64": "double",
    "i1": "i8",
    "u1": "u8",
}
"""The C type of a scalar in Triton 3.9's generated dispatcher, where it is not the type itself."""


def c_type(type_name: str) -> str:
    """The C type that Triton's linker declares for a param: all pointers alike, all floats double."""
    return "ptr" if type_name.startswith("*") else C_TYPES.get(type_name, type_name)


def guard_refusal(arg: Arg, param: Param) -> Reason | None:
    """`linker-order`: C types must fit and a generated guard tests only div16."""
    if param.annotated and arg.kind in INT_KINDS:
        if not holds(param.type, arg.number):
            return Reason.RANGE
    elif c_type(arg.type) != c_type(param.type):
        return Reason.TYPE
    if param.div16 and has_alignment(arg) and arg.number % 16 != 0:
        return Reason.NOT_DIV16
    return None


def source_refusal(variant_source: str | None, launch_source: str | None) -> Reason | None:
    """Where both say a source, they must be equal (T11)."""
    both = variant_source is not None and launch_source is not None
    return Reason.SOURCE if both and variant_source != launch_source else None


def option_refusal(recorded: object, pinned: object) -> Reason | None:
    """A pinned option must equal the variant's where it records one; None, and a num_stages of 0, record nothing."""
    return Reason.OPTION if recorded is not None and recorded != pinned else None


def named_const_refusal(wanted: Const, present: Const | None) -> Reason | None:
    """Every const that the launch names exists in the variant with the same kind and value."""
    if present is None:
        return Reason.CONST_ABSENT
    return None if wanted.kind == present.kind and wanted.value == present.value else Reason.CONST_DIFFERS


def refusals(variant: Variant, launch: Launch, rules: Rules) -> Iterator[Refusal]:
    """Every refusal of one candidate, in the order in which the rules are tried; empty if it is admissible."""
    if rules.source and source_refusal(variant.source, launch.source):
        yield Refusal(Reason.SOURCE, "source")
    if rules.options:
        yield from _option_refusals(variant, launch)
    for name, wanted in launch.consts.items():
        if reason := named_const_refusal(wanted, variant.consts.get(name)):
            yield Refusal(reason, name)
    unnamed = {param.name: param for param in variant.params}
    for arg in launch.args:
        if reason := arg_refusal(arg, unnamed.pop(arg.name, None), variant.consts.get(arg.name), rules):
            yield Refusal(reason, arg.name)
    for name in unnamed:
        yield Refusal(Reason.UNNAMED, name)


def arg_refusal(arg: Arg, param: Param | None, const: Const | None, rules: Rules) -> Reason | None:
    """The arg is placed, on a param or a constant of its name, and the place admits it."""
    if param is not None:
        return param_refusal(arg, param, rules)
    return Reason.UNPLACED if const is None else const_refusal(arg, const, rules)


def _option_refusals(variant: Variant, launch: Launch) -> Iterator[Refusal]:
    recorded = {
        "num_warps": variant.num_warps,
        "num_stages": variant.num_stages or None,
        "arch": variant.arch,
        "enable_fp_fusion": variant.enable_fp_fusion,
    }
    for name, pinned in launch.options:
        if reason := option_refusal(recorded[name], pinned):
            yield Refusal(reason, name)


def refusal(variant: Variant, launch: Launch, rules: Rules) -> Refusal | None:
    """The first refusal of one candidate, None if it is admissible. The function name is the caller's to compare."""
    return next(refusals(variant, launch, rules), None)
