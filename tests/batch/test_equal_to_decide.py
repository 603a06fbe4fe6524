"""The batch reference answers as `impl.decide` does: every case of small scopes, counted, and wide random ones."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from foldproof.impl import ZOO, Capture, Const, Kind, Launch, Param, Policy, Selection, Variant, decide, load_capture
from foldproof.impl.batch import AMBIGUOUS, MISSING, NARROWED, STRICTNESS_CODES, ArgShape, BatchCapture, LaunchShape
from foldproof.impl.batch import tables as batch_tables
from foldproof.impl.batch.sweep import NO_STRICTNESS, Decisions
from foldproof.impl.capture import INT_TYPES
from foldproof.impl.launch import Arg
from foldproof.impl.policy import Pass, zoo_policy
from foldproof.impl.select import Outcome
from foldproof.props.exhaust import Block, DecideSelector, exhaust, reference
from foldproof.props.universe import Universe

SCOPES = (Universe(2, 2, 0), Universe(3, 1, 1), Universe(2, 1, 0, free_const=True, options=True), Universe(4, 1, 0))
FULL = os.environ.get("FOLDPROOF_FULL_SCOPE", "")
DEEPSEEK = Path(__file__).parents[2] / ".." / "shared" / "captures" / "deepseek-v41-tp4"
LAST_WINS = Policy("last-wins", "keys of the language that the zoo does not use", (Pass("general", ("last", "hash")),))  # type: ignore[arg-type]
ODD = Policy(
    "odd",
    "a refusal before a tie-break, and a score after one",
    (
        Pass("exact", ("most-held", "last"), ("twins", "launch-options")),  # type: ignore[arg-type]
        Pass("runtime-one", ("first", "fewest-ones"), ("launch-options", "free-constants")),  # type: ignore[arg-type]
        Pass("linker", ("hash",)),  # type: ignore[arg-type]
    ),
)
POLICIES = (*map(zoo_policy, ZOO), LAST_WINS, ODD)


def expected_of(outcome: Outcome, launch: Launch) -> tuple[int, int, int]:
    if not isinstance(outcome, Selection):
        return (MISSING if outcome.code == "MissingTritonVariant" else AMBIGUOUS), NO_STRICTNESS, 0
    names = [arg.name for arg in launch.args]
    return outcome.index, STRICTNESS_CODES.index(outcome.strictness), sum(1 << names.index(n) for n in outcome.ones)


def rows_of(decisions: Decisions) -> list[tuple[int, int, int]]:
    return list(zip(decisions.picks.tolist(), decisions.strictness.tolist(), decisions.ones.tolist(), strict=True))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("universe", SCOPES, ids=lambda u: f"{u.variants}x{u.ints}+{u.ptrs}-{u.launch_count}")
def test_every_pick_of_a_small_scope_is_that_of_decide(universe: Universe, policy: Policy) -> None:
    tally = exhaust(DecideSelector(policy), universe, policy)
    assert tally.is_complete
    assert tally.decisions == universe.decisions == sum(tally.outcomes.values())
    assert tally.disagreements == 0, tally.findings


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("tables", [True, False], ids=["tabled", "swept"])
def test_every_decision_of_a_batch_capture_over_a_small_scope_is_that_of_decide(policy: Policy, tables: bool) -> None:
    universe, decided = Universe(2, 1, 1, free_const=True, options=True), 0
    shapes = {
        (LaunchShape.of(launch).num_warps, len(launch.consts)): LaunchShape.of(launch) for launch in universe.launches
    }
    assert len(shapes) == 4
    for number in range(0, universe.captures, 13):  # a thirteenth of the captures here, every one of them above
        capture = universe.capture(number)
        for shape in shapes.values():
            batch = BatchCapture.build(capture, shape, policy, tables)
            codes = np.indices([len(of) for of in batch.classes], np.uint8).reshape(len(batch.classes), -1)
            launches = [batch.launch(column) for column in codes.T]
            want = [expected_of(decide(capture, launch, policy), launch) for launch in launches]
            assert rows_of(batch.decide(codes)) == want
            decided += len(want)
    assert decided == -(-universe.captures // 13) * 4 * 6


@pytest.mark.parametrize("name", ["three-pass", "recommended"])
@pytest.mark.parametrize("universe", [Universe(2, 2, 1), Universe(2, 1, 1, free_const=True, options=True)])
def test_every_pick_of_a_larger_scope_is_that_of_decide(name: str, universe: Universe) -> None:
    tally = exhaust(DecideSelector(zoo_policy(name)), universe, zoo_policy(name))
    assert (tally.decisions, tally.disagreements) == (universe.decisions, 0), tally.findings


@pytest.mark.skipif(
    not FULL, reason='9.4 million cases, minutes a policy: FOLDPROOF_FULL_SCOPE="three-pass recommended"'
)
@pytest.mark.parametrize("name", FULL.split() or ["three-pass"])
def test_every_pick_of_the_full_scope_is_that_of_decide(name: str) -> None:
    tally = exhaust(DecideSelector(zoo_policy(name)), Universe(), zoo_policy(name))
    assert (tally.decisions, tally.disagreements) == (9_437_184, 0), tally.findings


@pytest.mark.parametrize("name", ZOO)
def test_the_reference_names_the_pass_that_decide_names(name: str) -> None:
    universe, policy = Universe(2, 1, 1), zoo_policy(name)
    found = reference(Block(universe, 0, universe.captures), policy).strictness.reshape(universe.captures, -1)
    for number in range(universe.captures):
        capture = universe.capture(number)
        want = [expected_of(decide(capture, launch, policy), launch)[1] for launch in universe.launches]
        assert found[number].tolist() == want


INT_VALUES = sorted(
    {v for low, high in INT_TYPES.values() for v in (low, low + 1, low - 1, high, high + 1)} | {7, 16, -32}
)
POINTERS = ("*bf16", "*fp32")


def random_arg(draw: random.Random, shape: ArgShape) -> Arg:
    name = shape.name
    if shape.kind == Kind.PTR:
        size = draw.choice([None, 0, 4096, 2**31 - 1, 2**31])
        return Arg(name, Kind.PTR, draw.choice([0, 8, 16, 2**63 + 16, 2**64 - 1]), shape.pointee, size)
    if shape.kind in (Kind.NONE, Kind.U1, Kind.FP32):
        return Arg(name, Kind(shape.kind), draw.choice([0, 1]) if shape.kind != Kind.NONE else 0)
    kinds = ("i32", "i64", "u64")
    low, high = (-(2**63), 2**64 - 1) if shape.kind == NARROWED else INT_TYPES[shape.kind]
    value = draw.choice([v for v in [*INT_VALUES, 1, 1, 1, 16, 16] if low <= v <= high])
    held = next(k for k in kinds if INT_TYPES[k][0] <= value <= INT_TYPES[k][1])
    return Arg(name, Kind(held if shape.kind == NARROWED else shape.kind), value)


def random_place(draw: random.Random, arg: Arg) -> Param | Const | None:
    pick = draw.random()
    if pick < 0.03:
        return draw.choice([None, Const(int_=2), Const(bool_=True), Const(none=True)])
    if arg.kind == Kind.NONE:
        return Const(none=True)
    if arg.kind in (Kind.I32, Kind.I64, Kind.U64) and pick < 0.3:
        return Const(int_=1)
    type_name, annotated = arg.type, False
    if arg.kind in (Kind.I32, Kind.I64, Kind.U64) and pick < 0.5:
        type_name, annotated = draw.choice(list(INT_TYPES)), True
    elif pick < 0.53:
        type_name = draw.choice(["i32", "i64", "fp64", "*i32"])
    switch = draw.random()
    return Param(
        arg.name,
        type_name,
        draw.random() < 0.4,
        switch < 0.15,
        0.15 < switch < 0.3,
        annotated,
        arg.kind == Kind.PTR and 0.3 < switch < 0.5,
    )


def random_variant(draw: random.Random, number: int, shape: LaunchShape, args: list[Arg]) -> Variant:
    places = {arg.name: random_place(draw, arg) for arg in args}
    consts = {name: place for name, place in places.items() if isinstance(place, Const)}
    consts |= {name: const if draw.random() < 0.9 else Const(f32=0) for name, const in shape.consts.items()}
    if draw.random() < 0.3:
        consts["FREE"] = Const(int_=draw.choice([1, 2]))
    params = [place for place in places.values() if isinstance(place, Param)]
    if draw.random() < 0.1:
        params.append(Param("extra", "i32", False, False))  # no launch names it
    draw.shuffle(params)
    return Variant(
        "k" if draw.random() < 0.95 else "other",
        f"{draw.randrange(16**6):06x}{number}",
        draw.choice([4, 4, 4, 8]),
        tuple(params),
        consts,
        num_stages=draw.choice([0, 2, 2, 3]),
        arch=draw.choice([None, None, "sm_90"]),
        enable_fp_fusion=draw.choice([None, None, True]),
        source=draw.choice([None, None, "a", "b"]),
    )


def random_shape(draw: random.Random, most_args: int) -> LaunchShape:
    kinds = [Kind.I32, Kind.I32, NARROWED, Kind.I64, Kind.U64, Kind.U1, Kind.FP32, Kind.NONE, Kind.PTR, Kind.PTR]
    picked = [draw.choice(kinds) for _ in range(draw.randrange(most_args + 1))]
    args = (ArgShape(f"a{i}", k, draw.choice(POINTERS) if k == Kind.PTR else "") for i, k in enumerate(picked))
    return LaunchShape(
        "k",
        tuple(args),
        draw.choice([{}, {"B": Const(int_=64)}]),
        draw.choice([None, None, 4]),
        draw.choice([None, None, 2]),
        draw.choice([None, None, "sm_90"]),
        draw.choice([None, None, True]),
        draw.choice([None, "a"]),
    )


def columns(launches: list[Launch], shape: LaunchShape) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    values: dict[str, np.ndarray] = {}
    sizes: dict[str, np.ndarray] = {}
    for place, arg in enumerate(shape.args):
        args = [launch.args[place] for launch in launches]
        numbers = [a.number for a in args]
        if arg.kind == Kind.PTR:
            values[arg.name] = np.array(numbers, np.uint64)
            sizes[arg.name] = np.array([-1 if a.bytes is None else a.bytes for a in args])
        elif arg.kind == Kind.U1:
            values[arg.name] = np.array(numbers, np.bool_)
        elif arg.kind == Kind.FP32:
            values[arg.name] = np.array(numbers, np.uint32)
        elif arg.kind != Kind.NONE:
            signed = max(numbers) < 2**63
            values[arg.name] = np.array(numbers, np.int64 if signed else np.uint64)
    return values, sizes


def random_launches(draw: random.Random, shape: LaunchShape, count: int) -> list[Launch]:
    launches = [shape.launch([random_arg(draw, arg) for arg in shape.args]) for _ in range(count)]
    # One array holds one sign: a batch of narrowed ints has negative values or values from 2^63 on, not both.
    mixed = [any(a.number >= 2**63 for a in x.args if a.kind == Kind.U64) for x in launches]
    return [x for x, big in zip(launches, mixed, strict=True) if not big] or launches[:1]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("tables", [True, False], ids=["tabled", "swept"])
def test_random_captures_with_every_kind_and_switch_decide_alike(policy: Policy, tables: bool) -> None:
    picked = 0
    for seed in range(80):
        draw = random.Random(seed)  # noqa: S311 (no secret)
        shape = random_shape(draw, 6)
        launches = random_launches(draw, shape, 25)
        kernels = [
            random_variant(draw, i, shape, list(draw.choice(launches).args)) for i in range(draw.randrange(1, 8))
        ]
        capture = Capture(tuple(kernels))
        batch = BatchCapture.build(capture, shape, policy, tables)
        assert batch.is_tabled == tables
        want = [expected_of(decide(capture, launch, policy), launch) for launch in launches]
        if any(arg.kind != Kind.NONE for arg in shape.args):
            values, sizes = columns(launches, shape)
            assert rows_of(batch.decide(batch.encode(values, sizes))) == want, f"seed {seed}"
            assert rows_of(batch.decide_values(values, sizes)) == want, f"seed {seed}"
        picked += sum(pick >= 0 for pick, _, _ in want)
    assert picked > 130


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_launches_too_wide_for_one_table_decide_alike(policy: Policy) -> None:
    kinds, fallbacks = set(), 0
    for seed in range(4):
        draw = random.Random(seed)  # noqa: S311 (no secret)
        args = [ArgShape(f"n{i}", Kind.I32) for i in range(9)] + [
            ArgShape(f"p{i}", Kind.PTR, "*bf16") for i in range(6)
        ]
        shape = LaunchShape("k", tuple(args), {})
        base = [
            Arg(a.name, Kind(a.kind), draw.choice([1, 7, 16]) if a.kind == Kind.I32 else 16, a.pointee) for a in args
        ]
        kernels = []
        for number in range(6):
            compiled = [
                Const(int_=1)
                if a.number == 1 and draw.random() < 0.6
                else Param(a.name, a.type, a.number % 16 == 0 and draw.random() < 0.8, draw.random() < 0.1)
                for a in base
            ]
            consts = {a.name: c for a, c in zip(base, compiled, strict=True) if isinstance(c, Const)}
            params = tuple(c for c in compiled if isinstance(c, Param))
            kernels.append(Variant("k", f"{draw.randrange(1000):03}{number}", 4, params, consts))
        capture = Capture(tuple(kernels))
        launches = [shape.launch(base)]
        for _ in range(60):
            near = list(base)
            for place in draw.sample(range(len(args)), draw.randrange(3)):
                near[place] = random_arg(draw, args[place])
            launches.append(shape.launch(near))
        batch = BatchCapture.build(capture, shape, policy)
        assert batch.is_tabled
        want = [expected_of(decide(capture, launch, policy), launch) for launch in launches]
        assert rows_of(batch.decide_values(*columns(launches, shape))) == want, f"seed {seed}"
        kinds |= {strictness for _, strictness, _ in want}
        fallbacks += sum(ones != 0 for _, _, ones in want)
    assert len(kinds) > 1
    assert fallbacks > 0 or policy.passes[-1].rules in ("exact", "general")


def test_a_shape_whose_tables_would_be_too_large_is_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_tables, "ONE_TABLE", 2)
    monkeypatch.setattr(batch_tables, "RUN_TABLE", 2)
    monkeypatch.setattr(batch_tables, "MOST_CELLS", 8)
    universe, policy = Universe(3, 2, 1), zoo_policy("recommended")
    capture = universe.capture(universe.captures // 2)
    batch = BatchCapture.build(capture, LaunchShape.of(universe.launches[0]), policy)
    assert not batch.is_tabled
    codes = np.indices([len(of) for of in batch.classes], np.uint8).reshape(3, -1)
    want = [expected_of(decide(capture, x, policy), x) for x in map(batch.launch, codes.T)]
    assert rows_of(batch.decide(codes)) == want


@pytest.mark.skipif(not DEEPSEEK.exists(), reason="../shared/captures is absent")
@pytest.mark.parametrize("name", ["three-pass", "recommended", "most-held"])
def test_a_shipped_capture_decides_alike_in_every_function(name: str) -> None:
    capture, policy = load_capture(DEEPSEEK), zoo_policy(name)
    draw, picked = random.Random(1), 0  # noqa: S311 (no secret)
    for fn in capture.functions:
        variant = draw.choice([v for v in capture.kernels if v.fn == fn])
        args = [ArgShape(p.name, *kind_of(p)) for p in variant.params]
        folded = [n for n, c in variant.consts.items() if c == Const(int_=1)]
        named = {n: c for n, c in variant.consts.items() if n not in folded}
        shape = LaunchShape(fn, (*args, *(ArgShape(n, Kind.I32) for n in folded)), named)
        batch = BatchCapture.build(capture, shape, policy)
        codes = np.array([[draw.randrange(len(of)) for _ in range(30)] for of in batch.classes], np.uint8)
        # The first launch is the one that the variant was compiled for.
        codes[:, 0] = [1 if p.div16 else 0 for p in variant.params] + [2] * len(folded)
        launches = [batch.launch(column) for column in codes.T]
        want = [expected_of(decide(capture, x, policy), x) for x in launches]
        assert rows_of(batch.decide(codes)) == want, fn
        assert want[0][0] != MISSING
        picked += sum(pick >= 0 for pick, _, _ in want)
    assert picked > len(capture.functions)


def kind_of(param: Param) -> tuple[Kind, str]:
    return (Kind.PTR, param.type) if param.type.startswith("*") else (Kind(param.type), "")
