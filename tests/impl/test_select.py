from __future__ import annotations

import logging

import msgspec
import pytest
from foldproof.impl import (
    AmbiguousTritonVariant,
    MissingTritonVariant,
    Refused,
    Selection,
    decide,
    load_policy,
    select,
)
from foldproof.impl.launch import Launch
from helpers import answer, capture, i32, launch, param, ptr, variant

# A reads R at run time and assumes P aligned; B has R folded and assumes nothing of P.
A = variant("A", param("P", "*bf16", div16=True), param("R"))
B = variant("B", param("P", "*bf16"), consts={"R": {"int": 1}})
SEED = launch(ptr("P", 0x1000), i32("R", 1))


@pytest.mark.parametrize(
    ("policy", "pick", "strictness"),
    [
        ("two-pass", "B", "general"),
        ("single-guard", "A", "runtime-one"),
        ("three-pass", "B", "general"),
        ("most-held", "A", "runtime-one"),
        ("linker-order", "A", "runtime-one"),
        ("recommended", "B", "general"),
    ],
)
def test_the_seed_case_decides_as_published(policy: str, pick: str, strictness: str) -> None:
    outcome = answer(capture(A, B), SEED, policy)
    assert isinstance(outcome, Selection)
    assert (outcome.variant.hash, outcome.strictness) == (pick, strictness)


def test_exact_first_misses_the_seed_case() -> None:
    outcome = answer(capture(A, B), SEED, "exact-first")
    assert isinstance(outcome, Refused)
    assert outcome.code == "MissingTritonVariant"


def test_without_the_folded_variant_three_pass_falls_back_and_logs_one_line() -> None:
    outcome = answer(capture(A), SEED, "three-pass")
    assert isinstance(outcome, Selection)
    assert (outcome.variant.hash, outcome.strictness, outcome.ones) == ("A", "runtime-one", ("R",))
    assert outcome.log == (
        "aot: k runs variant A, its 1 read at runtime (the capture holds no folded variant of it): R",
    )


def test_select_logs_through_logging_and_raises_with_the_whole_launch(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="foldproof.selection"):
        select(capture(A), SEED, load_policy("three-pass"))
    assert [record.message for record in caplog.records] == [
        "aot: k runs variant A, its 1 read at runtime (the capture holds no folded variant of it): R"
    ]
    asked = launch(ptr("P", 0x1004), i32("R", 1), consts={"BLOCK": {"int": 64}}, num_warps=4)
    with pytest.raises(MissingTritonVariant) as miss:
        select(capture(A), asked, load_policy("three-pass"))
    assert str(miss.value).splitlines() == [
        "no captured Triton variant of k for this launch:",
        "  arg P: *bf16 at 0x1004",
        "  arg R: i32 = 1",
        "  const BLOCK: int 64",
        "  option num_warps: 4",
    ]


def test_ambiguity_names_its_candidates() -> None:
    twins = capture(variant("A", param("P", "*bf16")), variant("B", param("P", "*bf16"), num_warps=8))
    with pytest.raises(AmbiguousTritonVariant, match="A, B") as refusal:
        select(twins, launch(ptr("P", 4)), load_policy("recommended"))
    assert refusal.value.among == ("A", "B")
    assert answer(twins, launch(ptr("P", 4), num_warps=8), "recommended").index == 1  # type: ignore[union-attr]


def test_most_held_warns_once_a_variant() -> None:
    policy = load_policy("most-held")
    first = decide(capture(A), SEED, policy)
    again = decide(capture(A), SEED, policy, frozenset({"A"}))
    assert (len(first.log), len(again.log)) == (1, 0)


@pytest.mark.parametrize(
    ("better", "worse", "asked"),
    [
        # fewest foldable 1s, then fewest 1s at all, then most assumptions, then the smallest hash
        (
            variant("Z", param("R"), consts={"S": {"int": 1}}),
            variant("A", param("R"), param("S")),
            launch(i32("R", 1), i32("S", 1)),
        ),
        (
            variant("Z", consts={"R": {"int": 1}}),
            variant("A", param("R", nospec=True)),
            launch(i32("R", 1)),
        ),
        (
            variant("Z", param("P", "*bf16", div16=True), param("Q", "*bf16")),
            variant("A", param("P", "*bf16"), param("Q", "*bf16")),
            launch(ptr("P", 16), ptr("Q", 16)),
        ),
        (
            variant("A", param("P", "*bf16", div16=True), param("Q", "*bf16")),
            variant("Z", param("P", "*bf16"), param("Q", "*bf16", div16=True)),
            launch(ptr("P", 16), ptr("Q", 16)),
        ),
    ],
)
def test_recommended_prefers(better: dict, worse: dict, asked: Launch) -> None:
    for order in ((better, worse), (worse, better)):
        outcome = answer(capture(*order), asked, "recommended")
        assert isinstance(outcome, Selection)
        assert outcome.variant.hash == better["hash"]


