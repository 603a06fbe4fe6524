"""The verb bench measures what it says it does."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from click.testing import CliRunner
from foldproof.cli import bench as verb
from foldproof.cli.main import cli
from foldproof.props.bench import QUICK, Row, batch_rows, markdown
from foldproof.props.memory import peak_of


def test_memory_is_that_of_the_whole_family() -> None:
    child = "held = b'x' * 80_000_000; import time; time.sleep(0.6)"
    parent = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {child!r}]).returncode)"
    code, peak = peak_of([sys.executable, "-c", parent])
    assert code == 0
    assert 80e6 < peak < 250e6
    assert peak_of([sys.executable, "-c", "raise SystemExit(3)"])[0] == 3


def test_the_table_is_markdown_and_goals_stand_beside_what_they_are_for() -> None:
    rows = list(batch_rows(QUICK))
    assert [row.goal for row in rows if row.goal] == ["50 M/s", "20 M/s"]
    assert "x `decide`" in rows[0].ratio
    text = markdown([Row("a", "1/s", "2/s", "3 x")])
    assert text.splitlines()[-1] == "| a | 1/s | 2/s | 3 x |"


def test_without_the_selectors_sources_the_rest_is_measured_and_the_exit_is_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "BUILD", verb.BUILD / "absent")
    monkeypatch.setattr(verb, "batch_rows", lambda _: iter([Row("batch", "1/s")]))
    result = CliRunner().invoke(cli, ["bench", "--quick"], standalone_mode=False)
    assert result.return_value == 3
    assert "| batch | 1/s |" in result.output
    assert "not run: drivers" in result.output


@pytest.mark.slow
def test_bench_runs_every_measurement() -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs the package ziglang")
    result = CliRunner().invoke(cli, ["bench", "--quick"], standalone_mode=False)
    assert result.return_value == 0, result.output
    for what in ("protocol", "C interface", "found through the protocol", "exhaust", "memory"):
        assert what in result.output
    assert "2 of 2 seeds" in result.output
