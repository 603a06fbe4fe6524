"""Diff: regions of policies by proof, the same regions of selectors by search, and captures by variant and launch."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from foldproof.gpu.bundle import bundled_capture
from foldproof.impl import Capture, FoldproofError, capture_from, load_capture, load_policy
from foldproof.impl.capture import Variant
from foldproof.impl.cases import replay
from foldproof.model.matrix import SEARCH
from foldproof.props.derive import derive
from foldproof.release.capture_diff import CaptureDiff, capture_diff, digests
from foldproof.release.changes import verdicts
from foldproof.release.diff import kind_of, kind_of_both, opened
from foldproof.release.launches import Counted
from foldproof.release.pick_bytes import Bytes, Word
from foldproof.release.policy_diff import PolicyDiff, answer_text, policy_diff
from foldproof.release.selector_diff import PolicySide, SelectorDiff, selector_diff
from helpers import capture, param, variant

ROOT = Path(__file__).parents[2]
THREE_PASS = load_policy("three-pass")


def difference(old: str, new: str) -> PolicyDiff:
    return policy_diff(load_policy(old), load_policy(new), SEARCH)


def holds(old: str, new: str, found: PolicyDiff) -> None:
    """Each example is one: the reference answers as the region says, and differently."""
    for region in found.regions:
        answers = [answer_text(replay(region.example, load_policy(name))) for name in (old, new)]
        assert answers == [region.old_answer, region.new_answer]
        assert answers[0] != answers[1]


@pytest.mark.slow
def test_three_pass_changes_only_what_missed_and_what_another_source_served() -> None:
    found = difference("two-pass", "three-pass")
    holds("two-pass", "three-pass", found)
    assert (found.proofs[0].verdict, found.proofs[0].scope) == ("proved", "unbounded")
    regions = {region.id: region for region in found.regions}
    assert set(regions) == {"OLD-source", "NEW-falls-back"}
    assert regions["NEW-falls-back"].changes == (("missing", "fallback"),)
    smallest = regions["NEW-falls-back"].example
    assert (len(smallest.capture.kernels), len(smallest.launch.args)) == (1, 1)


@pytest.mark.slow
def test_single_guard_differs_where_pointers_are_mixed() -> None:
    found = difference("three-pass", "single-guard")
    holds("three-pass", "single-guard", found)
    assert found.proofs[0].verdict == "refuted"
    regions = {region.id: region for region in found.regions}
    assert set(regions) == {"NEW-source", "OLD-mixed-pointers", "OLD-mixed-ints", "OLD-div16-switch"}
    mixed = regions["OLD-mixed-pointers"]
    assert mixed.changes == (("general", "fallback"),)
    assert (len(mixed.example.capture.kernels), len(mixed.example.launch.args)) == (2, 2)
    assert "NEW's pick reads a foldable 1" in mixed.always
    assert {name: const.value for v in mixed.example.capture.kernels for name, const in v.consts.items()} == {"R": 1}


@pytest.mark.slow
def test_an_ambiguity_is_put_down_to_what_the_refusal_looks_at() -> None:
    found = difference("three-pass", "recommended")
    holds("three-pass", "recommended", found)
    ambiguous = [region.id for region in found.regions if any("ambiguous" in change for change in region.changes)]
    assert sorted(ambiguous) == ["free-constants", "options-open", "twins"]


def test_a_policy_does_not_differ_from_itself() -> None:
    found = difference("three-pass", "three-pass")
    assert found.equal
    assert [p.verdict for p in found.proofs] == ["proved", "proved"]


def searched(old: Any, new: Any, seconds: float = 0.5) -> SelectorDiff:
    return selector_diff(old, new, seconds, 1, lambda _: None)


def test_search_finds_the_regions_that_the_proof_has() -> None:
    found = searched(PolicySide(THREE_PASS), PolicySide(load_policy("single-guard")), 2)
    assert {r.id for r in found.regions} >= {"NEW-source", "OLD-mixed-pointers", "OLD-mixed-ints"}
    mixed = next(r for r in found.regions if r.id == "OLD-mixed-pointers")
    assert (len(mixed.example.capture.kernels), len(mixed.example.launch.args)) == (2, 2)
    assert found.exhaustive_cases == 18816
    assert sum(count for *_, count in found.changes) == found.differences > 0


def test_equal_sides_show_no_difference() -> None:
    found = searched(PolicySide(THREE_PASS), PolicySide(THREE_PASS), 0.2)
    assert found.equal
    assert found.campaign_cases > 0


@pytest.fixture(scope="session")
def zig(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Zig selector, with a fault that the environment can plant."""
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs the package ziglang")
    spec = importlib.util.spec_from_file_location("zig_build", ROOT / "selectors/zig/build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out = tmp_path_factory.mktemp("zig")
    module.build(out, bug="any", parts=("exe",))
    return Path(out / "three-pass")


def test_the_zig_selector_with_and_without_its_fault_differs_in_the_same_region(zig: Path) -> None:
    with opened(str(zig), 5) as old, opened(f"env FOLDPROOF_PLANTED=single_guard {zig}", 5) as new:
        found = searched(old, new, 2)
    regions = {r.id: r for r in found.regions}
    assert set(regions) <= {"OLD-mixed-pointers", "OLD-mixed-ints", "OLD-div16-switch"}
    assert regions["OLD-mixed-pointers"].changes == (("general", "fallback"),)
    assert len(regions["OLD-mixed-pointers"].example.capture.kernels) == 2


def test_what_an_argument_names() -> None:
    assert kind_of("three-pass") == kind_of("mine.toml") == "policy"
    assert kind_of(str(bundled_capture())) == "capture"
    assert kind_of("env X=1 thing") == "selector"
    assert kind_of_both("three-pass", "env thing") == "selector"
    for pair in (("three-pass", str(bundled_capture())), ("three-pass", "no-such-thing")):
        with pytest.raises(FoldproofError):
            kind_of_both(*pair)


def compared(old: Capture, new: Capture, launches: list[Counted] | None = None) -> CaptureDiff:
    given = launches if launches is not None else [Counted(d.launch) for c in (old, new) for d in derive(c)]
    return capture_diff((old, {}), (new, {}), given, THREE_PASS)


BASE = [
    variant("fold", param("P", "*bf16", div16=True), consts={"R": {"int": 1}, "B": {"int": 64}}),
    variant("read", param("P", "*bf16", div16=True), param("R"), consts={"B": {"int": 64}}),
]


def test_a_capture_does_not_differ_from_itself() -> None:
    found = compared(capture(*BASE), capture(*BASE))
    assert found.is_empty
    assert found.functions[0].untouched


def test_a_removed_variant_shows_in_variants_launches_and_the_proof() -> None:
    found = compared(capture(*BASE), capture(BASE[1]))
    assert [row.hash for row in found.removed] == ["fold"]
    assert not found.added
    assert {(c.old, c.new) for c in found.launches} == {("exact fold", "fallback read")}
    (function,) = found.functions
    assert not function.proved
    assert {(c.old, c.new, c.new_ends) for c in function.changes} == {("fold", "read", "fallback")}


def test_a_new_hash_of_the_same_variant_is_a_change_of_code() -> None:
    other = copy.deepcopy(BASE)
    other[0]["hash"] = "fold2"
    found = compared(capture(*BASE), capture(*other))
    assert [(c.old, c.new, c.changed) for c in found.code_only] == [("fold", "fold2", ("hash",))]
    assert not found.added
    assert not found.removed
    assert found.functions[0].proved
    assert {c.bytes.word for c in found.launches} == {"owed"}


def test_what_an_entry_says_of_its_code_is_compared_too() -> None:
    other = copy.deepcopy(BASE)
    other[0] |= {"shared": 4096, "name": "inner"}
    other[1]["params"].reverse()
    found = compared(capture(*BASE), capture(*other))
    assert [(c.old, c.changed) for c in found.code_only] == [
        ("fold", ("name", "shared")),
        ("read", ("order of params",)),
    ]
    # The launcher hands the params over in the order of the entry: equal code then reads other values.
    assert {c.old for c in found.launches} == {"exact read"}
    assert {c.bytes.word for c in found.launches} == {"owed"}


def test_the_order_matters_where_a_constant_is_free_and_the_proof_says_so() -> None:
    rows = [variant("A", param("R"), consts={"B": {"int": 1}}), variant("B", param("R"), consts={"B": {"int": 2}})]
    found = compared(capture(*rows), capture(*rows[::-1]))
    assert found.reordered == ("k",)
    (function,) = found.functions
    assert {(c.old, c.new) for c in function.changes} == {("A", "B")}
    assert all(c.launch["consts"] == {} for c in function.changes)


def test_the_order_does_not_matter_where_exact_matches_are_apart() -> None:
    rows = [
        variant("A", param("R"), param("N", nospec=True)),
        variant("B", param("N", nospec=True), consts={"R": {"int": 1}}),
    ]
    (function,) = verdicts(capture(*rows), capture(*rows[::-1]), THREE_PASS)
    assert function.proved
    assert not function.untouched


def test_cubins_say_whether_the_code_is_the_same(tmp_path: Path) -> None:
    kernels = {"kernels": BASE}
    folders = [tmp_path / "old", tmp_path / "new"]
    for folder in folders:
        (folder / "cubins").mkdir(parents=True)
        (folder / "aot.json").write_text(json.dumps(kernels))
        for entry in BASE:
            (folder / f"cubins/{entry['hash']}.cubin").write_bytes(entry["hash"].encode())
    (folders[1] / "cubins/read.cubin").write_bytes(b"other code")
    whole = capture_from(kernels)
    sides = [(whole, digests(folder, whole)) for folder in folders]
    launches = [Counted(d.launch) for d in derive(whole)]
    found = capture_diff(sides[0], sides[1], launches, THREE_PASS)
    assert [(c.old, c.changed) for c in found.code_only] == [("read", ("code",))]
    assert {(c.old, c.new, c.bytes.word) for c in found.launches if "exact" in c.old} == {
        ("exact read", "exact read", "owed")
    }
    assert capture_diff(sides[0], sides[0], launches, THREE_PASS).is_empty


@pytest.mark.parametrize("word", ["equal", "differs", "unstable", "owed"])
def test_the_bytes_of_other_code_are_asked_of_the_judge(word: Word) -> None:
    other = copy.deepcopy(BASE)
    other[0]["hash"] = "fold2"
    asked = []

    def judge(old: Variant, new: Variant, launch: Counted) -> Bytes:
        asked.append((old.hash, new.hash, launch.launch.fn))
        return Bytes(word, "a device")

    launches = [Counted(d.launch) for d in derive(capture(*BASE))]
    found = capture_diff((capture(*BASE), {}), (capture(*other), {}), launches, THREE_PASS, judge)
    assert set(asked) == {("fold", "fold2", "k")}  # equal hashes are identical code: nobody is asked
    rows = {(c.old, c.new, c.bytes.word, c.bytes.basis) for c in found.launches}
    assert rows == (set() if word == "equal" else {("exact fold", "exact fold2", word, "a device")})


def test_a_verdict_says_where_it_holds_for_fewer_inputs() -> None:
    domains = {"finite": "equal", "no NaN": "equal", "every bit pattern": "differs"}
    assert str(Bytes("differs", "a device", domains=domains)) == "differs (equal for finite, no NaN): a device"
    assert str(Bytes("owed")) == "owed"


def test_the_bundled_capture_reordered_by_hash_is_proved_unchanged_where_it_is() -> None:
    whole = load_capture(bundled_capture())
    few = [v for v in whole.kernels if v.fn in ("_scale", "_copy_nospec")]
    found = verdicts(Capture(tuple(few)), Capture(tuple(few[::-1])), THREE_PASS)
    by_name = {f.fn: f for f in found}
    assert set(by_name) == {"_scale", "_copy_nospec"}
    for function in found:
        for change in function.changes:
            assert change.old != change.new
