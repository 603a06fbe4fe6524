"""Inputs of many MB: each reader answers within 10 s of CPU time and a GiB of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from abuse.big import CASES
from abuse.limits import MOST_KIB, SECONDS
from abuse.targets import TARGETS

pytestmark = pytest.mark.release  # makes and reads a GB for each target: minutes in all


@pytest.mark.parametrize("name", TARGETS)
def test_a_big_input_costs_seconds_and_less_than_a_gib(name: str) -> None:
    command = [sys.executable, "-m", "abuse.big", name]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    *cases, most = (json.loads(line) for line in done.stdout.splitlines())
    assert [case[0] for case in cases] == list(CASES)
    assert [case for case in cases if case[1] > SECONDS] == []
    assert most < MOST_KIB
