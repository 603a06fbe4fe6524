"""The verbs fuzz, exhaust and serve, as a user types them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from foldproof.cli.main import cli

SERVE = f"{sys.executable} -m foldproof.impl.external.serve --policy"
GOOD, BAD = f"{SERVE} three-pass", f"{SERVE} single-guard"


def foldproof(*words: object, folder: Path) -> Result:
    return CliRunner().invoke(cli, [*map(str, words), "--out", str(folder / "out")], standalone_mode=False)


def record(folder: Path, name: str = "fuzz.json") -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "out" / name).read_bytes())
    return value


def another_variant(folder: Path) -> dict[str, Any]:
    """The finding of that kind; `single-guard` also logs nothing and looks at no source."""
    found: list[dict[str, Any]] = record(folder)["findings"]
    return next(finding for finding in found if finding["kind"] == "another variant")


def test_no_difference_is_exit_0_and_says_what_was_visited(tmp_path: Path) -> None:
    result = foldproof("fuzz", "--selector", GOOD, "--rounds", 24, folder=tmp_path)
    assert result.return_value == 0, result.output
    assert "no difference" in result.output
    said = record(tmp_path)
    assert said["rounds"] == 24
    assert said["findings"] == []
    assert said["coverage"]["visited"] > 60
    assert said["coverage"]["visited"] + len(said["coverage"]["remaining"]) == said["coverage"]["possible"]
    assert 0 < said["chance_of_new"] <= 1
    assert said["chance_of_failure"] == 3 / 24
    assert said["rate"] > 0


def test_a_difference_is_exit_1_with_a_case_and_a_line_that_shows_it_again(tmp_path: Path) -> None:
    result = foldproof("fuzz", "--selector", BAD, "--rounds", 48, folder=tmp_path)
    assert result.return_value == 1
    finding = another_variant(tmp_path)
    assert (finding["variants"], finding["args"]) == (2, 2)
    assert record(tmp_path)["command"].endswith(f"--rounds 48 --out {tmp_path / 'out'}")
    assert shlex.split(finding["command"])[:3] == ["foldproof", "fuzz", "--selector"]
    assert "".join(finding["command"].split()) in "".join(result.output.split())
    assert result.output.splitlines()[-1] == f"next: {record(tmp_path)['findings'][0]['command']}"
    again = ("fuzz", "--selector", BAD, "--against", "three-pass", "--replay", tmp_path / "out" / finding["file"])
    replayed = foldproof(*again, folder=tmp_path)
    assert replayed.return_value == 1
    assert "another variant" in replayed.output
    assert replayed.output.splitlines()[-1] == f"next: foldproof explain {shlex.quote(str(again[-1]))}"
    assert foldproof(again[0], again[1], GOOD, *again[3:], folder=tmp_path).return_value == 0


def test_the_example_is_executable_and_its_patch_applies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = tmp_path / "test_mine.py"
    test.write_text(
        "from foldproof.props.strategies import cases\nfrom hypothesis import given\n\n\n"
        "@given(one=cases())\ndef test_it(one):\n    assert one.name == 'generated'\n"
    )
    monkeypatch.chdir(tmp_path)
    foldproof("fuzz", "--selector", BAD, "-x", "--example", "test_mine.py::test_it", folder=tmp_path)
    subprocess.run(["git", "apply", "--unsafe-paths", "-p1", str(tmp_path / "out/example.patch")], check=True)
    assert "@example(" in test.read_text()
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "explicit example" in result.stdout, result.stdout + result.stderr
    assert "round" in result.stdout


def test_a_corpus_resumes_and_replays_what_failed_first(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    words = ("fuzz", "--rounds", 16, "--corpus", corpus, "--selector")
    assert foldproof(*words, BAD, folder=tmp_path).return_value == 1
    first = record(tmp_path)
    assert foldproof(*words, BAD, "-x", folder=tmp_path).return_value == 1
    again = record(tmp_path)
    assert again["rounds"] == 0
    assert all(finding["known"] for finding in again["findings"])
    assert {f["kind"] for f in again["findings"]} == {f["kind"] for f in first["findings"]}
    assert foldproof(*words, GOOD, folder=tmp_path).return_value == 0
    fixed = record(tmp_path)
    assert (fixed["first_round"], fixed["rounds_in_all"]) == (16, 32)
    assert fixed["replayed"] > first["coverage"]["visited"]
    assert fixed["coverage"]["visited"] > first["coverage"]["visited"]
    whole = tmp_path / "whole"
    foldproof("fuzz", "--rounds", 32, "--selector", GOOD, folder=whole)
    assert record(whole)["coverage"] == fixed["coverage"]


def test_one_round_is_run_again_by_its_number(tmp_path: Path) -> None:
    foldproof("fuzz", "--selector", BAD, "--rounds", 48, folder=tmp_path)
    finding = another_variant(tmp_path)
    result = foldproof("fuzz", "--selector", BAD, "--round", finding["round"], folder=tmp_path / "again")
    assert result.return_value == 1
    assert record(tmp_path / "again")["rounds"] == 1
    assert another_variant(tmp_path / "again")["round"] == finding["round"]


@pytest.mark.parametrize("verb", ["fuzz", "exhaust"])
@pytest.mark.parametrize("selector", ["/no/such/selector", "/no/such/library.so", "true"])
def test_a_selector_that_does_not_start_is_exit_3(verb: str, selector: str, tmp_path: Path) -> None:
    result = foldproof(verb, "--selector", selector, folder=tmp_path)
    assert result.return_value == 3
    assert "SelectorUnusable" in result.output
    assert not (tmp_path / "out").exists()


def test_bad_corpora_and_cases_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "corpus.json").write_text('{"schema_version": 9, "campaigns": {}}')
    (tmp_path / "case.json").write_text("[{}]")
    for words, where in ((("--corpus", tmp_path), "corpus.json"), (("--replay", tmp_path / "case.json"), "case.json")):
        command = [sys.executable, "-m", "foldproof.cli.main", "fuzz", "--selector", GOOD, *map(str, words)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert result.returncode == 2
        assert where in result.stderr
        assert result.stderr.count("\n") == 1
        assert "Traceback" not in result.stderr


def test_a_selector_that_misbehaves_at_its_end_is_a_finding(tmp_path: Path) -> None:
    script = tmp_path / "lingers.py"
    script.write_text(f"import os, sys, time\nos.system({GOOD!r})\ntime.sleep(60)\n")
    result = foldproof("fuzz", "--selector", f"{sys.executable} {script}", "--rounds", 1, folder=tmp_path)
    assert result.return_value == 1
    assert any("not-ending" in fault for fault in record(tmp_path)["stray_faults"])
    assert result.output.splitlines()[-1] == f"next: {record(tmp_path)['command']}"


def test_exhaust_counts_and_writes_cases_that_replay(tmp_path: Path) -> None:
    size = ("--variants", 2, "--ints", 1, "--ptrs", 1)
    assert foldproof("exhaust", "--selector", GOOD, *size, folder=tmp_path).return_value == 0
    said = record(tmp_path, "exhaust.json")
    assert said["decisions"] == 8**2 * 6
    assert said["run_state"] == "complete"
    assert said["command"].endswith(f"--ptrs=1 --out {tmp_path / 'out'}")
    bad = foldproof("exhaust", "--selector", BAD, *size, "--policy", "three-pass", folder=tmp_path)
    assert bad.return_value == 1
    said = record(tmp_path, "exhaust.json")
    assert said["kinds"] == {"another variant": said["disagreements"]}
    replay = ("fuzz", "--selector", BAD, "--replay", tmp_path / "out" / said["files"][0])
    assert foldproof(*replay, folder=tmp_path).return_value == 1
    line = shlex.join(["foldproof", "fuzz", "--selector", BAD, "--against", "three-pass", *map(str, replay[-2:])])
    assert bad.output.splitlines()[-1] == f"next: {line}"


def test_serve_is_the_reference_behind_the_protocol() -> None:
    command = [sys.executable, "-m", "foldproof.cli.main", "serve", "--policy", "recommended"]
    result = subprocess.run(command, input="", capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["name"] == "reference recommended"
    nonsense = subprocess.run(command, input="nonsense\n", capture_output=True, text=True, check=False)
    assert nonsense.returncode == 2
    assert "line 1" in nonsense.stderr


def test_the_functions_of_a_capture_and_what_they_leave_open(tmp_path: Path) -> None:
    params = [{"name": "P", "type": "*bf16", "div16": False, "nospec": False}]
    one = {"fn": "k", "hash": "a", "num_warps": 4, "params": params, "consts": {"B": {"int": 1}}}
    other = one | {"hash": "b", "consts": {"B": {"int": 2}}}
    (tmp_path / "aot.json").write_text(json.dumps({"kernels": [one, other]}))
    words = ("fuzz", "--selector", GOOD, "--rounds", 8, "--capture", tmp_path, "--functions")
    result = foldproof(*words, folder=tmp_path)
    assert result.return_value == 0
    assert "free constants under" in result.output
    said = record(tmp_path, "functions.json")
    assert said["functions"][0]["fn"] == "k"
    assert "three-pass" in said["functions"][0]["free_constants"]
    assert record(tmp_path)["capture"] == str(tmp_path)


def test_the_mutants_of_a_policy(tmp_path: Path) -> None:
    result = foldproof("fuzz", "--mutants", "--against", "exact-first", "--seconds", 0.2, folder=tmp_path)
    said = record(tmp_path, "mutants.json")
    assert said["caught"] == sum(row["caught"] for row in said["mutants"]) > 15
    assert result.return_value == int(any(not (r["caught"] or r["theorem"] or r["why"]) for r in said["mutants"]))


@pytest.mark.parametrize("words", [(), ("--selector", "x", "--functions")])
def test_what_is_missing_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "foldproof.cli.main", "fuzz", *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 2
    assert "--selector" in result.stderr or "--capture" in result.stderr
