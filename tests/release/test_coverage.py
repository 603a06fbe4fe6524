"""Coverage by launch class, launches from every format, work lists that complete a capture, and proofs of ranges."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from foldproof.gpu.bundle import bundled_capture
from foldproof.impl import Capture, FoldproofError, InvalidLaunch, Selection, decide, load_capture, load_policy
from foldproof.impl.launch import launch_to
from foldproof.props.derive import derive
from foldproof.props.generate import Shape as CaseShape
from foldproof.props.generate import make_case, seeded
from foldproof.release.classes import class_key, grouped
from foldproof.release.coverage import CoverageResult, coverage
from foldproof.release.launch_shape import with_args
from foldproof.release.launches import Counted, read_launches
from foldproof.release.needs import compiled_for, needs_json
from foldproof.release.ranges import InvalidRanges, Scenario, int_classes, read_ranges
from foldproof.release.reachable import Reach, reach, scenario_shapes
from foldproof.release.shapes import Family
from helpers import capture, i32, launch, param, ptr, variant

POLICY = load_policy("three-pass")
SMALL = capture(
    variant("fold", param("P", "*bf16", div16=True), param("N"), consts={"R": {"int": 1}, "B": {"int": 64}}),
    variant("read", param("P", "*bf16", div16=True), param("N"), param("R"), consts={"B": {"int": 64}}),
)


def args(p: int = 0x1000, n: int = 7, r: int = 7) -> dict[str, Any]:
    return {"fn": "k", "args": [ptr("P", p), i32("N", n), i32("R", r)], "consts": {"B": {"int": 64}}}


def covered(of: Capture, *launches: dict[str, Any], strict: bool = False, policy: str = "three-pass") -> CoverageResult:
    from foldproof.impl import launch_from  # noqa: PLC0415 (one helper)

    return coverage(of, [Counted(launch_from(one)) for one in launches], load_policy(policy), strict=strict)


def test_each_class_ends_as_the_reference_says() -> None:
    found = covered(SMALL, args(r=1), args(), args(n=1, r=1), args(n=48), args(p=0x1004), args(p=0x1008), args(n=9))
    assert [(row.ends, row.pick, row.launches) for row in found.classes] == [
        ("exact", "fold", 1),
        ("exact", "read", 2),
        ("fallback", "fold", 1),
        ("general", "read", 1),
        ("missing", None, 2),
    ]
    assert found.classes[2].ones == ("N",)
    assert found.classes[4].why == "nearest is read: P: the variant assumes a multiple of 16"
    assert not found.complete
    row = found.functions[0]
    assert (row.variants, row.launches, row.classes, row.unused) == (2, 7, 5, 0)


def test_strict_counts_a_fallback_as_a_gap() -> None:
    for strict in (False, True):
        found = covered(SMALL, args(n=1, r=1), strict=strict)
        assert found.complete is not strict
        assert len(found.needs["needs"]) == int(strict)


def test_ambiguity_is_no_service() -> None:
    twins = capture(variant("A", param("N")), variant("B", param("N")))
    found = covered(twins, {"fn": "k", "args": [i32("N", 7)]}, policy="recommended")
    assert found.classes[0].ends == "ambiguous"
    assert not found.complete
    assert found.needs["needs"] == []


def test_a_function_that_is_not_there_is_missing() -> None:
    found = covered(SMALL, {"fn": "other", "args": []})
    assert found.classes[0].why == "the capture has no variant of this function"


def write(path: Path, value: object) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_ndjson_lists_records_and_gzip_are_one(tmp_path: Path) -> None:
    lines = "\n\n".join(json.dumps(one) for one in (args(), {"launch": args(r=1), "grid": [1, 1, 1]}))
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(lines.encode()))
    files = [
        write(tmp_path / "a.ndjson", lines),
        write(tmp_path / "b.json", [args(), {"launch": args(r=1)}]),
        write(tmp_path / "c.json", json.dumps([args(), args(r=1)], indent=1)),
        packed,
    ]
    read = [[one.launch for one in read_launches(file, SMALL)] for file in files]
    assert read[0] == read[1] == read[2] == read[3]
    assert len(read[0]) == 2


def test_the_needs_dialect_is_read_and_written(tmp_path: Path) -> None:
    need = {
        "fn": "k", "count": 5, "num_warps": 4, "num_stages": 0, "consts": {"B": {"int": 64}},
        "args": [{"name": "P", "kind": "ptr", "type": "*bf16", "align16": True},
                 {"name": "N", "kind": "i32", "value": 7},
                 {"name": "E", "kind": "f32", "bits": 7}, {"name": "U", "kind": "u64", "value": 2**63}],
    }  # fmt: skip
    file = write(tmp_path / "needs.json", {"generator": "engine", "calls": 5, "needs": [need]})
    (one,) = read_launches(file, SMALL)
    assert one.count == 5
    assert one.launch.num_stages is None
    assert [arg.kind for arg in one.launch.args] == ["ptr", "i32", "fp32", "u64"]
    again = needs_json([(one.launch, 5)])
    assert again["needs"][0]["args"] == need["args"]
    (back,) = read_launches(write(tmp_path / "again.json", again), SMALL)
    assert back.launch == one.launch


def test_the_kernels_dialect_tells_folded_args_from_constexprs(tmp_path: Path) -> None:
    kernel = {"fn": "k", "function": "k", "launches": 9, "consts": {"R": {"int": 1}, "B": 64},
              "runtime": {"P": {"type": "*bf16", "div16": True}, "N": {"type": "i32"}}}  # fmt: skip
    (one,) = read_launches(write(tmp_path / "x.json", {"generator": "g", "kernels": [kernel]}), SMALL)
    assert one.count == 9
    outcome = decide(SMALL, one.launch, POLICY)
    assert isinstance(outcome, Selection)
    assert (outcome.variant.hash, outcome.strictness) == ("fold", "exact")
    assert list(one.launch.consts) == ["B"]


BAD = {
    "absent": None,
    "empty": b"\n\n",
    "binary": b"\x00\xff\x80" * 40,
    "cut": b'{"fn": "k", "args": [',
    "a bad second line": json.dumps(args()).encode() + b'\n{"fn": 3}',
    "a capture": json.dumps({"kernels": [variant("A")]}).encode(),
    "a need of no kind": b'{"needs": [{"fn": "k", "args": [{"name": "a", "kind": "i33"}]}]}',
    "a repeated key": b'{"fn": "k", "fn": "k", "args": []}',
}


@pytest.mark.parametrize("name", BAD)
def test_bad_launches_are_an_error_with_a_place(name: str, tmp_path: Path) -> None:
    file, content = tmp_path / "launches", BAD[name]
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidLaunch) as raised:
        list(read_launches(file, SMALL))
    assert str(file) in raised.value.where


def test_launches_of_one_class_are_one_row() -> None:
    same = [launch(i32("N", n), ptr("P", p)) for n, p in ((2, 16), (3, 32))]
    other = [launch(i32("N", n), ptr("P", p)) for n, p in ((1, 16), (16, 16), (2, 8), (300, 16))]
    assert len({class_key(one) for one in same}) == 1
    assert len({class_key(one) for one in (*same, *other)}) == 5
    assert [one.count for one in grouped(Counted(x, 3) for x in same)] == [6]


def test_the_derived_launches_of_the_bundled_capture_never_miss_what_they_come_from() -> None:
    whole = load_capture(bundled_capture())
    found = coverage(whole, [Counted(d.launch) for d in derive(whole) if not d.lost], POLICY)
    assert found.complete
    assert found.ends["exact"] == sum(found.ends.values())


def cases(count: int) -> list[tuple[Family, Scenario]]:
    """Random small captures, each with a scenario over a range of every int."""
    found = []
    choose = seeded(11)
    while len(found) < count:
        case = make_case(choose, CaseShape(candidates=3, args=3))
        family = Family.of("k", case.capture.kernels)
        if family.variants:
            names = family.names(family.variants[0])
            ints = [n for n in names if any(a.kind == "i32" for a in family.classes(n))]
            domain = {n: [choose(("1..4096", "16..512 step 16", "3..9", 1, "any"))] for n in ints}
            options = {k: v for k, v in case.launch.options if k == "num_warps"}
            found.append((family, Scenario("k", domain, {}, options, "here")))
    return found


@pytest.mark.parametrize("strict", [False, True])
def test_a_range_is_complete_exactly_where_every_class_is_served(strict: bool) -> None:
    verdicts = set()
    for family, scenario in cases(30):
        try:
            shapes = list(scenario_shapes(family, scenario))
        except InvalidRanges:
            continue
        whole = Capture(family.variants)
        outcomes = [
            decide(whole, with_args(shape.base, chosen), POLICY)
            for shape in shapes
            for chosen in itertools.product(*shape.classes)
        ]
        served = [isinstance(o, Selection) and not (strict and o.is_fallback) for o in outcomes]
        (shown,) = reach(whole, [scenario], POLICY, strict)
        assert shown.complete is all(served)
        assert shown.launch_classes == len(outcomes)
        verdicts.add(shown.complete)
        if not shown.complete:
            check_needs(family, scenario, shown, strict)
    assert verdicts == {False, True} or strict


def check_needs(family: Family, scenario: Scenario, shown: Reach, strict: bool) -> None:
    """The capture with the variants of the work list is complete, and without the last of them it is not."""
    if shown.more_needs or not shown.needs:
        return
    new = [compiled_for(one, family, f"new{i}") for i, one in enumerate(shown.needed())]
    (after,) = reach(Capture((*family.variants, *new)), [scenario], POLICY, strict)
    assert after.complete
    (before,) = reach(Capture((*family.variants, *new[:-1])), [scenario], POLICY, strict)
    assert not before.complete


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(1, 4096, 1), (16, 8192, 16), (1, 1, 1), (-40, 40, 3), (5, 5, 1), (2**31 - 8, 2**31 + 8, 1)],
)
def test_the_classes_of_a_range_are_those_of_its_values(low: int, high: int, step: int) -> None:
    known = Family.of("k", [capture(variant("A", param("N"))).kernels[0]]).classes("N")
    found = int_classes("N", known, low, high, step)
    keys = {class_key(launch_of(arg.kind, arg.number)) for arg in found}
    brute = {class_key(launch_of("i32" if v < 2**31 else "i64", v)) for v in range(low, high + 1, step)}
    assert len(found) == len(keys)
    # Intervals of types that no param is annotated with are one class here and several there.
    assert {strip(key) for key in keys} == {strip(key) for key in brute}
    assert all(low <= arg.number <= high and (arg.number - low) % step == 0 for arg in found)


def launch_of(kind: str, value: int) -> Any:
    return launch({"name": "N", "kind": kind, "value": value})


def strip(key: Any) -> Any:
    return key[1][0][:4]


def test_ranges_are_read_with_consts_options_and_several_ways(tmp_path: Path) -> None:
    text = """
