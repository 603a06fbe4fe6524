"""A runner of composite actions, as far as `action.yml` needs one: it runs the shell steps exactly as they stand there.

Expressions are expanded in `env`, `with` and `if` alone, as the documentation of GitHub Actions says; a shell step gets
the documented variables and files; its log is read for workflow commands, which `stop-commands` mutes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
"""What `shell: bash` means."""
COMMAND = re.compile(r"::(?P<name>[\w-]+)(?: (?P<properties>[^:]*))?::(?P<message>.*)")
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


def action() -> dict[str, Any]:
    """`action.yml` as data."""
    value: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return value


@dataclass
class Job:
    """A job that uses the action: what it gave and what it saw."""

    folder: Path
    inputs: dict[str, str]
    variables: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    uploads: list[dict[str, str]] = field(default_factory=list)
    commands: list[tuple[str, str]] = field(default_factory=list)
    logs: dict[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    failed: bool = False

    def __post_init__(self) -> None:
        for name in ("workspace", "temp", "files"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    @property
    def workspace(self) -> Path:
        """The checkout of the user."""
        return self.folder / "workspace"

    @property
    def summary(self) -> str:
        """The step summaries of all steps."""
        return "".join(file.read_text() for file in sorted((self.folder / "files").glob("*.summary")))

    def output(self, name: str) -> str:
        """An output of the action."""
        return self.expand(action()["outputs"][name]["value"])

    def run(self, names: Sequence[str] = ()) -> Job:
        """All steps, or those of the names once more."""
        self.failed = False
        steps = [(at, step) for at, step in enumerate(action()["runs"]["steps"]) if not names or step["name"] in names]
        for at, step in steps:
            key = step.get("id", step["name"])
            self.outcomes[key] = "skipped"
            if self.holds(step.get("if", "success()")):
                self.ran.append(step["name"])
                done = self.upload(step) if "uses" in step else self.shell(step, key, at)
                self.outcomes[key] = "success" if done else "failure"
                self.failed |= not done
        return self

    def upload(self, step: dict[str, Any]) -> bool:
        """What another action would be given."""
        self.uploads.append({name: self.expand(str(value)) for name, value in step["with"].items()})
        return True

    def shell(self, step: dict[str, Any], key: str, at: int) -> bool:
        """Run the script of a step in a file, as the runner does."""
        assert step["shell"] == "bash"
        script = self.folder / "files" / f"{at}.sh"
        script.write_text(step["run"])
        output, summary = script.with_suffix(".output"), script.with_suffix(".summary")
        output.touch()
        summary.touch()
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_REPOSITORY": "owner/repository",
            "GITHUB_RUN_ID": "17",
            "GITHUB_SERVER_URL": "https://github.example",
            "RUNNER_TEMP": str(self.folder / "temp"),
            "FOLDPROOF_PYTHON": sys.executable,
        }
        env |= self.variables | {name: self.expand(str(value)) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            [*SHELL, str(script)],
            env=env,
            cwd=self.workspace,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=500,
            check=False,
        )
        self.logs[key] = done.stdout
        self.commands += obeyed(done.stdout)
        self.outputs[key] = written(output.read_text())
        return done.returncode == 0

    def holds(self, condition: str) -> bool:
        """An `if`: terms joined by &&; without a status function the job must not have failed."""
        terms = [term.strip() for term in condition.strip().removeprefix("${{").removesuffix("}}").split("&&")]
        status = {"always()": True, "!cancelled()": True, "success()": not self.failed}
        if not any(term in status for term in terms):
            terms.append("success()")
        return all(status[term] if term in status else self.equal(term) for term in terms)

    def equal(self, term: str) -> bool:
        """A comparison with a literal."""
        left, literal = re.fullmatch(r"(\S+) == '([^']*)'", term).groups()  # type: ignore[union-attr]
        return self.value(left) == literal

    def expand(self, text: str) -> str:
        """`text` with its expressions replaced by their values."""
        return EXPRESSION.sub(lambda found: self.value(found[1].strip()), text)

    def value(self, expression: str) -> str:
        """The value of `a || b`, of an input, an output, an outcome, or the token."""
        for name in expression.split("||"):
            if found := self.looked_up(name.strip().split(".")):
                return found
        return ""

    def looked_up(self, path: list[str]) -> str:
        """The value of a dotted name; an unknown one is an error of the action."""
        match path:
            case ["inputs", name]:
                default = action()["inputs"][name]["default"]
                return self.inputs.get(name, self.expand(default))
            case ["steps", step, "outputs", name]:
                return self.outputs.get(step, {}).get(name, "")
            case ["steps", step, "outcome"]:
                return self.outcomes[step]
            case ["github", "token"]:
                return "token-of-the-job"
        raise AssertionError(f"the runner knows no {'.'.join(path)}")


def obeyed(log: str) -> list[tuple[str, str]]:
    """The workflow commands that the runner obeys: name, and properties and message."""
    found, muted = [], ""
    for line in log.splitlines():
        if muted:
            muted = "" if line == f"::{muted}::" else muted
        elif command := COMMAND.fullmatch(line):
            if command["name"] == "stop-commands":
                muted = command["message"]
            else:
                found.append((command["name"], f"{command['properties'] or ''}|{command['message']}"))
    assert not muted, "commands stay stopped for the steps that follow"
    return found


def written(text: str) -> dict[str, str]:
    """The outputs in a file: NAME=VALUE, or NAME<<WORD, lines, WORD."""
    values, lines = {}, iter(text.splitlines())
    for line in lines:
        name, heredoc, word = line.partition("<<")
        if heredoc:
            value = []
            while (part := next(lines)) != word:
                value.append(part)
            values[name] = "\n".join(value)
        else:
            name, _, value_of = line.partition("=")
            values[name] = value_of
    return values
