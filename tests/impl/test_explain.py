"""Explanations: every candidate under every pass, a case as a table, and the decision as a tree."""

from __future__ import annotations

import pytest
from foldproof.impl import load_policy
from foldproof.impl.cases import Case, replay
from foldproof.impl.explain import case_table, decides, decision_tree, describe_param, explain, verdict_line
from helpers import capture, i32, launch, param, ptr, variant

A = variant("A", param("P", "*bf16", div16=True), param("R"))
B = variant("B", param("P", "*bf16"), consts={"R": {"int": 1}})
SEED = launch(ptr("P", 0x1000), i32("R", 1))
TWINS = capture(variant("A", param("R")), variant("B", param("R")), variant("C", consts={"R": {"int": 1}}))


def test_each_pass_of_each_candidate_has_its_first_refusal() -> None:
    told = explain(capture(A, B), SEED, load_policy("three-pass"))
    assert told.passes == ("exact", "general", "runtime-one")
    assert [(row.index, row.hash, row.picked) for row in told.rows] == [(0, "A", False), (1, "B", True)]
    assert [[str(r) if r else None for r in row.passes] for row in told.rows] == [
        ["R: an i32 of value 1 is read at run time (a foldable 1)"] * 2 + [None],
        ["P: a multiple of 16, and the variant was not compiled for one", None, None],
    ]
    assert verdict_line(told) == "three-pass picks B by general"


def test_only_the_functions_candidates_are_told_and_a_miss_is_one_line() -> None:
    told = explain(capture(A, B | {"fn": "other"}), SEED, load_policy("two-pass"))
    assert [row.hash for row in told.rows] == ["A"]
    assert not told.rows[0].picked
    assert verdict_line(told) == "two-pass finds nothing: MissingTritonVariant"


def test_a_fallback_says_what_it_reads_and_an_ambiguity_why_it_refuses() -> None:
    assert verdict_line(explain(capture(A), SEED, load_policy("three-pass"))) == (
        "three-pass picks A by runtime-one, reading R at run time"
    )
    wide = capture(variant("A", param("R"), param("S")))
    reads_two = explain(wide, launch(i32("R", 1), i32("S", 1)), load_policy("three-pass"))
    assert verdict_line(reads_two).endswith("reading R, S at run time")
    said = verdict_line(explain(TWINS, launch(i32("R", 7)), load_policy("recommended")))
    assert said == (
        "recommended refuses: AmbiguousTritonVariant: 2 variants of k fit this launch and have equal params and "
        "consts: A, B"
    )


def test_a_selection_that_meets_no_rules_says_so() -> None:
    alike = capture(variant("A", param("P", "*fp32")))
    told = explain(alike, launch(ptr("P", 8)), load_policy("linker-order"))
    assert verdict_line(told) == "linker-order picks A by no rules"


def test_the_tree_tells_what_happened_to_each_candidate_up_to_the_pass_that_decided() -> None:
    tree = decision_tree(explain(capture(A, B), SEED, load_policy("three-pass")), SEED)
    assert tree.says == "k(P: *bf16 at 0x1000, R: i32 = 1)"
    exact, general, runtime_one, verdict = tree.below
    assert (exact.says, [leaf.state for leaf in exact.below]) == ("exact: 0 of 2 admissible", ["refused", "refused"])
    assert general.says == "general: 1 of 2 admissible"
    assert [(leaf.says, leaf.state) for leaf in general.below] == [
        ("A: R: an i32 of value 1 is read at run time (a foldable 1)", "refused"),
        ("B: admissible, and preferred", "picked"),
    ]
    assert (runtime_one.says, runtime_one.state, runtime_one.below) == ("runtime-one: not tried", "skipped", ())
    assert (verdict.says, verdict.state) == ("three-pass picks B by general", "picked")