[[k]]
args = { P = "aligned", N = "1..4", R = [1, "16..64 step 16"] }
consts = { B = [64, 128] }
[[k]]
args = { P = "any" }
options = { num_warps = 4 }
"""
    scenarios = read_ranges(write(tmp_path / "r.toml", text))
    first, second = reach(SMALL, scenarios, POLICY, strict=False)
    assert first.launch_classes == 2 * 1 * 2 * 2
    assert not first.complete  # no variant has B = 128
    assert first.missing is not None
    assert first.missing["consts"] == {"B": {"int": 128}}
    assert [launch_to(one)["consts"] for one in first.needed()] == [{"B": {"int": 128}}] * 2  # R = 16, R = 1
    assert second.missing is not None
    assert second.missing["args"][0]["addr"] == "0x1008"


BAD_RANGES = {
    "": "says nothing",
    "k = 3": "is no table",
    "[k]\nargz = {}": "has 'argz'",
    '[k]\nargs = { N = "4..1" }': "is empty",
    '[k]\nargs = { N = "some" }': "is no range",
    '[k]\nargs = { N = "aligned" }': "no variant has a pointer here",
    '[k]\nargs = { Z = "any" }': "not launched with Z",
    "[k]\nconsts = { Z = 1 }": "has a constant 'Z'",
    "[k]\nconsts = { B = 1.5 }": "is no constant",
    "[other]\nargs = {}": "the capture has no 'other'",
    "[k]\noptions = { warps = 4 }": "no option is named 'warps'",
    "[k": "is not TOML",
    '[k]\nargs = { N = "1..99999999999999999999999" }': "r.toml: k.args.N: 9+ is no int of 64 bits",
    f'[k]\nargs = {{ N = "1..{"9" * 5000}" }}': "is no range",
    f"[k]\nargs = {{ N = {'9' * 5000} }}": "is not TOML",
    '[k]\noptions = { num_warps = "four" }': "r.toml: k: ..num_warps: Expected",
}


@pytest.mark.parametrize("text", BAD_RANGES)
def test_bad_ranges_say_what_is_wrong(text: str, tmp_path: Path) -> None:
    file = write(tmp_path / "r.toml", text)
    with pytest.raises(FoldproofError, match=BAD_RANGES[text].replace("'", ".")):
        reach(SMALL, read_ranges(file), POLICY, strict=False)
