from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from foldproof.impl import (
    InvalidCapture,
    InvalidLaunch,
    InvalidPolicy,
    capture_from,
    launch_from,
    load_capture,
    load_policy,
)
from foldproof.impl.capture import missing_cubins
from foldproof.impl.cases import case_from, case_to
from foldproof.impl.launch import load_launches
from foldproof.impl.policy import THEOREM_IDS, policy_from, zoo_policy
from foldproof.impl.strictjson import parse
from foldproof.props.strategies import cases
from helpers import i32, param, ptr, variant
from hypothesis import given


def capture_text(text: str, folder: Path) -> Path:
    (folder / "aot.json").write_text(text)
    return folder


def entry(**changes: Any) -> str:
    return json.dumps({"kernels": [variant("A", param("R")) | changes]})


BAD_CAPTURES = {
    "truncated": ('{"kernels": [', "is not JSON"),
    "empty file": ("", "is not JSON"),
    "no kernels": ('{"kernels": []}', "kernels is empty"),
    "kernels absent": ("{}", "kernels"),
    "a list": ("[]", "Expected `object`"),
    "repeated key": ('{"kernels": [], "kernels": []}', "the key 'kernels' is repeated"),
    "repeated key inside": (
        entry().replace('"name": "R"', '"name": "R", "name": "S"'),
        "$.kernels[0].params[0]: the key 'name' is repeated",
    ),
    "NaN": (entry().replace('"num_warps": 4', '"num_warps": NaN'), "NaN is no JSON number"),
    "wrong type": (entry(num_warps="4"), "$.kernels[0].num_warps"),
    "bool for an int": (entry(num_warps=True), "$.kernels[0].num_warps"),
    "no warps": (entry(num_warps=0), "$.kernels[0].num_warps"),
    "unknown param attribute": (entry(params=[param("R", shiny=True)]), "shiny"),
    "param without div16": (entry(params=[{"name": "R", "type": "i32", "nospec": False}]), "div16"),
    "const and param": (entry(consts={"R": {"int": 1}}), "'R' is both a param and a const"),
    "two params of a name": (entry(params=[param("R"), param("R")]), "two params are named 'R'"),
    "annotated float": (entry(params=[param("R", "fp32", annotated=True)]), "annotated is for an integer type"),
    "two kinds": (entry(consts={"C": {"int": 1, "str": "x"}}), "$.kernels[0].consts.C: a constant is exactly one"),
    "no kind": (entry(consts={"C": {}}), "$.kernels[0].consts.C: a constant is exactly one"),
    "none that is false": (entry(consts={"C": {"none": False}}), "says nothing"),
    "int const above 64 bits": (entry(consts={"C": {"int": 2**64}}), "an int constant lies in"),
    "int const below 64 bits": (entry(consts={"C": {"int": -(2**63) - 1}}), "an int constant lies in"),
    "fault in the second const": (
        entry(consts={"B": {"int": 2}, "C": {"int": 1, "str": "x"}}),
        "$.kernels[0].consts.C: a constant is exactly one",
    ),
    "bool as int const": (entry(consts={"C": {"int": True}}), "$.kernels[0].consts.C.int"),
    "hash with a slash": (entry(hash="../x"), "is no plain file name"),
    "hash with NUL": (entry(hash="a\0b"), "is no plain file name"),
    "hash that hides": (entry(hash=".."), "is no plain file name"),
    "one hash twice": (json.dumps({"kernels": [variant("A"), variant("A", param("R"))]}), "share the hash 'A'"),
    "bin_dir that leaves": (json.dumps({"kernels": [variant("A")], "bin_dir": "../x"}), "is no path below the capture"),
    "bin_dir that is absolute": (
        json.dumps({"kernels": [variant("A")], "bin_dir": "/x"}),
        "is no path below the capture",
    ),
    "bin_dir with NUL": (json.dumps({"kernels": [variant("A")], "bin_dir": "a\0b"}), "is no path below the capture"),
    "bin_ext that is a path": (json.dumps({"kernels": [variant("A")], "bin_ext": "/x"}), "is no file name ending"),
    "deep nesting": ("[" * 1_000_000, "nested too deeply"),
    "huge number": (entry().replace('"num_warps": 4', '"num_warps": ' + "9" * 10_000), "is not JSON"),
    "half a surrogate": (entry(fn="\ud800"), "surrogate"),
}


