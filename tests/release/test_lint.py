"""Lint finds each planted fault in a mutated part of the bundled capture, and nothing wrong with the clean one."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foldproof.gpu.bundle import bundled_capture
from foldproof.impl import FoldproofError, InvalidCapture, load_policy
from foldproof.release.findings import RULES, Finding, Severity
from foldproof.release.lint import lint, sarif
from foldproof.release.nvinfo import CubinError, read_cubin

FNS = ("_row_sum", "_scale", "_copy_nospec", "_rms_norm", "_attend")
Doc = dict[str, Any]
Plant = Callable[[Doc, Path], None]


@pytest.fixture(scope="session")
def part(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four functions of the bundled capture, with their cubins and the manifest."""
    folder = tmp_path_factory.mktemp("part")
    whole = json.loads((bundled_capture() / "aot.json").read_text())
    whole["kernels"] = [k for k in whole["kernels"] if k["fn"] in FNS]
    (folder / "aot.json").write_text(json.dumps(whole))
    shutil.copy(bundled_capture() / "manifest.json", folder)
    (folder / "cubins").mkdir()
    for kernel in whole["kernels"]:
        shutil.copy(bundled_capture() / f"cubins/{kernel['hash']}.cubin", folder / "cubins")
    return folder


def bad(findings: tuple[Finding, ...]) -> list[Finding]:
    return [f for f in findings if f.severity != Severity.NOTE]


def test_the_clean_captures_have_no_errors_and_no_warnings(part: Path) -> None:
    for folder in (part, bundled_capture()):
        result = lint(folder, load_policy("three-pass"))
        assert bad(result.findings) == []
        assert result.cubins == result.variants
    # The one variant that needs more shared memory than the device has is in the manifest: a fact, and said.
    assert [f.rule for f in result.findings if "manifest" in f.what] == ["L509"]


def kernel(doc: Doc, fn: str, number: int = 0) -> Doc:
    found: Doc = [k for k in doc["kernels"] if k["fn"] == fn][number]
    return found


def folding(doc: Doc, fn: str, name: str) -> Doc:
    return next(k for k in doc["kernels"] if k["fn"] == fn and name in k["consts"])


def reading(doc: Doc, fn: str, name: str) -> Doc:
    return next(k for k in doc["kernels"] if k["fn"] == fn and any(p["name"] == name for p in k["params"]))


def param_of(entry: Doc, kind: str) -> Doc:
    found: Doc = next(p for p in entry["params"] if p["type"].startswith(kind))
    return found


def copy_of(doc: Doc, folder: Path, entry: Doc, **changes: Any) -> Doc:
    """Another entry with another hash and the same cubin, at the end."""
    other: Doc = json.loads(json.dumps(entry)) | {"hash": entry["hash"][::-1] + "ff"} | changes
    shutil.copy(folder / f"cubins/{entry['hash']}.cubin", folder / f"cubins/{other['hash']}.cubin")
    doc["kernels"].append(other)
    return other


def cubin(folder: Path, entry: Doc) -> Path:
    return folder / f"cubins/{entry['hash']}.cubin"


def swap(folder: Path, one: Doc, other: Doc) -> None:
    first = cubin(folder, one).read_bytes()
    cubin(folder, one).write_bytes(cubin(folder, other).read_bytes())
    cubin(folder, other).write_bytes(first)


def no_manifest(folder: Path) -> None:
    """Without a manifest the cubin itself must give the fault away."""
    (folder / "manifest.json").unlink()


def aligned(param: Doc, **switches: bool) -> None:
    param.update(div16=True, **switches)


def copied_over(doc: Doc, folder: Path) -> None:
    shutil.copy(cubin(folder, kernel(doc, "_scale")), cubin(folder, kernel(doc, "_row_sum")))


def set_in(entry: Doc, **values: Any) -> None:
    entry.update(values)


def swapped(doc: Doc, folder: Path) -> None:
    no_manifest(folder)
    swap(folder, kernel(doc, "_row_sum"), kernel(doc, "_scale"))


