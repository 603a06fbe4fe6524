"""The Zig selector, sound and with each planted fault, built once a session."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from foldproof.props.drive import SelectorSpec

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def zig_build() -> ModuleType:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs the package ziglang")
    spec = importlib.util.spec_from_file_location("build", ROOT / "selectors/zig/build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def zig(zig_build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., SelectorSpec]:
    """`zig("none", "exe")`: the selector with a planted fault, behind the protocol or ("lib") the C interface."""
    out = tmp_path_factory.mktemp("zig")

    def spec(bug: str = "none", part: str = "exe") -> SelectorSpec:
        zig_build.build(out / bug, bug=bug, parts=(part,))
        return SelectorSpec(str(out / bug / ("three-pass" if part == "exe" else "libthree_pass.so")))

    return spec


@pytest.fixture(scope="session")
def zig_any(zig_build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> SelectorSpec:
    """The selector with the fault that FOLDPROOF_PLANTED names."""
    out = tmp_path_factory.mktemp("zig-any")
    zig_build.build(out, bug="any", parts=("lib",))
    return SelectorSpec(str(out / "libthree_pass.so"))
