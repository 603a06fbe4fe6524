"""The rules of docs/reference/rules.md as formulas; `impl.rules` says the same in Python, and a tie proves them equal.

`flaws` are the names of planted faults (`model.mutants`); the rules themselves have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import z3
from foldproof.impl.capture import INT_TYPES
from foldproof.impl.launch import INT_KINDS, Kind
from foldproof.impl.rules import PUBLIC_KINDS, RANGE32_BYTES, Rules, Strictness
from foldproof.model.terms import (
    CONST_KINDS,
    ArgTerm,
    Bits,
    Bool,
    CandidateTerm,
    ConstTerm,
    LaunchTerm,
    OptionTerm,
    ParamTerm,
    PlaceTerm,
    is_pointer_type,
    kind_is,
    type_is,
)
from foldproof.model.world import SOUND, Flaws


def conj(terms: Iterable[Bool]) -> Bool:
    """The conjunction of terms; true for none."""
    parts = list(terms)
    return parts[0] if len(parts) == 1 else z3.And(parts) if parts else z3.BoolVal(True)


def disj(terms: Iterable[Bool]) -> Bool:
    """The disjunction of terms; false for none."""
    parts = list(terms)
    return parts[0] if len(parts) == 1 else z3.Or(parts) if parts else z3.BoolVal(False)


def count(terms: Iterable[Bool], bits: int = 8) -> Bits:
    """How many of the terms hold, as a number of `bits` bits."""
    total = z3.BitVecVal(0, bits)
    for term in terms:
        total = total + z3.If(term, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
    return total


def is_one(arg: ArgTerm) -> Bool:
    """An i32 of value 1."""
    return z3.And(kind_is(arg.kind, Kind.I32), arg.number == 1)


def is_aligned(arg: ArgTerm) -> Bool:
    """The value or address is a multiple of 16; 0 and negative multiples count."""
    return z3.Extract(3, 0, arg.number) == 0


def has_alignment(arg: ArgTerm) -> Bool:
    """div16 says something about the arg: ints and pointers."""
    return kind_is(arg.kind, *INT_KINDS, Kind.PTR)


def is_foldable_one(arg: ArgTerm, param: ParamTerm) -> Bool:
    """Reading the arg through this param is what the compiler would have folded away."""
    return z3.And(is_one(arg), z3.Not(param.nospec), z3.Not(param.annotated))


def holds(code: Bits, arg: ArgTerm) -> Bool:
    """The annotated integer type can hold the int arg, whose kind says how its 64 bits are read."""
    unsigned = kind_is(arg.kind, Kind.U64)
    number = arg.number

    def within(low: int, high: int) -> Bool:
        as_signed = z3.And(z3.BitVecVal(low, 64) <= number, _at_most(number, high))
        return z3.If(unsigned, z3.ULE(number, z3.BitVecVal(high, 64)), as_signed)

    return conj(z3.Implies(type_is(code, name), within(low, high)) for name, (low, high) in INT_TYPES.items())


def _at_most(number: Bits, high: int) -> Bool:
    # Every signed number is within u64, whose bound would read as -1.
    return z3.BoolVal(True) if high == 2**64 - 1 else number <= z3.BitVecVal(high, 64)


def is_alignable(arg: ArgTerm, param: ParamTerm, public: bool, flaws: Flaws = SOUND) -> Bool:
    """The compiler may assume a multiple of 16; the public dialect heeds nospec for i32 alone."""
    heeds = kind_is(arg.kind, Kind.I32) if public else z3.BoolVal(True)
    nospec = z3.BoolVal(False) if "nospec-ignored-by-div16" in flaws else param.nospec
    noalign = z3.BoolVal(False) if "noalign-ignored" in flaws else param.noalign
    return z3.And(z3.Not(noalign), z3.Not(z3.And(nospec, heeds)))


def _type_fits(arg: ArgTerm, param: ParamTerm, flaws: Flaws) -> Bool:
    annotated = z3.And(param.annotated, kind_is(arg.kind, *INT_KINDS))
    in_range = z3.BoolVal(True) if "annotated-range-unchecked" in flaws else holds(param.type, arg)
    ordinary = arg.type == param.type
    if "pointer-types-alike" in flaws:
        ordinary = z3.Or(ordinary, z3.And(is_pointer_type(arg.type), is_pointer_type(param.type)))
    if "i64-one-admitted" not in flaws:
        ordinary = z3.And(ordinary, z3.Not(z3.And(kind_is(arg.kind, Kind.I64), arg.number == 1)))
    return z3.If(annotated, in_range, ordinary)


def _div16_fits(arg: ArgTerm, param: ParamTerm, rules: Rules, flaws: Flaws) -> Bool:
    aligned = z3.Extract(2, 0, arg.number) == 0 if "div16-weakened-to-8" in flaws else is_aligned(arg)
    alignable = is_alignable(arg, param, rules.public, flaws)
    expected = z3.And(aligned, alignable)
    pointer = kind_is(arg.kind, Kind.PTR)
    exact, implied = param.div16 == expected, z3.Implies(param.div16, z3.If(pointer, aligned, expected))
    if "div16-ignored" in flaws:
        return z3.BoolVal(True)
    if "div16-flipped" in flaws:
        implied = z3.Implies(z3.If(pointer, aligned, expected), param.div16)
    if "div16-ignored-on-pointers" in flaws:
        exact, implied = z3.Or(pointer, exact), z3.Or(pointer, implied)
    if "div16-ignored-on-ints" in flaws:
        exact, implied = z3.Or(z3.Not(pointer), exact), z3.Or(z3.Not(pointer), implied)
    if "exact-takes-lost-div16" in flaws:
        exact = implied
    fits = exact if rules.strictness == Strictness.EXACT else implied
    return z3.Or(z3.Not(has_alignment(arg)), fits)


def _range32_fits(arg: ArgTerm, param: ParamTerm, flaws: Flaws) -> Bool:
    if "range32-ignored" in flaws:
        return z3.BoolVal(True)
    small = z3.ULE(arg.bytes, RANGE32_BYTES)
    said = z3.Or(z3.Not(arg.has_bytes), small) if "range32-unsaid-admitted" in flaws else z3.And(arg.has_bytes, small)
    return z3.Implies(param.range32, z3.And(kind_is(arg.kind, Kind.PTR), said))


def param_admits(arg: ArgTerm, param: ParamTerm, rules: Rules, flaws: Flaws = SOUND) -> Bool:
    """The variant may read this arg at run time through this param (the table of docs/reference/rules.md)."""
    if rules.strictness == Strictness.LINKER:
        return guard_admits(arg, param, flaws)
    one = is_foldable_one(arg, param)
    if "nospec-one-is-foldable" in flaws:
        one = z3.And(is_one(arg), z3.Not(param.annotated))
    takes_one = rules.strictness == Strictness.RUNTIME_ONE
    takes_one |= "general-takes-one" in flaws and rules.strictness == Strictness.GENERAL
    takes_one |= "exact-takes-one" in flaws and rules.strictness == Strictness.EXACT
    return z3.And(
        kind_is(arg.kind, *PUBLIC_KINDS) if rules.public else z3.BoolVal(True),
        _range32_fits(arg, param, flaws),
        _type_fits(arg, param, flaws),
        z3.BoolVal(True) if takes_one else z3.Not(one),
        _div16_fits(arg, param, rules, flaws),
    )


def guard_admits(arg: ArgTerm, param: ParamTerm, flaws: Flaws = SOUND) -> Bool:
    """`linker-order`: C types fit, and the generated guard holds."""
    annotated = z3.And(param.annotated, kind_is(arg.kind, *INT_KINDS))
    both_floats = z3.And(_is_float(arg.type), _is_float(param.type))
    both_pointers = z3.And(is_pointer_type(arg.type), is_pointer_type(param.type))
    fits = z3.Or(both_pointers, both_floats, _u8(arg.type) == _u8(param.type))
    aligned = z3.Extract(2, 0, arg.number) == 0 if "div16-weakened-to-8" in flaws else is_aligned(arg)
    guard = z3.Implies(z3.And(param.div16, has_alignment(arg)), aligned)
    return z3.And(z3.If(annotated, holds(param.type, arg), fits), guard)


def _is_float(code: Bits) -> Bool:
    return z3.Or(type_is(code, "fp32"), type_is(code, "fp64"))


def _u8(code: Bits) -> Bits:
    return z3.If(type_is(code, "u1"), z3.BitVecVal(4, code.size()), code)


def const_admits(arg: ArgTerm, const: ConstTerm, rules: Rules, flaws: Flaws = SOUND) -> Bool:
    """The variant may hold this arg as this constant: a folded 1, or None on none."""
    is_int = z3.And(const.kind == CONST_KINDS.index("int"), const.value == 1)
    if "const-kinds-alike" in flaws:
        is_int = const.value == 1
    folded = z3.And(is_one(arg), is_int)
    if "folded-without-the-value" in flaws:
        folded = z3.And(kind_is(arg.kind, Kind.I32), is_int)
    if "folded-takes-any-int-kind" in flaws:
        folded = z3.And(kind_is(arg.kind, *INT_KINDS), arg.number == 1, is_int)
    none = const.kind == CONST_KINDS.index("none")
    if "none-matches-any-const" in flaws:
        none = z3.BoolVal(True)
    known = kind_is(arg.kind, *PUBLIC_KINDS) if rules.public else z3.BoolVal(True)
    return z3.And(known, z3.If(kind_is(arg.kind, Kind.NONE), none, folded))


@cache
def place_admits(arg: ArgTerm, place: PlaceTerm, rules: Rules, flaws: Flaws = SOUND) -> Bool:
    """The variant places the arg, and the place admits it."""
    unplaced = z3.BoolVal("unplaced-arg-admitted" in flaws)
    const = z3.If(place.const.present, const_admits(arg, place.const, rules, flaws), unplaced)
    return z3.If(place.on_param, param_admits(arg, place.param, rules, flaws), const)


def source_admits(variant: OptionTerm, launch: OptionTerm) -> Bool:
    """Where both say a source, they are equal (T11)."""
    return z3.Implies(z3.And(variant.given, launch.given), variant.value == launch.value)


def options_admit(recorded: Sequence[OptionTerm], pinned: Sequence[OptionTerm], flaws: Flaws = SOUND) -> Bool:
    """Each pinned option equals the variant's where it records one."""
    pairs = list(zip(recorded, pinned, strict=True))
    if "num-warps-unchecked" in flaws:
        pairs = pairs[1:]
    return conj(z3.Implies(z3.And(p.given, r.given), r.value == p.value) for r, p in pairs)


