"""A bounded scope: one launch and up to n candidates of up to m args, all of it symbolic.

Longer than 250 lines because a world is one class: everything that a statement may ask of it, under one name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from typing import Any, TypeVar, cast

import z3
from foldproof.impl.launch import INT_KINDS, Kind
from foldproof.impl.rules import RANGE32_BYTES, Rules
from foldproof.model import rules as formulas
from foldproof.model.rules import conj, count, disj
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
from foldproof.model.world import SOUND, Flaws, Order, Predicate, World

Built = TypeVar("Built")


def kept(build: Callable[..., Built]) -> Callable[..., Built]:
    """A method of `Scope` whose terms are built once per argument list: building costs more than solving."""

    @wraps(build)
    def method(self: Scope, *args: Any) -> Built:
        key = (build.__name__, *args)
        if key not in self._cache:
            self._cache[key] = build(self, *args)
        return cast("Built", self._cache[key])

    return method


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
    """The terms of one bounded scope; a `World` whose candidates are the ints below `size.candidates`."""

    size: Size
    launch: LaunchTerm
    candidates: tuple[CandidateTerm, ...]
    has_warned: tuple[Bool, ...]
    _cache: dict[tuple[object, ...], object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def order(self) -> Order:
        """All candidates, in the order of their indices."""
        return _order(list(range(self.size.candidates)))

    def other_orders(self) -> Sequence[Order]:
        """The swaps of neighbours: they generate every order."""
        full = list(range(self.size.candidates))
        return [_order([*full[:i], full[i + 1], full[i], *full[i + 2 :]]) for i in full[:-1]]

    def any_candidate(self) -> Sequence[int]:
        """All of them."""
        return range(self.size.candidates)

    def forall(self, body: Predicate) -> Bool:
        """The conjunction over all candidates."""
        return conj(body(i) for i in range(self.size.candidates))

    def exists(self, body: Predicate) -> Bool:
        """The disjunction over all candidates."""
        return disj(body(i) for i in range(self.size.candidates))

    def exists_pair(self, body: Callable[[int, int], Bool]) -> Bool:
        """The disjunction over all pairs, each in one order: both would double the largest formulas."""
        return disj(body(i, k) for k in range(self.size.candidates) for i in range(k))

    def equal(self, one: int, other: int) -> Bool:
        """Whether the indices are equal."""
        return z3.BoolVal(one == other)

    def best(self, admissible: Predicate, beats: Callable[[int, int], Bool]) -> Predicate:
        """Admissible, and not beaten by another admissible candidate."""

        def is_best(index: int) -> Bool:
            others = (k for k in range(self.size.candidates) if k != index)
            return z3.And(admissible(index), *(z3.Implies(admissible(k), beats(index, k)) for k in others))

        return self.remembered(is_best)

    def remembered(self, body: Predicate) -> Predicate:
        """The predicate with its terms kept by index."""
        return cache(body)

    def less(self, one: Bits, other: Bits) -> Bool:
        """Unsigned comparison."""
        return z3.ULT(one, other)

    def negated(self, number: Bits) -> Bits:
        """255 less the number."""
        return z3.BitVecVal(255, 8) - number

    @kept
    def admits(self, index: int, rules: Rules, flaws: Flaws = SOUND) -> Bool:
        """The candidate is admissible under the rules."""
        return formulas.admits(self.candidates[index], self.launch, rules, flaws)

    def placed(self, index: int) -> Iterable[tuple[ArgTerm, PlaceTerm]]:
        """Each arg with its place in the candidate."""
        return zip(self.launch.args, self.candidates[index].places, strict=True)

    @kept
    def reads_one(self, index: int) -> list[Bool]:
        """For each arg, whether the candidate reads it as a foldable 1 (*ones*)."""
        return [z3.And(p.on_param, formulas.is_foldable_one(a, p.param)) for a, p in self.placed(index)]

    @kept
    def ones(self, index: int) -> Bits:
        """How many args are read as a foldable 1."""
        return count(self.reads_one(index))

    @kept
    def runtime_ones(self, index: int) -> Bits:
        """How many args are an i32 1 on a param."""
        return count(z3.And(p.on_param, formulas.is_one(a)) for a, p in self.placed(index))

    @kept
    def unfoldable_ones(self, index: int) -> Bits:
        """How many args are an i32 1 on a nospec or annotated param."""
        closed = ((a, p, z3.Or(p.param.nospec, p.param.annotated)) for a, p in self.placed(index))
        return count(z3.And(p.on_param, formulas.is_one(a), c) for a, p, c in closed)

    @kept
    def assumptions(self, index: int) -> Bits:
        """How many args are folded, or on a div16 param."""
        div16 = ((a, p, z3.And(p.param.div16, formulas.has_alignment(a))) for a, p in self.placed(index))
        return count(z3.If(p.on_param, d, folded(a, p)) for a, p, d in div16)

    @kept
    def held(self, index: int) -> Bits:
        """How many args are held as the public selector counts them."""
        return count(held(arg, place) for arg, place in self.placed(index))

    def rank(self, index: int) -> Bits:
        """The candidate's rank term."""
        return self.candidates[index].rank

    @kept
    def falls_back(self, index: int) -> Bool:
        """Some arg is read as a foldable 1."""
        return disj(self.reads_one(index))

    def reads_two_ones(self, index: int) -> Bool:
        """Two args or more are read as foldable 1s."""
        return z3.UGT(self.ones(index), 1)

    def same_reads(self, one: int, other: int, launch: World | None = None) -> Bool:
        """The two read the same args as foldable 1s."""
        elsewhere = launch if isinstance(launch, Scope) else self
        return conj(a == b for a, b in zip(self.reads_one(one), elsewhere.reads_one(other), strict=True))

    @kept
    def folds_every_one(self, index: int) -> Bool:
        """Each i32 1 is folded."""
        return conj(z3.Implies(formulas.is_one(a), folded(a, p)) for a, p in self.placed(index))

    @kept
    def differs_in_free(self, one: int, other: int) -> Bool:
        """Some free constant differs."""
        pairs = zip(self.candidates[one].free, self.candidates[other].free, strict=True)
        return disj(z3.Not(a.same(b)) for a, b in pairs)

    @kept
    def same_options(self, one: int, other: int, names: Iterable[str] = OPTIONS) -> Bool:
        """Each of the options is equal, or absent in both."""
        pairs = zip(OPTIONS, self.candidates[one].options, self.candidates[other].options, strict=True)
        return conj(a.same(b) for name, a, b in pairs if name in names)

    @kept
    def twins(self, one: int, other: int) -> Bool:
        """Places and constants are equal, and no param is outside the launch's names."""
        a, b = self.candidates[one], self.candidates[other]
        parts = [p.same(q) for p, q in zip(a.places, b.places, strict=True)]
        parts += [p.same(q) for p, q in zip((*a.named, *a.free), (*b.named, *b.free), strict=True)]
        return z3.And(conj(parts), z3.Not(a.extra), z3.Not(b.extra))

    @kept
    def assumptions_hold(self, index: int) -> Bool:
        """Every arg, the count of params and every named constant are as compiled."""
        candidate = self.candidates[index]
        args = conj(formulas.assumption_holds(a, p) for a, p in self.placed(index))
        named = conj(w.same(p) for w, p in zip(self.launch.consts, candidate.named, strict=True))
        return z3.And(args, named, z3.Not(candidate.extra))

    @kept
    def other_source(self, index: int) -> Bool:
        """Both sources are given and differ."""
        return z3.Not(formulas.source_admits(self.candidates[index].source, self.launch.source))

    def warned(self, index: int) -> Bool:
        """The candidate's flag."""
        return self.has_warned[index]

    def same_class_launch(self) -> tuple[Scope, Bool]:
        """The scope with other numbers and sizes of the same classes.

        The class of an arg is its kind, pointer type, whether it is 1, whether it is a multiple of 16, whether its
        allocation is said and within 2^31 - 1 bytes, and, for an int, which integer types can hold it.
        """
        args = tuple(
            replace(arg, number=z3.BitVec(f"other{j}.number", 64), bytes=z3.BitVec(f"other{j}.bytes", 64))
            for j, arg in enumerate(self.launch.args)
        )
        pairs = zip(self.launch.args, args, strict=True)
        same = conj(z3.And(same_class(a, b), b.well_formed()) for a, b in pairs)
        return replace(self, launch=replace(self.launch, args=args), _cache={}), same

    @property
    def well_formed(self) -> Bool:
        """The terms are a valid capture and launch: kinds, ranges, exclusive names, distinct hashes."""
        return self._well_formed()

    @kept
    def _well_formed(self) -> Bool:
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


