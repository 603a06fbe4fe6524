from __future__ import annotations

from typing import Any

import pytest
from foldproof.impl.rules import Reason, Refusal, Rules, Strictness, refusal, refusals
from helpers import capture, i32, launch, param, ptr, variant

EXACT, GENERAL, RUNTIME_ONE = Strictness.EXACT, Strictness.GENERAL, Strictness.RUNTIME_ONE


def met(placed: dict[str, Any], arg: dict[str, Any], *, public: bool = False) -> str:
    """The strictnesses under which the placement admits the arg, as letters e, g, r."""
    entry = variant("A", consts={"x": placed}) if "name" not in placed else variant("A", placed)
    subject, asked = capture(entry).kernels[0], launch(arg)
    letters = {EXACT: "e", GENERAL: "g", RUNTIME_ONE: "r"}
    return "".join(c for s, c in letters.items() if refusal(subject, asked, Rules(s, public)) is None)


def arg(kind: str, value: object) -> dict[str, Any]:
    return {"name": "x", "kind": kind, "value": value}


@pytest.mark.parametrize(
    ("placed", "given", "expected"),
    [
        ({"int": 1}, i32("x", 1), "egr"),
        ({"int": 1}, i32("x", 7), ""),
        ({"int": 1}, arg("i64", 1), ""),
        ({"int": 1}, arg("u64", 1), ""),
        ({"int": 1}, arg("u1", True), ""),
        ({"bool": True}, i32("x", 1), ""),
        ({"f32": 0x3F800000}, i32("x", 1), ""),
        ({"none": True}, {"name": "x", "kind": "none"}, "egr"),
        ({"int": 1}, {"name": "x", "kind": "none"}, ""),
        (param("x", "none"), {"name": "x", "kind": "none"}, ""),
        ({"str": "s"}, {"name": "x", "kind": "none"}, ""),
        ({"none": True}, ptr("x", 0), ""),
        ({"none": True}, i32("x", 1), ""),
        ({"int": 0}, i32("x", 1), ""),
        ({"int": 2}, i32("x", 1), ""),
        (param("x"), i32("x", 1), "r"),
        (param("x"), i32("x", 7), "egr"),
        (param("x"), i32("x", 16), "gr"),
        (param("x", div16=True), i32("x", 16), "egr"),
        (param("x", div16=True), i32("x", 0), "egr"),
        (param("x", div16=True), i32("x", -32), "egr"),
        (param("x", div16=True), i32("x", 7), ""),
        (param("x", nospec=True), i32("x", 1), "egr"),
        (param("x", nospec=True), i32("x", 16), "egr"),
        (param("x", nospec=True, div16=True), i32("x", 16), ""),
        (param("x", noalign=True), i32("x", 16), "egr"),
        (param("x", noalign=True), i32("x", 1), "r"),
        (param("x", annotated=True), i32("x", 1), "egr"),
        (param("x", "i64", annotated=True), i32("x", 1), "egr"),
        (param("x", "i64", annotated=True), arg("i64", 1), "egr"),
        (param("x", "i64", annotated=True, div16=True), i32("x", 16), "egr"),
        (param("x", "i8", annotated=True), i32("x", 127), "egr"),
        (param("x", "i8", annotated=True), i32("x", 128), ""),
        (param("x", "i8", annotated=True), i32("x", -128), "gr"),
        (param("x", "i8", annotated=True), i32("x", -129), ""),
        (param("x", "u64", annotated=True), i32("x", -1), ""),
        (param("x", "i64", annotated=True), arg("u64", 2**63), ""),
        (param("x", "i64"), arg("i64", 1), ""),
        (param("x", "i64", nospec=True), arg("i64", 1), ""),
        (param("x", "i64"), arg("i64", 2**31 + 1), "egr"),
        (param("x", "i64"), i32("x", 7), ""),
        (param("x", "i64"), arg("i64", -(2**40) + 1), "egr"),
        (param("x"), arg("i64", 2**40 + 1), ""),
        (param("x", "u64"), arg("u64", 1), "egr"),
        (param("x", "u64", nospec=True, div16=True), arg("u64", 16), ""),
        (param("x", "u64", div16=True), arg("u64", 2**63), "egr"),
        (param("x", "fp32", div16=True), {"name": "x", "kind": "fp32", "bits": 1}, "egr"),
        (param("x", "u1", div16=True), arg("u1", False), "egr"),
        (param("x", "u1", div16=True), arg("u1", True), "egr"),
        (param("x", "*bf16"), ptr("x", 16), "gr"),
        (param("x", "*bf16", div16=True), ptr("x", 16), "egr"),
        (param("x", "*bf16", div16=True), ptr("x", 8), ""),
        (param("x", "*bf16", div16=True), ptr("x", 0x8000000000000010), "egr"),
        (param("x", "*bf16", nospec=True), ptr("x", 16), "egr"),
        (param("x", "*bf16", nospec=True, div16=True), ptr("x", 16), "gr"),
        (param("x", "*fp16"), ptr("x", 8), ""),
        (param("x", "*bf16", range32=True), ptr("x", 8), ""),
        (param("x", "*bf16", range32=True), ptr("x", 8, bytes=2**31 - 1), "egr"),
        (param("x", "*bf16", range32=True), ptr("x", 8, bytes=2**31), ""),
        (param("x", "*bf16", range32=True), ptr("x", 8, bytes=4), "egr"),
        (param("x", range32=True), i32("x", 7), ""),
    ],
)
def test_the_table_of_section_3(placed: dict[str, Any], given: dict[str, Any], expected: str) -> None:
    assert met(placed, given) == expected


