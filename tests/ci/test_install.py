"""`ci/install.sh`: into an environment of its own, from the lock and the checkout beside it, without a network."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from composite import ROOT

BACKEND = """
import base64, hashlib, zipfile

def build_wheel(folder, settings=None, metadata=None):
    name = "foldproof-9.9-py3-none-any.whl"
    files = {
        "foldproof/__init__.py": "",
        "foldproof/ci.py": "",
        "foldproof-9.9.dist-info/METADATA": "Metadata-Version: 2.1\\nName: foldproof\\nVersion: 9.9\\nREQUIRES",
        "foldproof-9.9.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    record = "".join(f"{file},,\\n" for file in files) + "foldproof-9.9.dist-info/RECORD,,\\n"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        for file, text in (files | {"foldproof-9.9.dist-info/RECORD": record}).items():
            wheel.writestr(file, text)
    return name
"""


def checkout(folder: Path, *, requires: str = "", lock: str = "") -> Path:
    """A checkout with the real script and a foldproof that takes no second to build."""
    (folder / "ci").mkdir(parents=True)
    shutil.copy(ROOT / "ci" / "install.sh", folder / "ci")
    (folder / "ci" / "requirements.txt").write_text(lock)
    (folder / "backend.py").write_text(BACKEND.replace("REQUIRES", requires))
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    return folder / "ci" / "install.sh"


def install(script: Path, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    home.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "FOLDPROOF_HOME": str(home), "PIP_NO_INDEX": "1"}
    env |= {"FOLDPROOF_BASE_PYTHON": sys.executable, **variables}
    return subprocess.run([script], env=env, cwd=home, capture_output=True, text=True, timeout=170, check=False)


@pytest.mark.slow
def test_it_installs_the_checkout_and_prints_its_python_alone(tmp_path: Path) -> None:
    home = tmp_path / "a home"
    (tmp_path / "a home").mkdir()
    for name in ("venv.py", "pip.py", "foldproof.py"):
        (home / name).write_text("raise SystemExit('a module of the workspace was imported')\n")
    done = install(checkout(tmp_path / "it's a $(path)"), home)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{home}/env/bin/python\n"
    code = "import importlib.metadata as m, foldproof.ci; print(m.version('foldproof'))"
    asked = subprocess.run(
        [done.stdout.strip(), "-P", "-c", code], cwd=home, capture_output=True, text=True, check=True
    )
    assert asked.stdout == "9.9\n"


@pytest.mark.slow
def test_a_file_whose_hash_the_lock_does_not_have_is_not_installed(tmp_path: Path) -> None:
    made: dict[str, Any] = {}
    exec(BACKEND.replace("REQUIRES", ""), made)  # noqa: S102 (our own text, above)
    wheel = tmp_path / made["build_wheel"](tmp_path)
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    script = checkout(tmp_path / "checkout", lock=f"foldproof==9.9 --hash=sha256:{right[::-1]}\n")
    done = install(script, tmp_path / "home", PIP_FIND_LINKS=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "DO NOT MATCH THE HASHES" in done.stderr


@pytest.mark.slow
def test_a_dependency_that_the_lock_does_not_have_is_told(tmp_path: Path) -> None:
    done = install(checkout(tmp_path / "checkout", requires="Requires-Dist: numpy\\n"), tmp_path / "home")
    assert (done.returncode, done.stdout) == (1, "")
    assert "requires numpy" in done.stderr


@pytest.mark.slow
def test_a_package_is_installed_instead(tmp_path: Path) -> None:
    script = checkout(tmp_path / "checkout")
    other = checkout(tmp_path / "other").parents[1]
    (other / "backend.py").write_text((other / "backend.py").read_text().replace("9.9", "8.8"))
    done = install(
        script, tmp_path / "home", FOLDPROOF_PACKAGE=f"foldproof @ {other.as_uri()}", PIP_NO_BUILD_ISOLATION="0"
    )
    assert done.returncode == 0, done.stderr
    listed = subprocess.run([done.stdout.strip(), "-m", "pip", "list"], capture_output=True, text=True, check=True)
    assert "8.8" in listed.stdout


def test_a_python_that_has_foldproof_is_taken_as_it_is(tmp_path: Path) -> None:
    done = install(ROOT / "ci" / "install.sh", tmp_path / "home", FOLDPROOF_PYTHON=sys.executable)
    assert (done.returncode, done.stdout) == (0, f"{sys.executable}\n"), done.stderr
    assert list((tmp_path / "home").iterdir()) == []


def test_an_older_python_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = install(ROOT / "ci" / "install.sh", tmp_path / "home", FOLDPROOF_BASE_PYTHON=str(old))
    assert (done.returncode, done.stdout) == (2, "")
    assert "3.11 or newer" in done.stderr


def test_it_needs_a_folder() -> None:
    done = subprocess.run(
        [ROOT / "ci" / "install.sh"], env={"PATH": os.environ["PATH"]}, capture_output=True, check=False
    )
    assert done.returncode != 0
