"""Merging: identity kept, duplicates once, collisions named, and the proof that no selection of an input changes."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from foldproof.gpu.bundle import bundled_capture
from foldproof.impl import Capture, InvalidCapture, Selection, decide, load_capture, load_policy
from foldproof.props.derive import derive
from foldproof.props.generate import Shape as CaseShape
from foldproof.props.generate import make_case, seeded
from foldproof.release.changes import verdicts
from foldproof.release.launch_shape import with_args
from foldproof.release.merge import input_verdicts, joined_capture, merged, read_inputs
from foldproof.release.shapes import Family
from helpers import param, variant

THREE_PASS = load_policy("three-pass")
Kernels = list[dict[str, Any]]


def folder(root: Path, name: str, kernels: Kernels, cubins: dict[str, bytes] | None = None, **top: Any) -> Path:
    path = root / name
    path.mkdir()
    (path / "aot.json").write_text(json.dumps({"kernels": kernels} | top))
    for mark, code in (cubins or {}).items():
        (path / "cubins").mkdir(exist_ok=True)
        (path / f"cubins/{mark}.cubin").write_bytes(code)
    return path


READ = variant("read", param("P", "*bf16", div16=True), param("R"))
FOLD = variant("fold", param("P", "*bf16", div16=True), consts={"R": {"int": 1}})


def test_the_halves_of_the_bundled_capture_join_to_the_whole(tmp_path: Path) -> None:
    whole = json.loads((bundled_capture() / "aot.json").read_text())["kernels"]
    fns = sorted({k["fn"] for k in whole})
    halves = [
        folder(tmp_path, name, [k for k in whole if (k["fn"] in fns[:20]) is first])
        for name, first in (("one", True), ("two", False))
    ]
    inputs = read_inputs(halves)
    found = merged(inputs, "refuse")
    assert not found.collisions
    result = joined_capture(found)
    assert [(v.fn, v.hash) for v in result.kernels] == sorted((k["fn"], k["hash"]) for k in whole)
    shown = input_verdicts(inputs, found, THREE_PASS)
    assert all(one.is_kept for one in shown)
    original = load_capture(bundled_capture())
    for one in itertools.islice(derive(original), 0, None, 9):
        before, after = (decide(c, one.launch, THREE_PASS) for c in (original, result))
        assert isinstance(before, Selection) == isinstance(after, Selection)
        if isinstance(before, Selection) and isinstance(after, Selection):
            assert before.variant == after.variant


def test_equal_entries_are_kept_once_by_content(tmp_path: Path) -> None:
    one = folder(tmp_path, "one", [READ, FOLD], {"read": b"code", "fold": b"other"})
    twins = [READ | {"hash": "again"}, FOLD | {"hash": "fold2"}]
    two = folder(tmp_path, "two", twins, {"again": b"code", "fold2": b"other"})
    inputs = read_inputs([one, two])
    found = merged(inputs, "refuse")
    assert [entry.variant.hash for entry in found.entries] == ["fold", "read"]
    assert found.duplicates == (0, 2)
    shown = input_verdicts(inputs, found, THREE_PASS)
    assert all(one.is_kept for one in shown)


COLLISIONS = {
    "one hash, two variants": (READ, FOLD | {"hash": "read"}, True),
    "equal variants, other code": (READ, READ | {"hash": "new"}, False),
    "one function name, two sources": (READ | {"source": "a"}, FOLD | {"source": "b"}, True),
    "one function name, two sets of names, and no source to tell them apart": (
        READ,
        variant("x", param("Q", "*bf16")),
        True,
    ),
}


@pytest.mark.parametrize("what", COLLISIONS)
def test_each_collision_is_named_and_namespaced_where_that_helps(what: str, tmp_path: Path) -> None:
    first, second, helps = COLLISIONS[what]
    inputs = read_inputs([folder(tmp_path, "one", [first]), folder(tmp_path, "two", [second])])
    assert [(c.what, c.done) for c in merged(inputs, "refuse").collisions] == [(what, "")]
    found = merged(inputs, "namespace")
    assert [bool(c.done) for c in found.collisions] == [helps]
    names = {(entry.variant.fn, entry.variant.hash) for entry in found.entries}
    assert len(names) == 2
    assert ("k", first["hash"]) in names
    for entry in found.entries:
        assert (entry.variant.name or "k") == "k"  # the symbol in the cubin stays
    if helps and len({entry.variant.fn for entry in found.entries}) == 2:
        assert all(one.is_kept for one in input_verdicts(inputs, found, THREE_PASS))


def test_a_selection_that_changes_is_reported_with_a_launch(tmp_path: Path) -> None:
    """The first capture falls back for R = 1; the fold of the second takes over."""
    inputs = read_inputs([folder(tmp_path, "one", [READ]), folder(tmp_path, "two", [FOLD])])
    found = merged(inputs, "refuse")
    first, second = input_verdicts(inputs, found, THREE_PASS)
    assert not first.is_kept
    assert {(c.old, c.new, c.new_ends) for f in first.functions for c in f.changes} == {("read", "fold", "exact")}
    assert second.is_kept


def test_captures_of_two_targets_do_not_join(tmp_path: Path) -> None:
    paths = [folder(tmp_path, f"sm{n}", [READ], target=["cuda", n, 32]) for n in (90, 121)]
    with pytest.raises(InvalidCapture, match=r"is for .*121.*90"):
        read_inputs(paths)


@pytest.mark.slow
def test_the_proof_is_that_of_trying_every_launch() -> None:
    """Against brute force over the classes, on random captures reordered, and with a candidate more."""
    choose, seen = seeded(21), set()
    for number in range(40):
        case = make_case(choose, CaseShape(candidates=4, args=2), str(number))
        new = Family.of("k", case.capture.kernels).variants
        if len(new) < 2:
            continue
        old = new[::-1] if number % 2 else new[:-1]
        (shown,) = verdicts(Capture(old), Capture(new), THREE_PASS, lambda a, b: a.hash == b.hash)
        seen.add((shown.untouched, shown.proved))
        for change in shown.changes:
            assert change.old != change.new
        if not shown.proved:
            continue
        family = Family.of("k", (*old, *new))
        for shape in family.open_shapes():
            consts = [(None, *values) for _, values in shape.consts]
            options = [(None, *values) for _, values in shape.options]
            combinations = itertools.product(*shape.classes, *consts, *options)
            for chosen in itertools.islice(combinations, 0, 20000, 7):
                args, rest = chosen[: len(shape.classes)], chosen[len(shape.classes) :]
                said = dict(zip([n for n, _ in shape.consts], rest, strict=False))
                pins = dict(zip([n for n, _ in shape.options], rest[len(shape.consts) :], strict=True))
                base = with_args(shape.base, args)
                launch = type(base)(base.fn, base.args, {n: c for n, c in said.items() if c is not None}, **pins)
                before, after = (decide(Capture(c), launch, THREE_PASS) for c in (old, new))
                if isinstance(before, Selection):
                    assert isinstance(after, Selection)
                    assert after.variant.hash == before.variant.hash
    assert seen >= {(False, True), (False, False)}
