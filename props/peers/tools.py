"""The optional tools of the peers: Triton 3.9 without a GPU, and a C compiler."""

# ruff: noqa: PLC0415
# Triton is 1 GB and optional, so it is imported where it is used.

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foldproof.impl.errors import FoldproofError

SERIES = "3.9"
CUDA = ("cuda", 90, 32)
AMD = ("hip", "gfx942", 64)
"""Targets as Triton wants them: backend, architecture, threads a warp."""
FP_FUSION = "TRITON_DEFAULT_FP_FUSION"


def triton_version() -> str:
    """The version of the installed Triton. Raises `FoldproofError` when it is missing or of another series."""
    fix = f"install foldproof[triton], which brings Triton {SERIES}"
    try:
        import triton
    except ImportError as problem:
        raise FoldproofError(f"this peer is Triton {SERIES} itself ({problem})", where="triton", fix=fix) from None
    version = str(triton.__version__)
    if version.split(".")[:2] != SERIES.split("."):
        raise FoldproofError(f"this is Triton {version}, and another series differs", where="triton", fix=fix)
    return version


def c_compiler() -> tuple[str, ...]:
    """The command of a C compiler: the system's, else the one inside Zig. Raises `FoldproofError` without any."""
    if found := shutil.which("cc"):
        return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise FoldproofError("no C compiler", where="PATH", fix="install cc, or the package ziglang")


class StubDriver:
    """What Triton asks of a driver before it launches anything, answered without a GPU."""

    @staticmethod
    def get_current_target() -> Any:
        """The target that everything is compiled for."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget(*CUDA)

    @staticmethod
    def get_current_device() -> int:
        """The only device there is."""
        return 0

    @staticmethod
    def get_current_stream(device: int) -> int:
        """The default stream."""
        return 0 * device

    @staticmethod
    def map_python_to_cpp_type(name: str) -> str:
        """Triton's own table for CUDA."""
        from triton.backends.nvidia.driver import ty_to_cpp

        return str(ty_to_cpp(name))


@contextmanager
def triton_without_gpu(cache: Path) -> Iterator[None]:
    """Triton's driver replaced, its cache in `cache`, FP fusion pinned; everything as it was afterwards.

    `sys.path` is among what is put back: the AOT compiler adds the folder of each kernel to it.
    """
    triton_version()
    from triton import knobs
    from triton.runtime import driver

    # The attribute and not `active`, which would look for a GPU.
    before, path, fusion = driver._active, list(sys.path), os.environ.get(FP_FUSION)  # noqa: SLF001
    os.environ[FP_FUSION] = "1"
    try:
        with knobs.cache.scope():
            knobs.cache.dir = str(cache)
            driver.set_active(StubDriver())
            yield
    finally:
        driver._active = before  # noqa: SLF001
        sys.path[:] = path
        if fusion is None:
            del os.environ[FP_FUSION]
        else:
            os.environ[FP_FUSION] = fusion
