"""One function of one capture as a `model.world.World`: the candidates are given, the launch's arg classes are open.

An arg is one Boolean for each class that it may have (T15). Which classes a candidate admits is asked of
`impl.rules`; how passes, preferences and refusals follow is `model.selection`. So one formula speaks of every
launch of the shape, however many there are, and a solver's model is a launch that the reference decides.

Longer than 250 lines because it is one class, and the interface `World` is that wide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import msgspec
import z3
from foldproof.impl.capture import Const, Param, Variant
from foldproof.impl.choose import is_held
from foldproof.impl.launch import Arg, Launch
from foldproof.impl.rules import (
    Reason,
    Rules,
    arg_refusal,
    has_alignment,
    is_foldable_one,
    is_one,
    refusals,
    source_refusal,
)
from foldproof.model.rules import conj, count, disj
from foldproof.model.terms import OPTIONS, Bool
from foldproof.model.world import SOUND, Flaws, Order, Predicate, World
from foldproof.release.launch_shape import Shape, with_args

T = TypeVar("T")
TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)


@dataclass(frozen=True, slots=True)
class ClassWorld:
    """The candidates of a shape, in candidate order; `prefix` keeps the variables of two worlds apart."""

    shape: Shape
    variants: tuple[Variant, ...]
    prefix: str = ""
    choices: tuple[tuple[Bool, ...], ...] = ()
    says: tuple[tuple[tuple[Const | object | None, Bool], ...], ...] = ()
    """For each constant and each option of the shape what the launch may say of it; None: nothing."""
    _cache: dict[tuple[object, ...], Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, shape: Shape, variants: Iterable[Variant], prefix: str = "") -> ClassWorld:
        """A world of the candidates that some launch of the shape could reach under the loosest rules."""
        choices = tuple(
            tuple(z3.Bool(f"{prefix}{j}.{c}") for c in range(len(classes))) for j, classes in enumerate(shape.classes)
        )
        values = [list(known) for _, known in (*shape.consts, *shape.options)]
        says = tuple(
            tuple((value, z3.Bool(f"{prefix}s{k}.{v}")) for v, value in enumerate((None, *known)))
            for k, known in enumerate(values)
        )
        return cls(shape, tuple(variants), prefix, choices, says)

    def with_variants(self, variants: Iterable[Variant]) -> ClassWorld:
        """Other candidates for the same launches: the variables are the same, so that answers can be compared."""
        return ClassWorld(self.shape, tuple(variants), self.prefix, self.choices, self.says)

    @property
    def well_formed(self) -> Bool:
        """Each arg has exactly one class, and of each constant and option one thing is said, or nothing."""
        groups = [*self.choices, *(tuple(said for _, said in one) for one in self.says)]
        return conj(z3.PbEq([(choice, 1) for choice in group], 1) for group in groups)

    def launch(self, model: z3.ModelRef) -> Launch:
        """The launch that a model speaks of."""
        args = []
        for classes, choices in zip(self.shape.classes, self.choices, strict=True):
            picked = next((c for c, x in enumerate(choices) if z3.is_true(model.eval(x))), 0)
            args.append(classes[picked])
        said = [next((v for v, x in one if z3.is_true(model.eval(x))), None) for one in self.says]
        names = [name for name, _ in (*self.shape.consts, *self.shape.options)]
        pairs = list(zip(names, said, strict=True))
        count = len(self.shape.consts)
        consts = {name: value for name, value in pairs[:count] if value is not None}
        launch = with_args(self.shape.base, args)
        launch = msgspec.structs.replace(launch, consts={**launch.consts, **consts})
        return msgspec.structs.replace(launch, **dict(pairs[count:]))

    def _kept(self, key: tuple[object, ...], build: Callable[[], T]) -> T:
        if key not in self._cache:
            self._cache[key] = build()
        return cast("T", self._cache[key])

    def places(self, index: int) -> Sequence[tuple[int, Param | None, Const | None]]:
        """For each arg its number, and the param or constant that the candidate has of its name."""
        variant = self.variants[index]
        params = self._kept(("params", index), lambda: {p.name: p for p in variant.params})
        return [(j, params.get(a.name), variant.consts.get(a.name)) for j, a in enumerate(self.shape.base.args)]

    def where(self, test: Callable[[Arg], bool], j: int) -> Bool:
        """The class of arg j passes the test."""
        passing = [test(arg) for arg in self.shape.classes[j]]
        if all(passing):
            return TRUE
        return disj(x for x, passes in zip(self.choices[j], passing, strict=True) if passes)

    @property
    def order(self) -> Order:
        """All candidates, in candidate order."""
        return Order(lambda _: TRUE, lambda i: i)

    def other_orders(self) -> Sequence[Order]:
        """None: questions here are about the capture as it stands."""
        return ()

    def any_candidate(self) -> Sequence[int]:
        """All of them."""
        return range(len(self.variants))

    def same_class_launch(self) -> tuple[World, Bool]:
        """The world itself: a launch here is its classes."""
        return self, TRUE

    def forall(self, body: Predicate) -> Bool:
        """The conjunction over all candidates."""
        return conj(body(i) for i in range(len(self.variants)))

    def exists(self, body: Predicate) -> Bool:
        """The disjunction over all candidates."""
        return disj(body(i) for i in range(len(self.variants)))

    def exists_pair(self, body: Callable[[int, int], Bool]) -> Bool:
        """The disjunction over all pairs, each in one order."""
        return disj(body(i, k) for k in range(len(self.variants)) for i in range(k))

    def remembered(self, body: Predicate) -> Predicate:
        """The predicate with its terms kept by index."""
        terms: dict[int, Bool] = {}

        def kept(index: int) -> Bool:
            if index not in terms:
                terms[index] = body(index)
            return terms[index]

        return kept

    def equal(self, one: int, other: int) -> Bool:
        """Whether the indices are equal."""
        return z3.BoolVal(one == other)

    def best(self, admissible: Predicate, beats: Callable[[int, int], Bool]) -> Predicate:
        """Admissible, and not beaten by another admissible candidate. `beats` orders all candidates, ties allowed."""
        if self._stand_in_order(beats):
            return self._first(admissible)

        def is_best(index: int) -> Bool:
            mine = admissible(index)
            if z3.is_false(mine):
                return FALSE
            rivals = [k for k in range(len(self.variants)) if k != index and not z3.is_false(admissible(k))]
            return conj([mine, *(z3.Implies(admissible(k), beats(index, k)) for k in rivals)])

        return self.remembered(is_best)

    def _stand_in_order(self, beats: Callable[[int, int], Bool]) -> bool:
        """Whether each candidate beats the next whatever the launch: then the earlier of any two is preferred."""
        steps = range(len(self.variants) - 1)
        return all(z3.is_true(z3.simplify(z3.And(beats(i, i + 1), z3.Not(beats(i + 1, i))))) for i in steps)

    def _first(self, admissible: Predicate) -> Predicate:
        """The first admissible candidate, in formulas that grow with the candidates and not with their pairs."""
        none_before = [TRUE]
        for index in range(len(self.variants)):
            none_before.append(z3.And(none_before[-1], z3.Not(admissible(index))))
        return self.remembered(lambda index: z3.And(admissible(index), none_before[index]))

    def less(self, one: Any, other: Any) -> Bool:
        """The comparison of two plain numbers, or of two counts."""
        if isinstance(one, int):
            return z3.BoolVal(one < other)
        return z3.ULT(one, other)

    def negated(self, number: Any) -> Any:
        """A number that is the less the greater the given one is."""
        return -number if isinstance(number, int) else z3.BitVecVal(255, 8) - number

    def admits(self, index: int, rules: Rules, flaws: Flaws = SOUND) -> Bool:
        """The candidate is admissible under the rules of `impl.rules`."""
        assert flaws == SOUND, "planted faults live in the model's own worlds"
        return self._kept(("admits", index, rules), lambda: self._admits(index, rules))

    def _admits(self, index: int, rules: Rules) -> Bool:
        if not self.is_placeable(index, rules):
            return FALSE
        parts = [z3.Not(x) for x in self._refused(index, rules)]
        for j, param, const in self.places(index):
            part = self.where(lambda arg, p=param, c=const: arg_refusal(arg, p, c, rules) is None, j)  # type: ignore[misc]
            if z3.is_false(part):
                return FALSE
            if not z3.is_true(part):
                parts.append(part)
        return conj(parts)

    def _refused(self, index: int, rules: Rules) -> list[Bool]:
        """What the launch must not say for the candidate to be admissible."""
        variant, count = self.variants[index], len(self.shape.consts)
        refused = []
        for (name, _), said in zip(self.shape.consts, self.says[:count], strict=True):
            refused += [x for value, x in said if value is not None and variant.consts.get(name) != value]
        for (name, _), said in zip(self.shape.options, self.says[count:], strict=True):
            for value, x in said:
                launch = msgspec.structs.replace(self.shape.base, **{name: value})
                if any(r.reason in (Reason.OPTION, Reason.SOURCE) for r in refusals(variant, launch, rules)):
                    refused.append(x)
        return refused

    def is_placeable(self, index: int, rules: Rules) -> bool:
        """Whether nothing but the classes of the args can refuse the candidate."""
        variant, base = self.variants[index], self.shape.base
        if variant.fn != base.fn or any(variant.consts.get(name) != const for name, const in base.consts.items()):
            return False
        given, read = self._kept(("names",), lambda: {a.name for a in base.args}), {p.name for p in variant.params}
        if not read <= given or any(name not in variant.consts for name in given - read):
            return False
        # What is left is said by the launch's options and its source alone.
        bare = self._kept(("bare",), lambda: msgspec.structs.replace(with_args(base, ()), consts={}))
        return not any(r.reason in (Reason.SOURCE, Reason.OPTION) for r in refusals(variant, bare, rules))

    def _count(self, index: int, test: Callable[[Arg, Param | None, Const | None], bool]) -> Any:
        parts = [self.where(lambda a, p=p, c=c: test(a, p, c), j) for j, p, c in self.places(index)]  # type: ignore[misc]
        return count(part for part in parts if not z3.is_false(part))

    def reads_one(self, index: int) -> list[Bool]:
        """For each arg, whether the candidate reads it as a foldable 1 (*ones*)."""
        return self._kept(
            ("reads", index),
            lambda: [
                FALSE if p is None else self.where(lambda a, p=p: is_foldable_one(a, p), j)  # type: ignore[misc]
                for j, p, _ in self.places(index)
            ],
        )

    def ones(self, index: int) -> Any:
        """How many args are read as a foldable 1."""
        return self._kept(("ones", index), lambda: count(x for x in self.reads_one(index) if not z3.is_false(x)))

    def runtime_ones(self, index: int) -> Any:
        """How many args are an i32 1 on a param."""
        return self._kept(
            ("runtime-ones", index), lambda: self._count(index, lambda a, p, _: p is not None and is_one(a))
        )

    def unfoldable_ones(self, index: int) -> Any:
        """How many args are an i32 1 on a nospec or annotated param."""
        return self._count(index, lambda a, p, _: p is not None and is_one(a) and not is_foldable_one(a, p))

    def assumptions(self, index: int) -> Any:
        """How many args are folded, or on a div16 param."""

        def assumed(arg: Arg, param: Param | None, const: Const | None) -> bool:
            if param is not None:
                return param.div16 and has_alignment(arg)
            return is_one(arg) and const is not None and const.kind == "int" and const.value == 1

        return self._kept(("assumptions", index), lambda: self._count(index, assumed))

    def held(self, index: int) -> Any:
        """How many args are held as the public selector counts them."""
        return self._kept(("held", index), lambda: self._count(index, is_held))

    def rank(self, index: int) -> int:
        """Where the candidate's hash stands among all hashes."""
        ranks = self._kept(("ranks",), lambda: sorted(v.hash for v in self.variants))
        return ranks.index(self.variants[index].hash)

    def falls_back(self, index: int) -> Bool:
        """Some arg is read as a foldable 1."""
        return disj(x for x in self.reads_one(index) if not z3.is_false(x))

    def reads_two_ones(self, index: int) -> Bool:
        """Two args or more are read as foldable 1s."""
        return z3.UGT(self.ones(index), 1)

    def same_reads(self, one: int, other: int, launch: World | None = None) -> Bool:
        """The two read the same args as foldable 1s."""
        elsewhere = launch if isinstance(launch, ClassWorld) else self
        return conj(a == b for a, b in zip(self.reads_one(one), elsewhere.reads_one(other), strict=True))

    def folds_every_one(self, index: int) -> Bool:
        """No i32 1 is read through a param."""
        return cast("Bool", self.runtime_ones(index) == 0)

    def differs_in_free(self, one: int, other: int) -> Bool:
        """Some constant that the launch names neither as const nor as arg differs, or is absent in one."""
        named = {arg.name for arg in self.shape.base.args} | set(self.shape.base.consts)
        a, b = (self.variants[i].consts for i in (one, other))
        odd = {name for name in {*a, *b} - named if a.get(name) != b.get(name)}
        open_ = {name: said[0][1] for (name, _), said in zip(self.shape.consts, self.says, strict=False)}
        if odd - set(open_):
            return TRUE
        return disj(open_[name] for name in sorted(odd))

    def same_options(self, one: int, other: int, names: Iterable[str] = OPTIONS) -> Bool:
        """Each of the options is equal in both."""
        a, b = self.variants[one], self.variants[other]
        return z3.BoolVal(all(getattr(a, name) == getattr(b, name) for name in names))

    def twins(self, one: int, other: int) -> Bool:
        """The two have equal params and consts."""
        a, b = self.variants[one], self.variants[other]
        return z3.BoolVal(set(a.params) == set(b.params) and a.consts == b.consts)

    def assumptions_hold(self, index: int) -> Bool:
        """Not asked here: T04 is proved once, for every capture."""
        raise NotImplementedError(f"T04 of candidate {index} is a theorem of the model")

    def other_source(self, index: int) -> Bool:
        """The candidate and the launch both say a source, and not the same (in a shape that leaves none open)."""
        return z3.BoolVal(source_refusal(self.variants[index].source, self.shape.base.source) is not None)

    def warned(self, index: int) -> Bool:
        """No: every launch here is the first."""
        assert index >= 0
        return FALSE
