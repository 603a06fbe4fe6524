"""Launch traces: what a project writes is what a replay reads, and what could not be replayed is refused at once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from foldproof.gpu.bundle import LAUNCHES, bundled_capture
from foldproof.gpu.replay import BufferNote, TraceWriter, plan_replay, read_trace, record_from, record_to
from foldproof.gpu.replay.trace import recorded
from foldproof.impl import InvalidLaunch
from replay.toys import RECORD, entry, launch


def value(**more: Any) -> dict[str, Any]:
    return {**RECORD, "launch": launch(), **more}


def test_a_record_survives_its_json() -> None:
    record = record_from(value())
    assert record_from(json.loads(json.dumps(record_to(record)))) == record
    assert record.buffers["OUT"] == BufferNote("out")


def test_a_buffer_of_which_nothing_is_said_is_read_and_written() -> None:
    assert record_from(value(buffers={})).buffers.get("X", BufferNote()).role == "inout"


def test_a_written_trace_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "trace.ndjson"
    with TraceWriter(file) as trace:
        for _ in range(3):
            trace.add(launch(), (4, 1, 1), {"X": {"role": "in"}})
        assert trace.count == 3
        assert len(file.read_bytes().splitlines()) == 3
    records = read_trace(file)
    assert [r.name for r in records] == ["toy#0", "toy#1", "toy#2"]
    packed = tmp_path / "trace.ndjson.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert read_trace(packed) == records


def test_the_writer_refuses_what_could_not_be_replayed(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace") as trace:
        with pytest.raises(InvalidLaunch, match="'Y' is no pointer argument of toy"):
            trace.add(launch(), (1, 1, 1), {"Y": {"role": "in"}})
        with pytest.raises(InvalidLaunch):
            trace.add(launch(), (0, 1, 1), {})
        assert trace.count == 0
    assert not (tmp_path / "trace").read_bytes()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"grid": [1, 1]}, "grid"),
        ({"grid": [0, 1, 1]}, "grid"),
        ({"grid": None}, "grid"),
        ({"buffers": {"X": {"role": "output"}}}, "role"),
        ({"buffers": {"X": {"below": -1}}}, "below"),
        ({"buffers": {"X": {"size": 3}}}, "size"),
        ({"launch": {"fn": 3}}, "launch"),
    ],
)
def test_a_bad_record_is_refused_with_its_line_and_place(change: dict[str, Any], place: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.ndjson"
    file.write_text(json.dumps(value()) + "\n" + json.dumps(value(**change)) + "\n")
    with pytest.raises(InvalidLaunch) as caught:
        read_trace(file)
    assert "trace.ndjson" in str(caught.value)
    assert "2" in str(caught.value)
    assert place in str(caught.value)


def test_a_pointer_without_a_size_is_refused() -> None:
    bare = launch()
    del bare["args"][0]["bytes"]
    with pytest.raises(InvalidLaunch, match="'X' says no size"):
        record_from(value(launch=bare))


def test_what_is_beside_the_launch_is_the_recorders_own() -> None:
    assert record_from(value(why="x", expect={}, time=3.5)) == record_from(value())


def test_the_launches_beside_the_bundled_capture_are_a_trace() -> None:
    records = recorded(bundled_capture() / LAUNCHES)
    assert len(records) > 300
    assert all(name == record.name for name, record in records.items())


def test_a_trace_plans_every_pair_that_the_rules_admit(tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    (folder / "cubins").mkdir(parents=True)
    kernels = [entry(name) for name in ("folded", "runtime-a", "runtime-b")] + [entry("other", num_warps=8)]
    (folder / "aot.json").write_text(json.dumps({"kernels": kernels}))
    trace = tmp_path / "trace.json"
    two = launch()
    two["args"][2]["value"] = 2
    trace.write_text(json.dumps([value(), value(name="again"), value(launch=two), value(launch=launch(num_warps=4))]))
    bouts = plan_replay(folder, trace).bouts
    assert [len(bout.matchups) for bout in bouts] == [6, 3, 3]
    assert [m.change for m in bouts[0].matchups[:3]] == [
        ("fold of R",),
        ("fold of R",),
        ("fold of R", "4 against 8 warps"),
    ]
    assert len({bout.record.name for bout in bouts}) == 3
