"""What a counterexample is made of: what counts as said, and which values are taken where any would do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import z3
from foldproof.impl.launch import Kind
from foldproof.model.minimise import assumption_count, fewest_assumptions, smallest_values
from foldproof.model.scope import Scope, Size, make_scope
from foldproof.model.terms import KINDS

SCOPE = make_scope(Size(2, 1))
ARG = SCOPE.launch.args[0]
I32, PTR = KINDS.index(Kind.I32), KINDS.index(Kind.PTR)


def taken(term: z3.BitVecRef, *forbidden: z3.BoolRef) -> int:
    """The value of a term in the readable model of the scope, where some are forbidden."""
    solver = z3.SolverFor("QF_BV")
    solver.add(SCOPE.well_formed, *forbidden)
    value = smallest_values(solver, SCOPE).eval(term, model_completion=True)
    assert isinstance(value, z3.BitVecNumRef)
    return value.as_long()


def test_an_int_is_wanted_first_and_then_a_pointer() -> None:
    assert taken(ARG.kind) == I32
    assert taken(ARG.kind, ARG.kind != I32) == PTR
    assert taken(ARG.number, ARG.kind != I32) == 0x1000
    assert taken(ARG.number, ARG.kind == PTR, ARG.number != 0x1000) == 1


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in (Kind.PTR, Kind.NONE)])
def test_what_is_no_pointer_is_wanted_as_a_one(kind: Kind) -> None:
    assert taken(ARG.number, ARG.kind == KINDS.index(kind)) == 1


PREFERRED = {
    "number": (ARG.number, (1, 0, 2, 3, 4, 8, 16)),
    "named constant": (SCOPE.launch.consts[0].value, (64, 2, 1, 0)),
    "constant of a variant": (SCOPE.candidates[1].named[0].value, (64, 2, 1, 0)),
    "free constant": (SCOPE.candidates[0].free[0].value, (64, 2, 1, 0)),
    "pinned option": (SCOPE.launch.options[2].value, (0, 1, 8)),
    "source": (SCOPE.launch.source.value, (0, 1, 8)),
    "source of a variant": (SCOPE.candidates[1].source.value, (0, 1, 8)),
}


@pytest.mark.parametrize("name", PREFERRED)
def test_values_are_wanted_in_one_order(name: str) -> None:
    term, wanted = PREFERRED[name]
    found = [taken(term, *(term != other for other in wanted[:position])) for position in range(len(wanted))]
    assert found == list(wanted)


def test_where_no_wish_can_be_had_the_least_value_is_taken() -> None:
    for term, wanted in PREFERRED.values():
        unmet = next(number for number in range(len(wanted) + 1) if number not in wanted)
        assert taken(term, *(term != other for other in wanted)) == unmet
    kind = SCOPE.launch.consts[0].kind
    assert taken(kind, kind != 0) == 1


def test_what_no_wish_names_is_zero() -> None:
    assert taken(ARG.bytes, ARG.has_bytes) == 0


def test_an_earlier_wish_beats_a_later_one() -> None:
    first, later = SCOPE.launch.consts[0], SCOPE.candidates[0].named[0]
    assert taken(first.kind, z3.Implies(first.kind == 0, first.value == 5)) == 0
    unmet = [first.value != number for number in (64, 2, 1)]
    assert taken(first.value, *unmet, z3.Implies(first.value == 0, later.value != 64)) == 0
    rank = SCOPE.candidates[0].rank
    assert taken(rank, z3.Implies(rank == 0, first.value != 64)) == 0
    option, source = SCOPE.launch.options[2], SCOPE.launch.source
    assert taken(option.value, z3.Implies(option.value == 0, source.value != 0)) == 0


def test_variables_beside_the_scope_have_the_least_values_too() -> None:
    number, flag = z3.BitVec("beside.number", 8), z3.Bool("beside.flag")
    solver = z3.SolverFor("QF_BV")
    solver.add(SCOPE.well_formed, number != 0, number != 1, z3.Implies(flag, number == 7))
    model = smallest_values(solver, SCOPE, (number, flag))
    assert model.eval(number, model_completion=True).as_long() == 2
    assert z3.is_false(model.eval(flag))


def test_constants_are_ints_and_hashes_in_the_order_of_the_variants() -> None:
    for const in (SCOPE.launch.consts[0], SCOPE.candidates[0].named[0], SCOPE.candidates[1].free[0]):
        assert taken(const.kind) == 0
    assert [taken(candidate.rank) for candidate in SCOPE.candidates] == [0, 1]


def sayings(scope: Scope) -> Iterator[z3.BoolRef]:
    """Everything that a capture or a launch may say beyond the bare types."""
    for candidate in scope.candidates:
        for place in candidate.places:
            yield z3.Not(place.on_param)
            for switch in ("div16", "nospec", "noalign", "annotated", "range32"):
                yield getattr(place.param, switch)
        yield candidate.extra
        yield candidate.source.given
        yield from (option.given for option in candidate.options[1:])
        yield from (const.present for const in candidate.free)
        yield candidate.options[0].value != 4
    yield from (option.given for option in scope.launch.options)
    yield scope.launch.source.given
    yield from (arg.has_bytes for arg in scope.launch.args)
    yield from scope.has_warned


@pytest.mark.parametrize("number", range(len(list(sayings(SCOPE)))))
def test_what_is_said_counts_once(number: int) -> None:
    """Alone it counts 1; but the switches of a param count on a param only."""
    solver = z3.SolverFor("QF_BV")
    every = list(sayings(SCOPE))
    solver.add(every[number], *(z3.Not(said) for said in every[:number] + every[number + 1 :]))
    assert solver.check() == z3.sat
    assert solver.model().eval(assumption_count(SCOPE), model_completion=True).as_long() == 1


@pytest.mark.parametrize(("warps", "count"), [(1, 1), (3, 1), (4, 0), (5, 1), (8, 1)])
def test_any_other_number_of_warps_than_4_is_said(warps: int, count: int) -> None:
    solver = z3.SolverFor("QF_BV")
    warps_of = [candidate.options[0].value for candidate in SCOPE.candidates]
    quiet = [said for said in sayings(SCOPE) if not any(said.eq(value != 4) for value in warps_of)]
    solver.add(warps_of[0] == warps, warps_of[1] == 4, *(z3.Not(said) for said in quiet))
    assert solver.check() == z3.sat
    assert solver.model().eval(assumption_count(SCOPE), model_completion=True).as_long() == count


def test_switches_of_an_arg_that_is_no_param_are_not_said() -> None:
    solver = z3.SolverFor("QF_BV")
    every = list(sayings(SCOPE))
    solver.add(*every)
    assert solver.check() == z3.sat
    # Folded in both variants, so that the five switches of each say nothing.
    assert solver.model().eval(assumption_count(SCOPE), model_completion=True).as_long() == len(every) - 10


@pytest.mark.parametrize("least", [0, 1, 3])
def test_a_solver_is_narrowed_to_what_says_least(least: int) -> None:
    scope, solver = make_scope(Size(1, 0, 0, 0)), z3.SolverFor("QF_BV")
    total = assumption_count(scope)
    solver.add(scope.well_formed, total >= least)
    fewest_assumptions(solver, scope)
    assert solver.check(total != least) == z3.unsat
    assert solver.check() == z3.sat
