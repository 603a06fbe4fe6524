"""`foldproof diff` of captures says whether the bytes of a changed launch are equal, and on which ground."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from foldproof.gpu.bundle import bundled_capture
from helpers import foldproof

pytestmark = pytest.mark.slow  # replays PTX, and starts the command for each example
FNS = ("_fma_scale", "_copy_stride", "_row_sum", "_divide")
Row = dict[str, Any]


def part(folder: Path, keep: Callable[[Row], bool], *files: str, **top: Any) -> Path:
    """A part of the bundled capture in a folder of its own, with the files of the kinds that are named."""
    folder.mkdir()
    whole = json.loads((bundled_capture() / "aot.json").read_text())
    kernels = [k for k in whole["kernels"] if keep(k)]
    (folder / "aot.json").write_text(json.dumps(whole | top | {"kernels": kernels}))
    for kind in files:
        name = kind.removesuffix("s")
        (folder / kind).mkdir()
        for kernel in kernels:
            shutil.copy(bundled_capture() / kind / f"{kernel['hash']}.{name}", folder / kind)
    return folder


def is_folded(kernel: Row) -> bool:
    return {"int": 1} in kernel["consts"].values()


def changes(*words: object) -> list[Row]:
    done = foldproof("diff", *words, "--format", "json")
    assert done.returncode == 1, done.stderr
    value = json.loads(done.stdout)
    rows: list[Row] = value["captures"]["launches"]
    return rows


def words(rows: list[Row]) -> dict[tuple[str, str, str], str]:
    return {(row["fn"], row["old"], row["new"]): row["bytes"]["word"] for row in rows}


def test_receipts_and_symbolic_replay_judge_a_dropped_fold_and_agree(tmp_path: Path) -> None:
    fewer = part(tmp_path / "fewer", lambda k: k["fn"] not in FNS or not is_folded(k))
    device = changes(bundled_capture(), fewer)
    assert {row["bytes"]["basis"] for row in device if row["bytes"]["word"] != "no reference"} == {
        "replay on NVIDIA H200, 2026-12-01"
    }
    # No receipt speaks of these two: the first has another aot.json, the second other variants.
    old = part(tmp_path / "old", lambda k: k["fn"] in FNS, "ptx", "cubins")
    shutil.copy(bundled_capture() / "launches.json", old)
    new = part(tmp_path / "new", lambda k: k["fn"] in FNS and not is_folded(k), "ptx", "cubins")
    symbolic = changes(old, new)
    assert {row["bytes"]["basis"] for row in symbolic if row["bytes"]["word"] != "no reference"} == {"symbolic replay"}
    ran, shown = words(device), words(symbolic)
    assert set(ran) == set(shown)
    assert {"equal", "differs"} <= set(ran.values())
    for pair, word in shown.items():
        # What is proved for inputs without NaN alone stays owed for every bit pattern; a device may know more.
        assert word in {ran[pair], "owed"}, pair
    owed = [row["bytes"] for row in symbolic if row["bytes"]["word"] == "owed"]
    assert owed
    assert all(row["domains"]["no NaN"] == "equal" for row in owed)
    assert {row["settle"] for row in owed} == {f"foldproof replay {old}, on a device"}
    # NEW's PTX is not needed where OLD has the same code, and without any PTX the bytes are owed, with the reason.
    shutil.rmtree(new / "ptx")
    assert words(changes(old, new)) == shown
    shutil.rmtree(old / "ptx")
    bare = [row["bytes"] for row in changes(old, new) if row["bytes"]["word"] != "no reference"]
    assert {row["word"] for row in bare} == {"owed"}
    assert all("has no PTX beside" in row["why"] for row in bare)


def test_other_code_under_the_same_entry_is_judged_by_the_grid_of_the_trace(tmp_path: Path) -> None:
    old = part(tmp_path / "old", lambda k: k["fn"] == "_copy_stride", "ptx", "cubins")
    kernels = json.loads((old / "aot.json").read_text())["kernels"]
    mark = next(k["hash"] for k in kernels if not is_folded(k))
    new = tmp_path / "new"
    shutil.copytree(old, new)
    file = new / f"cubins/{mark}.cubin"
    file.write_bytes(file.read_bytes() + b"\0")
    for named in ([], ["--launches", bundled_capture() / "launches.json"]):
        done = foldproof("diff", old, new, *named, "--format", "json")
        value = json.loads(done.stdout)
        jsonschema.Draft202012Validator(json.loads(foldproof("diff", "--schema").stdout)).validate(value)
        assert [row["changed"] for row in value["captures"]["code_only"]] == [["code"]]
        found = [row["bytes"] for row in value["captures"]["launches"]]
        if named:
            assert not found  # the PTX is the same: proved equal at a recorded launch, so no launch changes
        else:
            assert {(row["word"], row["why"]) for row in found} == {
                ("owed", "no receipt speaks of the pair, and no launch with its grid admits both")
            }


def test_receipts_that_cannot_be_read_are_one_line_and_exit_2(tmp_path: Path) -> None:
    old = part(tmp_path / "old", lambda k: k["fn"] == "_copy_stride")
    (tmp_path / "receipts").mkdir()
    (tmp_path / "receipts" / "x.receipt.json").write_text("{}")
    for folder in ("absent", "receipts"):
        done = foldproof("diff", old, old, "--receipts", tmp_path / folder)
        assert done.returncode == 2
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