def named_const_admits(wanted: ConstTerm, present: ConstTerm, flaws: Flaws = SOUND) -> Bool:
    """The const that the launch names exists in the variant with the same kind and value."""
    same = present.value == wanted.value
    if "const-kinds-alike" not in flaws:
        same = z3.And(present.kind == wanted.kind, same)
    if "const-value-ignored" in flaws:
        same = present.kind == wanted.kind
    if "absent-const-admitted" in flaws:
        return z3.Implies(present.present, same)
    return z3.And(present.present, same)


def admits(candidate: CandidateTerm, launch: LaunchTerm, rules: Rules, flaws: Flaws = SOUND) -> Bool:
    """The candidate is admissible under the rules."""
    named = [] if "named-consts-ignored" in flaws else list(zip(launch.consts, candidate.named, strict=True))
    return z3.And(
        source_admits(candidate.source, launch.source) if rules.source else z3.BoolVal(True),
        options_admit(candidate.options, launch.options, flaws) if rules.options else z3.BoolVal(True),
        conj(named_const_admits(wanted, present, flaws) for wanted, present in named),
        conj(place_admits(a, p, rules, flaws) for a, p in zip(launch.args, candidate.places, strict=True)),
        z3.BoolVal(True) if "count-unchecked" in flaws else z3.Not(candidate.extra),
    )


def assumption_holds(arg: ArgTerm, place: PlaceTerm) -> Bool:
    """What the variant was compiled under for this arg is true of it (T04): type, fold, div16, range32."""
    param = place.param
    annotated = z3.And(param.annotated, kind_is(arg.kind, *INT_KINDS))
    typed = z3.If(annotated, holds(param.type, arg), arg.type == param.type)
    div16 = z3.Implies(z3.And(param.div16, has_alignment(arg)), is_aligned(arg))
    small = z3.And(kind_is(arg.kind, Kind.PTR), arg.has_bytes, z3.ULE(arg.bytes, RANGE32_BYTES))
    at_run_time = z3.And(typed, div16, z3.Implies(param.range32, small))
    is_none = z3.And(kind_is(arg.kind, Kind.NONE), place.const.kind == CONST_KINDS.index("none"))
    is_folded = z3.And(is_one(arg), place.const.kind == CONST_KINDS.index("int"), place.const.value == 1)
    return z3.If(place.on_param, at_run_time, z3.And(place.const.present, z3.Or(is_none, is_folded)))
