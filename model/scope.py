"""A bounded scope: one launch and up to n candidates of up to m args, all of it symbolic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import z3
from foldproof.impl.launch import INT_KINDS, Kind
from foldproof.impl.rules import RANGE32_BYTES, Rules
from foldproof.model import rules as formulas
from foldproof.model.rules import SOUND, Flaws, conj, count, disj
from foldproof.model.terms import (
    OPTIONS,
    ArgTerm,
    Bits,
    Bool,
    CandidateTerm,
    ConstTerm,
    LaunchTerm,
    OptionTerm,
    PlaceTerm,
    kind_is,
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much a scope holds: candidates, args, constants named by the launch, constants it leaves free."""

    candidates: int
    args: int
    named: int = 1
    free: int = 1

    def __str__(self) -> str:
        return f"{self.candidates} variants x {self.args} params"


@dataclass(frozen=True, slots=True)
class Scope:
    """The terms of one bounded scope. `well_formed` says that they are a valid capture and launch."""

    size: Size
    launch: LaunchTerm
    candidates: tuple[CandidateTerm, ...]
    warned: tuple[Bool, ...]
    """Whether a policy that warns once a variant has warned of each candidate before."""
    _cache: dict[tuple[object, ...], Bool] = field(default_factory=dict, compare=False, repr=False)

    def admits(self, index: int, rules: Rules, flaws: Flaws = SOUND) -> Bool:
        """Candidate `index` is admissible under the rules."""
        key = (index, rules, flaws)
        if key not in self._cache:
            self._cache[key] = formulas.admits(self.candidates[index], self.launch, rules, flaws)
        return self._cache[key]

    def reads_one(self, index: int) -> list[Bool]:
        """For each arg, whether the candidate reads it as a foldable 1 (*ones*)."""
        return [
            z3.And(place.on_param, formulas.is_foldable_one(arg, place.param))
            for arg, place in zip(self.launch.args, self.candidates[index].places, strict=True)
        ]

    def ones(self, index: int) -> Bits:
        """How many foldable 1s the candidate reads."""
        return count(self.reads_one(index))

    def runtime_ones(self, index: int) -> Bits:
        """How many 1s the candidate reads at all."""
        pairs = zip(self.launch.args, self.candidates[index].places, strict=True)
        return count(z3.And(place.on_param, formulas.is_one(arg)) for arg, place in pairs)

    def assumptions(self, index: int) -> Bits:
        """How many folded ints and div16 params the candidate assumes of the args."""
        pairs = zip(self.launch.args, self.candidates[index].places, strict=True)
        return count(
            z3.If(p.on_param, z3.And(p.param.div16, formulas.has_alignment(a)), folded(a, p)) for a, p in pairs
        )

    def held(self, index: int) -> Bits:
        """What `most-held` counts."""
        pairs = zip(self.launch.args, self.candidates[index].places, strict=True)
        return count(_held(arg, place) for arg, place in pairs)

    def folds_every_one(self, index: int) -> Bool:
        """Every i32 1 of the launch is folded in the candidate."""
        pairs = zip(self.launch.args, self.candidates[index].places, strict=True)
        return conj(z3.Implies(formulas.is_one(arg), folded(arg, place)) for arg, place in pairs)

    def differs_in_free(self, one: int, other: int) -> Bool:
        """The two differ in a constant that the launch names neither as const nor as arg."""
        pairs = zip(self.candidates[one].free, self.candidates[other].free, strict=True)
        return disj(z3.Not(a.same(b)) for a, b in pairs)

    def same_options(self, one: int, other: int, names: tuple[str, ...] = OPTIONS) -> Bool:
        """The two were compiled with equal launch options of those names."""
        a, b = self.candidates[one].options, self.candidates[other].options
        return conj(a[i].same(b[i]) for i, name in enumerate(OPTIONS) if name in names)

    def twins(self, one: int, other: int) -> Bool:
        """The two have equal params and consts."""
        a, b = self.candidates[one], self.candidates[other]
        parts = [p.same(q) for p, q in zip(a.places, b.places, strict=True)]
        parts += [p.same(q) for p, q in zip((*a.named, *a.free), (*b.named, *b.free), strict=True)]
        return z3.And(conj(parts), z3.Not(a.extra), z3.Not(b.extra))

    @property
    def well_formed(self) -> Bool:
        """The terms are a valid capture and launch: kinds, ranges, exclusive names, distinct hashes."""
        parts = [arg.well_formed() for arg in self.launch.args]
        parts += [z3.And(c.present, c.well_formed()) for c in self.launch.consts]
        parts += [_options_well_formed(self.launch.options)]
        for candidate in self.candidates:
            parts += [place.well_formed() for place in candidate.places]
            parts += [const.well_formed() for const in (*candidate.named, *candidate.free)]
            parts += [candidate.options[0].given, _options_well_formed(candidate.options)]
            parts += [z3.ULT(candidate.rank, self.size.candidates)]
        ranks = [candidate.rank for candidate in self.candidates]
        return z3.And(*parts, z3.Distinct(ranks) if len(ranks) > 1 else z3.BoolVal(True))

    def variables(self) -> Iterator[z3.ExprRef]:
        """Every variable of the scope, launch first, in a fixed order."""
        terms = [self.launch, *self.candidates]
        for term in terms:
            yield from _leaves(term)
        yield from self.warned