def _order(indices: list[int]) -> Order:
    return Order(lambda i: z3.BoolVal(i in indices), lambda i: z3.BitVecVal(indices.index(i), 8))


def _options_well_formed(options: tuple[OptionTerm, ...]) -> Bool:
    """num_warps and num_stages are from 1 to 64 where given, enable_fp_fusion is 0 or 1."""
    warps, stages, _, fusion = options
    counts = [z3.Implies(o.given, z3.And(o.value != 0, z3.ULE(o.value, 64))) for o in (warps, stages)]
    return z3.And(*counts, z3.ULE(fusion.value, 1))


def folded(arg: ArgTerm, place: PlaceTerm) -> Bool:
    """The arg is an i32 1 that the place holds as a folded 1."""
    const = place.const
    is_int_one = z3.And(const.present, const.kind == 0, const.value == 1)
    return z3.And(formulas.is_one(arg), z3.Not(place.on_param), is_int_one)


def held(arg: ArgTerm, place: PlaceTerm) -> Bool:
    """The arg is held as the public selector counts it (`most-held`)."""
    param, aligned = place.param, formulas.is_aligned(arg)
    as_i32 = z3.And(param.div16 == z3.And(aligned, z3.Not(param.nospec)), z3.Or(param.nospec, arg.number != 1))
    wide = z3.If(kind_is(arg.kind, Kind.PTR, Kind.U64), param.div16 == aligned, kind_is(arg.kind, Kind.FP32))
    return z3.If(place.on_param, z3.If(kind_is(arg.kind, Kind.I32), as_i32, wide), folded(arg, place))


