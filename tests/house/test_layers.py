from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
ROOMS = [room.strip() for layer in CONTRACTS[0]["layers"] for room in layer.split("|")]
LINT = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
PLANTED = [
    ("impl/rules.py", "foldproof.model.rules"),
    ("gpu/build.py", "foldproof.model.theorems"),
    ("model/world.py", "foldproof.props.checks"),
    ("reports/write.py", "foldproof.model.theorems"),
    ("release/world.py", "foldproof.gpu.build"),
    ("props/checks.py", "foldproof.cli.ui"),
]


def lint(package_parent: Path | None) -> subprocess.CompletedProcess[str]:
    """`lint-imports` with the contracts of pyproject.toml, on the installed package or on a copy of it."""
    command = [sys.executable, "-c", LINT, "--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    env = os.environ | {"COLUMNS": "200"}
    if package_parent is not None:
        env["PYTHONPATH"] = str(package_parent)
    return subprocess.run(
        command, cwd=package_parent or ROOT, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def copy_of_the_package(parent: Path) -> Path:
    package = parent / "foldproof"
    package.mkdir()
    shutil.copy(ROOT / "__init__.py", package)
    for room in ROOMS:
        shutil.copytree(ROOT / room, package / room, ignore=lambda _, names: [n for n in names if _is_data(n)])
    return package


def _is_data(name: str) -> bool:
    return "." in name and not name.endswith(".py")


def test_each_room_imports_what_the_architecture_lets_it_import() -> None:
    found = lint(None)
    assert found.returncode == 0, found.stdout
    assert "0 broken" in found.stdout


def test_the_rooms_of_the_contracts_are_the_folders_of_the_package() -> None:
    folders = {file.parent.name for file in ROOT.glob("*/__init__.py")}
    assert folders == set(ROOMS)


def test_the_picture_of_the_architecture_shows_each_room() -> None:
    picture = (ROOT / "ARCHITECTURE.md").read_text()
    assert [room for room in ROOMS if f"\n{room}/ " not in picture] == []


@pytest.mark.slow
@pytest.mark.parametrize(("module", "imported"), PLANTED)
def test_an_import_against_the_layers_is_caught(tmp_path: Path, module: str, imported: str) -> None:
    package = copy_of_the_package(tmp_path)
    planted = package / module
    planted.write_text(planted.read_text() + f"\nimport {imported}\n")
    found = lint(tmp_path)
    name = "foldproof." + module.removesuffix(".py").replace("/", ".")
    assert found.returncode == 1
    assert f"{name} -> {imported}" in found.stdout


@pytest.mark.slow
def test_a_room_that_no_contract_knows_is_caught(tmp_path: Path) -> None:
    package = copy_of_the_package(tmp_path)
    (package / "attic").mkdir()
    (package / "attic" / "__init__.py").write_text('"""A room."""\n')
    found = lint(tmp_path)
    assert found.returncode == 1
    assert "attic" in found.stdout
