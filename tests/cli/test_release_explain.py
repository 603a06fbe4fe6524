"""What `foldproof explain` grew, as its users meet it."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from helpers import foldproof, i32, param, ptr, variant

LAUNCH = {"fn": "k", "args": [ptr("P", 0x1000), i32("R", 1)]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kernels = [
        variant("A1", param("P", "*bf16", div16=True), param("R")),
        variant("B2", param("P", "*bf16"), consts={"R": {"int": 1}}),
        variant("C3", param("P", "*bf16"), consts={"R": {"int": 1}}) | {"fn": "row_one"},
        variant("D4", param("P", "*bf16"), consts={"R": {"int": 1}}) | {"fn": "row_two"},
    ]
    (tmp_path / "aot.json").write_text(json.dumps({"kernels": kernels}))
    (tmp_path / "launch.json").write_text(json.dumps(LAUNCH))
    return tmp_path


def test_why_not_names_the_rule_and_the_launch_that_reaches_it(folder: Path) -> None:
    done = foldproof("explain", ".", "launch.json", "--why-not", "A1", "--tree", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "why not A1:" in done.stdout
    assert "exact: R: an i32 of value 1 is read at run time" in done.stdout
    assert "a launch reaches it with R: i32 = " in done.stdout
    assert "runtime-one: not tried" in done.stdout


def test_the_decision_is_drawn(folder: Path) -> None:
    done = foldproof("explain", ".", "launch.json", "--svg", "decision.svg", cwd=folder)
    assert done.returncode == 0
    assert (folder / "decision.svg").read_text().startswith("<svg ")


def test_json_output_meets_its_schema(folder: Path) -> None:
    value = json.loads(
        foldproof("explain", ".", "launch.json", "--why-not", "A1", "--format", "json", cwd=folder).stdout
    )
    jsonschema.Draft202012Validator(json.loads(foldproof("explain", "--schema").stdout)).validate(value)
    row = value["launches"][0]
    assert (row["pick"], row["strictness"], row["why_not"]["instead"]) == ("B2", "general", "B2")
    assert row["candidates"][0]["passes"]["exact"].startswith("R: ")


def test_a_part_of_a_name_is_enough_where_one_function_has_it(folder: Path) -> None:
    one = json.dumps(LAUNCH | {"fn": "two"})
    assert "row_two(" in foldproof("explain", ".", one, cwd=folder).stdout
    several = foldproof("explain", ".", json.dumps(LAUNCH | {"fn": "row"}), cwd=folder)
    assert several.returncode == 1
    assert "it has row_one, row_two" in several.stdout


def test_on_a_terminal_the_function_is_asked_for(folder: Path) -> None:
    words = [sys.executable, "-m", "foldproof.cli.main", "explain", str(folder), json.dumps(LAUNCH | {"fn": "row"})]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, words)  # noqa: S606 (the command under test)
    seen = b""
    while b"which" not in seen:
        seen += os.read(terminal, 1024)
    os.write(terminal, b"2\n")
    try:
        while chunk := os.read(terminal, 4096):
            seen += chunk
    except OSError:
        pass  # the terminal closes with the command
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert b"three-pass picks D4" in seen


def test_an_unknown_candidate_is_one_line_and_exit_2(folder: Path) -> None:
    done = foldproof("explain", ".", "launch.json", "--why-not", "ZZ", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "foldproof: BadInput: --why-not: 0 candidates of k are named 'ZZ' (name one of A1, B2)"
    ]


def last(done: subprocess.CompletedProcess[str]) -> str:
    """The last line of what was said."""
    assert done.returncode == 1, done.stderr
    return done.stdout.splitlines()[-1]


def test_a_miss_ends_with_the_command_that_tells_more(folder: Path) -> None:
    missed = LAUNCH | {"args": [ptr("P", 0x1008), i32("R", 7)]}
    (folder / "missed.json").write_text(json.dumps(missed))
    asked = last(foldproof("explain", ".", "missed.json", cwd=folder))
    assert asked == "next: foldproof explain . missed.json --why-not A1"
    reached = foldproof(*shlex.split(asked)[2:], cwd=folder)
    assert "a launch reaches it with" in reached.stdout
    assert last(reached) == "next: foldproof coverage . missed.json"
    assert "k" in foldproof(*shlex.split(last(reached))[2:], cwd=folder).stdout
    inline = json.dumps(LAUNCH | {"fn": "unknown"})
    assert last(foldproof("explain", ".", inline, "--policy", "exact-first", cwd=folder)) == (
        "next: foldproof coverage . --policy exact-first"
    )
    kernels = json.loads((folder / "aot.json").read_text())["kernels"]
    (folder / "cases.json").write_text(json.dumps([{"capture": {"kernels": kernels[2:]}, "launch": LAUNCH}]))
    assert last(foldproof("explain", "cases.json", cwd=folder)) == "next: foldproof explain cases.json --tree"
    served = foldproof("explain", ".", "launch.json", cwd=folder)
    assert "next: " not in served.stdout
    json.loads(foldproof("explain", ".", "missed.json", "--format", "json", cwd=folder).stdout)


def test_a_case_file_brings_its_own_captures(folder: Path) -> None:
    kernels = json.loads((folder / "aot.json").read_text())["kernels"]
    cases = [{"capture": {"kernels": kernels[i:]}, "launch": LAUNCH} for i in (0, 1)]
    (folder / "cases.json").write_text(json.dumps(cases))
    shown = foldproof("explain", "cases.json", "--policy", "single-guard", "--format", "json", cwd=folder)
    assert [row["pick"] for row in json.loads(shown.stdout)["launches"]] == ["A1", "B2"]
    assert foldproof("explain", ".", cwd=folder).returncode == 2
    assert foldproof("explain", "launch.json", cwd=folder).returncode == 2
