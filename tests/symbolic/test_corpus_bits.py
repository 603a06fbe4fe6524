"""The bundled corpus: verdicts against the labels, levels, reasons, time."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from functools import cache

import msgspec
import numpy as np
import pytest
from foldproof.gpu.bundle import bundled_capture, read_manifest
from foldproof.gpu.corpus import BY_NAME
from foldproof.gpu.pairs import expected
from foldproof.gpu.plan import Plan
from foldproof.gpu.symbolic.bits import BitsError, BitsVerdict, Level, Pair, witness_case
from foldproof.gpu.symbolic.cases import allocations, blocks_of, case_from, parameters
from foldproof.gpu.symbolic.compare import Comparer
from foldproof.gpu.symbolic.execute import execute, launched
from foldproof.gpu.symbolic.graph import Graph
from foldproof.impl.errors import InvalidLaunch
from helpers_symbolic import bundled, has_bundle, values

pytestmark = pytest.mark.skipif(not has_bundle(), reason="the bundled capture is not built")


@cache
def verdicts() -> tuple[tuple[Pair, BitsVerdict], ...]:
    replay, cases = bundled()
    return tuple((pair, replay.verdict(pair)) for pair in replay.pairs(cases))


@cache
def plans() -> dict[str, Plan]:
    replay, _ = bundled()
    rows = {row.hash: row for row in read_manifest(bundled_capture()).variants}
    return {
        v.hash: Plan(BY_NAME[v.fn], BY_NAME[v.fn].twin(rows[v.hash].twin), v.num_warps, bool(v.enable_fp_fusion))
        for v in replay.capture.kernels
    }


def test_no_pair_is_equal_that_the_corpus_expects_to_differ() -> None:
    wrong = []
    for pair, found in verdicts():
        first, second = plans()[pair.first], plans()[pair.second]
        if first.twin != second.twin and first.num_warps != second.num_warps:
            continue  # the corpus says nothing of two changes at once
        want = expected(first, second)
        if want in ("differs", "unstable") and found.level.is_equal and found.level is not Level.IDENTICAL:
            wrong.append((first.title, second.title, found.level))
        if want == "equal" and found.level is Level.DIFFERS:
            wrong.append((first.title, second.title, found.level))
    assert not wrong


def test_nine_in_ten_are_decided_and_the_rest_say_why() -> None:
    levels = Counter(v.level for _, v in verdicts())
    open_ = [v for _, v in verdicts() if not v.level.is_decided and not v.reason.startswith("no reference")]
    assert len(verdicts()) >= 60
    assert len(open_) <= len(verdicts()) / 10, levels
    assert all(v.reason for v in open_)
    assert {Level.IDENTICAL, Level.PROVED, Level.PROVED_NO_NAN, Level.DIFFERS, Level.UNSTABLE} <= set(levels)


def test_verdicts_are_transitive() -> None:
    """Equal for every bit pattern is an equivalence, per launch; a breach would be a fault of ours."""
    equal: dict[str, set[frozenset[str]]] = defaultdict(set)
    differs: dict[str, set[frozenset[str]]] = defaultdict(set)
    for pair, found in verdicts():
        key = frozenset((pair.first, pair.second))
        if found.level in (Level.PROVED, Level.IDENTICAL):
            equal[pair.case.name].add(key)
        elif found.level is Level.DIFFERS:
            differs[pair.case.name].add(key)
    for name, pairs in differs.items():
        for pair_ in pairs:
            for middle in {h for p in equal[name] for h in p}:
                assert not all(frozenset((h, middle)) in equal[name] for h in pair_ if h != middle), pair_


@pytest.mark.parametrize(
    ("fn", "change", "level"),
    [
        ("_row_sum", {"div16 of X"}, Level.DIFFERS),
        ("_scale", {"fold of R"}, Level.PROVED_NO_NAN),
        ("_row_max", {"fold of S"}, Level.PROVED),
        ("_row_argmax", {"fold of S"}, Level.PROVED_NO_NAN),
        ("_copy_stride", {"fold of S"}, Level.PROVED),
        ("_dot", {"fold of AK"}, Level.PROVED),
        ("_softmax", {"fold of S"}, Level.DIFFERS),
        ("_rms_norm", {"fold of S"}, Level.DIFFERS),
        ("_atomic_sum", {"fold of S"}, Level.UNSTABLE),
        ("_atomic_count", {"fold of S"}, Level.PROVED),
        ("_int_mix", {"fold of R"}, Level.PROVED),
    ],
)
def test_known_verdicts(fn: str, change: set[str], level: Level) -> None:
    found = [v.level for _, v in verdicts() if v.fn == fn and set(v.change) == change]
    assert level in found
    assert not {v for v in found if v.is_equal != level.is_equal} - {Level.IDENTICAL} or fn == "_row_sum"


def test_fusion_decides_about_fma() -> None:
    folds = [(p, v) for p, v in verdicts() if v.fn == "_fma_scale" and set(v.change) == {"fold of R"}]
    by_fusion = defaultdict(set)
    for pair, found in folds:
        by_fusion[plans()[pair.first].fused].add(found.level)
    assert by_fusion[True] == {Level.DIFFERS}
    assert by_fusion[False] <= {Level.PROVED, Level.IDENTICAL}


def test_a_difference_comes_with_a_witness_and_an_explanation() -> None:
    for _, found in verdicts():
        if found.level is Level.DIFFERS:
            assert found.witness is not None
            assert found.explanation is not None
            assert found.witness.output.bits != found.witness.other_bits
            assert found.witness.inputs
            assert found.explanation.output.startswith(found.witness.output.buffer)
            assert all(":" in line and ".py" in line for line in found.explanation.lines), found.explanation


def test_a_witness_of_exact_operations_is_confirmed_by_another_summation() -> None:
    """The two bytes of a row sum's witness are two roundings of the exact sum, by Python's own floats."""
    _, found = next((p, v) for p, v in verdicts() if v.fn == "_row_sum" and v.level is Level.DIFFERS)
    assert found.witness is not None
    assert found.witness.exact
    total = sum(memoryview(e.bits.to_bytes(4, "little")).cast("f")[0] for e in found.witness.inputs)
    for bits in (found.witness.output.bits, found.witness.other_bits):
        assert memoryview(bits.to_bytes(4, "little")).cast("f")[0] == pytest.approx(total, rel=1e-4, abs=1e-3)


def test_a_witness_replays_to_its_two_values() -> None:
    """The record alone, read back from JSON, gives the two values again in a new execution of both variants."""
    replay, _ = bundled()
    exact = [(p, v) for p, v in verdicts() if v.witness is not None and v.witness.exact]
    for pair, found in exact[:: len(exact) // 6]:
        record = json.loads(json.dumps(witness_case(pair, found)))
        case = case_from(record)
        regions = allocations(case)
        g = Comparer(Graph(), regions).g
        region = next(r for r in regions if r.name == record["expect"]["buffer"])
        inputs = {r.name: np.zeros((r.stop - r.start) // r.elem, np.uint64) for r in regions}
        for name, elements in record["inputs"].items():
            for index, bits in elements:
                inputs[name][index] = bits
        got = []
        for name in record["pair"]:
            variant = next(v for v in replay.capture.kernels if v.hash == name)
            kernel = replay.kernel(name)
            assert case.grid is not None
            start = launched(kernel, parameters(kernel, variant, case.launch), case.grid, variant.shared)
            run = execute(g, start, regions, blocks_of(case.grid)[0])
            at = np.array([region.start + record["expect"]["index"] * region.elem])
            got.append(int(values(g, run, at, inputs, regions, region.elem)[0]))
        assert got == record["expect"]["bits"]


def test_verdicts_survive_json() -> None:
    for _, found in verdicts()[:40]:
        assert msgspec.json.decode(msgspec.json.encode(found), type=BitsVerdict) == found


def test_verdicts_repeat() -> None:
    replay, cases = bundled()
    pairs = [p for p in replay.pairs(cases) if p.fn in ("_scale", "_row_dot")][:6]
    again = [replay.verdict(p) for p in pairs]
    known = {(p.first, p.second): v for p, v in verdicts()}
    assert again == [known[p.first, p.second] for p in pairs]


def test_a_launch_without_grid_is_unknown_with_its_reason() -> None:
    replay, cases = bundled()
    pair = next(iter(replay.pairs(cases)))
    bare = msgspec.structs.replace(pair.case, grid=None)
    found = replay.verdict(msgspec.structs.replace(pair, case=bare))
    assert found.level in (Level.UNKNOWN, Level.IDENTICAL)
    if found.level is Level.UNKNOWN:
        assert "grid" in found.reason


def test_bad_input_is_named() -> None:
    replay, cases = bundled()
    with pytest.raises(BitsError, match="no variant has the hash"):
        replay.pair("nonsense", "nonsense", cases)
    with pytest.raises(InvalidLaunch, match="grid"):
        case_from({"launch": {"fn": "f", "args": []}, "grid": [0, 1]})


def test_a_row_reduction_takes_milliseconds() -> None:
    replay, cases = bundled()
    fresh = type(replay).open(bundled_capture())
    pair = next(p for p in replay.pairs(cases) if p.fn == "_row_sum" and verdict_of(p) is not Level.IDENTICAL)
    fresh.verdict(pair)
    fresh._session = None  # noqa: SLF001  # the PTX stays parsed, the runs do not
    started = time.perf_counter()
    fresh.verdict(pair)
    assert time.perf_counter() - started < 1.0  # both variants, four blocks; docs/performance.md has the measurement


def verdict_of(pair: Pair) -> Level:
    return next(v.level for p, v in verdicts() if p == pair)