def test_recommended_refuses_free_constants_and_twins() -> None:
    free = capture(variant("A", param("R")), variant("B", param("R"), consts={"F": {"int": 2}}))
    twins = capture(variant("A", param("R")), variant("B", param("R")))
    for subject in (free, twins):
        outcome = answer(subject, launch(i32("R", 7)), "recommended")
        assert isinstance(outcome, Refused)
        assert (outcome.code, outcome.among) == ("AmbiguousTritonVariant", (0, 1))
    named = launch(i32("R", 7), consts={"F": {"int": 2}})
    assert answer(free, named, "recommended").index == 1  # type: ignore[union-attr]


def test_a_source_that_differs_is_never_picked_by_three_pass() -> None:
    other = capture(variant("A", param("R"), source="old"), variant("B", param("R"), source="new"))
    asked = launch(i32("R", 7), source="new")
    assert answer(other, asked, "three-pass").index == 1  # type: ignore[union-attr]
    assert answer(other, asked, "two-pass").index == 0  # type: ignore[union-attr]


def test_exact_pinned_refuses_a_match_with_other_warps_or_stages() -> None:
    same = [variant("A", param("R"), num_stages=0), variant("B", param("R"), num_stages=2)]
    outcome = answer(capture(*same), launch(i32("R", 7)), "exact-pinned")
    assert isinstance(outcome, Refused)
    assert outcome.code == "AmbiguousTritonVariant"
    pinned = answer(capture(*same), launch(i32("R", 7), num_stages=3), "exact-pinned")
    assert isinstance(pinned, Selection)
    assert pinned.variant.hash == "A"  # a recorded num_stages of 0 fits any pin


def test_outcomes_do_not_change_with_the_order_of_args_or_params() -> None:
    reordered = msgspec.structs.replace(SEED, args=SEED.args[::-1])
    for policy in ("two-pass", "three-pass", "recommended"):
        assert answer(capture(A, B), reordered, policy).index == 1  # type: ignore[union-attr]


def test_variants_of_other_functions_are_no_candidates() -> None:
    entries = [variant(mark, param("R")) | {"fn": fn} for mark, fn in (("A", "j"), ("B", "k"), ("C", "l"))]
    for order in (entries, entries[::-1]):
        outcome = answer(capture(*order), launch(i32("R", 7)), "three-pass")
        assert isinstance(outcome, Selection)
        assert outcome.variant.hash == "B"
    assert answer(capture(entries[0], entries[2]), launch(i32("R", 7)), "three-pass").code == "MissingTritonVariant"  # type: ignore[union-attr]


def test_a_policy_that_logs_nothing_is_silent_on_a_fallback() -> None:
    for policy in ("single-guard", "least-held"):
        outcome = answer(capture(A), SEED, policy)
        assert isinstance(outcome, Selection)
        assert (outcome.is_fallback, outcome.log) == (True, ())
    plain = answer(capture(A), launch(ptr("P", 16), i32("R", 7)), "three-pass")
    assert isinstance(plain, Selection)
    assert (plain.is_fallback, plain.log) == (False, ())


def test_a_miss_tells_the_source_and_every_option_and_a_bare_policy_nothing() -> None:
    asked = launch(i32("R", 7), source="new", num_stages=0, arch="sm_90", enable_fp_fusion=False)
    assert answer(capture(A), asked, "three-pass").detail.splitlines() == [  # type: ignore[union-attr]
        "no captured Triton variant of k for this launch:",
        "  arg R: i32 = 7",
        "  option num_stages: 0",
        "  option arch: sm_90",
        "  option enable_fp_fusion: False",
        "  source: new",
    ]
    assert answer(capture(A), asked, "linker-order") == Refused("MissingTritonVariant", "no variant")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (
            [variant("A", param("R")), variant("B", param("R"), consts={"F": {"int": 2}})],
            "2 variants of k fit this launch and differ in a constant that the launch does not name: A, B",
        ),
        (
            [variant("A", param("R")), variant("B", param("R"), num_warps=8)],
            "2 variants of k fit this launch and differ in launch options, which the launch does not pin: A, B",
        ),
        (
            [variant("A", param("R")), variant("B", param("R"))],
            "2 variants of k fit this launch and have equal params and consts: A, B",
        ),
    ],
)
def test_an_ambiguity_says_what_the_launch_leaves_open(entries: list[dict], said: str) -> None:
    outcome = answer(capture(*entries), launch(i32("R", 7)), "recommended")
    assert outcome == Refused("AmbiguousTritonVariant", said, (0, 1))
