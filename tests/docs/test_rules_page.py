"""The table of docs/reference/rules.md against the rules: each row with cases that it speaks of."""

from __future__ import annotations

from typing import Any

import pytest
from docs.pages import ROOT
from foldproof.impl.rules import STRICTEST_FIRST, Rules, refusal
from helpers import capture, i32, launch, param, ptr, variant

ONE, SIXTEEN, SEVEN = i32("x", 1), i32("x", 16), i32("x", 7)
BIG = {"name": "x", "kind": "i64", "value": 2**40}
NONE = {"name": "x", "kind": "none"}
ALIGNED, ODD = ptr("x", 0x1000), ptr("x", 0x1001)
FLOAT = {"name": "x", "kind": "fp32", "bits": 0}
BOOL = {"name": "x", "kind": "u1", "value": True}
FOLDED: dict[str, Any] = {"consts": {"x": {"int": 1}}}


def at(type_: str = "i32", **switches: bool) -> dict[str, Any]:
    """A variant that reads `x` through a param."""
    return {"params": [param("x", type_, **switches)]}


PTR = "*bf16"
CASES: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "an i32 of value 1, folded": [(ONE, FOLDED)],
    "any other value or kind, folded": [
        (SEVEN, FOLDED),
        (BIG | {"value": 1}, FOLDED),
        (FLOAT, FOLDED),
        (NONE, FOLDED),
        (ONE, {"consts": {"x": {"bool": True}}}),
    ],
    "an i32 of value 1, read through an i32 param that is neither nospec nor annotated (a foldable 1)": [(ONE, at())],
    "an i32 of value 1, read through a nospec or annotated param": [
        (ONE, at(nospec=True)),
        (ONE, at(annotated=True)),
    ],
    "an i64 of value 1, param not annotated": [(BIG | {"value": 1}, at("i64"))],
    "a multiple of 16, int, div16 claimed, alignable": [(SIXTEEN, at(div16=True)), (i32("x", -16), at(div16=True))],
    "a multiple of 16, int, div16 not claimed, alignable": [(SIXTEEN, at()), (i32("x", 0), at())],
    "a multiple of 16, int, div16 claimed, not alignable": [
        (SIXTEEN, at(div16=True, nospec=True)),
        (SIXTEEN, at(div16=True, noalign=True)),
    ],
    "a multiple of 16, int, div16 not claimed, not alignable": [
        (SIXTEEN, at(nospec=True)),
        (SIXTEEN, at(noalign=True)),
    ],
    "an int that is no multiple of 16, div16 claimed": [(SEVEN, at(div16=True))],
    "an aligned pointer, div16 claimed, alignable": [(ALIGNED, at(PTR, div16=True))],
    "an aligned pointer, div16 not claimed, alignable": [(ALIGNED, at(PTR))],
    "an aligned pointer, div16 claimed, not alignable": [
        (ALIGNED, at(PTR, div16=True, nospec=True)),
        (ALIGNED, at(PTR, div16=True, noalign=True)),
    ],
    "a pointer that is not aligned, div16 claimed": [(ODD, at(PTR, div16=True))],
    "a float or bool, div16 claimed": [(FLOAT, at("fp32", div16=True)), (BOOL, at("u1", div16=True))],
    "an int that the annotated type holds": [(SEVEN, at("i8", annotated=True)), (ONE, at("u64", annotated=True))],
    "an int that the annotated type cannot hold": [
        (i32("x", 129), at("i8", annotated=True)),
        (i32("x", -1), at("u64", annotated=True)),
    ],
    "a value of another type than the param's": [(SEVEN, at("i64")), (ODD, at("*fp32")), (FLOAT, at()), (BOOL, at())],
    "a pointer whose launch says at most 2^31 - 1 bytes, range32": [
        (ODD | {"bytes": 2**31 - 1}, at(PTR, range32=True))
    ],
    "a pointer that is larger, or whose size is not said, range32": [
        (ODD | {"bytes": 2**31}, at(PTR, range32=True)),
        (ODD, at(PTR, range32=True)),
    ],
    "None on a constant none": [(NONE, {"consts": {"x": {"none": True}}})],
    "None on anything else": [(NONE, at()), (NONE, at(PTR)), (NONE, {"consts": {"x": {"int": 0}}})],
}


def rows() -> dict[str, tuple[str, ...]]:
    """The rows of the table: the first column, and the three others."""
    lines = (ROOT / "docs/reference/rules.md").read_text().split("## The table")[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {first: tuple(more) for first, *more in cells[2:]}


def test_each_row_has_cases() -> None:
    assert list(rows()) == list(CASES)


@pytest.mark.parametrize("row", CASES)
def test_a_row_says_what_the_rules_say(row: str) -> None:
    for arg, place in CASES[row]:
        of, to = capture(variant("A", **place)), launch(arg)
        answers = [refusal(of.kernels[0], to, Rules(strictness)) for strictness in STRICTEST_FIRST]
        assert tuple("no" if refused else "yes" for refused in answers) == rows()[row], (arg, place, answers)
