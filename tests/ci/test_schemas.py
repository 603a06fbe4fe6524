"""`action.yml`, the GitLab template, the example and the script, held to schemas and by linters of shell and CI."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from composite import ROOT, action
from packaging.requirements import Requirement

ACTION, TEMPLATE = ROOT / "action.yml", ROOT / "ci" / "gitlab" / "foldproof.gitlab-ci.yml"
EXAMPLE = ROOT / "examples" / "pre-release.yml"
LOCK = ROOT / "ci" / "requirements.txt"
PINNED = re.compile(r"uses: *(?P<action>\S+)@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def tool(name: str) -> str:
    """A tool of the test extra, beside the Python that runs the tests."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found, f"{name} is absent: install the test extra"
    return found


def steps_of(file: Path) -> list[dict[str, Any]]:
    value = yaml.safe_load(file.read_text())
    jobs = value["jobs"].values() if "jobs" in value else [value["runs"]]
    return [step for job in jobs for step in job["steps"]]


def scripts() -> list[tuple[str, str]]:
    found = [
        (f"{file.name}: {step['name']}", step["run"])
        for file in (ACTION, EXAMPLE)
        for step in steps_of(file)
        if "run" in step
    ]
    lines = yaml.safe_load(TEMPLATE.read_text())["foldproof"]["script"]
    return [*found, *((f"{TEMPLATE.name}: line {at}", line) for at, line in enumerate(lines))]


@pytest.mark.parametrize(
    ("file", "schema"),
    [(ACTION, "github-actions"), (EXAMPLE, "github-workflows"), (TEMPLATE, "gitlab-ci")],
    ids=lambda value: getattr(value, "name", value),
)
def test_it_is_valid_against_the_schema_of_its_host(file: Path, schema: str) -> None:
    builtin = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{schema}.json"
    check = jsonschema.Draft7Validator(json.loads(builtin.read_text()))
    assert [error.message for error in check.iter_errors(read(file.read_text()))] == []
    broken = re.sub(r"(steps|script):", r"stepz:", file.read_text())
    assert not check.is_valid(read(broken))


def read(text: str) -> dict[str, Any]:
    """A document with the key `on`, which YAML 1.1 reads as true."""
    value: dict[Any, Any] = yaml.safe_load(text)
    return {"on" if key is True else key: item for key, item in value.items()}


def test_zizmor_finds_nothing(tmp_path: Path) -> None:
    command = [tool("zizmor"), "--offline", "--no-config", "--quiet"]
    done = subprocess.run([*command, str(ACTION), str(EXAMPLE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    (tmp_path / "action.yml").write_text(ACTION.read_text().replace("ci run", "ci run ${{ inputs.selector }}"))
    done = subprocess.run([*command, str(tmp_path / "action.yml")], capture_output=True, text=True, check=False)
    assert "template-injection" in done.stdout


def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    found = shutil.which("actionlint")
    if not found:
        pytest.skip("actionlint is not installed; it comes from no registry of Python packages")
    workflow = tmp_path / ".github" / "workflows" / "pre-release.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(EXAMPLE.read_text())
    done = subprocess.run([found, str(workflow)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("name", "script"), scripts(), ids=lambda value: value if len(value) < 60 else "")
def test_no_script_has_an_expression_in_it_and_each_is_strict(name: str, script: str) -> None:
    assert "${{" not in script
    if not name.startswith(TEMPLATE.name):
        assert script.startswith("set -euo pipefail\n")
    done = subprocess.run(
        [tool("shellcheck"), "--shell=bash", "--severity=style", "-"],
        input=f"FOLDPROOF_PYTHON=python\n{script}" if name.endswith(("1", "2", "3")) else script,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_shellcheck_finds_nothing_in_the_installer() -> None:
    script = ROOT / "ci" / "install.sh"
    assert script.stat().st_mode & 0o111, "the action calls it"
    done = subprocess.run(
        [tool("shellcheck"), "--severity=style", str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", [ACTION, EXAMPLE], ids=lambda file: file.name)
def test_every_action_is_pinned_by_commit_and_says_its_version(file: Path) -> None:
    used = [line for line in file.read_text().splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not PINNED.search(line)] == []


def test_the_example_grants_no_more_than_it_needs_and_takes_no_trigger_that_hands_forks_a_token() -> None:
    text = EXAMPLE.read_text()
    value = read(text)
    assert set(value["on"]) == {"pull_request", "push"}
    assert "secrets" not in re.sub(r"(?m)^ *#.*", "", text)
    assert value["permissions"] == {}
    granted = {name: job["permissions"] for name, job in value["jobs"].items()}
    assert granted == {
        "foldproof": {"contents": "read", "pull-requests": "write"},
        "attest": {"id-token": "write", "attestations": "write"},
    }


def test_the_example_gives_inputs_and_reads_outputs_that_the_action_has() -> None:
    (step,) = [step for step in steps_of(EXAMPLE) if step.get("id") == "foldproof"]
    assert set(step["with"]) <= set(action()["inputs"])
    assert set(re.findall(r"steps\.foldproof\.outputs\.([\w-]+)", EXAMPLE.read_text())) <= set(action()["outputs"])


def test_every_input_and_variable_is_read_and_told_in_the_docs() -> None:
    page = (ROOT / "docs" / "howto" / "ci.md").read_text()
    text = ACTION.read_text()
    for name in action()["inputs"]:
        assert f"inputs.{name} " in text or f"inputs.{name}}}" in text, name
        assert f"`{name}`" in page, name
    source = "".join(file.read_text() for file in (ROOT / "ci").glob("*.*")) + TEMPLATE.read_text()
    for name in yaml.safe_load(TEMPLATE.read_text())["foldproof"]["variables"]:
        word = name.removeprefix("FOLDPROOF_")
        assert f'"{word}"' in source or f'"{name}"' in source or f'"${name}"' in source, name
        assert f"`{name}`" in page, name


def test_the_lock_pins_each_dependency_by_version_and_hash_within_what_the_project_asks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [Requirement(text) for text in [*project["project"]["dependencies"], *project["build-system"]["requires"]]]
    pinned: dict[str, list[str]] = {}
    for entry in re.split(r"\n(?=\S)", LOCK.read_text()):
        if not entry.startswith("#"):
            found = re.match(r"([\w.-]+)==([\w.]+)", entry)
            assert found, entry.splitlines()[0]
            assert "--hash=sha256:" in entry, found[1]
            pinned.setdefault(found[1], []).append(found[2])
    for requirement in wanted:
        versions = pinned.get(requirement.name, [])
        assert versions, f"{requirement.name} is not in ci/requirements.txt: see its head for how it is made"
        assert all(requirement.specifier.contains(version) for version in versions), (requirement, versions)
