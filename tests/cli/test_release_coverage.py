"""`foldproof coverage` as its users meet it."""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic

import jsonschema
import pytest
from helpers import foldproof, i32, param, ptr, shared, variant

KERNELS = [
    variant("A", param("P", "*bf16", div16=True), param("R")),
    variant("B", param("P", "*bf16", div16=True), consts={"R": {"int": 1}}),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "aot.json").write_text(json.dumps({"kernels": KERNELS}))
    rows = [{"fn": "k", "args": [ptr("P", p), i32("R", r)]} for p, r in ((16, 1), (16, 7), (8, 7))]
    (tmp_path / "trace.ndjson").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "engine.toml").write_text('[k]\nargs = { P = "aligned", R = "1..64" }\n')
    return tmp_path


def test_the_examples_of_the_help_run(folder: Path) -> None:
    assert foldproof("coverage", ".", cwd=folder).returncode == 0
    strict = foldproof("coverage", ".", "trace.ndjson", "--strict", cwd=folder)
    assert strict.returncode == 1
    assert "P: the variant assumes a multiple of 16" in strict.stdout
    written = foldproof("coverage", ".", "trace.ndjson", "--needs-out", "missing.json", cwd=folder)
    assert written.returncode == 0
    need = json.loads((folder / "missing.json").read_text())["needs"][0]
    assert need["args"][0] == {"name": "P", "kind": "ptr", "type": "*bf16", "align16": False}
    assert foldproof("coverage", ".", "missing.json", "--strict", cwd=folder).returncode == 1
    proved = foldproof("coverage", ".", "--reachable", "engine.toml", cwd=folder)
    assert proved.returncode == 0
    assert "proved for all 3 launch classes" in proved.stdout


def test_a_range_that_is_not_complete_gives_the_first_class_that_misses(folder: Path) -> None:
    (folder / "engine.toml").write_text('[k]\nargs = { P = "any", R = "1..64" }\n')
    done = foldproof("coverage", ".", "--reachable", "engine.toml", cwd=folder)
    assert done.returncode == 1
    assert "first missing: k(P: *bf16 at 0x1008, R: i32 = 2)" in done.stdout
    written = "foldproof coverage . --reachable engine.toml --needs-out missing.json"
    assert done.stdout.splitlines()[-1] == f"next: {written}"
    done = foldproof(*written.split()[1:], cwd=folder)
    assert done.stdout.splitlines()[-1] == "next: foldproof coverage . missing.json --strict"
    assert json.loads((folder / "missing.json").read_text())["needs"]
    strict = foldproof("coverage", ".", "trace.ndjson", "--strict", "--policy", "two-pass", cwd=folder)
    assert strict.stdout.splitlines()[-1] == (
        "next: foldproof coverage . trace.ndjson --policy two-pass --strict --needs-out missing.json"
    )


def test_more_variants_do_not_help_where_launches_are_ambiguous(folder: Path) -> None:
    twice = [variant("A", param("R")), variant("B", param("R"))]
    (folder / "aot.json").write_text(json.dumps({"kernels": twice}))
    (folder / "trace.ndjson").write_text(json.dumps({"fn": "k", "args": [i32("R", 7)]}))
    done = foldproof("coverage", ".", "trace.ndjson", "--strict", "--policy", "recommended", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "next: foldproof lint . --policy recommended"


def test_json_output_meets_its_schema(folder: Path) -> None:
    schema = json.loads(foldproof("coverage", "--schema").stdout)
    done = foldproof(
        "coverage", ".", "trace.ndjson", "--reachable", "engine.toml", "--format", "json", "--strict", cwd=folder
    )
    value = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema).validate(value)
    assert value["ends"]["exact"] == 2
    assert value["reachable"][0]["complete"]
    assert not value["complete"]


@pytest.mark.parametrize("content", [None, b"", b"\x00\xff" * 60, b"[1"])
@pytest.mark.parametrize("which", ["trace.ndjson", "engine.toml"])
def test_bad_input_is_one_line_and_exit_2(which: str, content: bytes | None, folder: Path) -> None:
    (folder / which).unlink()
    if content is not None:
        (folder / which).write_bytes(content)
    option = ["--reachable"] if which.endswith("toml") else []
    done = foldproof("coverage", ".", *option, which, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert which in done.stderr


RANGES = """
[_collapse]
args = { X = "aligned", PRE = "aligned", OUT = "aligned" }
[_gather_tiles]
args = { KEYS = "aligned", TPOS = "aligned", OUT = "aligned", n = "1..4096", ks = "1..4096" }
[_rowmm_parts]
args = { X = "aligned", W = "aligned", S = "aligned", xs = 5120, rows = "1..256" }
"""


def test_the_real_capture_is_covered_and_a_range_proved(tmp_path: Path) -> None:
    path = shared("captures", "deepseek-v41-tp4", "aot.json")
    (tmp_path / "engine.toml").write_text(RANGES)
    started = monotonic()
    value = json.loads(foldproof("coverage", path, "--format", "json").stdout)
    assert sum(value["ends"].values()) == 3253
    assert value["ends"]["fallback"] == 194
    done = foldproof("coverage", path, "--reachable", tmp_path / "engine.toml", "--format", "json")
    shown = {row["fn"]: row for row in json.loads(done.stdout)["reachable"]}
    assert shown["_collapse"]["complete"]
    assert shown["_gather_tiles"]["fallback"]["args"][3]["value"] in (1, 2)
    assert monotonic() - started < 60  # 10 s each on two free cores
