"""Shared by the replay tests: the fake device, toy captures, and a supervisor over a fake worker."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foldproof.gpu.replay.supervising import Supervisor
from replay.toys import RECORD, entry, launch

FAKE = Path(__file__).with_name("fake_device.py")
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
