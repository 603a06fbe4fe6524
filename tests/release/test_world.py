"""The world of a given capture answers what the reference answers, launch class by launch class."""

from __future__ import annotations

import itertools

import msgspec
import pytest
import z3
from foldproof.impl import Capture, Selection, decide, load_policy
from foldproof.impl.capture import Const, Variant
from foldproof.impl.policy import ZOO
from foldproof.impl.select import Outcome
from foldproof.model.selection import answer
from foldproof.props.generate import Shape as CaseShape
from foldproof.props.generate import make_case, seeded
from foldproof.release.launch_shape import with_args
from foldproof.release.shapes import Family
from foldproof.release.solving import falls_back, is_possible, plainest, representatives, rivals, solver_for
from foldproof.release.world import ClassWorld
from helpers import capture, param, variant

CASES = 10
MOST = 24


@pytest.mark.parametrize("policy", ZOO)
@pytest.mark.parametrize("pinned", [True, False])
def test_the_world_answers_as_the_reference(policy: str, pinned: bool) -> None:
    rules, choose = load_policy(policy), seeded(len(policy) + pinned)
    seen = set()
    for number in range(CASES):
        case = make_case(choose, CaseShape(candidates=4, args=3), str(number))
        family = Family.of("k", case.capture.kernels)
        if not family.variants:
            continue
        shape = family.own_shape(family.variants[number % len(family.variants)], pinned)
        world = ClassWorld.of(shape, family.variants)
        run = answer(world, rules)
        terms = [run.missing, run.ambiguous, falls_back(world, run), *map(run.picks, range(len(family.variants)))]
        launches = list(itertools.islice(itertools.product(*shape.classes), 0, None))
        for args in launches[:: max(1, len(launches) // MOST)]:
            launch = with_args(shape.base, args)
            outcome = decide(Capture(family.variants), launch, rules)
            values = [x for choices, arg, cls in zip(world.choices, args, shape.classes, strict=True)
                      for x in ((c, z3.BoolVal(cls[i] == arg)) for i, c in enumerate(choices))]  # fmt: skip
            got = [z3.is_true(z3.simplify(z3.substitute(term, *values))) for term in terms]
            picked = outcome.index if isinstance(outcome, Selection) else None
            code = None if isinstance(outcome, Selection) else outcome.code
            fallback = isinstance(outcome, Selection) and outcome.is_fallback
            wanted = [code == "MissingTritonVariant", code == "AmbiguousTritonVariant", fallback]
            assert got == wanted + [i == picked for i in range(len(family.variants))], (launch, outcome)
            seen.add(code or "selection")
    assert {"selection", "MissingTritonVariant"} <= seen


def test_rivals_leave_out_only_what_no_launch_of_the_shape_reaches() -> None:
    choose, rules = seeded(3), load_policy("three-pass")
    for number in range(CASES):
        case = make_case(choose, CaseShape(candidates=4, args=2), str(number))
        family = Family.of("k", case.capture.kernels)
        for one in family.variants:
            shape = family.own_shape(one)
            kept = rivals(shape, family.variants, rules)
            for args in itertools.product(*shape.classes):
                launch = with_args(shape.base, args)
                full = decide(Capture(family.variants), launch, rules)
                if isinstance(full, Selection):
                    assert full.variant in kept


def likes(variants: tuple[Variant, ...], number: int) -> tuple[Variant, ...]:
    """Some variants with five that hold the args alike, of which one may differ in more than its hash, in any order."""
    choose = seeded(number)
    made = list(variants)
    for one in variants:
        free = {"consts": {**one.consts, "FREE": Const(int_=1)}}
        odd = choose((None, {}, free, {"num_warps": 64}, {"num_stages": 9}))
        for k in range(0 if odd is None else 5):
            like = msgspec.structs.replace(one, hash=f"{choose(range(10**6))}-{one.hash}", **(odd if k == 2 else {}))
            made.insert(choose(range(len(made) + 1)), like)
    return tuple(made)


@pytest.mark.parametrize("policy", ZOO)
def test_representatives_say_how_each_launch_ends_and_what_it_reads(policy: str) -> None:
    choose, rules, dropped, seen = seeded(11), load_policy(policy), 0, set()
    for number in range(CASES):
        case = make_case(choose, CaseShape(candidates=3, args=2), str(number))
        family = Family.of("k", likes(tuple(v for v in case.capture.kernels if v.fn == "k"), number))
        for one in family.variants[:: len(family.variants) // 3 + 1]:
            shape = family.own_shape(one, pinned=number % 3 == 0)
            kept = representatives(shape, family.variants, rules)
            dropped += len(rivals(shape, family.variants, rules)) - len(kept)
            for args in itertools.islice(itertools.product(*shape.classes), 0, None, 3):
                launch = with_args(shape.base, args)
                whole = decide(Capture(family.variants), launch, rules)
                few = decide(Capture(tuple(kept)), launch, rules) if kept else None
                assert ends(few) == ends(whole), launch
                seen.add(ends(whole)[0])
    assert dropped > CASES
    assert "selection" in seen


def test_of_likes_those_stay_that_a_tie_break_or_a_refusal_may_need() -> None:
    marks = {"m": 1, "e": 2, "a": 3, "d": 4, "g": 4, "k": 5}
    own = capture(*(variant(mark, param("R"), consts={"FREE": {"int": free}}) for mark, free in marks.items())).kernels
    shape = Family.of("k", own).own_shape(msgspec.structs.replace(own[0], consts={}))

    def kept(policy: str) -> str:
        return "".join(v.hash for v in representatives(shape, own, load_policy(policy)))

    assert kept("three-pass") == "mak"  # the first, the smallest hash, the last
    assert kept("recommended") == "meadgk"  # and one of another free constant, and two that are equal


def ends(outcome: Outcome | None) -> tuple[str, tuple[str, ...]]:
    if isinstance(outcome, Selection):
        return "selection", outcome.ones
    return "MissingTritonVariant" if outcome is None else outcome.code, ()


def test_the_plainest_launch_is_the_first_in_order() -> None:
    choose, rules = seeded(5), load_policy("three-pass")
    for number in range(CASES):
        case = make_case(choose, CaseShape(candidates=3, args=3), str(number))
        family = Family.of("k", case.capture.kernels)
        if not family.variants:
            continue
        shape = family.own_shape(family.variants[0])
        world = ClassWorld.of(shape, family.variants)
        missing = answer(world, rules).missing
        found = plainest(world, solver_for(world, missing))
        first = next(
            (args for args in itertools.product(*shape.classes)
             if not isinstance(decide(Capture(family.variants), with_args(shape.base, args), rules), Selection)),
            None,
        )  # fmt: skip
        assert (found is None) == (first is None)
        assert found is None or found.args == first
        assert is_possible(solver_for(world, missing)) == (first is not None)


@pytest.mark.parametrize("policy", ["three-pass", "recommended", "exact-pinned"])
def test_an_open_shape_says_what_the_reference_says_of_every_naming_and_pinning(policy: str) -> None:
    rules, choose, seen = load_policy(policy), seeded(len(policy)), set()
    for number in range(2 * CASES):
        case = make_case(choose, CaseShape(candidates=4, args=2), str(number))
        family = Family.of("k", case.capture.kernels)
        for shape in family.open_shapes() if family.variants else ():
            world = ClassWorld.of(shape, family.variants)
            run = answer(world, rules)
            terms = [run.missing, run.ambiguous, *map(run.picks, range(len(family.variants)))]
            groups = [*world.choices, *(tuple(x for _, x in one) for one in world.says)]
            for _ in range(8):
                values = []
                for group in groups:
                    chosen = choose(group)
                    values += [(x, z3.BoolVal(x is chosen)) for x in group]
                solver = solver_for(world, *(x if z3.is_true(value) else z3.Not(x) for x, value in values))
                assert is_possible(solver)
                launch = world.launch(solver.model())
                outcome = decide(Capture(family.variants), launch, rules)
                got = [z3.is_true(z3.simplify(z3.substitute(term, *values))) for term in terms]
                picked = outcome.index if isinstance(outcome, Selection) else None
                code = "" if isinstance(outcome, Selection) else outcome.code
                wanted = [code == "MissingTritonVariant", code == "AmbiguousTritonVariant"]
                assert got == wanted + [i == picked for i in range(len(family.variants))], (launch, outcome)
                seen.add(code)
    assert {"", "MissingTritonVariant"} <= seen
