"""`foldproof lint` as its users meet it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from foldproof.gpu.bundle import bundled_capture
from helpers import foldproof, shared, variant


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A capture with one warning: two hashes for one variant."""
    (tmp_path / "aot.json").write_text(json.dumps({"kernels": [variant("A"), variant("B")]}))
    return tmp_path


def test_the_examples_of_the_help_run(faulty: Path) -> None:
    done = foldproof("lint", faulty)
    assert done.returncode == 1
    assert "L106" in done.stdout
    assert "no cubins here, so none was checked" in done.stdout
    log = foldproof("lint", faulty, "--format", "sarif", "--ignore", "L201", "--fail-on", "error")
    assert log.returncode == 0
    assert json.loads(log.stdout)["version"] == "2.1.0"


def test_json_output_meets_its_schema(faulty: Path) -> None:
    schema = json.loads(foldproof("lint", "--schema").stdout)
    value = json.loads(foldproof("lint", faulty, "--format", "json").stdout)
    jsonschema.Draft202012Validator(schema).validate(value)
    assert value["counts"]["warning"] == len([f for f in value["findings"] if f["severity"] == "warning"]) > 0
    assert set(value["findings"][0]) == {"rule", "name", "severity", "where", "what", "why", "fix"}


def test_the_rules_are_listed() -> None:
    done = foldproof("lint", "--rules")
    assert done.returncode == 0
    assert "param-and-const" in done.stdout


def test_the_bundled_capture_passes() -> None:
    done = foldproof("lint", bundled_capture())
    assert done.returncode == 0
    assert "238 variants, 238 cubins read: 0 errors, 0 warnings" in done.stdout


def test_the_real_capture_is_linted_within_ten_seconds() -> None:
    path = shared("captures", "deepseek-v41-tp4", "aot.json")
    done = foldproof("lint", path, "--format", "json")
    value = json.loads(done.stdout)
    assert value["counts"]["error"] == 0
    assert {f["rule"] for f in value["findings"]} == {"L201", "L311", "L312"}


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF\x00\xff" * 50, b'{"kernels": [{'])
def test_bad_input_is_one_line_and_exit_2(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "aot.json"
    if content is not None:
        file.write_bytes(content)
    done = foldproof("lint", file)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert str(file) in done.stderr