def test_the_public_dialect_ignores_nospec_on_pointers_and_knows_four_kinds() -> None:
    assert met(param("x", "*bf16", nospec=True), ptr("x", 16), public=True) == "gr"
    assert met(param("x", "*bf16", nospec=True, div16=True), ptr("x", 16), public=True) == "egr"
    assert met(param("x", nospec=True), i32("x", 16), public=True) == "egr"
    assert met(param("x", "i64"), arg("i64", 2**31 + 1), public=True) == ""
    assert met({"none": True}, {"name": "x", "kind": "none"}, public=True) == ""


@pytest.mark.parametrize(
    ("entry", "asked", "reason"),
    [
        (variant("A"), launch(i32("x", 7)), "x: the variant neither reads nor folds this arg"),
        (variant("A", param("x"), param("y")), launch(i32("x", 7)), "y: the launch gives no arg for this param"),
        (variant("A"), launch(consts={"F": {"int": 1}}), "F: the variant has no such constant"),
        (
            variant("A", consts={"F": {"int": 1}}),
            launch(consts={"F": {"f32": 0x3F800000}}),
            "F: the constant has another kind or value",
        ),
        (
            variant("A", consts={"F": {"f32": 0}}),
            launch(consts={"F": {"f32": 0x80000000}}),
            "F: the constant has another kind or value",
        ),
        (
            variant("A", consts={"F": {"bool": True}}),
            launch(consts={"F": {"int": 1}}),
            "F: the constant has another kind or value",
        ),
        (
            variant("A", consts={"F": {"int": 1}}),
            launch(consts={"F": {"bool": True}}),
            "F: the constant has another kind or value",
        ),
        (
            variant("A", consts={"F": {"int": 64}}),
            launch(consts={"F": {"int": 32}}),
            "F: the constant has another kind or value",
        ),
        (
            variant("A", consts={"F": {"int": 32}}),
            launch(consts={"F": {"int": 64}}),
            "F: the constant has another kind or value",
        ),
        (variant("A"), launch(num_warps=8), "num_warps: another launch option than the launch pins"),
        (variant("A", arch="sm_90"), launch(arch="sm_121"), "arch: another launch option than the launch pins"),
        (variant("A", source="a"), launch(source="b"), "source: compiled from another source"),
        (variant("A", source="b"), launch(source="a"), "source: compiled from another source"),
        (variant("A", num_stages=2), launch(num_stages=3), "num_stages: another launch option than the launch pins"),
        (
            variant("A", enable_fp_fusion=True),
            launch(enable_fp_fusion=False),
            "enable_fp_fusion: another launch option than the launch pins",
        ),
    ],
)
def test_refusals_name_what_is_wrong(entry: dict[str, Any], asked: Any, reason: str) -> None:
    assert str(refusal(capture(entry).kernels[0], asked, Rules(EXACT))) == reason


