"""Outputs, summaries, annotations and verdicts: what a step leaves for the host and for the steps after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from composite import obeyed, written
from foldproof.ci import verdict
from foldproof.ci.__main__ import main
from foldproof.ci.host import SUMMARY_BYTES, fitting, group, put_outputs, put_summary, say, tell
from foldproof.ci.settings import settings
from foldproof.ci.steps import check_words, fuzz_words, report_words
from foldproof.impl.errors import FoldproofError

GITHUB = {"GITHUB_ACTIONS": "true"}
HOSTILE = "a\n::error::forged\r\nverdict=holds\nEOF\n%0A::add-mask::x"


def test_an_output_keeps_any_text_to_itself(tmp_path: Path) -> None:
    file = tmp_path / "output"
    put_outputs({"GITHUB_OUTPUT": str(file)}, {"receipt": HOSTILE, "verdict": "fails"})
    read = written(file.read_text())
    assert read["verdict"] == "fails"
    assert read["receipt"].splitlines() == HOSTILE.splitlines()


def test_nothing_that_a_child_prints_is_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    with group(GITHUB, "part"):
        say("::error::forged")
        say("::add-mask::a")
        say("no line end comes after this, and then ::error::forged")
    tell(GITHUB, "warning", HOSTILE)
    found = obeyed(capsys.readouterr().out)
    assert [name for name, _ in found] == ["group", "endgroup", "warning"]
    assert found[2][1] == "title=foldproof|a%0A::error::forged%0D%0Averdict=holds%0AEOF%0A%250A::add-mask::x"


def test_the_word_that_lets_commands_through_again_is_new_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        with group(GITHUB, "part"):
            pass
    stops = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::stop-commands::")]
    assert len(set(stops)) == 2


@pytest.mark.parametrize("size", [10, SUMMARY_BYTES, SUMMARY_BYTES + 1, 3 * SUMMARY_BYTES])
def test_a_summary_stays_below_what_github_takes(size: int, tmp_path: Path) -> None:
    file = tmp_path / "summary"
    file.write_text("# of an earlier step\n")
    line = "| ä | b |\n"
    text = ("```\n" + line * (size // len(line.encode()) + 1))[:size]
    put_summary({"GITHUB_STEP_SUMMARY": str(file)}, text)
    content = file.read_bytes()
    assert content.decode().startswith("# of an earlier step\n```\n")
    assert len(content) <= SUMMARY_BYTES
    if size > SUMMARY_BYTES:
        assert content.decode().count("```") == 2
        assert "The summary ends here" in content.decode()


def test_a_summary_that_has_no_room_left_is_left_out() -> None:
    assert fitting("x" * 5000, 100) == ""


@pytest.mark.parametrize(
    ("codes", "code", "word"),
    [
        ({"check": 0, "report": 0}, 0, "holds"),
        ({"check": 0, "report": 3}, 3, "owed"),
        ({"check": 1, "report": 3}, 1, "fails"),
        ({"check": 1, "fuzz": 2, "report": 3}, 2, "bad input"),
        ({"check": 1, "fuzz": 137, "report": 2}, 137, "fault"),
        ({}, 2, "bad input"),
    ],
)
def test_the_gravest_code_is_the_verdict(codes: dict[str, int], code: int, word: str) -> None:
    assert verdict.worst(codes) == code
    assert verdict.word(code) == word


@pytest.mark.parametrize(
    ("code", "owed", "fails", "never"),
    [(0, 0, 0, 0), (3, 3, 0, 0), (1, 1, 1, 0), (2, 2, 2, 2), (139, 139, 139, 139)],
)
def test_fail_on_lets_no_bad_input_and_no_fault_pass(
    code: int, owed: int, fails: int, never: int, tmp_path: Path
) -> None:
    (tmp_path / "codes.json").write_text(json.dumps({"check": code}))
    for word, expected in (("", owed), ("owed", owed), ("fails", fails), ("never", never), ("nevr", 2)):
        assert verdict.judge({"FOLDPROOF_HOME": str(tmp_path), "FOLDPROOF_FAIL_ON": word}) == expected


@pytest.mark.parametrize("left", [None, "", "[1]", '{"check": "0"}'])
def test_a_verdict_without_codes_is_bad_input(left: str | None, tmp_path: Path) -> None:
    if left is not None:
        (tmp_path / "codes.json").write_text(left)
    assert verdict.judge({"FOLDPROOF_HOME": str(tmp_path)}) == 2
    assert verdict.judge({}) == 2


def test_no_value_becomes_an_option(tmp_path: Path) -> None:
    names = ("CAPTURE", "POLICY", "LAUNCHES", "SELECTOR", "CHECK_SECONDS", "FUZZ_SECONDS", "SEED", "RECEIPTS")
    env = {f"FOLDPROOF_{name}": f"--out={name}" for name in (*names, "FORMATS", "EVIDENCE")}
    asked = settings(env, tmp_path)
    for words in (check_words(asked, asked.captures[0]), fuzz_words(asked), report_words(asked, annotated=True)):
        options = words[1 : words.index("--")] if "--" in words else words[1:]
        assert not [word for word in options if word.startswith("--out=") and word != "--out=--out=EVIDENCE"]


def test_what_is_not_said_comes_from_the_config_and_runs_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "owed.toml").write_text(
        '[policy]\nname = "two-pass"\n[fuzz]\nselector = "./s --x"\nseconds = 7\nseed = 3\n'
        '[[capture]]\npath = "bundled"\n[[capture]]\npath = "mine"\nlaunches = "l.json"\n'
    )
    asked = settings({"FOLDPROOF_CONFIG": "release/owed.toml"}, tmp_path)
    assert asked.base == tmp_path / "release"
    out = f"--out={tmp_path / 'foldproof-report'}"
    assert [check_words(asked, one) for one in asked.captures] == [
        ["check", "--policy=two-pass", "--seed=3", out],
        ["check", "--policy=two-pass", "--launches=l.json", "--seed=3", out, "--", "mine"],
    ]
    assert fuzz_words(asked) == [
        *("fuzz", "--selector=./s --x", "--against=two-pass", "--seconds=7", "--seed=3", out),
    ]
    assert report_words(asked, annotated=False)[:2] == ["report", "--config=owed.toml"]
    said = settings(
        {"FOLDPROOF_CONFIG": "release/owed.toml", "FOLDPROOF_SEED": "9", "FOLDPROOF_CAPTURE": "c"}, tmp_path
    )
    assert (said.seed, [one.path for one in said.captures]) == ("9", ["c"])


def test_foldproof_toml_is_taken_where_it_lies_and_a_named_config_must_be_there(tmp_path: Path) -> None:
    assert settings({}, tmp_path).config == ""
    with pytest.raises(FoldproofError, match="cannot be read"):
        settings({"FOLDPROOF_CONFIG": "absent.toml"}, tmp_path)
    (tmp_path / "foldproof.toml").write_text('[policy]\nname = "two-pass"\n')
    assert settings({}, tmp_path).policy == "two-pass"


def test_a_config_that_does_not_load_is_bad_input_and_still_has_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "foldproof.toml").write_text("[policy]\nnme = 1\n")
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "FOLDPROOF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower() if name.startswith("GITHUB") else tmp_path))
    assert main(["run"]) == 0
    assert main(["verdict"]) == 2
    assert written((tmp_path / "github_output").read_text())["verdict"] == "bad input"
    assert "config 2" in (tmp_path / "github_step_summary").read_text()
    assert "nme" in capsys.readouterr().out


def test_another_word_is_told_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comment", "x"]) == main([]) == main(["no"]) == 2
    assert "run|comment|verdict" in capsys.readouterr().err