def swapped_twins(doc: Doc, folder: Path) -> None:
    no_manifest(folder)
    swap(folder, folding(doc, "_row_sum", "S"), reading(doc, "_row_sum", "S"))


def truncated(doc: Doc, folder: Path) -> None:
    no_manifest(folder)
    file = cubin(folder, kernel(doc, "_scale"))
    file.write_bytes(file.read_bytes()[:-300])


def other_arch(doc: Doc, folder: Path) -> None:
    no_manifest(folder)
    file = cubin(folder, kernel(doc, "_scale"))
    data = bytearray(file.read_bytes())
    data[49] = 80  # the second byte of e_flags
    file.write_bytes(bytes(data))


def flipped(doc: Doc, folder: Path) -> None:
    file = cubin(folder, kernel(doc, "_scale"))
    data = bytearray(file.read_bytes())
    data[0x400] ^= 1
    file.write_bytes(bytes(data))


def nospec_before(doc: Doc, folder: Path) -> None:
    """A nospec variant takes every launch that the plain one could: it stands first, so the plain one is dead."""
    plain = next(k for k in doc["kernels"] if k["fn"] == "_scale" and not param_of(k, "i32")["div16"])
    other = copy_of(doc, folder, plain)
    for p in other["params"]:
        if p["type"] == "i32" and not p["div16"]:
            p["nospec"] = True
    doc["kernels"].insert(0, doc["kernels"].pop())


def dropped_folds(doc: Doc, folder: Path) -> None:
    """Keep one fold of S in another constant's family, drop the twin of the rest."""
    keep = folding(doc, "_row_sum", "S")
    same = [k for k in doc["kernels"] if k["fn"] == "_row_sum" and "S" in k["consts"] and k is not keep]
    for entry in same:
        doc["kernels"].remove(entry)
        cubin(folder, entry).unlink()


def repeat_key(text: str) -> str:
    return text.replace('"num_warps": 4', '"num_warps": 4, "num_warps": 8', 1)


PLANTS: dict[str, tuple[str, Plant]] = {
    "a name is param and const": ("L101", lambda d, _: kernel(d, "_scale")["consts"].update(N={"int": 1})),
    "two params of one name": ("L102", lambda d, _: kernel(d, "_scale")["params"][0].update(name="N")),
    "div16 on a nospec int": ("L103", lambda d, _: aligned(param_of(kernel(d, "_scale"), "i32"), nospec=True)),
    "div16 on a noalign pointer": ("L103", lambda d, _: aligned(param_of(kernel(d, "_scale"), "*"), noalign=True)),
    "div16 on a float": ("L104", lambda d, _: param_of(kernel(d, "_attend"), "fp32").update(div16=True)),
    "one hash twice": ("L105", lambda d, _: set_in(d["kernels"][1], hash=d["kernels"][0]["hash"])),
    "duplicate under two hashes": ("L106", lambda d, f: copy_of(d, f, kernel(d, "_scale"))),
    "annotated pointer": ("L107", lambda d, _: param_of(kernel(d, "_scale"), "*").update(annotated=True)),
    "range32 on an int": ("L108", lambda d, _: param_of(kernel(d, "_scale"), "i32").update(range32=True)),
    "a type that no arg has": ("L109", lambda d, _: param_of(kernel(d, "_scale"), "i32").update(type="fp64")),
    "a free constant": ("L201", lambda d, f: copy_of(d, f, kernel(d, "_scale"), consts={"BLOCK": {"int": 64}})),
    "two sources": ("L202", lambda d, _: set_in(kernel(d, "_scale"), source="another")),
    "two signatures": ("L203", lambda d, _: param_of(kernel(d, "_scale"), "i32").update(name="other")),
    "num_stages not recorded in one": ("L204", lambda d, f: copy_of(d, f, kernel(d, "_scale"), num_stages=0)),
    "num_ctas differs": ("L204", lambda d, f: copy_of(d, f, kernel(d, "_scale"), num_ctas=2)),
    "a shadowed variant": ("L301", nospec_before),
    "a missing folded twin": ("L311", dropped_folds),
    "global scratch": ("L401", lambda d, _: set_in(kernel(d, "_scale"), global_scratch=256)),
    "profile scratch": ("L401", lambda d, _: set_in(kernel(d, "_scale"), profile_scratch=256)),
    "an unknown attribute": ("L004", lambda d, _: kernel(d, "_scale")["params"][0].update(volatile=True)),
    "a constant of two kinds": ("L003", lambda d, _: kernel(d, "_scale")["consts"].update(B={"int": 1, "bool": True})),
    "no warps": ("L003", lambda d, _: set_in(kernel(d, "_scale"), num_warps=0)),
    "a field is missing": ("L003", lambda d, _: kernel(d, "_scale").pop("fn")),
    "a hash that leaves the folder": ("L005", lambda d, _: set_in(kernel(d, "_scale"), hash="../../x")),
    "bin_dir leaves the capture": ("L003", lambda d, _: d.update(bin_dir="/tmp")),  # noqa: S108 (no file is written)
    "a cubin is missing": ("L501", lambda d, f: cubin(f, kernel(d, "_scale")).unlink()),
    "a byte of a cubin differs": ("L502", flipped),
    "a cubin is swapped": ("L505", swapped),
    "twins are swapped": ("L506", swapped_twins),
    "a cubin is cut short": ("L503", truncated),
    "a cubin is empty": ("L503", lambda d, f: cubin(f, kernel(d, "_scale")).write_bytes(b"")),
    "another architecture": ("L504", other_arch),
    "a param is dropped": ("L506", lambda d, _: kernel(d, "_scale")["params"].pop()),
    "a param is wider": ("L507", lambda d, _: param_of(kernel(d, "_scale"), "i32").update(type="i64")),
    "too many registers": ("L508", lambda d, _: set_in(kernel(d, "_rms_norm"), num_warps=128)),
    "too much shared memory": ("L509", lambda d, _: set_in(kernel(d, "_scale"), shared=1 << 18)),
    "a cubin copied over another's": ("L511", copied_over),
    "other warps than compiled": ("L512", lambda d, _: set_in(kernel(d, "_scale"), num_warps=2)),
    "a stray cubin": ("L513", lambda d, f: shutil.copy(cubin(f, kernel(d, "_scale")), f / "cubins/stray.cubin")),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTS)
