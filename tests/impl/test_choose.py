"""What a pass prefers and refuses, each key and each refusal by itself."""

from __future__ import annotations

from typing import Any

import pytest
from foldproof.impl.choose import (
    KEYS,
    REFUSALS,
    TIE_BREAKS,
    Candidate,
    ambiguous,
    best,
    best_scored,
    folds,
    is_held,
    ones_read,
)
from helpers import capture, i32, launch, param, ptr, variant


def arg(kind: str, value: object) -> dict[str, Any]:
    return {"name": "x", "kind": kind, "value": value}


FLOAT = {"name": "x", "kind": "fp32", "bits": 16}


@pytest.mark.parametrize(
    ("placed", "given", "expected"),
    [
        (param("x"), i32("x", 7), True),
        (param("x"), i32("x", 1), False),
        (param("x"), i32("x", 0), False),
        (param("x"), i32("x", 2), True),
        (param("x"), i32("x", 17), True),
        (param("x", div16=True), i32("x", 0), True),
        (param("x", div16=True), i32("x", 1), False),
        (param("x", div16=True), i32("x", 15), False),
        (param("x", div16=True), i32("x", 8), False),
        (param("x", nospec=True), i32("x", 1), True),
        (param("x", nospec=True), i32("x", 16), True),
        (param("x", nospec=True, div16=True), i32("x", 16), False),
        (param("x", nospec=True, div16=True), i32("x", 1), False),
        (param("x", "*bf16", div16=True), ptr("x", 16), True),
        (param("x", "*bf16"), ptr("x", 16), False),
        (param("x", "*bf16"), ptr("x", 1), True),
        (param("x", "*bf16"), ptr("x", 8), True),
        (param("x", "*bf16", div16=True), ptr("x", 8), False),
        (param("x", "u64", nospec=True, div16=True), arg("u64", 32), True),
        (param("x", "u64"), arg("u64", 32), False),
        (param("x", "u64"), arg("u64", 1), True),
        (param("x", "fp32"), FLOAT, True),
        (param("x", "fp32", div16=True), FLOAT, True),
        (param("x", "u1"), arg("u1", False), False),
        (param("x", "i64", div16=True), arg("i64", 2**40), False),
        (param("x", "i64"), arg("i64", 2**40 + 1), False),
    ],
)
def test_held_is_what_the_public_selector_counts(placed: dict[str, Any], given: dict[str, Any], expected: bool) -> None:
    subject = capture(variant("A", placed)).kernels[0].params[0]
    assert is_held(launch(given).args[0], subject, None) is expected


@pytest.mark.parametrize(
    ("const", "given", "expected"),
    [
        ({"int": 1}, i32("x", 1), True),
        ({"int": 0}, i32("x", 1), False),
        ({"int": 2}, i32("x", 1), False),
        ({"bool": True}, i32("x", 1), False),
        ({"f32": 1}, i32("x", 1), False),
        ({"none": True}, i32("x", 1), False),
        ({"int": 1}, i32("x", 0), False),
        ({"int": 1}, i32("x", 2), False),
        ({"int": 1}, arg("i64", 1), False),
        ({"int": 1}, arg("u64", 1), False),
        ({"int": 1}, arg("u1", True), False),
    ],
)
def test_an_i32_1_on_an_int_1_is_folded(const: dict[str, Any], given: dict[str, Any], expected: bool) -> None:
    subject = capture(variant("A", consts={"x": const})).kernels[0].consts["x"]
    asked = launch(given).args[0]
    assert folds(asked, subject) is expected
    assert is_held(asked, None, subject) is expected
    assert folds(asked, None) is False


# Reads 1s through R (foldable), S (nospec) and T (annotated); has U folded; assumes div16 of P, D and, in vain, of x.
RICH = variant(
    "rich",
    param("P", "*bf16", div16=True),
    param("Q", "*bf16"),
    param("R"),
    param("S", nospec=True),
    param("T", annotated=True),
    param("D", div16=True),
    param("x", "fp32", div16=True),
    consts={"U": {"int": 1}, "V": {"int": 2}},
)
ASKED = launch(
    ptr("P", 16),
    ptr("Q", 16),
    i32("T", 1),
    i32("S", 1),
    i32("R", 1),
    i32("D", 32),
    FLOAT,
    i32("U", 1),
    i32("V", 1),
)
SUBJECT: Candidate = (3, capture(RICH).kernels[0])
VALUES = {
    "first": 3,
    "last": -3,
    "hash": "rich",
    "fewest-ones": 1,
    "fewest-runtime-ones": 3,
    "most-assumptions": -3,
    "fewest-assumptions": 3,
    "most-held": -5,
    "fewest-held": 5,
}


