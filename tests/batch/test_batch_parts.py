"""The parts of the batch reference that only some shapes need: empty runs, tables that are too large, sizes, rates."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from foldproof.impl import ZOO, Arg, Capture, Const, InvalidLaunch, Kind, Param, Selection, Variant
from foldproof.impl.batch import ArgShape, BatchCapture, LaunchShape, bench, tables
from foldproof.impl.batch.keys import KeyPlan
from foldproof.impl.batch.sweep import AMBIGUOUS, MISSING, NO_STRICTNESS, STRICTNESS_CODES, sweep
from foldproof.impl.batch.verdicts import tie_break_rows, verdicts_of
from foldproof.impl.launch import Launch
from foldproof.impl.policy import Pass, Policy, zoo_policy
from foldproof.impl.rules import Strictness
from foldproof.impl.select import decide

THREE_PASS = zoo_policy("three-pass")
NAMES = [f"n{i}" for i in range(12)]
WIDE = Capture(
    tuple(
        Variant(
            "k",
            f"h{number}",
            4,
            tuple(Param(name, "i32", (number >> i) & 1 == 1, False) for i, name in enumerate(NAMES)),
            {},
        )
        for number in (0, 5, 9)
    )
)
SHAPE = LaunchShape("k", tuple(ArgShape(name, Kind.I32) for name in NAMES), {})


def drawn(count: int = 300) -> dict[str, np.ndarray[Any, Any]]:
    draw = np.random.default_rng(7)
    return {name: draw.choice(np.array([1, 3, 16, 32]), count) for name in NAMES}


def test_a_launch_of_class_codes_is_one_that_encodes_to_them() -> None:
    batch = BatchCapture.build(WIDE, SHAPE, THREE_PASS)
    codes = batch.encode(drawn(5))
    for column in codes.T:
        made = batch.launch(column)
        assert isinstance(made, Launch)
        assert [arg.name for arg in made.args] == NAMES
        back = batch.encode({arg.name: np.array([arg.number]) for arg in made.args})
        assert back[:, 0].tolist() == column.tolist()


def test_tables_that_would_be_too_large_leave_the_launches_to_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ONE_TABLE", 16)
    tabled = BatchCapture.build(WIDE, SHAPE, THREE_PASS)
    monkeypatch.setattr(tables, "MOST_CELLS", 1)
    swept = BatchCapture.build(WIDE, SHAPE, THREE_PASS)
    assert (tabled.is_tabled, swept.is_tabled) == (True, False)
    values = drawn()
    one, other = tabled.decide_values(values), swept.decide_values(values)
    for name in ("picks", "strictness", "ones"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


def test_a_launch_without_values_is_not_counted() -> None:
    batch = BatchCapture.build(WIDE, LaunchShape("k", (ArgShape("o", Kind.NONE),), {}), THREE_PASS)
    with pytest.raises(InvalidLaunch, match="no array says how many launches there are"):
        batch.encode({})


def test_the_size_of_an_allocation_decides_where_a_param_looks_at_it() -> None:
    range32 = Param("p", "*bf16", True, False, range32=True)
    capture = Capture(
        (Variant("k", "small", 4, (range32,), {}), Variant("k", "any", 4, (Param("p", "*bf16", True, False),), {}))
    )
    batch = BatchCapture.build(capture, LaunchShape("k", (ArgShape("p", Kind.PTR, "*bf16"),), {}), THREE_PASS)
    values = {"p": np.full(5, 32, np.uint64)}
    sizes = {"p": np.array([-1, 0, 2**31 - 1, 2**31, 2**40])}
    assert batch.decide_values(values, sizes).picks.tolist() == [1, 0, 0, 1, 1]
    assert batch.decide_values(values).picks.tolist() == [1] * 5


def test_no_args_have_one_key_and_no_candidates_one_state() -> None:
    plan = KeyPlan.over(range(0), [3, 2])
    assert plan.keys(np.zeros((2, 4), np.uint8)).tolist() == [0, 0, 0, 0]
    empty = BatchCapture.build(Capture((Variant("j", "h", 4, (), {}),)), SHAPE, THREE_PASS)
    assert empty.candidates == ()
    assert set(empty.decide_values(drawn(4)).picks.tolist()) == {-1}


def test_the_last_match_is_preferred_where_a_policy_says_so() -> None:
    last = Policy("last", "the last match", (Pass(Strictness.RUNTIME_ONE, ("last",)),))
    variants = WIDE.kernels
    assert tie_break_rows("last", variants).tolist() == [[0], [-1], [-2]]
    assert tie_break_rows("hash", variants[::-1]).tolist() == [[2], [1], [0]]
    batch = BatchCapture.build(WIDE, SHAPE, last)
    values = drawn(40)
    found = batch.decide_values(values).picks.tolist()
    launches = [batch.launch(column) for column in batch.encode(values).T]
    outcomes = [decide(WIDE, launch, last) for launch in launches]
    assert found == [getattr(outcome, "index", -1) for outcome in outcomes]


def test_rates_are_told_as_text_and_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = bench.Rate("encoded", "three-pass", 8, 4, 4, 1000, 12.34, (10.0, 14.0), True, 3)
    monkeypatch.setattr(bench, "rates", lambda: iter([one, one]))
    bench.main([])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("encoded   three-pass   8 variants x 4 ints + 4 pointers ")
    assert lines[0].endswith("    12.3 M launches/s  (10.0 to 14.0)")
    bench.main(["--json"])
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == {
        "what": "encoded", "policy": "three-pass", "variants": 8, "ints": 4, "ptrs": 4, "launches": 1000,
        "million_a_second": 12.34, "spread": [10.0, 14.0], "tabled": True, "outcomes": 3,
    }  # fmt: skip


def test_the_captures_of_the_bench_hold_every_kind_of_param() -> None:
    capture = bench.bench_capture(16, 4, 2, seed=0)
    params = [p for v in capture.kernels for p in v.params]
    assert {(p.div16, p.nospec) for p in params if p.type == "i32"} == {(False, False), (True, False), (False, True)}
    assert any(c == Const(int_=1) for v in capture.kernels for c in v.consts.values())
    assert {p.div16 for p in params if p.type == "*bf16"} == {False, True}


ENTRIES = (
    Variant("k", "a", 4, (Param("n", "i32", False, False),), {}),
    Variant("k", "b", 4, (Param("n", "i32", False, False),), {}),
    Variant("k", "c", 4, (Param("n", "i32", True, False),), {"F": Const(int_=2)}),
    Variant("k", "d", 8, (), {"n": Const(int_=1)}),
    Variant("k", "e", 4, (Param("m", "i32", False, False),), {}),
)
LAUNCHES = [Launch("k", (Arg("n", Kind.I32, value),)) for value in (1, 7, 16)]
LAUNCHES += [Launch("k", (Arg("n", Kind.I32, 16),), {"F": Const(int_=2)}), Launch("k", (Arg("m", Kind.I32, 3),))]
LAUNCHES += [Launch("k", (Arg("o", Kind.NONE),))]


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_sweep_decides_as_one_launch_at_a_time(name: str, count: int) -> None:
    policy, variants = zoo_policy(name), ENTRIES[:count]
    picks, strictness = sweep(verdicts_of(variants, LAUNCHES, policy), policy)
    outcomes = [decide(Capture(variants), launch, policy) for launch in LAUNCHES]
    words = {"MissingTritonVariant": MISSING, "AmbiguousTritonVariant": AMBIGUOUS}
    expected = [o.index if isinstance(o, Selection) else words[o.code] for o in outcomes]
    assert picks.tolist() == expected
    codes = [
        STRICTNESS_CODES.index(o.strictness) if isinstance(o, Selection) else NO_STRICTNESS for o in outcomes
    ]  # fmt: skip
    assert strictness.tolist() == codes


def test_every_kind_of_arg_is_encoded_and_the_empty_batch_too() -> None:
    kinds = {"u": Kind.U64, "f": Kind.FP32, "b": Kind.U1, "o": Kind.NONE, "p": Kind.PTR}
    params = tuple(
        Param(name, "*bf16" if kind == Kind.PTR else kind.value, name == "u", False)
        for name, kind in kinds.items()
        if kind != Kind.NONE
    )
    capture = Capture((Variant("k", "a", 4, params, {"o": Const(none=True)}),))
    shape = LaunchShape("k", tuple(ArgShape(n, k, "*bf16" if k == Kind.PTR else "") for n, k in kinds.items()), {})
    batch = BatchCapture.build(capture, shape, THREE_PASS)
    values: dict[str, np.ndarray[Any, Any]] = {
        "u": np.array([32, 1, 2**63 + 16], np.uint64),
        "f": np.array([0.0, 1.0, float("nan")], np.float32),
        "b": np.array([True, False, True]),
        "p": np.array([8, 8, 8], np.uint64),
    }
    assert batch.decide_values(values).picks.tolist() == [0, -1, 0]
    as_bits = values | {"f": values["f"].view(np.uint32)}
    assert batch.decide_values(as_bits).picks.tolist() == [0, -1, 0]
    empty = {name: array[:0] for name, array in values.items()}
    assert batch.encode(empty).shape == (5, 0)
    for of in batch.classes[:-2]:
        of.encode(empty[of.shape.name], None, np.zeros(0, np.uint8))
