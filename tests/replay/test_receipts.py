"""Receipts: small, without machine paths, read back as written, and believed only for the capture they speak of."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from foldproof.gpu.replay import (
    Receipt,
    Supervisor,
    ablate,
    corrected_labels,
    device_facts,
    judge,
    matching,
    plan_replay,
    read_receipt,
    read_receipts,
    replay_receipt,
    rows,
    run_plan,
    silent_controls,
    verdict_index,
    write_receipt,
)
from foldproof.gpu.replay.inputs import SetClass
from foldproof.impl import FoldproofError
from replay.toys import entry

SETS: dict[SetClass, int] = {"finite": 4, "infinite": 2, "nan": 2}
WHEN = dt.datetime(2026, 12, 1, 3, 4, 5, tzinfo=dt.UTC)
Made = tuple[Path, Receipt]


@pytest.fixture
def made(toy_capture: Callable[..., Path], supervise: Callable[..., Supervisor]) -> Made:
    # runtime-b does not assume that X is aligned: of two with equal params a policy would refuse to choose.
    params = [{**param, "div16": param["name"] == "OUT"} for param in entry("runtime-b")["params"]]
    more = {"runtime-b": {"params": params}}
    capture = toy_capture({"folded": "copy", "runtime-a": "quiet", "runtime-b": "copy"}, **more)
    plan = plan_replay(capture)
    with supervise(capture) as supervisor:
        facts = device_facts(supervisor, capture)
        counts = run_plan(plan, supervisor, SETS)
    receipt = replay_receipt(
        plan,
        counts,
        facts,
        ablation=ablate(capture, plan, judge(plan, counts)),
        sets=SETS,
        started=WHEN,
        seconds=1.5,
        seed=7,
        command="foldproof replay",
        commit="abc",
        dirty=False,
        owed=[],
        results={"profile": {"bouts": 1}},
    )
    return capture, receipt


def test_a_receipt_is_read_back_as_written(made: Made, tmp_path: Path) -> None:
    capture, receipt = made
    file = write_receipt(receipt, tmp_path / "receipts")
    assert file.name == "replay-fake-9000-20261201T030405-7.receipt.json.gz"
    assert read_receipt(file) == receipt
    assert read_receipts(tmp_path / "receipts") == [receipt]
    text = gzip.decompress(file.read_bytes()).decode()
    assert str(capture) not in text
    assert str(tmp_path) not in text
    assert file.stat().st_size < 2000
    plain = tmp_path / "plain" / "x.receipt.json"
    plain.parent.mkdir()
    plain.write_text(text)
    assert read_receipts(plain.parent) == [receipt]
    assert json.loads(text)["counts"]["every bit pattern"] == {"differs": 2, "equal": 1}


def test_the_same_run_gives_the_same_verdicts(made: Made, supervise: Callable[..., Supervisor]) -> None:
    capture, receipt = made
    plan = plan_replay(capture)
    with supervise(capture) as supervisor:
        again = judge(plan, run_plan(plan, supervisor, SETS))
    assert again == receipt.pairs


def test_a_receipt_speaks_for_its_capture_only(made: Made) -> None:
    capture, receipt = made
    assert matching(receipt, capture)
    aot = capture / "aot.json"
    value = json.loads(aot.read_text())
    aot.write_text(json.dumps(value, indent=3))
    assert matching(receipt, capture)
    cubin = capture / "cubins" / "folded.cubin"
    code = cubin.read_bytes()
    cubin.write_bytes(code + b"!")
    assert not matching(receipt, capture)
    cubin.unlink()
    assert matching(receipt, capture)
    cubin.write_bytes(code)
    value["kernels"][0]["num_stages"] = 9
    aot.write_text(json.dumps(value))
    assert not matching(receipt, capture)


def test_rows_say_each_pair_and_domain(made: Made) -> None:
    _, receipt = made
    found = {(row.first, row.second, row.domain): row for row in rows(receipt)}
    assert len(found) == 9
    quiet = found["folded", "runtime-a", "every bit pattern"]
    assert (quiet.word, quiet.change, quiet.confirmed) == ("differs", "fold of R", None)
    assert found["folded", "runtime-a", "no NaN"].word == "equal"
    assert found["folded", "runtime-a", "no NaN"].reason == "6 sets, 4800 bytes compared, 2395 written"


def test_labels_are_held_to_the_device(made: Made) -> None:
    _, receipt = made
    labelled = [msgspec.structs.replace(pair, expected="differs", domain="every bit pattern") for pair in receipt.pairs]
    shown = msgspec.structs.replace(receipt, pairs=tuple(labelled))
    assert [(p.first, p.second) for p in corrected_labels(shown)] == [("folded", "runtime-b")]
    assert silent_controls(shown) == ()
    finite = tuple(msgspec.structs.replace(pair, domain="finite") for pair in labelled)
    assert silent_controls(msgspec.structs.replace(receipt, pairs=finite)) == ("toy",)
    assert [p.confirmed for p in receipt.pairs] == [None] * 3


def test_of_several_launches_the_one_that_differs_is_indexed(made: Made) -> None:
    _, receipt = made
    pair = next(p for p in receipt.pairs if p.second == "runtime-a")
    calm = msgspec.structs.replace(pair, launch="other", verdicts=receipt.pairs[1].verdicts)
    index = verdict_index(msgspec.structs.replace(receipt, pairs=(calm, pair, calm)))
    assert index[frozenset(("folded", "runtime-a"))] == pair


def test_the_ablation_is_in_the_receipt(made: Made) -> None:
    _, receipt = made
    lines = {(row.folded, row.runtime): row for row in receipt.ablation}
    passed, failed = lines["folded", "runtime-b"], lines["folded", "runtime-a"]
    assert passed.passed
    assert passed.reason == "exact, then fallback reading R; equal, on 8 sets"
    assert passed.ablated is not None
    assert len(passed.ablated.log) == 1
    assert passed.ablated.without == ("folded", "runtime-a")
    assert not failed.passed
    assert failed.reason == ("exact, then fallback reading R; differs, in 2 of 8 sets; equal on the domain 'no NaN'")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"{", "is no receipt"),
        (b"[]", "is no receipt"),
        (b'{"schema_version": 1, "kind": "replay"}', "is no receipt"),
    ],
)
def test_a_file_that_is_no_receipt_is_named(text: bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "x.receipt.json"
    file.write_bytes(text)
    with pytest.raises(FoldproofError, match=why) as caught:
        read_receipts(tmp_path)
    assert "x.receipt.json" in str(caught.value)


def test_a_later_schema_is_refused(made: Made, tmp_path: Path) -> None:
    _, receipt = made
    file = write_receipt(msgspec.structs.replace(receipt, schema_version=99), tmp_path)
    with pytest.raises(FoldproofError, match="schema version 99; this foldproof reads 1"):
        read_receipt(file)


def test_no_folder_has_no_receipts(tmp_path: Path) -> None:
    assert read_receipts(tmp_path / "absent") == []
