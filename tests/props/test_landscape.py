"""What a capture leaves open, counted in arrays, is what the reference and the checks say one launch at a time."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import msgspec
import pytest
from foldproof.impl import ZOO, Capture, Launch, Policy, Selection, Variant, decide, load_capture, load_policy
from foldproof.impl.choose import ambiguous
from foldproof.impl.rules import refusal
from foldproof.props.derive import derive
from foldproof.props.generate import make_case, seeded
from foldproof.props.landscape import FunctionRow, landscape, summaries
from helpers import shared

POLICIES = [load_policy(name) for name in ZOO]


def one_by_one(capture: Capture, launches: list[Launch], policy: Policy, fn: str) -> FunctionRow:
    row: Counter[str] = Counter()
    own = [launch for launch in launches if launch.fn == fn]
    for launch in own:
        outcome = decide(capture, launch, policy)
        if isinstance(outcome, Selection):
            row[str(outcome.strictness).replace("-", "_") if outcome.strictness else "no_rules"] += 1
            row["fallback"] += outcome.is_fallback
            row["order_dependent"] += order_dependent(capture, launch, policy)
        else:
            row[outcome.code] += 1
    for launch in {
        msgspec.json.encode(bare): bare for x in own if (bare := msgspec.structs.replace(x, consts={}))
    }.values():
        row["free_constants"] += leaves_open(capture, launch, policy)
    names = ("exact", "general", "runtime_one", "no_rules", "AmbiguousTritonVariant", "MissingTritonVariant")
    more = ("fallback", "order_dependent", "free_constants")
    return FunctionRow(policy.name, fn, len(capture.candidates(fn)), len(own), *(row[name] for name in (*names, *more)))


def order_dependent(capture: Capture, launch: Launch, policy: Policy) -> bool:
    """Whether any two orders of the candidates give two variants."""
    orders = (Capture(kernels) for kernels in permutations(capture.kernels))
    outcomes = (decide(order, launch, policy) for order in orders)
    return len({outcome.variant.hash for outcome in outcomes if isinstance(outcome, Selection)}) > 1


def leaves_open(capture: Capture, launch: Launch, policy: Policy) -> bool:
    for step in policy.passes:
        admissible: list[tuple[int, Variant]] = [
            (i, v)
            for i, v in enumerate(capture.kernels)
            if v.fn == launch.fn and refusal(v, launch, policy.rules(step.rules)) is None
        ]
        if admissible:
            return bool(ambiguous("free-constants", admissible, admissible, launch))
    return False


def test_rows_are_what_decide_and_the_checks_say() -> None:
    choose, told = seeded(11), []
    for _ in range(12):
        case = make_case(choose)
        launches = [case.launch, *(d.launch for d in derive(case.capture))]
        rows = list(landscape(case.capture, launches, POLICIES, told.append))
        assert {row.policy for row in rows} <= set(ZOO)
        for row in rows:
            assert row == one_by_one(case.capture, launches, load_policy(row.policy), row.fn)
    assert len(told) >= 12


def test_summaries_name_the_policies() -> None:
    row = FunctionRow("p", "k", 2, 3, 1, 1, 1, 0, 0, 0, 1, 0, 2)
    other = msgspec.structs.replace(row, policy="q", fallback=0, order_dependent=1)
    (summary,) = summaries([row, other])
    assert summary.falls_back == ("p",)
    assert summary.order_dependent == ("q",)
    assert summary.free_constants == ("p", "q")


def test_the_real_capture() -> None:
    capture = load_capture(shared("captures/deepseek-v41-tp4"))
    launches = [derived.launch for derived in derive(capture)]
    policies = [load_policy(name) for name in ("three-pass", "recommended")]
    rows = list(landscape(capture, launches, policies))
    assert sum(row.launches for row in rows) == 2 * len(launches) == 2 * 3639
    found = {summary.fn: summary for summary in summaries(rows)}
    assert len(found) == len(capture.functions) == 40
    assert found["_index_score_rows"].falls_back == ("three-pass", "recommended")
    assert found["_index_score_rows"].order_dependent == ("three-pass",)
    assert not any("recommended" in summary.order_dependent for summary in found.values())
    assert sum(bool(summary.falls_back) for summary in found.values()) == 8
    assert found["_gemm"].free_constants == ("three-pass", "recommended")
    assert found["_bias"] == type(found["_bias"])("_bias", (), (), ())


@pytest.mark.slow
def test_the_real_capture_under_all_policies() -> None:
    capture = load_capture(shared("captures/deepseek-v41-tp4"))
    rows = list(landscape(capture, [derived.launch for derived in derive(capture)], POLICIES))
    assert len(rows) == 40 * len(ZOO)
    assert sum(row.order_dependent for row in rows if row.policy == "recommended") == 0
    assert sum(row.order_dependent for row in rows if row.policy == "three-pass") == 162