@pytest.mark.parametrize("name", BAD_CAPTURES)
def test_a_bad_capture_is_refused_with_file_place_and_reason(name: str, tmp_path: Path) -> None:
    text, reason = BAD_CAPTURES[name]
    with pytest.raises(InvalidCapture) as problem:
        load_capture(capture_text(text, tmp_path))
    said = str(problem.value)
    assert said.startswith(str(tmp_path / "aot.json"))
    assert reason in said
    assert "\n" not in said


def test_a_capture_that_is_no_file_or_not_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidCapture, match=r"holds no aot\.json"):
        load_capture(tmp_path)
    with pytest.raises(InvalidCapture, match="cannot be read"):
        load_capture(tmp_path / "absent.json")
    (tmp_path / "aot.json").mkdir()
    with pytest.raises(InvalidCapture, match="is a directory"):
        load_capture(tmp_path)
    (tmp_path / "bin.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidCapture, match="not UTF-8"):
        load_capture(tmp_path / "bin.json")
    (tmp_path / "cut.json").write_bytes(gzip.compress(b"{}" * 5000)[:-20])
    with pytest.raises(InvalidCapture, match="breaks off inside its gzip data"):
        load_capture(tmp_path / "cut.json")


def test_unknown_fields_of_an_entry_load_and_missing_cubins_are_listed(tmp_path: Path) -> None:
    text = json.dumps({"kernels": [variant("A", made_by="x"), variant("B")], "bin_ext": ".bin", "generator": {"a": 1}})
    folder = capture_text(text, tmp_path)
    (tmp_path / "cubins").mkdir()
    (tmp_path / "cubins" / "A.bin").write_bytes(b"")
    assert missing_cubins(folder, load_capture(folder)) == ("B",)


def test_functions_are_named_once_in_candidate_order() -> None:
    entries = [variant(mark) | {"fn": fn} for mark, fn in zip("ABCD", "zaza", strict=True)]
    loaded = capture_from({"kernels": entries})
    assert loaded.functions == ("z", "a")
    assert (loaded.candidates("a"), loaded.candidates("z"), loaded.candidates("k")) == ((1, 3), (0, 2), ())


BAD_LAUNCHES = {
    "repeated arg": ([i32("R", 1), i32("R", 2)], "the arg 'R' is given twice"),
    "i32 too large": ([i32("R", 2**31)], "2147483648 is no i32"),
    "i64 too large": ([{"name": "R", "kind": "i64", "value": 2**63}], "is no i64"),
    "u64 negative": ([{"name": "R", "kind": "u64", "value": -1}], "is no u64"),
    "2^64": ([{"name": "R", "kind": "u64", "value": 2**64}], "is no u64"),
    "bool as int": ([{"name": "R", "kind": "i32", "value": True}], "does not take True"),
    "int as bool": ([{"name": "R", "kind": "u1", "value": 1}], "does not take 1"),
    "no value": ([{"name": "R", "kind": "i32"}], "takes value"),
    "pointer without type": ([{"name": "P", "kind": "ptr", "addr": "0x0"}], "takes addr and type"),
    "pointer of no pointer type": ([ptr("P", 0, "bf16")], "starts with '*'"),
    "address too large": ([ptr("P", 2**64)], "outside 64 bits"),
    "address no number": ([ptr("P", 0) | {"addr": "zz"}], "is no hex number"),
    "bytes of an int": ([i32("R", 1) | {"bytes": 4}], "only a pointer has bytes"),
    "unknown kind": ([{"name": "R", "kind": "i31", "value": 1}], "$.args[0].kind"),
    "unknown field": ([i32("R", 1) | {"shiny": 1}], "shiny"),
    "address in Python's own spelling": ([ptr("P", 0) | {"addr": "0x1_0"}], "is no hex number"),
    "float bits too large": ([{"name": "x", "kind": "fp32", "bits": 2**32}], "$.args[0].bits"),
}


@pytest.mark.parametrize("name", BAD_LAUNCHES)
def test_a_bad_launch_is_refused_with_place_and_reason(name: str) -> None:
    args, reason = BAD_LAUNCHES[name]
    with pytest.raises(InvalidLaunch) as problem:
        launch_from({"fn": "k", "args": args})
    assert reason in str(problem.value)
    assert problem.value.where.startswith("$")


def test_launch_files_hold_one_launch_a_list_or_lines(tmp_path: Path) -> None:
    one = {"fn": "k", "args": [i32("R", 1)], "consts": {}}
    forms = {
        "one.json": json.dumps(one, indent=1),
        "list.json": json.dumps([one, {"launch": one, "name": "wrapped"}]),
        "lines.ndjson": json.dumps(one) + "\n\n" + json.dumps(one) + "\n",
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        for file in (name, f"{name}.gz"):
            found = load_launches(tmp_path / file)
            assert found == (launch_from(one),) * (1 if name == "one.json" else 2)
    (tmp_path / "bad.ndjson").write_text(json.dumps(one) + "\n" + json.dumps(one | {"args": [i32("R", 2**40)]}) + "\n")
    with pytest.raises(InvalidLaunch, match=r"bad\.ndjson: line 2: \$\.args\[0\]"):
        load_launches(tmp_path / "bad.ndjson")


@given(cases())
def test_a_case_survives_writing_and_reading(case: Any) -> None:
    text = msgspec.json.encode(case_to(case))
    assert case_from(json.loads(text)) == case


def test_a_policy_outside_the_language_is_a_clear_error(tmp_path: Path) -> None:
    good = 'name = "mine"\nsummary = "s"\n[[pass]]\nrules = "exact"\n'
    bad = {
        'choose = ["luckiest"]': "'luckiest', which is none of",
        'refuse = ["everything"]': "'everything', which is none of",
        "choose = []": "choose is empty",
        "shiny = 1": "shiny",
        'rules = "loose"': "is not TOML",
    }
    for line, reason in bad.items():
        (tmp_path / "p.toml").write_text(good + line + "\n")
        with pytest.raises(InvalidPolicy, match=reason):
            load_policy(str(tmp_path / "p.toml"))
    for promise in ("T99", "T09", "T01:two-pass"):
        (tmp_path / "p.toml").write_text(f'promises = ["{promise}"]\n{good}')
        with pytest.raises(InvalidPolicy, match="the promise"):
            load_policy(str(tmp_path / "p.toml"))
    (tmp_path / "p.toml").write_text(good)
    assert load_policy(str(tmp_path / "p.toml")).name == "mine"
    with pytest.raises(InvalidPolicy, match="no policy is named 'three-pas'"):
        load_policy("three-pas")
    with pytest.raises(InvalidPolicy, match="cannot be read"):
        load_policy(str(tmp_path / "absent.toml"))


def test_a_policy_needs_a_name_and_a_pass() -> None:
    policy = policy_from('name = "m"\n[[pass]]\nrules = "exact"\n', "p.toml")
    assert (policy.name, policy.summary, policy.promises, len(policy.passes)) == ("m", "", (), 1)


def test_a_policy_without_a_pass_or_with_a_half_promise_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    head = 'name = "mine"\nsummary = "s"\n'
    file.write_text(head + "pass = []\n")
    with pytest.raises(InvalidPolicy, match="at least one"):
        load_policy(str(file))
    file.write_text(f'promises = ["T09:"]\n{head}[[pass]]\nrules = "exact"\n')
    with pytest.raises(InvalidPolicy, match="name an older policy"):
        load_policy(str(file))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidPolicy, match="is not TOML: no UTF-8 at byte 0"):
        load_policy(str(file))
    with pytest.raises(InvalidPolicy, match="cannot be read: No such file"):
        load_policy(str(tmp_path / "absent.toml"))
    with pytest.raises(InvalidPolicy, match="is a directory, not a file"):
        load_policy(str(_folder(tmp_path / "d.toml")))


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_policy_says_what_it_promises_and_what_its_rules_look_at() -> None:
    three, public = load_policy("three-pass"), load_policy("exact-pinned")
    assert three.promised("T01")
    assert three.promised("T09", "two-pass")
    assert not three.promised("T09")
    assert not three.promised("T09", "exact-first")
    assert not three.promised("T12")
    assert [
        tuple(getattr(r, n) for n in ("strictness", "public", "options", "source")) for r in three.strictest_first
    ] == [
        ("exact", False, True, True),
        ("general", False, True, True),
        ("runtime-one", False, True, True),
    ]
    assert [(r.public, r.options, r.source) for r in public.strictest_first] == [(True, True, False)] * 3
    first = load_policy("exact-first").rules(three.passes[0].rules)
    assert (first.public, first.options, first.source) == (True, False, False)


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ('name = "m"\nsummary = "s"\nshiny = 1\n[[pass]]\nrules = "exact"\n', "p.toml: $", "shiny"),
        ('summary = "s"\n[[pass]]\nrules = "exact"\n', "p.toml: $", "name"),
        ('name = "m"\n', "p.toml: $", "a policy has at least one [[pass]]"),
        ('name = 1\nsummary = "s"\n[[pass]]\nrules = "exact"\n', "p.toml: $.name", "Expected `str`, got `int`"),
        ('name = "m"\nsummary = "s"\n[[pass]]\nrules = "loose"\n', "p.toml: $.pass[0].rules", "'loose'"),
        ("name =", "p.toml", "is not TOML: "),
    ],
)
def test_a_fault_of_a_policy_has_its_place(text: str, where: str, why: str) -> None:
    with pytest.raises(InvalidPolicy) as problem:
        policy_from(text, "p.toml")
    assert problem.value.where == where
    assert why in problem.value.why


