"""A case and its encoding are one: what does not fit into a scope is refused, what fits comes back."""

from __future__ import annotations

import pytest
import z3
from foldproof.impl.cases import Case
from foldproof.impl.rules import Rules, Strictness
from foldproof.model.decode import Reader
from foldproof.model.encode import Encoder, OutOfScopeError
from foldproof.model.scope import Size, make_scope
from helpers import capture, i32, launch, param, ptr, variant

ONE = variant("A", param("R"))


@pytest.mark.parametrize(
    ("case", "size"),
    [
        (Case("", capture(ONE, ONE | {"hash": "B"}), launch(i32("R", 1))), Size(1, 1)),
        (Case("", capture(ONE), launch(i32("R", 1), i32("S", 1))), Size(1, 1)),
        (Case("", capture(ONE), launch(i32("R", 1), consts={"C": {"int": 1}})), Size(1, 1, 0, 1)),
        (Case("", capture(ONE | {"consts": {"F": {"int": 1}}}), launch(i32("R", 1))), Size(1, 1, 1, 0)),
    ],
)
def test_a_case_larger_than_the_scope_is_refused(case: Case, size: Size) -> None:
    with pytest.raises(OutOfScopeError, match="the case is larger than 1 variants x 1 params"):
        Encoder(make_scope(size), case).assignment()


def test_more_pointer_types_than_codes_are_refused() -> None:
    names = [f"p{i}" for i in range(9)]
    entry = variant("A", *(param(name, f"*a{name}") for name in names))
    asked = launch(*(ptr(name, 16, f"*b{name}") for name in names))
    with pytest.raises(OutOfScopeError, match="more values of pointer type than there are codes"):
        Encoder(make_scope(Size(1, 9)), Case("", capture(entry), asked)).assignment()
    sixteen = launch(*(ptr(name, 16, f"*b{name}") for name in names[:8]))
    eight = variant("A", *(param(name, f"*a{name}") for name in names[:8]))
    assert Encoder(make_scope(Size(1, 8)), Case("", capture(eight), sixteen)).assignment()


def test_what_is_encoded_is_well_formed_and_is_read_back() -> None:
    kernels = [
        variant("B", param("R", nospec=True), consts={"F0": {"str": "s0"}}, num_stages=2, arch="sm_0"),
        variant("A", consts={"R": {"int": 1}, "K0": {"int": 64}}, enable_fp_fusion=False, source="src0"),
    ]
    asked = launch(i32("R", 1), consts={"K0": {"int": 64}}, num_warps=4, source="src0")
    case = Case("same", capture(*kernels), asked)
    scope = make_scope(Size(2, 1))
    solver = z3.SolverFor("QF_BV")
    solver.add(scope.well_formed, *(term == value for term, value in Encoder(scope, case).assignment()))
    assert solver.check() == z3.sat
    assert Reader(solver.model(), scope).case("same") == case


def test_what_a_case_leaves_of_its_scope_is_filled_with_what_admits_nothing_more() -> None:
    case = Case("", capture(variant("A", param("R"))), launch(i32("R", 7)))
    scope = make_scope(Size(3, 2))
    solver = z3.SolverFor("QF_BV")
    solver.add(scope.well_formed, *(term == value for term, value in Encoder(scope, case).assignment()))
    assert solver.check() == z3.sat
    admitted = [solver.check(scope.admits(i, Rules(Strictness.EXACT))) == z3.sat for i in range(3)]
    assert admitted == [True, False, False]