def test_each_planted_fault_is_found(name: str, part: Path, tmp_path: Path) -> None:
    rule, plant = PLANTS[name]
    folder = tmp_path / "capture"
    shutil.copytree(part, folder)
    doc = json.loads((folder / "aot.json").read_text())
    plant(doc, folder)
    (folder / "aot.json").write_text(json.dumps(doc))
    found = bad(lint(folder, load_policy("three-pass")).findings)
    assert rule in {f.rule for f in found}, found
    place = next(f for f in found if f.rule == rule)
    assert place.where.startswith(("$", "cubins/"))
    assert place.what


def test_the_planted_faults_cover_the_rules() -> None:
    tested = {rule for rule, _ in PLANTS.values()} | {"L001", "L002", "L302"}
    assert tested == {rule.id for rule in RULES.values() if rule.severity != Severity.NOTE}


def test_a_repeated_key_is_found_and_the_rest_is_read(part: Path, tmp_path: Path) -> None:
    file = tmp_path / "aot.json"
    file.write_text(repeat_key((part / "aot.json").read_text()))
    found = bad(lint(file, load_policy("three-pass")).findings)
    assert [f.where for f in found if f.rule == "L002"] == ["$.kernels[0].num_warps"]
    assert {f.rule for f in found} <= {"L002", "L311"}  # the fold of that entry now has other warps


def test_of_more_repeated_keys_than_a_reader_reads_the_first_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foldproof.release.lenient.MOST_REPEATS", 3)
    (tmp_path / "aot.json").write_text('{"kernels": [' + ",".join(['{"a": 0, "a": 1}'] * 5) + "]}")
    found = [f for f in lint(tmp_path / "aot.json", load_policy("three-pass")).findings if f.rule in ("L001", "L002")]
    assert [f.rule for f in found] == ["L001", "L002", "L002", "L002"]
    assert "more than 3 keys" in found[0].what
    (tmp_path / "aot.json").write_text('{"kernels": [' + ",".join(['{"a": 0, "a": 1}'] * 3) + "]}")
    found = [f for f in lint(tmp_path / "aot.json", load_policy("three-pass")).findings if f.rule in ("L001", "L002")]
    assert [f.rule for f in found] == ["L002", "L002", "L002"]


