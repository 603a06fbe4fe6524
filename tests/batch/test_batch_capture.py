"""What `BatchCapture` refuses, by name, and how it encodes values."""

from __future__ import annotations

import numpy as np
import pytest
from foldproof.impl import Capture, Const, InvalidLaunch, InvalidPolicy, Kind, Launch, Param, Policy, Variant
from foldproof.impl import choose as choose_module
from foldproof.impl.batch import NARROWED, ArgShape, BatchCapture, LaunchShape
from foldproof.impl.batch.bench import rates
from foldproof.impl.batch.capture import BLOCK
from foldproof.impl.launch import Arg
from foldproof.impl.policy import Pass, zoo_policy

THREE_PASS = zoo_policy("three-pass")
FOLDED = Variant("k", "f", 4, (Param("p", "*bf16", True, False),), {"n": Const(int_=1)})
RUNTIME = Variant("k", "r", 4, (Param("p", "*bf16", True, False), Param("n", "i32", False, False)), {})
CAPTURE = Capture((FOLDED, RUNTIME))
SHAPE = LaunchShape("k", (ArgShape("n", Kind.I32), ArgShape("p", Kind.PTR, "*bf16")), {})
BATCH = BatchCapture.build(CAPTURE, SHAPE, THREE_PASS)
ALIGNED = np.array([16], np.uint64)


def test_more_launches_than_a_block_are_decided_each_by_its_values() -> None:
    count = 2 * BLOCK + 17
    ones = np.arange(count) % 3 == 0
    found = BATCH.decide_values({"n": np.where(ones, 1, 7), "p": np.full(count, 32, np.uint64)})
    assert found.picks.tolist() == np.where(ones, 0, 1).tolist()
    assert not found.fallback.any()


def test_a_fallback_names_the_arg_that_is_read() -> None:
    batch = BatchCapture.build(Capture((RUNTIME,)), SHAPE, THREE_PASS)
    found = batch.decide_values({"n": np.array([1, 7]), "p": np.array([16, 16], np.uint64)})
    assert (found.ones.tolist(), found.fallback.tolist()) == ([1, 0], [True, False])


def test_no_launch_is_an_empty_answer() -> None:
    assert BATCH.decide_values({"n": np.zeros(0, np.int64), "p": np.zeros(0, np.uint64)}).picks.size == 0


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"n": np.array([2**31]), "p": ALIGNED}, "2147483648 is no i32"),
        ({"n": np.array([-(2**31) - 1]), "p": ALIGNED}, "-2147483649 is no i32"),
        ({"n": np.array([2**63], np.uint64), "p": ALIGNED}, "9223372036854775808 is no i32"),
        ({"n": np.array([1.0]), "p": ALIGNED}, "takes an array of integers"),
        ({"n": np.array([True]), "p": ALIGNED}, "takes an array of integers"),
        ({"n": np.array([1]), "p": np.array([-16])}, "-16 is no ptr"),
        ({"n": np.array([1])}, "do not fit at p"),
        ({"n": np.array([1]), "p": ALIGNED, "q": ALIGNED}, "do not fit at q"),
        ({"n": np.array([1, 2]), "p": ALIGNED}, "differ in shape"),
        ({"n": np.array([[1]]), "p": np.array([[16]], np.uint64)}, "differ in shape"),
    ],
)
def test_values_that_are_none_of_the_shape_are_refused(values: dict[str, np.ndarray], why: str) -> None:
    with pytest.raises(InvalidLaunch, match=why):
        BATCH.encode(values)


def test_sizes_are_for_pointers() -> None:
    with pytest.raises(InvalidLaunch, match="do not fit at n"):
        BATCH.encode({"n": np.array([1]), "p": ALIGNED}, {"n": np.array([4])})


@pytest.mark.parametrize(
    ("kind", "values", "why"),
    [
        (Kind.U1, np.array([0, 1]), "array of bools"),
        (Kind.FP32, np.array([1.0]), "float32 values, or their bits"),
    ],
)
def test_bools_and_floats_are_given_as_such(kind: Kind, values: np.ndarray, why: str) -> None:
    batch = BatchCapture.build(CAPTURE, LaunchShape("k", (ArgShape("n", kind),), {}), THREE_PASS)
    with pytest.raises(InvalidLaunch, match=why):
        batch.encode({"n": values})


