from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from foldproof.reports.events import RunStarted
from foldproof.reports.render.result import tidy
from foldproof.reports.store import read
from helpers import foldproof

POLICY = """
name = "mine"
summary = "Two passes, the last match."
promises = ["T01", "T06v"]
[[pass]]
rules = "exact"
choose = ["last"]
[[pass]]
rules = "general"
choose = ["last"]
"""


def test_prove_settles_a_policy_file_and_recheck_finds_a_changed_script(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(POLICY)
    run = ("prove", "--policy", tmp_path / "mine.toml", "--theorem", "T01", "--theorem", "T06v", "--bounded", "2x2")
    done = foldproof(*run, "--out", tmp_path / "out")
    assert done.returncode == 1, done.stderr
    assert "proved *" in done.stdout
    assert "mine breaks its promise T06v" in done.stdout
    result = json.loads((tmp_path / "out" / "proof.json").read_text())
    rows = {row["theorem"]: row for row in result["verdicts"]}
    assert (rows["T01"]["verdict"], rows["T01"]["scope"]) == ("proved", "unbounded")
    assert rows["T01"]["killed_by"]
    (began,) = [s.record.event for s in read(tmp_path / "out")[0] if isinstance(s.record.event, RunStarted)]
    assert began.command == shlex.join(["foldproof", *(str(word) for word in run), "--out", str(tmp_path / "out")])
    case = tmp_path / "out" / rows["T06v"]["counterexample"]
    answered = foldproof("select", "--cases", case, "--policy", tmp_path / "mine.toml")
    assert json.loads(answered.stdout)["pick"] == json.loads(case.read_text())[0]["expect"]["pick"]

    again = foldproof(*run, "--out", tmp_path / "again")
    assert again.returncode == 1
    assert tidy(json.loads((tmp_path / "again" / "proof.json").read_text())) == tidy(result)

    rechecked = foldproof("prove", "--recheck", tmp_path / "out")
    assert rechecked.returncode == 0
    count = len(result["obligations"])
    assert f"{count} of {count} obligations hold by Z3 and by cvc5" in rechecked.stdout
    script = tmp_path / "out" / "smt" / "theorem-T01-mine.smt2"
    script.write_text("(set-logic ALL)\n(check-sat)\n")
    rechecked = foldproof("prove", "--recheck", tmp_path / "out")
    assert rechecked.returncode == 1
    assert "theorem-T01-mine: Z3 says sat, cvc5 says sat" in rechecked.stdout


def test_prove_of_a_pair() -> None:
    done = foldproof("prove", "--old", "two-pass", "--new", "three-pass", "--json", "--bounded", "2x2")
    assert done.returncode == 0, done.stderr
    rows = {row["theorem"]: row for row in json.loads(done.stdout)["verdicts"]}
    assert set(rows) == {"T09", "T09c"}
    assert {row["old"] for row in rows.values()} == {"two-pass"}
    assert rows["T09"]["verdict"] == "proved"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--policy", "nosuch"), "no policy is named 'nosuch'"),
        (("--theorem", "T99"), "no theorem is named 'T99'"),
        (("--bounded", "wide"), "'wide' is no size such as 64x24"),
        (("--recheck", "."), "holds no smt/*.smt2"),
        (("--policy", "two-pass", "--policy", "two-pass"), "two policies have one name"),
    ],
)
def test_bad_requests_are_one_line_and_exit_2(args: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = foldproof("prove", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
