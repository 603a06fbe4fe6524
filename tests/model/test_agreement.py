"""Formula and Python agree on cases of every kind: what the tie proves for all of them, seen on some of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest
import z3
from foldproof.impl import Launch, Variant, load_policy
from foldproof.impl import rules as reference
from foldproof.impl.cases import Case
from foldproof.impl.choose import assumptions, held, is_folded, ones_read, runtime_ones
from foldproof.impl.rules import Reason, Rules, Strictness, is_one, refusals
from foldproof.model import rules as formulas
from foldproof.model.encode import Encoder
from foldproof.model.mutants import IN_THE_CODE, Mutant
from foldproof.model.scope import Size, make_scope
from foldproof.props.checks import broken_assumptions
from foldproof.props.mutants import planted
from helpers import capture, i32, launch, param, ptr, variant


def arg(kind: str, value: object) -> dict[str, Any]:
    return {"name": "x", "kind": kind, "value": value}


ARGS = [
    *(i32("x", value) for value in (1, 0, 7, 8, 12, 16, -32, 127, 128, -128, -129, 2**31 - 1)),
    *(arg("i64", value) for value in (1, 2**40, 2**40 + 1, -(2**40))),
    *(arg("u64", value) for value in (1, 2**63, 2**63 + 1)),
    *(arg("u1", value) for value in (True, False)),
    *({"name": "x", "kind": "fp32", "bits": bits} for bits in (0, 1, 16)),
    *(ptr("x", address) for address in (0, 8, 16, 2**63 + 16)),
    *(ptr("x", 16, bytes=size) for size in (0, 2**31 - 1, 2**31)),
    ptr("x", 8, "*fp16"),
    {"name": "x", "kind": "none"},
]
PLACES: list[dict[str, Any]] = [
    *({"params": [param("x", div16=d, nospec=n, noalign=a)]} for d, n, a in product((False, True), repeat=3)),
    *({"params": [param("x", kind, annotated=True, div16=d)]} for kind in ("i8", "u8", "i64", "u64") for d in (0, 1)),
    *({"params": [param("x", "*bf16", div16=d, nospec=n)]} for d, n in product((False, True), repeat=2)),
    {"params": [param("x", "*bf16", range32=True, noalign=True)]},
    {"params": [param("x", range32=True)]},
    *({"params": [param("x", kind, div16=True)]} for kind in ("i64", "u64", "u1", "fp32")),
    *({"params": [param("x", kind)]} for kind in ("i64", "u64", "u8", "fp64", "*fp16")),
    *({"consts": {"x": const}} for const in ({"int": 1}, {"int": 2}, {"bool": True}, {"f32": 1}, {"str": "s"})),
    *({"consts": {"x": const}} for const in ({"none": True}, {"int": 0}, {"int": -1})),
    {},
    {"params": [param("x"), param("y")]},
]
for place in PLACES:
    for one in place.get("params", ()):
        one["div16"] = bool(one["div16"])
RULES = [Rules(strictness, public) for strictness in Strictness for public in (False, True)]
SCOPE = make_scope(Size(1, 1))
LINES = 24


def said(scope: Any, case: Case, terms: dict[str, z3.ExprRef]) -> dict[str, Any]:
    """The value of each term in the case."""
    # In one term, so that what they share is looked at once.
    together = z3.Function("said", *(term.sort() for term in terms.values()), z3.BoolSort())(*terms.values())
    found = z3.simplify(z3.substitute(together, *Encoder(scope, case).assignment())).children()
    return {name: z3.is_true(v) if z3.is_bool(v) else v.as_long() for name, v in zip(terms, found, strict=True)}


def terms_of(scope: Any) -> dict[str, z3.ExprRef]:
    return {
        **{str(rules): formulas.admits(scope.candidates[0], scope.launch, rules) for rules in RULES},
        "ones": scope.ones(0),
        "runtime ones": scope.runtime_ones(0),
        "unfoldable ones": scope.unfoldable_ones(0),
        "assumptions": scope.assumptions(0),
        "held": scope.held(0),
        "falls back": scope.falls_back(0),
        "reads two": scope.reads_two_ones(0),
        "folds every one": scope.folds_every_one(0),
        "well formed": scope.well_formed,
    }


def told(case: Case) -> dict[str, Any]:
    """The same in Python."""
    subject, asked = case.capture.kernels[0], case.launch
    ones, at_all = ones_read(subject, asked), runtime_ones(subject, asked)
    return {
        **{str(rules): next(refusals(subject, asked, rules), None) is None for rules in RULES},
        "ones": len(ones),
        "runtime ones": at_all,
        "unfoldable ones": at_all - len(ones),
        "assumptions": assumptions(subject, asked),
        "held": held(subject, asked),
        "falls back": bool(ones),
        "reads two": len(ones) > 1,
        "folds every one": all(is_folded(subject, a) for a in asked.args if is_one(a)),
        "well formed": True,
    }


@pytest.mark.parametrize("line", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, LINES))])
def test_rules_and_counts_agree_on_every_kind_of_arg_in_every_kind_of_place(line: int) -> None:
    terms = terms_of(SCOPE)
    for given, placed in list(product(ARGS, PLACES))[line::LINES]:
        case = Case("", capture(variant("A", **placed)), launch(given))
        assert said(SCOPE, case, terms) == told(case), (given, placed)


FLAWS = list(IN_THE_CODE)[list(IN_THE_CODE).index("exact-takes-one") :]
"""The planted faults of the rules; `props.mutants` builds each into the Python."""


def told_with(flaw: str, subject: Variant, asked: Launch, rules: Iterable[Rules]) -> dict[str, bool]:
    """Whether the reference with the fault in its code admits the variant, by fault and rules."""
    with planted(Mutant(flaw, "", load_policy("three-pass"), frozenset({flaw}))):
        return {f"{flaw} {one}": next(reference.refusals(subject, asked, one), None) is None for one in rules}


def flawed(flaws: Iterable[str], rules: Sequence[Rules]) -> dict[str, z3.ExprRef]:
    """The formulas of the same."""
    subject, asked = SCOPE.candidates[0], SCOPE.launch
    return {f"{flaw} {one}": formulas.admits(subject, asked, one, frozenset({flaw})) for flaw in flaws for one in rules}


@pytest.mark.parametrize("line", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 2 * LINES))])
def test_a_planted_fault_is_the_same_in_the_formulas_and_in_python(line: int) -> None:
    terms = flawed(FLAWS, RULES[::2])
    for given, placed in list(product(ARGS, PLACES))[line :: 2 * LINES]:
        case = Case("", capture(variant("A", **placed)), launch(given))
        expected: dict[str, bool] = {}
        for flaw in FLAWS:
            expected |= told_with(flaw, case.capture.kernels[0], case.launch, RULES[::2])
        assert said(SCOPE, case, terms) == expected, (given, placed)


def test_what_a_variant_assumes_is_true_of_an_arg_where_the_check_says_so() -> None:
    terms = {"holds": SCOPE.assumptions_hold(0)}
    for given, placed in product(ARGS[::2], PLACES):
        case = Case("", capture(variant("A", **placed)), launch(given))
        sound = not list(broken_assumptions(case.capture.kernels[0], case.launch))
        assert said(SCOPE, case, terms) == {"holds": sound}, (given, placed)


BESIDE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"source": "a"}),
    ({"source": "a"}, {}),
    ({"source": "a"}, {"source": "a"}),
    ({"source": "a"}, {"source": "b"}),
    ({}, {"num_warps": 4}),
    ({}, {"num_warps": 8}),
    ({"num_stages": 2}, {"num_stages": 3}),
    ({"num_stages": 3}, {"num_stages": 3}),
    ({}, {"num_stages": 3}),
    ({"arch": "a"}, {"arch": "a"}),
    ({"arch": "a"}, {"arch": "b"}),
    ({"enable_fp_fusion": False}, {"enable_fp_fusion": True}),
    ({"enable_fp_fusion": True}, {"enable_fp_fusion": True}),
    *(
        ({"consts": {"K": a} if a else {}}, {"consts": {"K": b}})
        for a in (None, {"int": 1}, {"int": 2}, {"bool": True}, {"f32": 1}, {"str": "s"})
        for b in ({"int": 1}, {"bool": True}, {"str": "s"})
    ),
]


@pytest.mark.parametrize("flaw", [flaw for flaw in FLAWS if "const" in flaw or "num-warps" in flaw])
def test_a_planted_fault_beside_the_args_is_the_same_in_the_formulas_and_in_python(flaw: str) -> None:
    rules = [Rules(Strictness.EXACT, options=True, source=True)]
    terms = flawed([flaw], rules)
    for recorded, asked in BESIDE:
        case = Case("", capture(variant("A", param("x"), **recorded)), launch(i32("x", 7), **asked))
        expected = told_with(flaw, case.capture.kernels[0], case.launch, rules)
        assert said(SCOPE, case, terms) == expected, (recorded, asked)


@pytest.mark.parametrize(("recorded", "asked"), BESIDE)
def test_sources_options_and_named_constants_agree(recorded: dict[str, Any], asked: dict[str, Any]) -> None:
    case = Case("", capture(variant("A", param("x"), **recorded)), launch(i32("x", 7), **asked))
    looks = [Rules(Strictness.EXACT, options=o, source=s) for o in (False, True) for s in (False, True)]
    terms = {str(rules): formulas.admits(SCOPE.candidates[0], SCOPE.launch, rules) for rules in looks}
    terms["other source"] = SCOPE.other_source(0)
    subject = case.capture.kernels[0]
    expected: dict[str, Any] = {str(r): next(refusals(subject, case.launch, r), None) is None for r in looks}
    expected["other source"] = any(r.reason == Reason.SOURCE for r in refusals(subject, case.launch, looks[-1]))
    assert said(SCOPE, case, terms) == expected


def test_counts_add_up_over_the_args() -> None:
    scope = make_scope(Size(1, 3))
    terms = terms_of(scope)
    places = [param("x"), param("y", nospec=True), param("z")]
    for values in product((1, 16), repeat=3):
        asked = launch(*(i32(name, value) for name, value in zip("xyz", values, strict=True)))
        for count in range(4):
            folded = {name: {"int": 1} for name in "xyz"[count:]}
            case = Case("", capture(variant("A", *places[:count], consts=folded)), asked)
            assert said(scope, case, terms) == told(case), (values, count)


TWO = make_scope(Size(2, 1))
PAIRS = [
    ({}, {}, set()),
    ({"num_warps": 8}, {}, {"options"}),
    ({"num_stages": 2}, {}, {"options"}),
    ({"arch": "a"}, {}, {"options", "all but warps and stages"}),
    ({"enable_fp_fusion": True}, {"enable_fp_fusion": False}, {"options", "all but warps and stages"}),
    ({"consts": {"F": {"int": 1}}}, {}, {"free", "twins"}),
    ({"consts": {"F": {"int": 1}}}, {"consts": {"F": {"int": 2}}}, {"free", "twins"}),
    ({"consts": {"F": {"int": 1}}}, {"consts": {"F": {"bool": True}}}, {"free", "twins"}),
    ({"consts": {"F": {"int": 1}}}, {"consts": {"F": {"int": 1}}}, set()),
    ({"params": [param("x", div16=True)]}, {}, {"twins"}),
    ({"params": [param("x", "u64")]}, {}, {"twins"}),
    ({"params": [param("x"), param("y")]}, {"params": [param("x"), param("y")]}, {"twins"}),
    ({"params": [], "consts": {"x": {"int": 1}}}, {"params": [], "consts": {"x": {"int": 1}}}, set()),
    ({"params": [], "consts": {"x": {"int": 1}}}, {"params": [], "consts": {"x": {"int": 2}}}, {"twins"}),
    ({"consts": {"K": {"int": 1}}}, {"consts": {"K": {"int": 2}}}, {"twins"}),
]
"""Two variants, and in which relations they differ. A param that no arg names is not told, so its owner has no twin."""


@pytest.mark.parametrize(("first", "second", "differ"), PAIRS)
def test_relations_between_two_variants(first: dict[str, Any], second: dict[str, Any], differ: set[str]) -> None:
    kernels = [variant(mark, **({"params": [param("x")]} | more)) for mark, more in (("A", first), ("B", second))]
    case = Case("", capture(*kernels), launch(i32("x", 7), consts={"K": {"int": 1}}))
    terms = {
        "options": TWO.same_options(0, 1),
        "all but warps and stages": TWO.same_options(0, 1, ("arch", "enable_fp_fusion")),
        "twins": TWO.twins(0, 1),
        "free": z3.Not(TWO.differs_in_free(0, 1)),
        "rank": z3.And(TWO.rank(0) == 0, TWO.rank(1) == 1),
        "equal": z3.And(TWO.equal(0, 0), z3.Not(TWO.equal(0, 1))),
    }
    found = said(TWO, case, terms)
    assert {name for name, value in found.items() if not value} == differ
