"""Where files are written, and what is said of them: no name leads elsewhere, and none need be UTF-8."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from abuse.targets import encoded, sample_capture
from foldproof.gpu.bundle import verify_bundle
from foldproof.impl.cases import capture_to
from foldproof.impl.errors import FoldproofError, InvalidCapture
from foldproof.impl.strictjson import json_lines
from foldproof.release.lenient import read_leniently
from foldproof.reports.store import put_file, read
from foldproof.reports.write import write_folder

CORPUS = Path(__file__).with_name("corpus")


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\0b"])
def test_nothing_is_written_outside_the_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for write in (lambda: write_folder(folder, {name: b"x"}), lambda: put_file(folder, name, b"x")):
        with pytest.raises(FoldproofError):
            write()
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_nothing_is_written_through_a_link_inside_the_folder(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / "tables").symlink_to(elsewhere)
    with pytest.raises(FoldproofError, match="lies outside the folder"):
        write_folder(folder, {"tables/a/b.csv": b"x"})
    assert list(elsewhere.iterdir()) == []
    (folder / "receipt.md").symlink_to(elsewhere / "kept")
    (elsewhere / "kept").write_bytes(b"kept")
    write_folder(folder, {"receipt.md": b"x"})
    assert (elsewhere / "kept").read_bytes() == b"kept"
    assert not (folder / "receipt.md").is_symlink()
    (tmp_path / "linked").symlink_to(folder)
    write_folder(tmp_path / "linked", {"a": b"x"})
    assert (folder / "a").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("field", "value"), [("bin_dir", "../x"), ("bin_dir", "/etc"), ("bin_ext", "/../../x"), ("bin_ext", "\0")]
)
def test_lint_looks_for_cubins_in_the_capture_alone(field: str, value: str, tmp_path: Path) -> None:
    (tmp_path / "aot.json").write_bytes(encoded({**capture_to(sample_capture()), field: value}))
    capture = read_leniently(tmp_path)
    assert [f.rule for f in capture.findings] == ["L003"]
    for entry in capture.entries:
        assert capture.cubin(entry).resolve().is_relative_to(tmp_path.resolve())


def test_a_manifest_names_files_of_the_capture_alone(tmp_path: Path) -> None:
    value = json.loads((CORPUS / "manifest" / "bundled").read_bytes())
    value["variants"][0]["hash"] = "../../x"
    (tmp_path / "manifest.json").write_text(json.dumps(value))
    with pytest.raises(InvalidCapture, match="no plain file name"):
        verify_bundle(tmp_path)


def test_a_record_whose_name_is_no_utf_8_is_damage_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / os.fsdecode(b"\xff.json")).write_bytes(b"{}")
    stored, (damaged,) = read(tmp_path)
    assert stored == []
    assert damaged.file.encode() == rb"records/\udcff.json"


def test_text_that_is_no_unicode_is_written_by_its_number() -> None:
    assert json.loads(json_lines({"a\udcff": ["\ud800", 1, None]})) == {"a\\udcff": ["\\ud800", 1, None]}
    assert json_lines({"a": "é"}) == '{\n "a": "é"\n}'.encode()


@pytest.mark.slow  # three processes
def test_verbs_take_names_that_are_no_utf_8(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff\xfe")
    folder.mkdir()
    (folder / "aot.json").write_bytes(encoded(capture_to(sample_capture())))
    (folder / "engine.log").write_bytes((CORPUS / "log" / "dump").read_bytes())
    calls = {
        "lint": [os.fsencode(folder), b"--format", b"json"],
        "watch": [os.fsencode(folder / "engine.log"), b"--format", b"json", b"--capture", os.fsencode(folder)],
        "diff": [os.fsencode(folder), os.fsencode(folder)],
    }
    for verb, words in calls.items():
        command = [sys.executable.encode(), b"-m", b"foldproof.cli.main", verb.encode(), *words]
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
        done = subprocess.run(command, capture_output=True, env=environment, timeout=170, check=False)
        assert done.returncode == 0, done.stderr
        assert rb"\udcff\udcfe" in done.stdout.replace(rb"\\", b"\\")