def _options_well_formed(options: tuple[OptionTerm, ...]) -> Bool:
    """num_warps and num_stages are at least 1 where given, enable_fp_fusion is 0 or 1."""
    warps, stages, _, fusion = options
    at_least_one = [z3.Implies(o.given, z3.And(o.value != 0, z3.ULE(o.value, 64))) for o in (warps, stages)]
    return z3.And(*at_least_one, z3.ULE(fusion.value, 1))


def _leaves(term: object) -> Iterator[z3.ExprRef]:
    if isinstance(term, z3.ExprRef):
        yield term
    elif isinstance(term, tuple):
        for item in term:
            yield from _leaves(item)
    else:
        for name in term.__slots__:  # type: ignore[attr-defined]
            yield from _leaves(getattr(term, name))


def folded(arg: ArgTerm, place: PlaceTerm) -> Bool:
    """The arg is an i32 1 that the place holds as a folded 1."""
    const = place.const
    is_int_one = z3.And(const.present, const.kind == 0, const.value == 1)
    return z3.And(formulas.is_one(arg), z3.Not(place.on_param), is_int_one)


def _held(arg: ArgTerm, place: PlaceTerm) -> Bool:
    param, aligned = place.param, formulas.is_aligned(arg)
    as_i32 = z3.And(param.div16 == z3.And(aligned, z3.Not(param.nospec)), z3.Or(param.nospec, arg.number != 1))
    wide = kind_is(arg.kind, Kind.PTR, Kind.U64)
    on_param = z3.If(
        kind_is(arg.kind, Kind.I32), as_i32, z3.If(wide, param.div16 == aligned, kind_is(arg.kind, Kind.FP32))
    )
    return z3.If(place.on_param, on_param, folded(arg, place))


def make_scope(size: Size) -> Scope:
    """A scope in which nothing is known beyond its size."""
    launch = make_launch("", size)
    candidates = tuple(_candidate(f"c{i}", size) for i in range(size.candidates))
    return Scope(size, launch, candidates, tuple(z3.Bool(f"c{i}.warned") for i in range(size.candidates)))


def make_launch(prefix: str, size: Size) -> LaunchTerm:
    """A launch in which nothing is known; its variables start with `prefix`."""
    return LaunchTerm(
        tuple(ArgTerm.fresh(f"{prefix}a{j}") for j in range(size.args)),
        tuple(ConstTerm.fresh(f"{prefix}k{j}") for j in range(size.named)),
        tuple(OptionTerm.fresh(f"{prefix}pin.{name}") for name in OPTIONS),
        OptionTerm.fresh(f"{prefix}source"),
    )


def _candidate(name: str, size: Size) -> CandidateTerm:
    return CandidateTerm(
        tuple(PlaceTerm.fresh(f"{name}.p{j}") for j in range(size.args)),
        z3.Bool(f"{name}.extra"),
        tuple(ConstTerm.fresh(f"{name}.k{j}") for j in range(size.named)),
        tuple(ConstTerm.fresh(f"{name}.f{j}") for j in range(size.free)),
        tuple(OptionTerm.fresh(f"{name}.{option}") for option in OPTIONS),
        OptionTerm.fresh(f"{name}.source"),
        z3.BitVec(f"{name}.rank", 8),
    )


def same_class_launch(scope: Scope) -> tuple[Scope, Bool]:
    """The scope with another launch of the same classes, and the formula that says so (T15).

    The class of an arg is its kind, pointer type, whether it is 1, whether it is a multiple of 16, whether its
    allocation is said and within 2^31 - 1 bytes, and, for an int, which integer types can hold it.
    """
    args = tuple(
        replace(arg, number=z3.BitVec(f"other{j}.number", 64), bytes=z3.BitVec(f"other{j}.bytes", 64))
        for j, arg in enumerate(scope.launch.args)
    )
    pairs = list(zip(scope.launch.args, args, strict=True))
    same = conj(z3.And(_same_class(a, b), b.well_formed()) for a, b in pairs)
    return replace(scope, launch=replace(scope.launch, args=args), _cache={}), same


def _same_class(one: ArgTerm, other: ArgTerm) -> Bool:
    codes = [z3.BitVecVal(code, one.pointee.size()) for code in range(8)]
    held = conj(formulas.holds(code, one) == formulas.holds(code, other) for code in codes)
    return z3.And(
        (one.number == 1) == (other.number == 1),
        formulas.is_aligned(one) == formulas.is_aligned(other),
        z3.ULE(one.bytes, RANGE32_BYTES) == z3.ULE(other.bytes, RANGE32_BYTES),
        z3.Implies(kind_is(one.kind, *INT_KINDS), held),
    )