def test_every_theorem_may_be_promised_and_nothing_else_is_one() -> None:
    assert (*(f"T{n:02}" for n in range(1, 16)), "T06v", "T09c") == THEOREM_IDS
    assert zoo_policy("two-pass") is zoo_policy("two-pass")


BAD_CASES = {
    "no object": ([], InvalidCapture, "$: a case is an object"),
    "launch twice": ('{"launch": 1, "launch": 2}', InvalidLaunch, "the key 'launch' is repeated"),
    "before twice": ('{"before": 1, "before": 2}', InvalidLaunch, "the key 'before' is repeated"),
    "capture twice": ('{"capture": 1, "capture": 2}', InvalidCapture, "the key 'capture' is repeated"),
    "no capture": ({"launch": {"fn": "k", "args": []}}, InvalidCapture, "$.capture: $: "),
    "no launch": ({"capture": {"kernels": [variant("A")]}}, InvalidLaunch, "$.launch: $: "),
    "before is no list": (
        {"capture": {"kernels": [variant("A")]}, "launch": {"fn": "k", "args": []}, "before": 1},
        InvalidLaunch,
        "$.before: before is a list of launches",
    ),
    "a bad launch before": (
        {"capture": {"kernels": [variant("A")]}, "launch": {"fn": "k", "args": []}, "before": [{}]},
        InvalidLaunch,
        "$.before: $: ",
    ),
}


@pytest.mark.parametrize("name", BAD_CASES)
def test_a_bad_case_is_refused_with_the_part_that_is_at_fault(name: str) -> None:
    value, kind, reason = BAD_CASES[name]
    with pytest.raises(kind) as problem:
        case_from(parse(value, "") if isinstance(value, str) else value)
    assert str(problem.value).startswith(reason) or reason in str(problem.value)


def test_the_constants_1_true_and_1_0_are_three() -> None:
    kernels = [
        variant(m, consts={"C": c})
        for m, c in zip("ABC", ({"int": 1}, {"bool": True}, {"f32": 0x3F800000}), strict=True)
    ]
    consts = [v.consts["C"] for v in capture_from({"kernels": kernels}).kernels]
    assert len(set(consts)) == 3
