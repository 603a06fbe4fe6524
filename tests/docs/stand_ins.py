"""What stands for the reader's own files while the commands of a page are run: the names are those of the pages."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from docs.pages import ROOT
from foldproof.gpu import bundled

BUNDLED = Path(bundled.__path__[0])
FUNCTIONS = ("_copy_stride", "_fma_scale", "_pid_mod", "_row_max")
"""What the reader's capture holds: functions whose bytes agree, and one whose bytes do not."""
WORDS = {"HASH": "44bdbc060f2a2606", "NAME": "three-pass"}
"""Words of a command that stand for a value of the reader's."""
SELECTORS = {"my-selector": "single-guard", "selector-1.0": "two-pass", "selector-1.1": "three-pass"}
"""Selectors, and the policy that each follows; the reader's own has the fault that a campaign should find."""
LIBRARIES = ("libmine.so", "my-selector.so")
"""Libraries with the C interface: `three-pass` in Zig."""
TEST = """from foldproof.props.strategies import cases
from hypothesis import given


@given(case=cases())
def test_agrees(case):
    pass
"""
LOG = """step 1
aot: _fma_scale runs variant 44bdbc060f2a2606, its 1 read at runtime (the capture holds no folded variant of it): R
no captured Triton variant of _fma_scale for this launch:
  A: *fp32 at 0x7f0000000000
  R: i32 = 3
"""


def furnish(folder: Path) -> None:
    """Put every stand-in into the folder."""
    records = json.loads((BUNDLED / "launches.json").read_text())
    kernels = json.loads((BUNDLED / "aot.json").read_text())["kernels"]
    exact = [
        record
        for record in records
        if record["launch"]["fn"] in FUNCTIONS and record.get("expect", {}).get("pass") == "exact"
    ]
    of = {fn: [kernel for kernel in kernels if kernel["fn"] == fn] for fn in FUNCTIONS}
    (folder / "selectors").symlink_to(ROOT / "selectors")
    _capture(folder / "CAPTURE", [kernel for fn in FUNCTIONS for kernel in of[fn]])
    for kernel in json.loads((folder / "CAPTURE" / "aot.json").read_text())["kernels"]:
        for file in (Path("cubins", f"{kernel['hash']}.cubin"), Path("ptx", f"{kernel['hash']}.ptx")):
            (folder / "CAPTURE" / file).parent.mkdir(exist_ok=True)
            (folder / "CAPTURE" / file).symlink_to(BUNDLED / file)
    _lines(folder / "CAPTURE" / "launches.json", exact)
    _capture(folder / "decode", of["_copy_stride"])
    _capture(folder / "prefill", of["_row_max"])
    _capture(folder / "OLD", of["_copy_stride"] + of["_pid_mod"])
    _capture(folder / "NEW", of["_copy_stride"][1:] + of["_pid_mod"])
    _lines(folder / "trace.ndjson", exact)
    _lines(folder / "launches.ndjson", [record["launch"] for record in exact])
    for name in ("launch.json", "seen-launch.json"):
        _lines(folder / name, [exact[0]["launch"]])
    fitting = {"kernels": of[exact[0]["launch"]["fn"]]}
    _lines(folder / "cases.json", [{"name": "one", "capture": fitting, "launch": exact[0]["launch"]}])
    (folder / "engine.log").write_text(LOG)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_selector.py").write_text(TEST)
    for name, policy in SELECTORS.items():
        (folder / name).write_text(f"#!/bin/sh\nexec foldproof serve --policy {policy}\n")
        (folder / name).chmod(0o755)


def needs_libraries(commands: list[str]) -> bool:
    """Whether a command names one of the libraries."""
    return any(name in command for name in LIBRARIES for command in commands)


def build_libraries(folder: Path) -> str:
    """Build them; the reason why not, or nothing."""
    if importlib.util.find_spec("ziglang") is None:
        return "needs the package ziglang"
    out = folder / ".zig"
    subprocess.run([sys.executable, ROOT / "selectors/zig/build.py", "--out", out], check=True, timeout=300)
    for name in LIBRARIES:
        (folder / name).symlink_to(out / "libthree_pass.so")
    return ""


def _capture(folder: Path, kernels: list[dict[str, Any]]) -> None:
    folder.mkdir()
    (folder / "aot.json").write_text(json.dumps({"kernels": kernels}))


def _lines(file: Path, values: list[Any]) -> None:
    file.write_text("".join(json.dumps(value) + "\n" for value in values))
