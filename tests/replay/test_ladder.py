"""The whole path from capture to verdict, over a worker process with a fake device that fails in every way."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from foldproof.gpu.replay import NoDevice, PairVerdict, Schedule, Supervisor, device_facts, judge, plan_replay, run_plan
from foldproof.gpu.replay.inputs import SetClass

SETS: dict[SetClass, int] = {"finite": 4, "infinite": 2, "nan": 2}
Make = Callable[..., Path]
Supervise = Callable[..., Supervisor]


def verdicts(capture: Path, supervisor: Supervisor) -> dict[tuple[str, str], PairVerdict]:
    plan = plan_replay(capture)
    with supervisor:
        counts = run_plan(plan, supervisor, SETS)
    return {(v.first, v.second): v for v in judge(plan, counts)}


def words(found: PairVerdict) -> tuple[str, str, str]:
    return tuple(found.verdicts[d].word for d in ("finite", "no NaN", "every bit pattern"))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("behaviour", "expected", "reason"),
    [
        ("copy", ("equal",) * 3, "8 sets, 6400 bytes compared, "),
        ("quiet", ("equal", "equal", "differs"), "in 2 of 8 sets: first in OUT"),
        ("last_bit", ("differs",) * 3, "first in OUT at byte 399"),
        ("half", ("differs",) * 3, "first in OUT at byte 200"),
        ("nothing", ("differs",) * 3, "first in OUT at byte 0, "),
        ("writes_input", ("differs",) * 3, "first in X at byte 0"),
        ("unstable", ("unstable",) * 3, "runtime differs from itself run to run in 8 of 8 sets"),
        ("reads_fill", ("unstable",) * 3, "runtime reads bytes that the launch does not give it in 8 of 8 sets"),
        ("spills", ("fault",) * 3, "runtime writes outside its buffers in 8 of 8 sets"),
        ("fault", ("fault",) * 3, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("die", ("fault",) * 3, "the worker process died (exit status 9)"),
        ("refuse", ("no reference",) * 3, "CUDA_ERROR_INVALID_IMAGE"),
        ("abi", ("no reference",) * 3, "the code takes parameters of bytes"),
        ("slip", ("owed",) * 3, "this program failed: KeyError"),
    ],
)
def test_each_way_a_variant_can_behave_has_its_verdict(
    toy_capture: Make, supervise: Supervise, behaviour: str, expected: tuple[str, str, str], reason: str
) -> None:
    capture = toy_capture({"folded": "copy", "runtime": behaviour})
    found = verdicts(capture, supervise(capture))["folded", "runtime"]
    assert words(found) == expected
    assert reason in found.verdicts["every bit pattern"].reason


def test_two_variants_that_write_nothing_are_not_equal(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "nothing", "runtime": "nothing"})
    found = verdicts(capture, supervise(capture))["folded", "runtime"]
    assert words(found) == ("owed",) * 3
    assert "nothing was compared" in found.verdicts["finite"].reason


def test_a_first_difference_says_both_values_and_its_set(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "last_bit"})
    where = verdicts(capture, supervise(capture))["folded", "runtime"].verdicts["finite"].difference
    assert where is not None
    assert (where.buffer, where.offset, where.index, where.kind) == ("OUT", 399, 0, "moderate")
    first, second = (int(value, 16) for value in where.values)
    assert first ^ second == 0x80


def test_a_hang_costs_its_process_and_its_own_pairs_only(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime-a": "hang", "runtime-b": "copy"})
    supervisor = supervise(capture, patience_s=0.5)
    supervisor_started = time.monotonic()
    # The first event of a fresh process is waited for longer; the hang comes after it.
    found = verdicts(capture, supervisor)
    assert time.monotonic() - supervisor_started < 30
    assert words(found["folded", "runtime-b"]) == ("equal",) * 3
    assert words(found["folded", "runtime-a"]) == ("fault",) * 3
    assert "hung: no word in" in found["folded", "runtime-a"].verdicts["finite"].reason
    assert supervisor.restarts == 2


def test_a_fault_does_not_reach_the_other_pairs(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime-a": "fault", "runtime-b": "copy", "runtime-c": "last_bit"})
    found = verdicts(capture, supervise(capture))
    assert {pair: words(v)[0] for pair, v in found.items()} == {
        ("folded", "runtime-a"): "fault",
        ("folded", "runtime-b"): "equal",
        ("folded", "runtime-c"): "differs",
        ("runtime-a", "runtime-b"): "fault",
        ("runtime-a", "runtime-c"): "fault",
        ("runtime-b", "runtime-c"): "differs",
    }


def test_too_much_shared_memory_is_no_reference(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "copy"}, folded={"shared": 294912})
    found = verdicts(capture, supervise(capture))["folded", "runtime"]
    assert words(found) == ("no reference",) * 3
    assert "needs 294912 bytes of shared memory; the device has 232448" in found.verdicts["finite"].reason


def test_another_architecture_is_owed_and_says_which(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "copy"}, folded={"arch": "sm_121"})
    found = verdicts(capture, supervise(capture))["folded", "runtime"]
    assert words(found) == ("owed",) * 3
    assert found.verdicts["finite"].reason == "it was compiled for sm_121; this device is sm_90"


def test_too_little_memory_is_owed_and_says_how_much(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "copy"})
    found = verdicts(capture, supervise(capture, memory=60_000))["folded", "runtime"]
    assert words(found) == ("owed",) * 3
    assert "too little device memory: one input set takes" in found.verdicts["finite"].reason


def test_a_small_device_runs_the_same_sets_in_smaller_batches(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "copy"})
    found = verdicts(capture, supervise(capture, memory=100_000))["folded", "runtime"]
    assert words(found) == ("equal",) * 3
    assert found.verdicts["every bit pattern"].sets == 8


def test_identical_code_is_said_to_be_and_not_run(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "copy"})
    code = (capture / "cubins" / "folded.cubin").read_bytes()
    (capture / "cubins" / "runtime.cubin").write_bytes(code)
    supervisor = supervise(capture, absent=True)
    found = verdicts(capture, supervisor)["folded", "runtime"]
    assert (found.basis, words(found)) == ("identical code", ("equal",) * 3)
    assert supervisor.restarts == 0
    assert found.verdicts["finite"].sets == 0


def test_no_device_is_an_error_of_its_own(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "copy"})
    with supervise(capture, absent=True) as supervisor, pytest.raises(NoDevice, match="no CUDA device"):
        device_facts(supervisor, capture)


def test_a_device_that_can_run_no_variant_is_named_with_what_is_needed(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "copy"})
    with (
        supervise(capture, arch=(8, 0)) as supervisor,
        pytest.raises(NoDevice, match=r"sm_80\); the capture needs sm_90"),
    ):
        device_facts(supervisor, capture)


def test_what_is_past_the_deadline_is_owed(toy_capture: Make, supervise: Supervise) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "copy"})
    plan = plan_replay(capture)
    with supervise(capture) as supervisor:
        counts = run_plan(plan, supervisor, SETS, Schedule(deadline=time.monotonic() - 1))
    assert words(judge(plan, counts)[0]) == ("owed",) * 3
