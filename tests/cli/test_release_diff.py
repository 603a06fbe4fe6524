"""`foldproof diff` as its users meet it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import jsonschema
import pytest
from helpers import foldproof, i32, param, ptr, variant

KERNELS = [
    variant("A", param("P", "*bf16", div16=True), param("R")),
    variant("B", param("P", "*bf16", div16=True), consts={"R": {"int": 1}}),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, kernels in (("old-capture", KERNELS), ("new-capture", KERNELS[:1])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "aot.json").write_text(json.dumps({"kernels": kernels}))
    (tmp_path / "trace.ndjson").write_text(json.dumps({"fn": "k", "args": [ptr("P", 16), i32("R", 1)]}))
    return tmp_path


def test_two_policies_by_proof_with_the_schema() -> None:
    done = foldproof("diff", "two-pass", "three-pass", "--format", "json")
    assert done.returncode == 1, done.stderr
    value = json.loads(done.stdout)
    jsonschema.Draft202012Validator(json.loads(foldproof("diff", "--schema").stdout)).validate(value)
    assert value["proofs"][0]["verdict"] == "proved"
    assert value["proofs"][0]["scope"] == "unbounded"
    assert {r["id"] for r in value["regions"]} == {"OLD-source", "NEW-falls-back"}
    assert value["also"] == ["two-pass logs per none, three-pass per launch"]


def test_two_captures_with_the_launches_of_a_trace(folder: Path) -> None:
    done = foldproof("diff", "old-capture", "new-capture", "--launches", "trace.ndjson", cwd=folder)
    assert done.returncode == 1, done.stderr
    assert "exact B" in done.stdout
    assert "fallback A" in done.stdout
    assert "served by another variant (by proof)" in done.stdout
    launch = json.dumps(json.loads((folder / "trace.ndjson").read_text()))
    last = shlex.split(done.stdout.splitlines()[-1])
    assert last[:4] == ["next:", "foldproof", "explain", "new-capture"]
    assert json.loads(last[4])["fn"] == json.loads(launch)["fn"]
    assert "A" in foldproof(*last[2:], cwd=folder).stdout
    same = foldproof("diff", "old-capture", "old-capture", cwd=folder)
    assert same.returncode == 0
    assert "no difference" in same.stdout
    assert "next: " not in same.stdout


def test_a_selector_and_a_policy(folder: Path) -> None:
    serve = f"{sys.executable} -m foldproof.impl.external.serve --policy"
    done = foldproof("diff", f"{serve} three-pass", "single-guard", "--seconds", 0.2, cwd=folder)
    assert done.returncode == 1, done.stderr
    assert "mixed pointers" in done.stdout
    words = ["foldproof", "fuzz", "--selector", f"{serve} three-pass", "--against", "single-guard"]
    assert done.stdout.splitlines()[-1] == f"next: {shlex.join(words)}"


def test_differing_policies_end_with_the_command_that_shows_an_example() -> None:
    assert foldproof("diff", "two-pass", "three-pass").stdout.splitlines()[-1] == (
        "next: foldproof diff two-pass three-pass --format json"
    )
    assert foldproof("diff", "three-pass", "two-pass").stdout.splitlines()[-1] == (
        "next: foldproof prove --policy two-pass --theorem T09 --old three-pass --out foldproof-report"
    )


def test_a_selector_that_does_not_start_is_exit_3(folder: Path) -> None:
    done = foldproof("diff", "true", "three-pass", cwd=folder)
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "pair",
    [("nosuch", "three-pass"), ("old-capture", "three-pass"), ("absent.json", "absent.json"), ("x.toml", "y.toml")],
)
def test_bad_input_is_one_line_and_exit_2(pair: tuple[str, str], folder: Path) -> None:
    done = foldproof("diff", *pair, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