def test_the_tree_tells_the_preferred_from_the_passed_over_and_the_ambiguous() -> None:
    plain = launch(i32("R", 7))
    first = decision_tree(explain(TWINS, plain, load_policy("three-pass")), plain)
    assert [(leaf.says, leaf.state) for leaf in first.below[0].below] == [
        ("A: admissible, and preferred", "picked"),
        ("B: admissible, and another is preferred", "passed over"),
        ("C: R: folded in the variant, and the arg is no i32 of value 1", "refused"),
    ]
    refused = decision_tree(explain(TWINS, plain, load_policy("recommended")), plain)
    assert [leaf.says for leaf in refused.below[0].below[:2]] == [
        "A: admissible, and one of the ambiguous",
        "B: admissible, and one of the ambiguous",
    ]
    assert refused.below[-1].state == "refused"


def test_an_admissible_candidate_that_is_none_of_the_ambiguous_is_passed_over() -> None:
    apart = capture(
        variant("A", param("P", "*bf16"), param("Q", "*bf16")),
        variant("B", param("P", "*bf16", div16=True), param("Q", "*bf16")),
        variant("C", param("P", "*bf16", div16=True), param("Q", "*bf16")),
    )
    asked = launch(ptr("P", 16), ptr("Q", 16))
    general = decision_tree(explain(apart, asked, load_policy("recommended")), asked).below[1]
    assert [leaf.says.partition(": ")[2] for leaf in general.below] == [
        "admissible, and another is preferred",
        "admissible, and one of the ambiguous",
        "admissible, and one of the ambiguous",
    ]


def test_a_case_is_a_table_with_the_launch_first_and_the_deciding_arg_marked() -> None:
    case = Case("seed", capture(A, B), SEED)
    outcome = replay(case, load_policy("three-pass"))
    columns, rows = case_table(case, outcome)
    assert columns == ("", "", "P *", "R")
    assert rows == (
        ("launch", "k", "*bf16 at 0x1000", "i32 = 1"),
        ("", "A", "*bf16 div16", "i32"),
        ("picked", "B", "*bf16", "folded 1"),
    )


def test_a_table_shows_constants_options_and_sources_where_any_is_said() -> None:
    kernels = capture(
        variant("A", param("R", nospec=True), consts={"F": {"int": 2}}, num_warps=8, source="old"),
        variant("B", param("R", annotated=True), consts={"G": {"none": True}}, num_stages=3, arch="sm_90"),
    )
    asked = launch(i32("R", 7), consts={"F": {"int": 2}}, num_warps=8, enable_fp_fusion=False, source="old")
    case = Case("told", kernels, asked)
    columns, rows = case_table(case, replay(case, load_policy("three-pass")))
    assert columns == ("", "", "R *", "F", "G", "options", "source")
    assert rows == (
        ("launch", "k", "i32 = 7", "int 2", "", "num_warps 8, enable_fp_fusion False", "old"),
        ("picked", "A", "i32 nospec", "const int 2", "-", "num_warps 8", "old"),
        ("", "B", "i32 annotated", "-", "const none", "num_stages 3, arch sm_90", ""),
    )


def test_the_ambiguous_are_marked_and_a_switch_that_is_on_is_shown() -> None:
    case = Case("twins", TWINS, launch(i32("R", 7)))
    _, rows = case_table(case, replay(case, load_policy("recommended")))
    assert [row[0] for row in rows] == ["launch", "among", "among", ""]
    every = {"div16": True, "nospec": True, "noalign": True, "annotated": True, "range32": True}
    subject = capture(variant("A", param("R", **every))).kernels[0].params[0]
    assert describe_param(subject) == "i32 div16 nospec noalign annotated range32"


@pytest.mark.parametrize(
    ("kernels", "policy", "expected"),
    [
        # A foldable 1 that is read decides; else what the picked one holds unlike the others; else nothing.
        ((A,), "three-pass", "R"),
        ((A, B), "two-pass", "P"),
        ((B,), "two-pass", ""),
        ((A, A | {"hash": "C"}), "two-pass", ""),
        ((B, variant("C", param("P", "*bf16"), consts={"R": {"int": 1}, "F": {"int": 2}})), "recommended", "F"),
    ],
)
def test_what_decides(kernels: tuple[dict, ...], policy: str, expected: str) -> None:
    case = Case("", capture(*kernels), SEED)
    assert decides(case, replay(case, load_policy(policy))) == expected