@pytest.mark.parametrize(
    "codes",
    [np.full((2, 1), 3, np.uint8), np.zeros((1, 4), np.uint8), np.zeros((2, 4), np.int64), np.zeros(2, np.uint8)],
    ids=["no such class", "arg missing", "int64", "flat"],
)
def test_codes_of_another_shape_are_refused(codes: np.ndarray) -> None:
    with pytest.raises(InvalidLaunch, match="code"):
        BATCH.decide(codes)


def test_narrowed_ints_change_kind_at_the_borders() -> None:
    classes = BatchCapture.build(CAPTURE, LaunchShape("k", (ArgShape("n", NARROWED),), {}), THREE_PASS).classes[0]
    for values in (
        np.array([1, 0, 7, -(2**31), -(2**31) - 1, 2**31 - 1, 2**31, 2**63 - 1, -(2**63)]),
        np.array([1, 2**31, 2**63 - 1, 2**63, 2**64 - 1], np.uint64),
    ):
        codes = np.zeros(values.size, np.uint8)
        classes.encode(values, None, codes)
        for value, code in zip(values.tolist(), codes.tolist(), strict=True):
            want = Kind.I32 if -(2**31) <= value < 2**31 else Kind.I64 if value < 2**63 else Kind.U64
            shown = classes.representatives[code]
            assert (shown.kind, shown.number == 1, shown.number % 16 == 0) == (want, value == 1, value % 16 == 0)


def test_a_policy_beyond_the_batch_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(choose_module.KEYS, "fewest-bytes", lambda _, launch: len(launch.args) ** 2)
    monkeypatch.setitem(choose_module.REFUSALS, "full-moon", (True, lambda _, launch: launch.args, True))
    for odd, name in (
        (Pass("exact", ("fewest-bytes",)), "fewest-bytes"),
        (Pass("exact", refuse=("full-moon",)), "full-moon"),
    ):  # type: ignore[arg-type]
        with pytest.raises(InvalidPolicy, match=name):
            BatchCapture.build(CAPTURE, SHAPE, Policy("odd", "", (odd,)))


def test_a_shape_beyond_the_batch_is_refused() -> None:
    wide = LaunchShape("k", tuple(ArgShape(f"n{i}", Kind.I32) for i in range(65)), {})
    with pytest.raises(InvalidLaunch, match="65 args"):
        BatchCapture.build(CAPTURE, wide, THREE_PASS)
    with pytest.raises(InvalidLaunch, match="given twice"):
        BatchCapture.build(CAPTURE, LaunchShape("k", (ArgShape("n", Kind.I32),) * 2, {}), THREE_PASS)
    with pytest.raises(InvalidLaunch, match="no kind"):
        ArgShape("n", "i16")
    with pytest.raises(InvalidLaunch, match="starts with"):
        ArgShape("p", Kind.PTR, "bf16")


def test_the_shape_of_a_launch_is_the_launch_without_its_numbers() -> None:
    launch = Launch(
        "k", (Arg("n", Kind.I32, 1), Arg("p", Kind.PTR, 16, "*bf16")), {"B": Const(int_=1)}, 4, 2, "a", True, "s"
    )
    assert LaunchShape.of(launch).launch(launch.args) == launch
    assert [arg.kind for arg in LaunchShape.of(launch, narrow=True).args] == [NARROWED, Kind.PTR]


def test_the_bench_measures_cases_that_are_decided_in_several_ways() -> None:
    found = list(rates(launches=4096, runs=1))
    assert {(rate.what, rate.variants, rate.ints + rate.ptrs) for rate in found} >= {
        ("encoded", 8, 8),
        ("from raw", 8, 8),
    }
    assert all(rate.million_a_second > 0 and rate.tabled and rate.outcomes > 1 for rate in found)
