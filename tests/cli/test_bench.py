"""The verb bench measures what it says it does."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result
from foldproof.cli import bench as verb
from foldproof.cli.bench_bytes import straight
from foldproof.cli.bench_plot import curve_svg
from foldproof.cli.bench_report import fill, render_all, report_of
from foldproof.cli.bench_result import SCHEMA_VERSION
from foldproof.cli.main import cli
from foldproof.gpu.symbolic.cases import allocations
from foldproof.gpu.symbolic.compare import Comparer
from foldproof.gpu.symbolic.graph import Graph
from foldproof.impl.errors import FoldproofError
from foldproof.props.bench import QUICK, Row, batch_rows, markdown
from foldproof.props.measure import Curve, Grown, Item, Measure, Point, Side, Spread
from foldproof.props.memory import peak_of

KEPT = Path(__file__).parents[2] / "docs" / "bench-ratios.json"


def bench(*options: object) -> Result:
    return CliRunner().invoke(cli, ["bench", "--quick", *map(str, options)], standalone_mode=False)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A section whose other side takes some three times as long as ours, and a curve beside it."""

    def spin(steps: int) -> object:
        return sum(range(steps))

    def section(repeats: int, *, quick: bool) -> Iterator[Item]:
        assert quick
        ours, theirs = Side("ours", lambda: spin(200_000)), Side("theirs", lambda: spin(600_000))
        yield Measure("planted", "sums", "sum", ours, theirs, repeats)
        sides = [Side(str(size), lambda size=size: spin(size)) for size in (100_000, 400_000)]  # type: ignore[misc]
        yield Curve("sums", "sums", "params", "sum", (100_000, 400_000), sides, repeats)

    monkeypatch.setattr(verb, "growth", section)


def kept(folder: Path, **ratios: float) -> Path:
    named = {name.replace("_", "/"): ratio for name, ratio in ratios.items()}
    file = folder / "kept.json"
    file.write_text(json.dumps({"schema_version": SCHEMA_VERSION, "sizes": "quick", "ratios": named}))
    return file


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
    result = bench("--only", "rates", "--only", "batch")
    assert result.return_value == 3
    assert "| batch | 1/s |" in result.output
    assert "not run: rates/drivers" in result.output
    assert "not run: batch/encoded" in result.output


@pytest.mark.usefixtures("planted")
def test_bench_json_and_curves_are_written_and_hold_against_themselves(tmp_path: Path) -> None:
    result = bench("--only", "growth", "--out", tmp_path / "out")
    assert result.return_value == 0, result.output
    written = json.loads((tmp_path / "out" / "bench.json").read_bytes())
    assert {"cores", "load", "versions", "started", "architecture"} == set(written["machine"])
    assert 1.5 < written["ratios"]["growth/planted"] < 6
    assert written["measures"][0]["ours"]["median"] < written["measures"][0]["theirs"]["median"]
    assert 0.5 < written["curves"][0]["exponent"] < 1.5
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["bench.json", "curve-growth-sums.svg"]
    again = bench("--only", "growth", "--against", tmp_path / "out" / "bench.json")
    assert again.return_value == 0, again.output
    assert "2 ratios held against the kept ones: no regression" in again.output


@pytest.mark.usefixtures("planted")
def test_a_planted_regression_fails_and_is_named(tmp_path: Path) -> None:
    worse = bench("--only", "growth", "--against", kept(tmp_path, growth_planted=1000.0, growth_sums=0.1))
    assert worse.return_value == 1
    assert "regression: growth/planted" in worse.output
    assert "regression: growth/sums" not in worse.output


@pytest.mark.usefixtures("planted")
def test_a_kept_ratio_that_nothing_measures_is_owed_in_its_own_section_alone(tmp_path: Path) -> None:
    file = kept(tmp_path, growth_planted=1.0, growth_gone=1.0, proofs_x=1.0)
    result = bench("--only", "growth", "--against", file)
    assert result.return_value == 3
    assert "kept and not measured: growth/gone\n" in result.output
    assert "measured and not kept: growth/sums\n" in result.output


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read"),
        ("no JSON", "holds no ratios"),
        ('{"schema_version": 1, "sizes": "quick", "ratios": {"a": 0}}', "holds no ratios"),
        ('{"schema_version": 9, "sizes": "quick", "ratios": {}}', "schema version 9"),
        ('{"schema_version": 1, "sizes": "full", "ratios": {}}', "leave out --quick"),
    ],
)
def test_a_file_that_ratios_cannot_be_held_against_is_refused_before_anything_is_measured(
    tmp_path: Path, text: str | None, why: str
) -> None:
    file = tmp_path / "kept.json"
    if text is not None:
        file.write_text(text)
    result = bench("--against", file)
    assert isinstance(result.exception, FoldproofError)
    assert why in str(result.exception)
    assert result.output == ""


def test_a_curve_is_drawn_the_same_each_time_with_its_exponent() -> None:
    points = tuple(Point(size, Spread("", 1e-3 * size, 0.9e-3 * size, 1.2e-3 * size)) for size in (2, 4, 8, 16))
    drawn = Grown("growth/x", "decide <b>", "params", "launch", points, 1.0, 8, 16, 1.0, 3)
    svg = curve_svg(drawn)
    assert svg == curve_svg(drawn)
    texts = [node.text for node in ET.fromstring(svg).iter() if node.tag.endswith("text")]  # noqa: S314 (our own)
    assert {"decide <b>", "size^1.00, 8 to 16", "params", "seconds a launch", "0.01"} <= set(texts)
    assert "\\" not in "".join(text or "" for text in texts)


def test_the_replayed_variants_have_no_branches_so_their_steps_are_their_instructions() -> None:
    ready = next(straight())
    assert ready.steps == len(ready.kernel.code) * ready.kernel.reqntid[0] * (ready.case.grid or (0,))[0]
    assert not any(instr.parts[0] == "bra" for instr in ready.kernel.code)
    assert len(ready.run(Comparer(Graph(), allocations(ready.case))).memory.written())


def test_the_report_that_is_measured_has_every_file_and_each_pair(tmp_path: Path) -> None:
    fill(tmp_path, 12)
    report = report_of(tmp_path)
    assert report.exit_code == 0, report.headline
    files = render_all(tmp_path, report)
    assert {"report.html", "receipt.md", "junit.xml"} <= set(files)
    assert all(f"launch {n}".encode() in b"".join(files.values()) for n in range(12))


@pytest.mark.slow
def test_bench_runs_every_measurement_and_each_ratio_is_kept(tmp_path: Path) -> None:
    for package in ("ziglang", "crosshair", "triton"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs the package {package}")
    result = bench("--out", tmp_path)
    assert result.return_value == 0, result.output
    for what in ("protocol", "C interface", "found through the protocol", "exhaust", "memory"):
        assert what in result.output
    assert "2 of 2 seeds" in result.output
    measured = json.loads((tmp_path / "bench.json").read_bytes())
    assert set(measured["ratios"]) == set(json.loads(KEPT.read_bytes())["ratios"])
    assert {f"curve-{c['name'].replace('/', '-')}.svg" for c in measured["curves"]} == {
        file.name for file in tmp_path.glob("*.svg")
    }
    sizes = {curve["axis"]: [p["size"] for p in curve["points"]] for curve in measured["curves"]}
    ends = {axis: (points[0], points[-1]) for axis, points in sizes.items() if axis != "pairs"}
    assert ends == {"candidates": (8, 1024), "params": (2, 64), "columns": (128, 8192)}