def same_class(one: ArgTerm, other: ArgTerm) -> Bool:
    """Two args that share kind, pointer type and `has_bytes` are of one class (T15)."""
    codes = [z3.BitVecVal(code, one.pointee.size()) for code in range(8)]
    held = conj(formulas.holds(code, one) == formulas.holds(code, other) for code in codes)
    return z3.And(
        (one.number == 1) == (other.number == 1),
        formulas.is_aligned(one) == formulas.is_aligned(other),
        z3.ULE(one.bytes, RANGE32_BYTES) == z3.ULE(other.bytes, RANGE32_BYTES),
        z3.Implies(kind_is(one.kind, *INT_KINDS), held),
    )


def make_scope(size: Size) -> Scope:
    """A scope in which nothing is known beyond its size."""
    launch = LaunchTerm(
        tuple(ArgTerm.fresh(f"a{j}") for j in range(size.args)),
        tuple(ConstTerm.fresh(f"k{j}") for j in range(size.named)),
        tuple(OptionTerm.fresh(f"pin.{name}") for name in OPTIONS),
        OptionTerm.fresh("source"),
    )
    candidates = tuple(_candidate(f"c{i}", size) for i in range(size.candidates))
    return Scope(size, launch, candidates, tuple(z3.Bool(f"c{i}.warned") for i in range(size.candidates)))


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
