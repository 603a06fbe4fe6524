"""Triton without a GPU, and a folder for what it builds; skipped where Triton or a C compiler is absent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from foldproof.impl.errors import FoldproofError
from foldproof.props.peers.tools import c_compiler, triton_version, triton_without_gpu


@pytest.fixture(scope="session")
def triton() -> str:
    """The version of the installed Triton."""
    try:
        return triton_version()
    except FoldproofError as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="session")
def compiler() -> tuple[str, ...]:
    """A C compiler."""
    try:
        return c_compiler()
    except FoldproofError as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="session")
def workshop(triton: str, compiler: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kernels, dispatchers and libraries of the session lie."""
    assert triton
    assert compiler
    return tmp_path_factory.mktemp("peers")


@pytest.fixture
def folder(workshop: Path) -> Iterator[Path]:
    """The workshop, with Triton's driver replaced for the length of a test."""
    with triton_without_gpu(workshop / "cache"):
        yield workshop
