"""What ptxas made of a kernel: counts of floating-point instructions, to see whether it contracted any.

ptxas may fuse a `mul` and an `add` without rounding suffix. Where the machine code has exactly as many fused and as
many plain additions as the PTX, it fused none: a fusion replaces an addition by a fused one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from foldproof.gpu.symbolic.program import Kernel

_OPCODE = re.compile(r"^\s*(?:/\*[0-9a-f]+\*/)?\s*(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)(?:\.\S*)?\s", re.MULTILINE)
TIMEOUT = 30
"""Seconds for one disassembly."""


def disassembler() -> str | None:
    """The disassembler: nvdisasm on the PATH, or the one that Triton brings; None where there is neither."""
    found = shutil.which("nvdisasm")
    if found:
        return found
    spec = find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        return None
    bundled = Path(next(iter(spec.submodule_search_locations))) / "backends" / "nvidia" / "bin" / "nvdisasm"
    return str(bundled) if bundled.is_file() else None


@lru_cache(maxsize=1024)
def census(cubin: Path) -> Counter[str] | None:
    """How many instructions of each name a cubin has; None where it cannot be disassembled."""
    tool = disassembler()
    if tool is None or not cubin.is_file():
        return None
    try:
        command = [tool, "-c", "-ndf", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)  # noqa: S603  # no shell
    except (OSError, subprocess.SubprocessError):
        return None
    return Counter(_OPCODE.findall(done.stdout))


def contract_nothing(kernels: Sequence[Kernel], cubins: Sequence[Path]) -> bool:
    """Whether the machine code of all shows that ptxas fused no fp32 multiplication with an addition."""
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(census, cubins))
    return all(_contracts_nothing(k, found) for k, found in zip(kernels, counts, strict=True))


def _contracts_nothing(kernel: Kernel, found: Counter[str] | None) -> bool:
    if found is None:
        return False
    sums = fused = 0
    for instr in kernel.code:
        kind, op = instr.parts[-1], instr.parts[0]
        if kind.startswith(("f16", "bf16")) and op in ("add", "sub", "mul", "fma"):
            return False  # half-precision additions are themselves fused instructions in machine code
        if kind in ("f32", "f32x2", "bf16"):
            each = 2 if kind == "f32x2" else 1
            sums += each * (op in ("add", "sub"))
            fused += each * (op == "fma")
    return found["FADD"] == sums and found["FFMA"] == fused and not found["FADD2"] and not found["FFMA2"]
