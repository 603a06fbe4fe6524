from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from foldproof.impl import load_capture, load_policy
from foldproof.impl.cases import answer, read_cases
from helpers import SHARED, shared

CASES = SHARED / "cases" / "selection-reports.json"
HANDED = json.loads(CASES.read_text()) if CASES.exists() else []
RECORDED = {
    "exact-first-match": "exact-first",
    "exact-with-launch-pins": "exact-pinned",
    "exact-then-most-held": "most-held",
    "least-held": "least-held",
}


def agrees(expect: dict, got: dict) -> bool:
    if "error" in expect:
        return got["error"] == expect["error"]
    picks = expect.get("one_of", [expect.get("pick")])
    return got["pick"] in picks and got["pass"] == expect["pass"]


@pytest.mark.skipif(not HANDED, reason="the handed folder shared/cases is absent")
@pytest.mark.parametrize("case", HANDED, ids=[case["name"] for case in HANDED])
def test_cases_from_public_reports(case: dict) -> None:
    ambiguous = case["expect"].get("error") == "AmbiguousTritonVariant"
    if not ambiguous:
        got = answer(case, load_policy("three-pass"))
        assert agrees(case["expect"], got), (case["why"], got)
    got = answer(case, load_policy("recommended"))
    assert agrees(case.get("expect_recommended", case["expect"]), got), (case["why"], got)


def test_every_recorded_answer_of_the_public_selectors() -> None:
    values = read_cases(shared("recorded", "selections.jsonl.gz"))
    assert len(values) == 1500
    for recorded, policy in RECORDED.items():
        rules = load_policy(policy)
        for value in values:
            got = answer(value, rules)
            assert (got["error"] or got["index"]) == value["answers"][recorded], (value["name"], policy)


def real_capture() -> Path:
    return shared("captures", "deepseek-v41-tp4", "aot.json")


def test_the_real_capture_loads_in_under_100_ms() -> None:
    path = real_capture()
    times = []
    for _ in range(5):
        started = time.perf_counter()
        loaded = load_capture(path)
        times.append(time.perf_counter() - started)
    assert len(loaded.kernels) == 343
    assert sorted(times)[2] < 0.1
