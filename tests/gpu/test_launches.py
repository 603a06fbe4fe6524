from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.corpus import BY_NAME, Buffer
from foldproof.impl import Capture, Selection, decide, launch_from, load_capture, load_policy

BUNDLE = bundled_capture()
CAPTURE = load_capture(BUNDLE)
RECORDS: list[dict[str, Any]] = json.loads((BUNDLE / "launches.json").read_text())
BY_RECORD = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["name"])


def answer(record: dict[str, Any], policy: str) -> dict[str, Any]:
    outcome = decide(CAPTURE, launch_from(record["launch"]), load_policy(policy))
    if isinstance(outcome, Selection):
        return {"pick": outcome.variant.hash, "pass": outcome.strictness}
    among = sorted(CAPTURE.kernels[index].hash for index in outcome.among)
    return {"error": outcome.code, "among": among} if among else {"error": outcome.code}


@BY_RECORD
def test_a_recorded_launch_is_served_as_expected(record: dict[str, Any]) -> None:
    assert answer(record, "three-pass") == record["expect"]


def test_a_launch_that_pins_no_warp_count_is_ambiguous_to_those_who_ask() -> None:
    records = [record for record in RECORDS if "expect_recommended" in record]
    assert {record["launch"]["fn"] for record in records} == {k.name for k in BY_NAME.values() if len(k.num_warps) > 1}
    for record in records:
        assert answer(record, "recommended") == record["expect_recommended"]


def test_every_variant_has_a_launch_that_selects_it_exactly() -> None:
    exact = {record["expect"]["pick"] for record in RECORDS if record["expect"].get("pass") == "exact"}
    assert exact == {variant.hash for variant in CAPTURE.kernels}


def test_every_outcome_is_among_the_records() -> None:
    outcomes = {record["expect"].get("pass") or record["expect"]["error"] for record in RECORDS}
    assert outcomes == {"exact", "general", "runtime-one", "MissingTritonVariant"}


def test_without_its_folded_twin_a_launch_falls_back_and_says_so() -> None:
    """The launch of a folded twin is one that the runtime twin can serve too: the two are interchangeable."""
    record = next(record for record in RECORDS if record["name"].startswith("_merge[folded,"))
    launch = launch_from(record["launch"])
    rest = Capture(tuple(v for v in CAPTURE.kernels if v.fn == "_merge" and "R" not in v.consts))
    outcome = decide(rest, launch, load_policy("three-pass"))
    assert isinstance(outcome, Selection)
    assert outcome.ones == ("R",)
    assert len(outcome.log) == 1


def test_a_record_says_what_a_run_of_it_needs() -> None:
    for record in RECORDS:
        kernel = BY_NAME[record["launch"]["fn"]]
        buffers = {p.name: p for p in kernel.params if isinstance(p, Buffer)}
        assert set(record["buffers"]) == set(buffers), record["name"]
        assert len(record["grid"]) == 3
        assert all(extent >= 1 for extent in record["grid"])
        for arg in record["launch"]["args"]:
            if arg["kind"] == "ptr":
                assert arg["bytes"] == buffers[arg["name"]].elems * {"*bf16": 2}.get(arg["type"], 4), record["name"]


def test_allocations_do_not_overlap() -> None:
    for record in RECORDS:
        places = sorted((int(a["addr"], 16), a["bytes"]) for a in record["launch"]["args"] if a["kind"] == "ptr")
        for (start, size), (after, _) in pairwise(places):
            assert start + size <= after, record["name"]
