"""The lemmas under the unbounded proofs: per argument over bit-vectors, lifted to lists, counted, and the loop.

Each is an `Obligation`. Together they are what `model.abstract` takes for granted of any capture and launch.

Longer than 250 lines because a reader who doubts a proof wants everything that it takes for granted on one page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import z3
from foldproof.impl.policy import Policy
from foldproof.impl.rules import STRICTEST_FIRST, Rules, Strictness
from foldproof.model import rules as formulas
from foldproof.model.scope import Size, folded, held, make_scope, same_class
from foldproof.model.solvers import Obligation
from foldproof.model.terms import ArgTerm, Bool, PlaceTerm

ARG, PLACE = ArgTerm.fresh("arg"), PlaceTerm.fresh("place")
OTHER = replace(ARG, number=z3.BitVec("other.number", 64), bytes=z3.BitVec("other.bytes", 64))
VALID = (ARG.well_formed(), PLACE.well_formed())
LOOSE = {"options": False, "source": False}
INDEX = z3.IntSort()


def reads_one(arg: ArgTerm, place: PlaceTerm) -> Bool:
    """The place reads the arg as a foldable 1."""
    return z3.And(place.on_param, formulas.is_foldable_one(arg, place.param))


def reads_any_one(arg: ArgTerm, place: PlaceTerm) -> Bool:
    """The place reads the arg at run time and it is an i32 1."""
    return z3.And(place.on_param, formulas.is_one(arg))


def reads_unfoldable(arg: ArgTerm, place: PlaceTerm) -> Bool:
    """The place reads an i32 1 through a nospec or annotated param."""
    return z3.And(reads_any_one(arg, place), z3.Or(place.param.nospec, place.param.annotated))


def _assumes(arg: ArgTerm, place: PlaceTerm) -> Bool:
    return z3.And(place.on_param, place.param.div16, formulas.has_alignment(arg))


def lemmas(policies: Sequence[Policy]) -> Iterator[Obligation]:
    """Every lemma that the unbounded proofs of these policies rest on."""
    yield from per_argument()
    yield from of_classes()
    yield from of_pairs()
    yield from lifted()
    yield from counted()
    for choose in dict.fromkeys((*sweep.choose, "first") for policy in policies for sweep in policy.passes):
        yield from loop(choose)


def per_argument() -> Iterator[Obligation]:
    """One arg in one place: exact implies general implies runtime-one, and what parts them is a foldable 1."""
    one = reads_one(ARG, PLACE)
    for public in (False, True):
        dialect = "public" if public else "full"
        exact, general, runtime_one = (
            formulas.place_admits(ARG, PLACE, Rules(s, public, **LOOSE)) for s in STRICTEST_FIRST
        )
        claims = {
            "exact-implies-general": ("What exact admits, general admits.", z3.Implies(exact, general)),
            "general-implies-runtime-one": (
                "What general admits, runtime-one admits.",
                z3.Implies(general, runtime_one),
            ),
            "general-reads-no-one": ("What general admits reads no foldable 1.", z3.Implies(general, z3.Not(one))),
            "runtime-one-without-ones-is-general": (
                "What runtime-one admits without a foldable 1, general admits.",
                z3.Implies(z3.And(runtime_one, z3.Not(one)), general),
            ),
            "runtime-one-implies-the-assumptions": (
                "What runtime-one admits was compiled under nothing that is false of the arg.",
                z3.Implies(runtime_one, formulas.assumption_holds(ARG, PLACE)),
            ),
        }
        for name, (says, claim) in claims.items():
            yield Obligation(f"lemma-arg-{name}-{dialect}", says, VALID, claim)
    foldable = z3.And(reads_any_one(ARG, PLACE), z3.Not(reads_unfoldable(ARG, PLACE)))
    yield Obligation(
        "lemma-arg-ones-are-foldable-or-not",
        "A 1 read at run time is foldable, or read through a nospec or annotated param, and not both.",
        VALID,
        one == foldable,
    )
    yield Obligation(
        "lemma-arg-a-folded-one-is-not-read",
        "Where every 1 is folded, no 1 is read.",
        VALID,
        z3.Implies(z3.Implies(formulas.is_one(ARG), folded(ARG, PLACE)), z3.Not(reads_any_one(ARG, PLACE))),
    )


def of_classes() -> Iterator[Obligation]:
    """Two args of one class are admitted, read, folded and held alike (T15)."""
    alike = (*VALID, OTHER.well_formed(), same_class(ARG, OTHER))
    for strictness in Strictness:
        for public in (False, True):
            rules = Rules(strictness, public, **LOOSE)
            same = formulas.place_admits(ARG, PLACE, rules) == formulas.place_admits(OTHER, PLACE, rules)
            name = f"lemma-class-{strictness}-{'public' if public else 'full'}"
            yield Obligation(name, f"Args of one class are admitted alike by {strictness}.", alike, same)
    observed = {
        "reads-one": reads_one,
        "reads-unfoldable": reads_unfoldable,
        "folded": folded,
        "held": held,
        "assumptions-hold": formulas.assumption_holds,
        "assumes": _assumes,
    }
    for name, of in observed.items():
        says = f"Args of one class agree in: {name.replace('-', ' ')}."
        yield Obligation(f"lemma-class-{name}", says, alike, of(ARG, PLACE) == of(OTHER, PLACE))


def of_pairs() -> Iterator[Obligation]:
    """Relations between candidates, on a scope of two; and a source that is looked at is a conjunct."""
    scope = make_scope(Size(2, 1))
    valid = (scope.well_formed,)
    yield Obligation(
        "lemma-pair-options",
        "Having equal options is symmetric, and a candidate's equal its own.",
        valid,
        z3.And(scope.same_options(0, 1) == scope.same_options(1, 0), scope.same_options(0, 0)),
    )
    yield Obligation(
        "lemma-pair-free",
        "Differing in a free constant is symmetric, and nothing differs from itself.",
        valid,
        z3.And(scope.differs_in_free(0, 1) == scope.differs_in_free(1, 0), z3.Not(scope.differs_in_free(0, 0))),
    )
    yield Obligation("lemma-pair-twins", "Being twins is symmetric.", valid, scope.twins(0, 1) == scope.twins(1, 0))
    for strictness in STRICTEST_FIRST:
        blind = Rules(strictness, public=False, options=True, source=False)
        looking = scope.admits(0, Rules(strictness, public=False, options=True, source=True))
        split = z3.And(scope.admits(0, blind), z3.Not(scope.other_source(0)))
        says = "Rules that look at the source are the same rules and the source's own."
        yield Obligation(f"lemma-source-is-a-conjunct-{strictness}", says, valid, looking == split)


def lifted() -> Iterator[Obligation]:
    """From every arg to the whole list, of any length: admission is a conjunction, falling back a disjunction."""
    names = ("exact", "general", "runtime_one", "reads", "sound")
    exact, general, runtime_one, reads, sound = (z3.Function(f"{n}.at", INDEX, z3.BoolSort()) for n in names)
    j, rest, rest_sound = z3.Int("j"), z3.Bool("rest"), z3.Bool("rest_sound")

    def every(predicate: z3.FuncDeclRef) -> Bool:
        return z3.And(rest, z3.ForAll([j], predicate(j)))

    some_read = z3.Exists([j], reads(j))
    at_each = z3.ForAll(
        [j],
        z3.And(
            z3.Implies(exact(j), general(j)),
            z3.Implies(general(j), z3.And(runtime_one(j), z3.Not(reads(j)))),
            z3.Implies(z3.And(runtime_one(j), z3.Not(reads(j))), general(j)),
            z3.Implies(runtime_one(j), sound(j)),
        ),
    )
    # "rest" is what does not depend on an arg: options, named constants, the count of params.
    assumed = (at_each, z3.Implies(rest, rest_sound))
    claims = {
        "exact-implies-general": z3.Implies(every(exact), every(general)),
        "general-implies-runtime-one": z3.Implies(every(general), every(runtime_one)),
        "general-reads-no-one": z3.Implies(every(general), z3.Not(some_read)),
        "runtime-one-without-ones-is-general": z3.Implies(
            z3.And(every(runtime_one), z3.Not(some_read)), every(general)
        ),
        "runtime-one-implies-the-assumptions": z3.Implies(
            every(runtime_one), z3.And(rest_sound, z3.ForAll([j], sound(j)))
        ),
    }
    also = z3.Function("other_reads.at", INDEX, z3.BoolSort())
    neither = z3.And(z3.Not(some_read), z3.Not(z3.Exists([j], also(j))))
    claims["no-ones-are-the-same-ones"] = z3.Implies(neither, z3.ForAll([j], reads(j) == also(j)))
    for name, claim in claims.items():
        says = f"{name.replace('-', ' ').capitalize()}, for argument lists of any length."
        yield Obligation(f"lemma-list-{name}", says, assumed, claim)


def counted() -> Iterator[Obligation]:
    """Counts over a list, by induction on its length."""
    count, other = (z3.Function(name, INDEX, INDEX) for name in ("count", "other_count"))
    total = z3.Function("total", INDEX, INDEX)
    holds, other_holds = (z3.Function(name, INDEX, z3.BoolSort()) for name in ("holds", "other_holds"))
    n, j = z3.Ints("n j")

    def grows(number: z3.FuncDeclRef, flag: Bool) -> Bool:
        return number(n + 1) == number(n) + z3.If(flag, 1, 0)

    def positive_iff_some(m: z3.ArithRef) -> Bool:
        some = z3.Exists([j], z3.And(j >= 0, j < m, holds(j)))
        return z3.And(count(m) >= 0, (count(m) > 0) == some)

    start = (count(0) == 0, other(0) == 0, total(0) == 0)
    step = (n >= 0, grows(count, holds(n)))
    yield Obligation(
        "lemma-count-base", "No arg: the count is 0 and nothing holds.", start, positive_iff_some(z3.IntVal(0))
    )
    yield Obligation(
        "lemma-count-step",
        "One more arg: the count stays positive exactly if something holds.",
        (*step, positive_iff_some(n)),
        positive_iff_some(n + 1),
    )
    same = (n >= 0, grows(count, holds(n)), grows(other, other_holds(n)), holds(n) == other_holds(n))
    says = "Counts of flags that agree stay equal (args of one class)."
    yield Obligation("lemma-count-same", says, (*same, count(n) == other(n)), count(n + 1) == other(n + 1))
    either = total(n + 1) == total(n) + z3.If(z3.Or(holds(n), other_holds(n)), 1, 0)
    apart = z3.Not(z3.And(holds(n), other_holds(n)))
    summed = (n >= 0, grows(count, holds(n)), grows(other, other_holds(n)), either, apart)
    yield Obligation(
        "lemma-count-sum",
        "1s read at all are the foldable ones and the others.",
        (*summed, total(n) == count(n) + other(n)),
        total(n + 1) == count(n + 1) + other(n + 1),
    )


def loop(choose: Sequence[str]) -> Iterator[Obligation]:
    """The scanning loop keeps the best so far: initiation, consecution, conclusion, for keys of any values."""
    admissible = z3.Function("admissible", INDEX, z3.BoolSort())
    keys = [z3.Function(f"key.{key}", INDEX, INDEX) for key in choose if key != "first"]
    n, length, best, j = z3.Ints("n length best j")

    def beats(one: z3.ArithRef, other: z3.ArithRef) -> Bool:
        result = one <= other
        for key in reversed(keys):
            result = z3.Or(key(one) < key(other), z3.And(key(one) == key(other), result))
        return result

    def invariant(upto: z3.ArithRef, so_far: z3.ArithRef) -> Bool:
        none = z3.ForAll([j], z3.Implies(z3.And(j >= 0, j < upto), z3.Not(admissible(j))))
        beaten = z3.ForAll([j], z3.Implies(z3.And(j >= 0, j < upto, admissible(j)), beats(so_far, j)))
        found = z3.And(so_far >= 0, so_far < upto, admissible(so_far), beaten)
        return z3.If(so_far == -1, none, found)

    takes = z3.And(admissible(n), z3.Or(best == -1, z3.Not(beats(best, n))))
    name = "-".join(choose)
    yield Obligation(
        f"lemma-loop-{name}-initiation", "Before the first candidate nothing is found.", (best == -1,),
        invariant(z3.IntVal(0), best),
    )  # fmt: skip
    yield Obligation(
        f"lemma-loop-{name}-consecution",
        "One more candidate keeps the best of those seen.",
        (n >= 0, invariant(n, best)),
        invariant(n + 1, z3.If(takes, n, best)),
    )
    some = z3.Exists([j], z3.And(j >= 0, j < length, admissible(j)))
    beaten = z3.ForAll([j], z3.Implies(z3.And(j >= 0, j < length, admissible(j)), beats(best, j)))
    is_best = z3.And(best >= 0, best < length, admissible(best), beaten)
    yield Obligation(
        f"lemma-loop-{name}-conclusion",
        "After the last candidate the loop holds the best, if any is admissible, and else nothing.",
        (length >= 0, invariant(length, best)),
        z3.If(some, is_best, best == -1),
    )