def test_every_fault_of_a_file_is_listed(part: Path, tmp_path: Path) -> None:
    doc = json.loads((part / "aot.json").read_text())
    kernel(doc, "_scale")["num_warps"] = "four"
    kernel(doc, "_scale")["shared"] = -1
    kernel(doc, "_row_sum")["consts"]["X"] = {}
    (tmp_path / "aot.json").write_text(json.dumps(doc))
    found = lint(tmp_path, load_policy("three-pass")).findings
    assert sum(f.rule == "L003" for f in found) == 3


@pytest.mark.parametrize("text", ['{"kernels": 3}', "[1]", '{"kernels": []}', '{"kernels": [7]}'])
def test_what_is_no_capture(text: str, tmp_path: Path) -> None:
    (tmp_path / "aot.json").write_text(text)
    assert lint(tmp_path, load_policy("three-pass")).findings[0].rule in ("L001", "L003")


def test_a_policy_that_knows_fewer_kinds_reaches_fewer(part: Path, tmp_path: Path) -> None:
    doc = json.loads((part / "aot.json").read_text())
    param_of(kernel(doc, "_scale"), "i32").update(type="u1", div16=False)
    (tmp_path / "aot.json").write_text(json.dumps(doc))
    rules = {
        p: {f.rule for f in lint(tmp_path, load_policy(p), ["L3"]).findings} for p in ("three-pass", "exact-first")
    }
    assert "L302" not in rules["three-pass"]
    assert "L302" in rules["exact-first"]


def test_shadowing_names_what_stands_before(part: Path, tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    shutil.copytree(part, folder)
    doc = json.loads((folder / "aot.json").read_text())
    nospec_before(doc, folder)
    first = doc["kernels"][0]["hash"]
    (folder / "aot.json").write_text(json.dumps(doc))
    found = [f for f in lint(folder, load_policy("three-pass")).findings if f.rule == "L301"]
    assert len(found) == 2
    assert all(first in f.what for f in found)


def test_rules_are_selected_by_id_beginning_and_name(part: Path) -> None:
    policy = load_policy("three-pass")
    assert {f.rule for f in lint(part, policy, ["L5"]).findings} == {"L510"}
    assert {f.rule for f in lint(part, policy, ["identical-code", "L312"]).findings} >= {"L510"}
    assert "L510" not in {f.rule for f in lint(part, policy, [], ["L51"]).findings}
    with pytest.raises(FoldproofError, match="no lint rule is named 'L9'"):
        lint(part, policy, ["L9"])


def test_a_file_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "aot.json").write_bytes(b"\x00\x01\xff" * 99)
    with pytest.raises(InvalidCapture):
        lint(tmp_path, load_policy("three-pass"))


def test_sarif_names_rule_level_and_place(tmp_path: Path) -> None:
    (tmp_path / "aot.json").write_text(
        '{"kernels": [{"fn": "k", "hash": "a", "num_warps": 4, "params": 1, "consts": {}}]}'
    )
    log = sarif(lint(tmp_path, load_policy("three-pass")))
    row = log["runs"][0]["results"][0]
    assert (row["ruleId"], row["level"]) == ("L003", "error")
    assert row["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "$.kernels[0].params"
    assert {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]} == set(RULES)


def test_any_damage_to_a_cubin_is_an_error_or_read(part: Path) -> None:
    data = next((part / "cubins").iterdir()).read_bytes()
    whole = read_cubin(data)
    assert whole.sm == 90
    assert whole.kernels[0].param_bytes == whole.kernels[0].params[-1].offset + 8
    for cut in range(0, len(data), 97):
        with pytest.raises(CubinError):
            read_cubin(data[:cut])
    for place in range(0, len(data), 53):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        with contextlib.suppress(CubinError):
            read_cubin(bytes(broken))
