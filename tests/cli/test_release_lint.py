"""`foldproof lint` as its users meet it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from foldproof.gpu.bundle import bundled_capture
from helpers import foldproof, param, shared, variant


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
    assert done.stdout.splitlines()[-1] == "next: foldproof lint --rules"
    log = foldproof("lint", faulty, "--format", "sarif", "--ignore", "L201", "--fail-on", "error")
    assert log.returncode == 0
    assert json.loads(log.stdout)["version"] == "2.1.0"


def test_what_fails_ends_with_the_command_that_shows_its_rule(tmp_path: Path) -> None:
    kernels = [variant("A"), variant("B"), variant("C", param("R"), consts={"R": {"int": 1}})]
    (tmp_path / "aot.json").write_text(json.dumps({"kernels": kernels}))
    for words, command in (
        ((), "foldproof lint . --select L101"),
        (("--policy", "two-pass"), "foldproof lint . --policy two-pass --select L101"),
        (("--select", "L101", "--fail-on", "error"), "foldproof lint --rules"),
    ):
        done = foldproof("lint", ".", *words, cwd=tmp_path)
        assert done.returncode == 1
        assert done.stdout.splitlines()[-1] == f"next: {command}"
    assert "next: " not in foldproof("lint", ".", "--fail-on", "never", cwd=tmp_path).stdout
    kernels = [
        variant("A", param("P", "*bf16", div16=True), param("R")),
        variant("B", param("P", "*bf16"), consts={"R": {"int": 1}}),
    ]
    (tmp_path / "aot.json").write_text(json.dumps({"kernels": kernels}))
    noted = foldproof("lint", ".", "--fail-on", "note", "--ignore", "L1", cwd=tmp_path)
    assert noted.stdout.splitlines()[-1] == "next: foldproof lint . --ignore L1 --fail-on note --notes"


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
