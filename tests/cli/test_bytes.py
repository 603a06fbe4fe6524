"""The verbs about bytes: device evidence, symbolic replay, and what is said where there is no device."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
from foldproof.cli.bits import contradicts
from foldproof.cli.evidence import device_verdicts, evidence, receipts
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.symbolic.bits import BitsVerdict
from foldproof.gpu.symbolic.compare import Level
from helpers import foldproof


def copied(tmp_path: Path) -> Path:
    """A copy of the bundled capture's description and three of its cubins."""
    source = bundled_capture()
    folder = tmp_path / "capture"
    (folder / "cubins").mkdir(parents=True)
    shutil.copy(source / "aot.json", folder)
    for cubin in sorted((source / "cubins").iterdir())[:3]:
        shutil.copy(cubin, folder / "cubins")
    return folder


def test_shipped_receipts_speak_of_the_bundled_capture_and_confirm_every_label() -> None:
    rows = evidence(bundled_capture(), receipts())
    assert {row.kind for row in rows} == {"replay", "scenarios"}
    assert {row.device for row in rows} == {"NVIDIA H200"}
    assert all(row.state == "matches the capture" and row.dirty is False for row in rows)
    (counts,) = [row.counts for row in rows if row.kind == "replay"]
    assert counts["finite"]["differs"] == 64
    assert counts["every bit pattern"]["differs"] == 88
    (replay,) = [r for r in receipts() if r.kind == "replay"]
    assert all(pair.confirmed is not False for pair in replay.pairs)


def test_one_changed_cubin_byte_makes_the_receipts_stale(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    assert all(row.counts or row.kind == "scenarios" for row in evidence(folder, receipts()))
    assert len(device_verdicts(folder)) > 300
    cubin = next((folder / "cubins").iterdir())
    data = bytearray(cubin.read_bytes())
    data[-1] ^= 1
    cubin.write_bytes(bytes(data))
    rows = evidence(folder, receipts())
    assert all(row.state.startswith("stale") and row.counts == {} for row in rows)
    assert device_verdicts(folder) == {}


def test_check_and_report_show_the_device_evidence_and_what_is_owed(tmp_path: Path) -> None:
    done = foldproof("check", "--policy", "exact-first", "--seconds", 0, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "evidence: bytes on NVIDIA H200" in done.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    (replay,) = [row for row in result["evidence"] if row["kind"] == "replay"]
    assert sum(replay["counts"]["every bit pattern"].values()) == 416
    assert f"| {replay['date']} " in (tmp_path / "out" / "report.md").read_text()
    shown = foldproof("report", tmp_path / "out")
    assert shown.returncode == 0
    assert "NVIDIA H200" in shown.stdout
    (tmp_path / "out" / "result.json").write_text("{}")
    broken = foldproof("report", tmp_path / "out")
    assert broken.returncode == 2
    assert "is no result" in broken.stderr


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
