"""Each theorem as a formula and as an executable check say the same of concrete cases, whatever a policy does there."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
import z3
from foldproof.impl import Policy, load_policy
from foldproof.impl.cases import Case
from foldproof.impl.policy import Pass
from foldproof.impl.rules import Strictness
from foldproof.model.encode import Encoder
from foldproof.model.prove import Bench, Question, questions
from foldproof.model.scope import Size
from foldproof.props.checks import violation
from helpers import capture, i32, launch, param, variant

SIZE = Size(2, 2, named=0, free=1)
GENERAL = Strictness.GENERAL
R, S = param("R"), param("S")
ONE: dict[str, Any] = {"int": 1}
VARIANTS: list[dict[str, Any]] = [
    {"params": [R, S]},
    {"params": [S], "consts": {"R": ONE}},
    {"params": [R], "consts": {"S": ONE}},
    {"params": [], "consts": {"R": ONE, "S": ONE}},
    {"params": [param("R", nospec=True), S]},
    {"params": [R, param("S", div16=True)]},
    {"params": [R, S], "source": "b"},
    {"params": [S], "consts": {"R": ONE, "F": ONE}},
    {"params": [R, S], "num_warps": 8},
    {"params": [param("R", range32=True), S]},
]
LAUNCHES = [(1, 7), (1, 16), (1, 1), (7, 16), (7, 7)]
BROKEN = {
    "exact-first": "T06v T11 T12 T14",
    "recommended": "T09",
    "one-pass": "T02 T06 T06v T07 T11 T12 T14",
    "linker-order": "T01 T02 T03 T04 T05 T06 T06v T07 T10 T11 T13 T14",
    "least-held": "T01 T02 T03 T06 T06v T07 T10 T11 T12 T13 T14",
    "three-pass": "T06 T06v T12 T13 T14",
    "single-guard": "T01 T03 T06 T06v T07 T09 T09c T10 T11 T12 T13 T14",
    "two-pass": "T06v T11 T12 T14",
}
"""By policy the theorems that some of the cases break."""


def cases() -> list[Case]:
    """Two variants in either order, on each launch."""
    pairs = [capture(variant("A", **a), variant("B", **b)) for a, b in permutations(VARIANTS, 2)]
    launches = [launch(i32("R", r), i32("S", s), source="a") for r, s in LAUNCHES]
    return [Case("", pair, asked) for asked in launches for pair in pairs]


ONE_PASS = Policy(
    "one-pass", "refuses among exact matches without an exact pass", (Pass(GENERAL, ("first",), ("launch-options",)),)
)


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(SIZE)


@pytest.mark.parametrize("policy", [p if p == "one-pass" else pytest.param(p, marks=pytest.mark.slow) for p in BROKEN])
def test_a_formula_is_broken_by_the_cases_that_break_its_check(policy: str, bench: Bench) -> None:
    rules = ONE_PASS if policy == "one-pass" else load_policy(policy)
    asked = [q for q in questions(rules) if isinstance(q, Question) and q.theorem.id != "T15"]
    stated = [q.theorem.state(bench.setting(q, SIZE)) for q in asked]
    terms = [z3.And(s.premise, z3.Not(s.conclusion)) for s in stated]
    together = z3.Function("broken", *(z3.BoolSort() for _ in terms), z3.BoolSort())(*terms)
    broken: set[str] = set()
    for case in cases():
        pairs = Encoder(bench.scope(SIZE), case).assignment()
        values = z3.simplify(z3.substitute(together, *pairs)).children()
        modelled = {q.theorem.id for q, value in zip(asked, values, strict=True) if z3.is_true(value)}
        checked = {q.theorem.id for q in asked if violation(q.theorem.id, case, rules, q.old)}
        assert modelled == checked, case
        broken |= checked
    assert broken == set(BROKEN[policy].split())
