"""The command as its users meet it: in a process of its own, by exit code and text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click
import pytest
from foldproof.cli.main import VERBS, cli
from foldproof.impl import load_policy
from foldproof.impl.cases import answer, read_cases
from foldproof.reports.render.result import tidy
from helpers import foldproof, i32, param, ptr, shared, variant

SEED = {
    "name": "seed",
    "capture": {
        "kernels": [
            variant("A", param("P", "*bf16", div16=True), param("R")),
            variant("B", param("P", "*bf16"), consts={"R": {"int": 1}}),
        ]
    },
    "launch": {"fn": "k", "args": [ptr("P", 0x1000), i32("R", 1)], "consts": {}},
}


def write(path: Path, value: object) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


@pytest.fixture
def seed(tmp_path: Path) -> Path:
    """A capture folder with the seed case's two variants."""
    write(tmp_path / "aot.json", SEED["capture"])
    write(tmp_path / "launch.json", SEED["launch"])
    return tmp_path


def test_check_keeps_three_pass_and_writes_a_whole_report(seed: Path) -> None:
    done = foldproof("check", seed, "--seconds", 1, "--out", seed / "out")
    assert done.returncode == 0, done.stderr
    assert "three-pass keeps every promise" in done.stdout
    assert "2 cubins are not here" in done.stdout
    assert done.stderr == ""
    result = json.loads((seed / "out" / "result.json").read_text())
    assert (result["schema_version"], result["exit_code"], result["runs"][0]["state"]) == (2, 0, "complete")
    rows = {row["theorem"]: row for row in result["theorems"]}
    assert len(rows) == 17
    assert rows["T01"]["verdict"] == "proved"
    assert rows["T13"]["verdict"] == "refuted"
    assert not rows["T13"]["promised"]
    assert result["owed"][0]["what"].startswith("byte equality of 1 interchangeable pair")
    report = (seed / "out" / "receipt.md").read_text()
    assert "three-pass keeps all 13 obligations" in report
    assert "owed" in report.lower()
    assert {case["theorem"] for case in result["cases"]} == {"T06", "T06v", "T12", "T13", "T14"}
    for example in result["cases"]:
        value = json.loads((seed / "out" / example["file"]["path"]).read_text())[0]
        got = answer(value, load_policy("three-pass"))
        assert all(got[key] == expected for key, expected in value["expect"].items())
    assert not list((seed / "out").rglob(".writing-*"))


@pytest.mark.slow
def test_check_fails_a_broken_promise_with_a_counterexample_and_the_next_command(seed: Path) -> None:
    done = foldproof("check", seed, "--policy", "single-guard", "--seconds", 0, "--out", seed / "out")
    assert done.returncode == 1
    assert "single-guard breaks 5 of its promises: T01, T03, T07, T09, T10." in done.stdout
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("next: foldproof select --policy single-guard --cases ")
    replayed = foldproof(*last.removeprefix("next: foldproof ").split())
    assert replayed.returncode == 0
    assert json.loads(replayed.stdout)["pick"] == "A"


@pytest.mark.slow
def test_two_runs_differ_in_times_alone(seed: Path) -> None:
    texts = []
    for _ in range(2):
        foldproof("check", seed, "--policy", "exact-first", "--seconds", 0, "--out", "out", cwd=seed)
        texts.append(tidy(json.loads((seed / "out" / "result.json").read_text())))
        shutil.rmtree(seed / "out")
    assert texts[0] == texts[1]


def test_explain_shows_each_pass_and_the_pick(seed: Path) -> None:
    done = foldproof("explain", seed, seed / "launch.json")
    assert done.returncode == 0
    assert "exact" in done.stdout
    assert "runtime-one" in done.stdout
    assert "R: an i32 of value 1 is read at run time" in done.stdout
    assert done.stdout.strip().endswith("three-pass picks B by general")
    inline = foldproof("explain", seed, json.dumps(SEED["launch"]), "--policy", "single-guard")
    assert inline.stdout.strip().endswith("single-guard picks A by runtime-one, reading R at run time")
    missed = foldproof("explain", seed, '{"fn": "other", "args": []}')
    assert missed.returncode == 1
    assert "the capture has no variant of other; it has k" in missed.stdout


def test_policies_lists_the_zoo() -> None:
    done = foldproof("policies")
    assert done.returncode == 0
    for name in ("exact-first", "three-pass", "linker-order", "recommended"):
        assert name in done.stdout


