"""`foldproof merge` as its users meet it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from foldproof.impl import load_capture
from foldproof.impl.capture import missing_cubins
from helpers import foldproof, param, variant

READ = variant("read", param("P", "*bf16", div16=True), param("R"))
FOLD = variant("fold", param("P", "*bf16", div16=True), consts={"R": {"int": 1}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, kernels in (
        ("a", [READ, FOLD]),
        ("b", [FOLD, variant("s", param("X")) | {"fn": "other"}]),
        ("c", [READ]),
    ):
        (tmp_path / name / "cubins").mkdir(parents=True)
        (tmp_path / name / "aot.json").write_text(json.dumps({"kernels": kernels}))
        for kernel in kernels:
            (tmp_path / name / f"cubins/{kernel['hash']}.cubin").write_bytes(kernel["hash"].encode())
    return tmp_path


def test_the_result_loads_and_holds_every_cubin(folder: Path) -> None:
    done = foldproof("merge", "a", "b", "--out", "joined", "--format", "json", cwd=folder)
    value = json.loads(done.stdout)
    jsonschema.Draft202012Validator(json.loads(foldproof("merge", "--schema").stdout)).validate(value)
    assert done.returncode == 0, value
    whole = load_capture(folder / "joined")
    assert [v.hash for v in whole.kernels] == ["fold", "read", "s"]
    assert missing_cubins(folder / "joined", whole) == ()
    assert value["inputs"][1]["duplicates"] == 1


def test_changes_are_shown_and_written_only_where_accepted(folder: Path) -> None:
    words = ["merge", "c", "b", "--out", "joined"]
    done = foldproof(*words, cwd=folder)
    assert done.returncode == 1
    assert "changed for c" in done.stdout
    assert not (folder / "joined").exists()
    accepted = foldproof(*words, "--accept-changes", cwd=folder)
    assert accepted.returncode == 1
    assert (folder / "joined" / "aot.json").is_file()
    assert sorted(p.name for p in folder.iterdir()) == ["a", "b", "c", "joined"]


def test_a_collision_is_refused_or_namespaced(folder: Path) -> None:
    (folder / "b" / "aot.json").write_text(json.dumps({"kernels": [variant("read", param("Z", "*bf16"))]}))
    refused = foldproof("merge", "a", "b", "--out", "joined", cwd=folder)
    assert refused.returncode == 1
    assert "one function name, two sets of names" in refused.stdout
    assert not (folder / "joined").exists()
    done = foldproof("merge", "a", "b", "--out", "joined", "--on-collision", "namespace", cwd=folder)
    assert done.returncode == 0, done.stdout
    assert load_capture(folder / "joined").functions == ("b-2::k", "k")


@pytest.mark.parametrize("words", [("a", "absent", "--out", "x"), ("a", "--out", "b"), ("--out", "x")])
def test_bad_input_is_one_line_or_a_usage_and_exit_2(words: tuple[str, ...], folder: Path) -> None:
    done = foldproof("merge", *words, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
