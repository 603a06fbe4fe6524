"""The script of a device run, with the fake worker in the device's place: plan, run, resume, exit codes, receipts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from foldproof.gpu.replay import device, read_receipts
from foldproof.gpu.replay.progress import Progress
from foldproof.gpu.replay.witnessing import Element, Predicted, Witness
from foldproof.impl import FoldproofError
from replay.conftest import FAKE
from replay.toys import entry

Run = Callable[..., int]


@pytest.fixture
def capture(toy_capture: Callable[..., Path]) -> Path:
    # runtime-b does not assume that X is aligned: of two with equal params a policy would refuse to choose.
    params = [{**param, "div16": param["name"] == "OUT"} for param in entry("runtime-b")["params"]]
    more = {"runtime-b": {"params": params}}
    return toy_capture({"folded": "copy", "runtime-a": "last_bit", "runtime-b": "copy"}, **more)


@pytest.fixture
def run(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the script on the toy capture; scenarios, which need the bundled one, fail and are owed."""
    monkeypatch.setattr("foldproof.gpu.replay.supervising.STARTUP_S", 30.0)

    def go(*arguments: str, **settings: object) -> int:
        monkeypatch.setenv("FAKE_DEVICE", json.dumps({"memory": 1 << 24, **settings}))
        worker = [sys.executable, str(FAKE), str(capture), "7", "1"]
        base = ["--capture", str(capture), "--out", str(tmp_path / "out"), "--sets", "8", "--seed", "7"]
        return device.main([*base, "--skip-selftest", *arguments], worker)

    return go


def test_a_plan_runs_nothing(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--plan") == 0
    assert "3 pairs, 1 launches; to run: 3 and 1" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_a_run_writes_its_receipt_and_says_what_is_owed(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--commit", "abc", "--dirty", "0") == 1
    (receipt,) = read_receipts(tmp_path / "out")
    assert (receipt.commit, receipt.dirty, receipt.seed, receipt.complete) == ("abc", False, 7, True)
    assert receipt.sets == {"finite": 4, "infinite": 2, "nan": 2, "search": 2048}
    assert receipt.counts["finite"] == {"differs": 2, "equal": 1}
    assert "every pair on GB10" in [owed.what for owed in receipt.owed]
    assert str(tmp_path) not in msgspec.json.encode(receipt).decode()
    profile = receipt.results["profile"]
    assert (profile["bouts"], profile["pair_input_sets"], profile["kernel_launches"]) == (1, 24, 72)
    text = capsys.readouterr().out
    assert "ablation: 1 PASS, 1 FAIL" in text
    assert "negative controls that did not differ: none" in text


def test_a_run_that_was_cut_short_goes_on(run: Run, tmp_path: Path) -> None:
    assert run("--budget-s", "0") == 1
    (receipt,) = read_receipts(tmp_path / "out")
    assert not receipt.complete
    assert receipt.counts["finite"] == {"owed": 3}
    progress = tmp_path / "out" / device.PROGRESS
    whole = progress.read_bytes()
    progress.write_bytes(whole + b'{"key":"bout toy launch","val')
    assert run("--resume") == 1
    assert read_receipts(tmp_path / "out")[-1].complete
    lines = [json.loads(line) for line in progress.read_bytes().splitlines()]
    bouts = [line for line in lines if line["key"] == "bout toy launch"]
    assert len(bouts) == 1
    # What is done is not run again: a device on which every launch would fault does not change it.
    assert run("--resume", memory=1) == 1
    assert read_receipts(tmp_path / "out")[-1].complete


def test_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "progress"
    Progress(file, {"seed": 1}, resume=False).keep("a", 1)
    assert Progress(file, {"seed": 1}, resume=True).pieces == {"a": 1}
    with pytest.raises(FoldproofError, match="another capture, seed or number of sets"):
        Progress(file, {"seed": 2}, resume=True)


def test_witnesses_are_confirmed_in_the_same_run(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "bits.json"
    witness = Witness((Element("X", 99, 0x40000000),), Element("OUT", 99, 0x40000000), 0xC0000000, exact=True)
    cases = [Predicted("folded", name, "toy launch", witness) for name in ("runtime-a", "runtime-b")]
    file.write_bytes(msgspec.json.encode(cases))
    run("--witnesses", str(file))
    (receipt,) = read_receipts(tmp_path / "out")
    assert [row["word"] for row in receipt.results["witnesses"]] == ["confirmed", "refuted"]


@pytest.mark.parametrize(
    ("given", "code", "word"),
    [
        (((), {"absent": True}), 3, "no CUDA device can be used"),
        (((), {"arch": [8, 0]}), 3, "the capture needs sm_90"),
        ((("--capture", "/nowhere"), {}), 2, "/nowhere"),
        ((("--witnesses", "/nowhere.json"), {}), 2, "nowhere.json"),
    ],
)
def test_what_cannot_run_says_why(
    run: Run,
    given: tuple[tuple[str, ...], dict[str, object]],
    code: int,
    word: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments, settings = given
    assert run(*arguments, **settings) == code
    text = capsys.readouterr().err
    assert word in text
    assert "Traceback" not in text


def test_sets_are_half_finite() -> None:
    assert device.sets_of(512) == {"finite": 256, "infinite": 128, "nan": 128}
    assert sum(device.sets_of(7).values()) == 7
