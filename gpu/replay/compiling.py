"""Compiling our own two kernels where they run: by NVRTC through cuda.core, else by nvcc."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from foldproof.gpu.replay.backend import NoDevice

NVCC_SECONDS = 120


def compiled(core: Any, source: str, arch: str) -> tuple[str, bytes]:
    """What compiled it, and the cubin for `arch`. Raises NoDevice when neither compiler works, with both reasons."""
    try:
        program = core.Program(source, "c++", core.ProgramOptions(std="c++17", arch=arch))
        code = program.compile("cubin").code
        return f"NVRTC {_nvrtc_version()}", bytes(code)
    except Exception as problem:  # noqa: BLE001 -- a missing library, or a compile error of whatever class
        first = f"NVRTC: {problem}"
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        why = f"the comparison kernel cannot be compiled ({first}; nvcc: not on the PATH)"
        raise NoDevice(why, fix="install nvidia-cuda-nvrtc of the driver's CUDA version")
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "own.cu", Path(folder) / "own.cubin"
        file.write_text(source, "utf-8")
        command = [nvcc, "-std=c++17", f"-arch={arch}", "-cubin", "-o", str(out), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=NVCC_SECONDS, check=False)  # noqa: S603
        if done.returncode:
            why = f"the comparison kernel cannot be compiled ({first}; nvcc: {done.stderr.strip()[:300]})"
            raise NoDevice(why, fix="install nvidia-cuda-nvrtc of the driver's CUDA version")
        version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout  # noqa: S603
        release = next((word for word in version.split() if word.startswith("V")), "")
        return f"nvcc {release}", out.read_bytes()


def _nvrtc_version() -> str:
    from cuda.bindings import nvrtc  # noqa: PLC0415 -- loads a CUDA library

    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"