@pytest.mark.parametrize("key", KEYS)
def test_each_key_gives_the_number_of_which_the_least_wins(key: str) -> None:
    # Held: P, S, D, x and the folded U; not Q (aligned and unsaid), R and T (a 1 that is neither folded nor nospec).
    assert KEYS[key](SUBJECT, ASKED) == VALUES[key]


def test_ones_are_the_foldable_1s_that_are_read_in_launch_order() -> None:
    subject = capture(variant("A", param("R"), param("S"), param("N", nospec=True), param("T"))).kernels[0]
    asked = launch(i32("T", 1), i32("N", 1), i32("S", 7), i32("R", 1), i32("gone", 1))
    assert ones_read(subject, asked) == ("T", "R")


def test_ties_go_to_the_earlier_candidate_and_tie_breaks_are_no_part_of_the_score() -> None:
    assert {"first", "last", "hash"} == TIE_BREAKS
    kernels = capture(variant("B", param("R")), variant("A", param("R")), variant("C", param("R"), param("S"))).kernels
    one, two, more = (4, kernels[0]), (2, kernels[1]), (1, kernels[2])
    asked = launch(i32("R", 1), i32("S", 1))
    assert best([one, two, more], ["fewest-ones"], asked) == two
    assert best([one, two, more], ["fewest-ones", "last"], asked) == one
    assert best([one, two, more], ["first"], asked) == more
    assert best([one, two, more], ["last"], asked) == one
    assert best([one, two, more], ["hash"], asked) == two
    assert best_scored([one, two, more], ["fewest-ones", "hash"], asked) == [one, two]
    assert best_scored([one, two, more], ["hash", "last", "first"], asked) == [one, two, more]


def clash(name: str, *entries: dict[str, Any], scored: tuple[int, ...] = (), **more: Any) -> list[int]:
    """The indices between which a refusal finds no ground; `scored` are those that tie for the best."""
    candidates = list(enumerate(capture(*entries).kernels))
    chosen = [candidates[index] for index in scored]
    return [index for index, _ in ambiguous(name, candidates, chosen, launch(i32("R", 7), **more))]


FREE = [variant(mark, param("R"), consts=consts) for mark, consts in (("A", {}), ("B", {}), ("C", {"F": {"int": 1}}))]
WARPS = [variant("A", param("R")), variant("B", param("R")), variant("C", param("R"), num_warps=8)]
STAGES = [variant("A", param("R")), variant("B", param("R"), num_stages=2)]
TWINS = [
    variant("A", param("R"), param("S")),
    variant("B", param("S"), param("R")),
    variant("C", param("R"), param("S", div16=True)),
    variant("D", param("R"), param("S"), consts={"F": {"int": 1}}),
]


def test_a_difference_is_refused_between_the_first_and_all_that_differ_from_it() -> None:
    assert clash("free-constants", *FREE) == [0, 2]
    assert clash("free-constants", *FREE, consts={"F": {"int": 1}}) == []
    assert clash("free-constants", *FREE[:2]) == []
    assert clash("warps-and-stages", *WARPS) == [0, 2]
    assert clash("warps-and-stages", *STAGES) == [0, 1]
    assert clash("warps-and-stages", *WARPS[:2]) == []
    assert clash("warps-and-stages", variant("A", param("R")), variant("B", param("R"), arch="sm_90")) == []


def test_a_constant_that_an_arg_names_is_not_free() -> None:
    entries = variant("A", consts={"R": {"int": 1}}), variant("B", param("R"))
    assert clash("free-constants", *entries) == []


def test_options_and_twins_are_refused_among_the_best_scored_alone() -> None:
    assert clash("launch-options", *WARPS, scored=(0, 1)) == []
    assert clash("launch-options", *WARPS, scored=(1, 2)) == [1, 2]
    assert clash("launch-options", variant("A"), variant("B", arch="sm_90"), scored=(0, 1)) == [0, 1]
    assert clash("twins", *TWINS, scored=(0, 1, 2, 3)) == [0, 1]
    assert clash("twins", *TWINS, scored=(0, 2, 3)) == []
    assert clash("twins", *TWINS, scored=(1, 2)) == []


def test_every_refusal_is_tried_above() -> None:
    assert set(REFUSALS) == {"free-constants", "warps-and-stages", "launch-options", "twins"}
    assert set(VALUES) == set(KEYS)
