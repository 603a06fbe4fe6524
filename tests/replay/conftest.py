"""Shared by the replay tests: the fake device, toy captures, and a supervisor over a fake worker."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from foldproof.gpu.replay.supervising import Supervisor

FAKE = Path(__file__).with_name("fake_device.py")
COUNT = 100


def _fake() -> ModuleType:
    if "fake_device" not in sys.modules:
        spec = importlib.util.spec_from_file_location("fake_device", FAKE)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["fake_device"] = module
        spec.loader.exec_module(module)
    return sys.modules["fake_device"]


@pytest.fixture(scope="session")
def fake() -> ModuleType:
    return _fake()


def entry(name: str, **more: Any) -> dict[str, Any]:
    """A variant of the toy function: X, OUT, R, N; R folded where its name says so."""
    folded = name.startswith("folded")
    params = [
        {"name": "X", "type": "*fp32", "div16": True, "nospec": False},
        {"name": "OUT", "type": "*fp32", "div16": True, "nospec": False},
        *([] if folded else [{"name": "R", "type": "i32", "div16": False, "nospec": False}]),
        {"name": "N", "type": "i32", "div16": False, "nospec": False},
    ]
    base = {"fn": "toy", "hash": name, "name": "toy", "num_warps": 4, "params": params, "arch": "sm_90"}
    return {**base, "consts": {"R": {"int": 1}} if folded else {}, **more}


def launch(**more: Any) -> dict[str, Any]:
    return {
        "fn": "toy",
        "args": [
            {"name": "X", "kind": "ptr", "type": "*fp32", "addr": "0x7f0000000000", "bytes": 4 * COUNT},
            {"name": "OUT", "kind": "ptr", "type": "*fp32", "addr": "0x7f0000100000", "bytes": 4 * COUNT},
            {"name": "R", "kind": "i32", "value": 1},
            {"name": "N", "kind": "i32", "value": COUNT},
        ],
        **more,
    }


RECORD = {"name": "toy launch", "grid": [1, 1, 1], "buffers": {"X": {"role": "in"}, "OUT": {"role": "out"}}}
MakeCapture = Callable[..., Path]


@pytest.fixture
def toy_capture(tmp_path: Path) -> MakeCapture:
    """Writes a capture whose variants behave as told: name -> behaviour; and one launch that all of them may serve."""

    def make(behaviours: dict[str, str], **more: Any) -> Path:
        folder = tmp_path / "capture"
        (folder / "cubins").mkdir(parents=True)
        kernels = [entry(name, **more.get(name, {})) for name in behaviours]
        (folder / "aot.json").write_text(json.dumps({"kernels": kernels}))
        for name, behaviour in behaviours.items():
            (folder / "cubins" / f"{name}.cubin").write_bytes(f"{behaviour}\n{name}".encode())
        (folder / "launches.json").write_text(json.dumps([{**RECORD, "launch": launch()}]))
        return folder

    return make


@pytest.fixture
def supervise(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Supervisor]:
    """A supervisor over a fake worker for a capture; `settings` are the fake device's."""

    def make(capture: Path, patience_s: float = 20.0, **settings: Any) -> Supervisor:
        monkeypatch.setenv("FAKE_DEVICE", json.dumps(settings))
        monkeypatch.setattr("foldproof.gpu.replay.supervising.STARTUP_S", 30.0)
        return Supervisor([sys.executable, str(FAKE), str(capture), "7", "1"], patience_s)

    return make
