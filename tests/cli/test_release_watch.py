"""`foldproof watch` as its users meet it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from foldproof.impl.select import fallback_line
from helpers import foldproof, param, variant

LOG = "\n".join([
    "12:00 WARN " + fallback_line("k", "read", ("N",)),
    "12:01 WARN " + fallback_line("k", "read", ("N",)),
    "12:02 ERROR no captured Triton variant of k for this launch:",
    "  arg P: *bf16 at 0x1008",
    "  arg N: i32 = 7",
    "",
])  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kernels = [
        variant("fold", param("P", "*bf16", div16=True), consts={"N": {"int": 1}, "M": {"int": 2}}),
        variant("read", param("P", "*bf16", div16=True), param("N")),
    ]
    (tmp_path / "aot.json").write_text(json.dumps({"kernels": kernels}))
    (tmp_path / "engine.log").write_text(LOG)
    return tmp_path


def test_an_empty_log_says_so_and_one_that_is_no_text_is_bad_input(folder: Path) -> None:
    (folder / "empty.log").touch()
    empty = foldproof("watch", "empty.log", cwd=folder)
    assert empty.returncode == 0
    assert "0 lines: the log is empty" in empty.stdout
    assert "check the path" in empty.stdout
    assert "0 fallbacks" not in empty.stdout
    (folder / "binary.log").write_bytes(bytes(range(256)) * 9)
    binary = foldproof("watch", "binary.log", cwd=folder)
    assert binary.returncode == 2
    (line,) = binary.stderr.splitlines()
    assert "binary.log: line 1: is no text: a NUL at byte 0" in line
    command = [sys.executable, "-m", "foldproof.cli.main", "watch", "/dev/stdin"]
    piped = subprocess.run(command, input=LOG, capture_output=True, text=True, check=True)
    assert "2 fallbacks of 1 variants" in piped.stdout


def test_the_examples_of_the_help_run_and_feed_coverage(folder: Path) -> None:
    plain = foldproof("watch", "engine.log", cwd=folder)
    assert plain.returncode == 0, plain.stderr
    assert "2 fallbacks of 1 variants, 1 misses of 1 launch classes" in plain.stdout
    assert "give --capture" in plain.stdout
    out = ["--needs-out", "compile.json", "--launches-out", "seen.json"]
    done = foldproof("watch", "engine.log", "--capture", ".", *out, cwd=folder)
    assert done.returncode == 0, done.stderr
    seen = json.loads((folder / "seen.json").read_text())
    assert [need["count"] for need in seen["needs"]] == [1, 2]
    assert len(json.loads((folder / "compile.json").read_text())["needs"]) >= 1
    covered = foldproof("coverage", ".", "seen.json", "--strict", "--format", "json", cwd=folder)
    assert covered.returncode == 1
    assert json.loads(covered.stdout)["ends"]["missing"] == 1
    assert foldproof("watch", "engine.log", "--strict", cwd=folder).returncode == 1


def test_json_output_meets_its_schema(folder: Path) -> None:
    value = json.loads(foldproof("watch", "engine.log", "--format", "json", cwd=folder).stdout)
    jsonschema.Draft202012Validator(json.loads(foldproof("watch", "--schema").stdout)).validate(value)
    assert value["fallbacks"][0] | {"ones": ["N"], "count": 2} == value["fallbacks"][0]


def test_logs_without_events_hold_nothing(folder: Path) -> None:
    for content in (b"\n", b"\xff" * 3000):
        (folder / "engine.log").write_bytes(content)
        done = foldproof("watch", "engine.log", cwd=folder)
        assert done.returncode == 0
        assert "0 fallbacks of 0 variants, 0 misses" in done.stdout


@pytest.mark.parametrize(
    "words", [("absent.log",), (".",), ("engine.log", "--fallback", "("), ("engine.log", "--capture", "absent")]
)
def test_bad_input_is_one_line_and_exit_2(words: tuple[str, ...], folder: Path) -> None:
    done = foldproof("watch", *words, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
