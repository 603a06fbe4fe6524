"""The soak finds a selector that leaks, passes one that does not, and measures a slope as arithmetic has it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from reliability import soak

LEAKING = """
import sys
sys.argv = ["serve", "--policy", "three-pass"]
from foldproof.impl.external import serve
kept, own = [], serve.{name}
def leak(*words, **more):
    kept.append(bytes(4096))
    return own(*words, **more)
serve.{name} = leak
raise SystemExit(serve.main())
"""


def test_the_slope_is_that_of_a_line_in_megabytes_a_minute() -> None:
    line = [soak.Sample(second, 5_000_000 + second * 100_000, second * 50_000) for second in range(0, 60, 5)]
    assert soak.slope(line) == pytest.approx(9.0)
    assert soak.slope([soak.Sample(second, 7, 0) for second in range(9)]) == 0


def test_a_process_that_grows_and_its_child_are_both_seen() -> None:
    script = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1)']); "
    )
    script += "b = bytearray(80_000_000); p.wait(); print('done')"
    said: list[str] = []
    code, samples = soak.watch([sys.executable, "-c", script], 0.05, said.append)
    assert code == 0
    assert max(sample.own for sample in samples) > 80_000_000
    assert max(sample.others for sample in samples) > 1_000_000
    assert said[-1].strip() == "done"


@pytest.mark.slow
@pytest.mark.parametrize("leaks", [False, True])
def test_a_selector_that_leaks_fails_the_soak_and_a_clean_one_passes(leaks: bool, tmp_path: Path) -> None:
    script = tmp_path / "selector.py"
    script.write_text(LEAKING.format(name="decide"))
    selector = f"{sys.executable} {script}" if leaks else ""
    said: list[str] = []
    most = 30.0  # within seconds a clean one still warms up
    code = soak.soak(20.0, selector, said.append, every_s=0.5, warm_up_s=8.0, most=most)
    assert code == int(leaks), said
    assert any("launches" in line for line in said)
    assert any(line.startswith("slope ") for line in said)
