"""Each example in the help of a release verb runs, word for word, on files of the names that it uses."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from foldproof.cli.main import cli
from foldproof.impl.cases import Case, case_to
from foldproof.impl.select import fallback_line, miss_text
from helpers import capture, i32, launch, param, ptr, variant

pytestmark = pytest.mark.slow  # proves what differs between two policies
VERBS = ("lint", "coverage", "diff", "watch", "explain", "merge")
READ = variant("3f56b3aa", param("P", "*bf16", div16=True), param("R"))
FOLD = variant("b2", param("P", "*bf16", div16=True), consts={"R": {"int": 1}})
OTHER = variant("c3", param("X", "*bf16")) | {"fn": "other"}
ONE = launch(ptr("P", 0x1000), i32("R", 1))
SHORTER = {"60": "0.2"}
"""A campaign of a minute shows no more of the example than one of a moment."""


def examples(verb: str) -> list[str]:
    text = import_module(f"foldproof.cli.{verb}").EXAMPLE
    return [line.strip() for line in text.splitlines() if line.strip().startswith("foldproof ")]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    captures = {"CAPTURE": [READ, FOLD], "old-capture": [READ, FOLD], "new-capture": [READ], "a": [READ, FOLD]}
    captures |= {"b": [FOLD, OTHER], "decode-capture": [READ, FOLD], "prefill-capture": [OTHER]}
    for name, kernels in captures.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "aot.json").write_text(json.dumps({"kernels": kernels}))
    args = [{"name": "P", "kind": "ptr", "type": "*bf16", "align16": True}, {"name": "R", "kind": "i32", "value": 1}]
    case = case_to(Case("T01", capture(READ, FOLD), ONE))
    log = [fallback_line("k", "3f56b3aa", ("R",)), *miss_text(launch(ptr("P", 8), i32("R", 7))).splitlines()]
    files = {
        "trace.ndjson": json.dumps({"fn": "k", "args": [ptr("P", 16), i32("R", 7)]}),
        "launch.json": json.dumps({"fn": "k", "args": [ptr("P", 0x1000), i32("R", 1)]}),
        "needs.json": json.dumps({"generator": "x", "calls": 1, "needs": [{"fn": "k", "count": 1, "args": args}]}),
        "engine.toml": '[k]\nargs = { P = "aligned", R = "1..64" }\n',
        "engine.log": "\n".join(log),
        "foldproof-report/cases/T01-single-guard.json": json.dumps(case),
    }
    for version, policy in (("1.0", "three-pass"), ("1.1", "single-guard")):
        serve = f"{shlex.quote(sys.executable)} -m foldproof.impl.external.serve --policy {policy}"
        files[f"selector-{version}"] = f"#!/bin/sh\nexec {serve}\n"
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", [line for verb in VERBS for line in examples(verb)])
def test_the_example_runs(line: str, here: Path) -> None:
    words = [SHORTER.get(word, word) for word in shlex.split(line)]
    done = CliRunner().invoke(cli, words[1:], standalone_mode=False)
    assert done.exception is None, done.output
    assert done.return_value in (0, 1)
    assert done.output.strip()
    for option in ("--needs-out", "--launches-out", "--out", "--svg"):
        if option in words:
            assert (here / words[words.index(option) + 1]).exists()


def test_each_verb_has_examples() -> None:
    assert all(len(examples(verb)) >= 2 for verb in VERBS)
