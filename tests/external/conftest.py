"""Selectors to drive: the Zig one, built once a session, and the reference behind its own protocol."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from foldproof.impl import Capture, Launch

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
REFERENCE = (sys.executable, "-m", "foldproof.impl.external.serve", "--policy", "three-pass")


@pytest.fixture(scope="session")
def zig_build() -> ModuleType:
    """The build script of the Zig selector."""
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs the package ziglang")
    return _module(ROOT / "selectors/zig/build.py")


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def case() -> Callable[..., tuple[Capture, list[Launch]]]:
    """`case(seed, launches=12)`: a random capture, and launches that are likely to fit it."""
    function: Callable[..., tuple[Capture, list[Launch]]] = _module(Path(__file__).with_name("generated.py")).case
    return function


@pytest.fixture(scope="session")
def reference() -> tuple[str, ...]:
    """The command of the reference behind the protocol; its last word is the policy."""
    return REFERENCE


@pytest.fixture(scope="session")
def zig_command(zig_build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The Zig selector behind the protocol, with its run-time checks on."""
    out = tmp_path_factory.mktemp("zig")
    zig_build.build(out, optimize="ReleaseSafe", parts=("exe",))
    return (str(out / "three-pass"),)


@pytest.fixture(scope="session")
def zig_library(zig_build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Zig selector behind the C interface."""
    out = tmp_path_factory.mktemp("zig")
    zig_build.build(out, parts=("lib",))
    return Path(out / "libthree_pass.so")


@pytest.fixture(scope="session")
def c_compiler() -> tuple[str, ...]:
    """A C compiler: the system's, else the one inside Zig."""
    if found := shutil.which("cc"):
        return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    pytest.skip("needs a C compiler or the package ziglang")


@pytest.fixture(scope="session")
def compile_c(c_compiler: tuple[str, ...]) -> Callable[..., Path]:
    """Compile C text against the shipped header: `compile_c(text, out, *flags)`."""

    def run(text: str, out: Path, *flags: str) -> Path:
        source = out.with_suffix(".c")
        source.write_text(text, "utf-8")
        include = f"-I{ROOT / 'impl/native'}"
        command = [*c_compiler, "-std=gnu11", "-Wall", "-Werror", include, *flags, str(source), "-o", str(out)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        return out

    return run


@pytest.fixture(scope="session")
def alive() -> Callable[[int], bool]:
    """Whether a process runs; a zombie that its new parent has not collected runs no more."""

    def runs(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    return runs


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded captures and cases, which is no part of the repository."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared, the recorded captures and cases")
    return SHARED