def test_select_answers_one_json_line_a_case(tmp_path: Path) -> None:
    broken = {"name": "broken", "capture": {"kernels": []}, "launch": SEED["launch"]}
    twice = SEED | {"name": "twice", "launch": {"fn": "k", "args": [i32("R", 1), i32("R", 1)]}}
    file = write(tmp_path / "cases.json", [SEED, broken, twice, 7])
    done = foldproof("select", "--cases", file, "--policy", "three-pass")
    assert done.returncode == 0
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert list(rows[0]) == ["name", "index", "pick", "pass", "ones", "log", "error", "detail"]
    assert rows[0] | {"detail": ""} == {
        "name": "seed", "index": 1, "pick": "B", "pass": "general", "ones": [], "log": [], "error": None, "detail": "",
    }  # fmt: skip
    assert [row["error"] for row in rows[1:]] == ["InvalidCapture", "InvalidLaunch", "InvalidCapture"]
    assert rows[2]["detail"].startswith("$.launch: ")


BAD = {
    "absent": ("check", "absent.json"),
    "folder without a capture": ("check", "."),
    "truncated": ("check", "cut.json"),
    "deep": ("check", "deep.json"),
    "empty": ("check", "empty.json"),
    "no policy": ("check", "--policy", "nosuch"),
    "launches of no file": ("check", "good.json", "--launches", "absent.json"),
    "launches that are a folder": ("check", "good.json", "--launches", "."),
    "bad launch": ("explain", "good.json", "twice.json"),
    "bad launch text": ("explain", "good.json", "{"),
    "cases that are no JSON": ("select", "--cases", "cut.json"),
    "cases that are a folder": ("select", "--cases", "."),
    "empty cases": ("select", "--cases", "empty.json"),
    "no such option": ("check", "--nosuch"),
    "unknown verb": ("nosuch",),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_2(name: str, tmp_path: Path) -> None:
    write(tmp_path / "cut.json", '{"kernels": [{')
    write(tmp_path / "deep.json", "[" * 2_000_000)
    write(tmp_path / "empty.json", "")
    write(tmp_path / "good.json", SEED["capture"])
    write(tmp_path / "twice.json", {"fn": "k", "args": [i32("R", 1), i32("R", 1)]})
    before = sorted(tmp_path.iterdir())
    done = foldproof(*BAD[name], cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    if not name.startswith(("no such", "unknown")):
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("foldproof: ")
    assert sorted(tmp_path.iterdir()) == before


def test_an_output_folder_that_is_a_file_is_bad_input(seed: Path) -> None:
    done = foldproof("check", seed, "--seconds", 0, "--out", seed / "aot.json")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize("number", ["nan", "inf", "-1"])
def test_a_budget_is_a_finite_number(number: str) -> None:
    found = {}
    for verb in ("check", "fuzz", "exhaust", "diff", "watch"):
        command = cli.get_command(click.Context(cli), verb)
        assert command is not None
        for option in command.params:
            if isinstance(option.type, click.FloatRange):
                found[verb, option.name] = option
                with pytest.raises(click.BadParameter):
                    option.type.convert(number, option, None)
    assert {("check", "seconds"), ("fuzz", "seconds"), ("exhaust", "timeout"), ("watch", "follow")} <= found.keys()


def test_every_verb_has_help_with_an_example() -> None:
    for name in VERBS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for verb in [command, *getattr(command, "commands", {}).values()]:
            if not hasattr(verb, "commands"):
                assert "foldproof " in (verb.epilog or ""), name
            assert verb.help


@pytest.mark.slow
def test_check_and_explain_work_on_the_real_capture(tmp_path: Path) -> None:
    path = shared("captures", "deepseek-v41-tp4", "aot.json")
    done = foldproof("check", path, "--seconds", 1, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    rows = {row["fn"]: row for row in result["launches"][0]["rows"]}
    assert len(rows) == 40
    assert sum(row["variants"] for row in rows.values()) == 343
    assert sum(row["fallback"] for row in rows.values()) > 100
    launches = [{"fn": "_collapse", "args": [ptr("X", 0), ptr("PRE", 16, "*fp32"), ptr("OUT", 32)]}]
    shown = foldproof("explain", path, write(tmp_path / "launch.json", launches))
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.strip().endswith("three-pass picks 6242734b6c59 by exact")


def test_select_agrees_with_the_library_on_the_recorded_captures() -> None:
    path = shared("recorded", "selections.jsonl.gz")
    done = foldproof("select", "--cases", path, "--policy", "exact-pinned")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    answers = [value["answers"]["exact-with-launch-pins"] for value in read_cases(path)]
    assert [row["error"] or row["index"] for row in rows] == answers
