"""The verbs about bytes: device evidence, symbolic replay, and what is said where there is no device."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
from foldproof.cli.bits import contradicts
from foldproof.cli.digests import identified
from foldproof.cli.emitting import device_event
from foldproof.cli.evidence import device_verdicts, receipt_files, receipts
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.symbolic.bits import BitsVerdict
from foldproof.gpu.symbolic.compare import Level
from foldproof.reports.events import BytesJudged, FileRef
from foldproof.reports.evidence import AtHand, staleness
from helpers import foldproof


def copied(tmp_path: Path) -> Path:
    """A copy of the bundled capture."""
    return shutil.copytree(bundled_capture(), tmp_path / "capture")


def judged(folder: Path) -> dict[str, tuple[BytesJudged, str]]:
    """What the shipped receipts say, by kind, with why each is stale ("" if it is not) for the capture in `folder`."""
    _, at_hand = identified(folder)
    here = AtHand(captures={at_hand.aot_sha256: at_hand.cubins})
    events = [device_event(one.receipt, FileRef(one.name, "")) for one in receipt_files(at_hand.aot_sha256)]
    return {event.what: (event, staleness(event, here)) for event in events}


def test_shipped_receipts_speak_of_the_bundled_capture_and_confirm_every_label() -> None:
    found = judged(bundled_capture())
    assert set(found) == {"replay", "scenarios"}
    assert all((e.device, e.dirty, stale) == ("NVIDIA H200", False, "") for e, stale in found.values())
    assert found["replay"][0].counts["finite"]["differs"] == 64
    assert found["replay"][0].counts["every bit pattern"]["differs"] == 88
    assert found["scenarios"][0].counts == {"scenarios": {"equal": 11}}
    (replay,) = [r for r in receipts() if r.kind == "replay"]
    assert all(pair.confirmed is not False for pair in replay.pairs)


def test_one_changed_cubin_byte_makes_the_receipts_stale(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    assert not any(stale for _, stale in judged(folder).values())
    assert len(device_verdicts(folder)) > 300
    cubin = next((folder / "cubins").iterdir())
    data = bytearray(cubin.read_bytes())
    data[-1] ^= 1
    cubin.write_bytes(bytes(data))
    assert {stale for _, stale in judged(folder).values()} == {f"1 cubins have other bytes, {cubin.stem} among them"}
    assert device_verdicts(folder) == {}


def test_check_and_report_show_the_device_evidence_and_what_is_owed(tmp_path: Path) -> None:
    done = foldproof("check", "--policy", "exact-first", "--seconds", 0.2, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "evidence: bytes on NVIDIA H200" in done.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    (replay,) = [row for row in result["bytes"] if row["what"] == "replay"]
    assert sum(replay["counts"]["every bit pattern"].values()) == 416
    assert f"| {replay['date']} " in (tmp_path / "out" / "receipt.md").read_text()
    shown = foldproof("report", tmp_path / "out")
    assert shown.returncode == 0
    assert "NVIDIA H200" in shown.stdout
    record = next((tmp_path / "out" / "records").iterdir())
    record.write_bytes(record.read_bytes()[:-1])
    broken = foldproof("report", tmp_path / "out", "--formats", "summary")
    assert broken.returncode == 1
    assert f"{record.name}: was changed" in broken.stdout


def test_bits_proves_what_the_device_found_equal_and_writes_its_witnesses(tmp_path: Path) -> None:
    launches = json.loads((bundled_capture() / "launches.json").read_text())
    few = [one for one in launches if one["launch"]["fn"] in ("_fma_scale", "_copy_stride")]
    (tmp_path / "launches.json").write_text(json.dumps(few))
    done = foldproof("bits", "--launch", tmp_path / "launches.json", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "no pair proved equal differs on the device" in done.stdout
    found = json.loads((tmp_path / "out" / "bits.json").read_text())["verdicts"]
    by_level = {level: [v for v in found if v["level"] == level] for level in {v["level"] for v in found}}
    assert {v["fn"] for v in by_level["differs"]} == {"_fma_scale"}
    assert all(v["witness"] for v in by_level["differs"])
    assert len(by_level["proved for every bit pattern"]) > 10


def test_a_proof_that_the_device_contradicts_is_told() -> None:
    verdict = BitsVerdict("k", "A", "B", "l", Level.PROVED)
    words = {"every bit pattern": "differs", "no NaN": "equal", "finite": "equal"}
    device = {frozenset(("A", "B")): words}
    assert contradicts(verdict, device)
    assert not contradicts(msgspec.structs.replace(verdict, level=Level.PROVED_NO_NAN), device)
    assert not contradicts(msgspec.structs.replace(verdict, level=Level.DIFFERS), device)
    assert not contradicts(verdict, {})


def test_replay_without_a_device_says_so_and_exits_3(tmp_path: Path) -> None:
    planned = foldproof("replay", "--plan")
    assert planned.returncode == 0
    assert "336 to run" in planned.stdout
    done = foldproof("replay", "--out", tmp_path / "out")
    assert done.returncode == 3
    assert "owed: 411 pairs were not run" in done.stdout
    assert not (tmp_path / "out").exists()
