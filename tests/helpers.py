"""What tests share: the handed cases, the recorded answers and the real capture, skipped where they are absent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from foldproof.impl import Capture, Launch, Policy, capture_from, decide, launch_from, load_policy
from foldproof.impl.select import Outcome

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared(*parts: str) -> Path:
    """A file or folder of the handed material; the test is skipped where that is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the handed folder shared/{'/'.join(parts)} is absent")
    return path


def param(name: str, type_: str = "i32", **switches: bool) -> dict[str, Any]:
    """A param as JSON."""
    return {"name": name, "type": type_, "div16": False, "nospec": False} | switches


def variant(mark: str, *params: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A variant of the function `k` as JSON."""
    return {"fn": "k", "hash": mark, "num_warps": 4, "params": list(params), "consts": {}} | more


def capture(*kernels: dict[str, Any]) -> Capture:
    """A capture of the given variants."""
    return capture_from({"kernels": list(kernels)})


def launch(*args: dict[str, Any], **more: Any) -> Launch:
    """A launch of the function `k`."""
    return launch_from({"fn": "k", "args": list(args)} | more)


def i32(name: str, value: int) -> dict[str, Any]:
    """An i32 arg as JSON."""
    return {"name": name, "kind": "i32", "value": value}


def ptr(name: str, addr: int, type_: str = "*bf16", **more: Any) -> dict[str, Any]:
    """A pointer arg as JSON."""
    return {"name": name, "kind": "ptr", "type": type_, "addr": hex(addr)} | more


def answer(of: Capture, to: Launch, policy: str | Policy) -> Outcome:
    """What a policy answers."""
    return decide(of, to, load_policy(policy) if isinstance(policy, str) else policy)


def foldproof(*args: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "foldproof.cli.main", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=170, check=False)