def test_options_that_the_variant_does_not_record_fit_any_pin() -> None:
    asked = launch(num_stages=3, arch="sm_90", enable_fp_fusion=True, source="a")
    assert refusal(capture(variant("A")).kernels[0], asked, Rules(EXACT)) is None


def test_what_the_variant_records_and_the_launch_asks_for_fits() -> None:
    said = {"num_stages": 3, "arch": "sm_90", "enable_fp_fusion": False, "source": "a", "consts": {"F": {"int": 64}}}
    assert refusal(capture(variant("A", **said)).kernels[0], launch(num_warps=4, **said), Rules(EXACT)) is None


def test_source_and_options_are_looked_at_where_the_rules_say_so() -> None:
    subject, asked = capture(variant("A", source="a")).kernels[0], launch(num_warps=8, source="b")
    assert str(refusal(subject, asked, Rules(EXACT, options=False))).startswith("source: ")
    assert str(refusal(subject, asked, Rules(EXACT, source=False))).startswith("num_warps: ")
    assert refusal(subject, asked, Rules(EXACT, options=False, source=False)) is None


def test_rules_look_at_everything_by_the_whole_table_unless_told_otherwise() -> None:
    assert Rules(EXACT) == Rules(EXACT, public=False, options=True, source=True)


def test_the_public_dialect_knows_no_other_kind_on_a_constant_either() -> None:
    subject, asked = (
        capture(variant("A", consts={"x": {"none": True}})).kernels[0],
        launch({"name": "x", "kind": "none"}),
    )
    assert refusal(subject, asked, Rules(EXACT, public=True)) == Refusal(Reason.KIND, "x")


def test_refusals_come_in_the_order_of_the_rules() -> None:
    subject = capture(variant("A", param("x"), param("y"), param("z"), source="a")).kernels[0]
    asked = launch(i32("x", 1), i32("w", 1), num_warps=8, source="b", consts={"F": {"int": 1}})
    assert [(r.reason, r.subject) for r in refusals(subject, asked, Rules(EXACT))] == [
        (Reason.SOURCE, "source"),
        (Reason.OPTION, "num_warps"),
        (Reason.CONST_ABSENT, "F"),
        (Reason.FOLDABLE, "x"),
        (Reason.UNPLACED, "w"),
        (Reason.UNNAMED, "y"),
        (Reason.UNNAMED, "z"),
    ]
    assert str(Refusal(Reason.UNNAMED)) == Reason.UNNAMED.value


@pytest.mark.parametrize(
    ("placed", "given", "reason"),
    [
        (param("x"), i32("x", 1), None),
        (param("x"), i32("x", 16), None),
        (param("x", div16=True), i32("x", 16), None),
        (param("x", div16=True), i32("x", 17), Reason.NOT_DIV16),
        (param("x", div16=True), i32("x", -15), Reason.NOT_DIV16),
        (param("x", nospec=True, div16=True), i32("x", 32), None),
        (param("x", "*bf16", div16=True), ptr("x", 8, "*fp32"), Reason.NOT_DIV16),
        (param("x", "*bf16"), ptr("x", 8, "*fp32"), None),
        (param("x", "*bf16"), i32("x", 8), Reason.TYPE),
        (param("x"), ptr("x", 8), Reason.TYPE),
        (param("x"), arg("i64", 2**40), Reason.TYPE),
        (param("x", "i64"), i32("x", 8), Reason.TYPE),
        (param("x", "fp64", div16=True), {"name": "x", "kind": "fp32", "bits": 1}, None),
        (param("x", "bf16"), {"name": "x", "kind": "fp32", "bits": 1}, None),
        (param("x", "u8", div16=True), arg("u1", True), None),
        (param("x", "i8", annotated=True), i32("x", 127), None),
        (param("x", "i8", annotated=True), i32("x", 128), Reason.RANGE),
        (param("x", "i8", annotated=True, div16=True), i32("x", 127), Reason.NOT_DIV16),
        (param("x", "u8", annotated=True), arg("u1", True), None),
        (param("x", range32=True), i32("x", 1), None),
    ],
)
def test_the_guard_of_the_linker_tests_the_c_type_and_the_hints(
    placed: dict[str, Any], given: dict[str, Any], reason: Reason | None
) -> None:
    found = refusal(capture(variant("A", placed)).kernels[0], launch(given), Rules(Strictness.LINKER))
    assert found == (None if reason is None else Refusal(reason, "x"))
