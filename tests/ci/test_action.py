"""The steps of the action, run as they stand in `action.yml`, and the script of the GitLab job as in its template."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from comment_host import TOKEN, playing
from composite import ROOT, Job, action

pytestmark = pytest.mark.slow

SHELL_STEPS = [
    "Install foldproof",
    "Check, fuzz and report",
    "Upload the report",
    "Comment on the pull request",
    "Verdict",
]
EVENT = {"pull_request": {"number": 7, "head": {"sha": "abc", "repo": {"full_name": "owner/repository"}}}}
SELECTOR = shlex.join([sys.executable, "-P", "-m", "foldproof.cli.main", "serve", "--policy", "three-pass"])
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
"""Code, where a host shows every character as it is."""
HOSTILE = (
    "$(touch pwned)`touch pwned`; touch pwned #",
    "<script>alert(1)</script>",
    "a|b`c``d*_[x](javascript:alert(1)) @owner/team #12",
    "\u202egnitset\u202c",
    "line one\nline two\r\n::error::three\n::add-mask::a",
)


def event(folder: Path) -> str:
    file = folder / "event.json"
    file.write_text(json.dumps(EVENT))
    return str(file)


def test_a_policy_and_a_selector_that_hold(tmp_path: Path) -> None:
    inputs = {"policy": "three-pass", "check-seconds": "1", "fuzz-seconds": "1", "selector": SELECTOR, "seed": "4"}
    job = Job(tmp_path, inputs).run()
    assert job.ran == SHELL_STEPS
    assert not job.failed, job.logs
    assert (job.output("verdict"), job.output("exit-code")) == ("holds", "0")
    report = job.workspace / "foldproof-report"
    assert job.output("report-dir") == str(report)
    assert job.output("receipt") == str(report / "receipt.md")
    assert job.output("python") == sys.executable
    assert job.uploads == [{"name": "foldproof-report", "path": str(report), "if-no-files-found": "warn"}]
    assert "three-pass" in job.summary
    assert job.summary.strip() == (report / "summary.md").read_text().strip()
    assert ("notice", "title=foldproof|verdict: holds (exit codes: check 0, fuzz 0, report 0)") in job.commands
    assert "no comment: this is no pull request" in job.logs["Comment on the pull request"]
    verified = [sys.executable, "-P", "-m", "foldproof.cli.main", "verify-receipt", str(report)]
    assert subprocess.run(verified, check=False, timeout=500).returncode == 0


def test_a_policy_that_fails_ends_the_job_last_and_has_its_summary_and_one_comment(tmp_path: Path) -> None:
    inputs = {"policy": "single-guard", "check-seconds": "1"}
    with playing() as host:
        given = {"GITHUB_API_URL": host.address, "GITHUB_EVENT_PATH": event(tmp_path)}
        first = Job(tmp_path / "first", inputs, given).run()
        assert first.ran == SHELL_STEPS
        assert first.outcomes["Verdict"] == "failure"
        assert [key for key, outcome in first.outcomes.items() if outcome == "failure"] == ["Verdict"]
        assert first.output("verdict") == "fails"
        assert "T01" in first.summary
        errors = [text for name, text in first.commands if name == "error"]
        assert errors[-1] == "title=foldproof|verdict: fails (exit codes: check 1, report 1)"
        assert any("file=foldproof-report/cases/T01-single-guard.json" in text for text in errors)
        assert len(host.comments) == 1
        assert "T01" in host.comments[0]["body"]
        last = SHELL_STEPS[3:]
        first.inputs["fail-on"] = "never"
        assert not first.run(last).failed, first.logs
        assert len(host.comments) == 1
        assert ("notice", "title=foldproof|the comment is updated") in first.commands
        host.refuse = 403
        assert not first.run(last).failed, first.logs
        assert any("answers 403" in text for name, text in first.commands if name == "warning")


def test_a_capture_that_is_absent_is_bad_input_with_a_summary(tmp_path: Path) -> None:
    job = Job(tmp_path, {"capture": "absent", "sticky-comment": "false", "upload": "false"}).run()
    assert job.ran == ["Install foldproof", "Check, fuzz and report", "Verdict"]
    assert job.outcomes["Verdict"] == "failure"
    assert job.output("verdict") == "bad input"
    assert job.output("receipt") == ""
    assert "No summary was written" in job.summary


def test_a_selector_that_does_not_start_does_not_hold(tmp_path: Path) -> None:
    inputs = {"selector": "./absent", "check-seconds": "1", "fuzz-seconds": "1", "fail-on": "fails"}
    job = Job(tmp_path, inputs).run()
    assert job.output("verdict") == "owed"
    assert ("warning", "title=foldproof|verdict: owed (exit codes: check 0, fuzz 3, report 0)") in job.commands


def test_an_installation_that_fails_runs_nothing_else(tmp_path: Path) -> None:
    job = Job(tmp_path, {}, {"FOLDPROOF_PYTHON": "/nonexistent/python"}).run()
    assert job.ran == ["Install foldproof"]
    assert job.failed


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    folder = "cap $(touch pwned) `touch pwned` <script> | ::error::x @owner"
    capture = tmp_path / "workspace" / folder
    capture.mkdir(parents=True)
    kernels = [
        {
            "fn": name,
            "hash": f"h{at}",
            "name": name,
            "num_warps": 4,
            "consts": {},
            "params": [{"name": name, "type": "i32", "div16": False, "nospec": False}],
        }
        for at, name in enumerate(HOSTILE)
    ]
    (capture / "aot.json").write_text(json.dumps({"kernels": kernels}))
    inputs = {"capture": folder, "check-seconds": "1", "evidence-dir": "out '$(touch pwned)'\"; touch pwned; \""}
    with playing() as host:
        given = {"GITHUB_API_URL": host.address, "GITHUB_EVENT_PATH": event(tmp_path)}
        job = Job(tmp_path, inputs, given).run()
    assert job.output("verdict") in ("holds", "owed"), job.logs
    assert not list(tmp_path.rglob("pwned"))
    assert job.output("report-dir") == str(job.workspace / inputs["evidence-dir"])
    assert {name for name, _ in job.commands} <= {"group", "endgroup", "notice", "warning", "error"}
    assert not [text for _, text in job.commands if text.endswith(("|three", "|x @owner"))]
    (comment,) = host.comments
    for text in (job.summary, comment["body"]):
        assert "<script>" not in FENCED.sub("", text)
        assert "\u202e" not in text
    assert "owner" in FENCED.sub("", comment["body"])
    assert "@owner" not in FENCED.sub("", comment["body"])


def test_hostile_inputs_are_refused_as_values(tmp_path: Path) -> None:
    for name in ("seed", "check-seconds", "policy", "launches"):
        job = Job(tmp_path / name, {name: "$(touch pwned); --out=x", "sticky-comment": "false"}).run()
        assert job.output("verdict") == "bad input", job.logs
    assert not list(tmp_path.rglob("pwned"))
    assert not list(tmp_path.rglob("x"))


def gitlab(folder: Path, **variables: str) -> tuple[int, str]:
    """The job's script, run as GitLab's runner does: all lines in one shell that stops at the first that fails."""
    job = yaml.safe_load((ROOT / "ci" / "gitlab" / "foldproof.gitlab-ci.yml").read_text())["foldproof"]
    script = "\n".join(["set -eo pipefail", *job["script"]])
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "CI": "true", "GITLAB_CI": "true"}
    env |= {"CI_PROJECT_DIR": str(folder), "CI_PROJECT_ID": "5", "CI_JOB_URL": "https://gitlab.example/j/1"}
    env |= {"CI_COMMIT_SHA": "abc", "CI_JOB_ID": "1", **job["variables"], **variables}
    done = subprocess.run(
        ["bash", "-c", script],
        env=env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )
    return done.returncode, done.stdout


def test_gitlab_ends_with_the_verdict_and_has_its_report_and_one_note(tmp_path: Path) -> None:
    with playing() as host:
        host.bot = False
        given = {
            "FOLDPROOF_PYTHON": sys.executable,
            "FOLDPROOF_CHECK_SECONDS": "1",
            "CI_API_V4_URL": host.address,
            "CI_MERGE_REQUEST_IID": "7",
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "5",
            "FOLDPROOF_TOKEN": TOKEN,
        }
        code, log = gitlab(tmp_path, FOLDPROOF_POLICY="single-guard", **given)
        assert code == 1, log
        assert "foldproof: error: verdict: fails" in log
        assert "::" not in log
        assert (tmp_path / "foldproof-report" / "junit.xml").is_file()
        assert len(host.comments) == 1
        assert "https://gitlab.example/j/1" in host.comments[0]["body"]


def test_gitlab_installs_the_commit_that_is_named_and_no_branch(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "ci").mkdir(parents=True)
    installer = source / "ci" / "install.sh"
    installer.write_text(f"#!/bin/sh\necho {shlex.quote(sys.executable)}\n")
    installer.chmod(0o755)
    git = ["git", "-C", str(source), "-c", "user.name=x", "-c", "user.email=x@y.z"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    given = {"FOLDPROOF_REPOSITORY": str(source), "FOLDPROOF_CAPTURE": "absent"}
    code, log = gitlab(tmp_path, FOLDPROOF_COMMIT=commit, **given)
    assert (code, "verdict: bad input" in log) == (2, True), log
    code, log = gitlab(tmp_path, FOLDPROOF_COMMIT="main", **given)
    assert (code, "is no full commit id" in log) == (2, True), log


def test_every_step_of_the_action_is_one_of_those_run_here() -> None:
    assert [step["name"] for step in action()["runs"]["steps"]] == SHELL_STEPS
