"""Case files and what is answered to them, row by row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foldproof.impl import AmbiguousTritonVariant, MissingTritonVariant, capture_from, load_policy
from foldproof.impl.cases import Case, answer, answers, case_bytes, case_from, case_name, case_to, read_cases, replay
from foldproof.impl.errors import FoldproofError, InvalidCapture, one_line
from foldproof.impl.strictjson import MAX_BYTES, RepeatedKey, parse, read_bytes, read_many, reject_repeats
from helpers import capture, i32, launch, param, variant

FALLS_BACK = capture(variant("A", param("R")))
ONE = launch(i32("R", 1))
CASE = Case("seed", FALLS_BACK, ONE)
BLANK = {"index": None, "pick": None, "pass": None, "ones": [], "log": [], "error": None, "detail": ""}


def test_an_answer_is_a_row_of_everything_that_was_decided() -> None:
    line = "aot: k runs variant A, its 1 read at runtime (the capture holds no folded variant of it): R"
    assert answer(case_to(CASE), load_policy("three-pass")) == BLANK | {
        "name": "seed", "index": 0, "pick": "A", "pass": "runtime-one", "ones": ["R"], "log": [line],
    }  # fmt: skip
    told = answer(case_to(CASE), load_policy("exact-first"))
    assert told["error"] == "MissingTritonVariant"
    assert told["detail"].startswith("no captured Triton variant of k")
    assert told | {"error": None, "detail": ""} == BLANK | {"name": "seed"}
    broken = answer(case_to(CASE) | {"launch": {}}, load_policy("three-pass"))
    assert (broken["error"], broken["detail"][:11], broken["pick"]) == ("InvalidLaunch", "$.launch: $", None)
    rows = list(answers([case_to(CASE), 7], load_policy("three-pass")))
    assert [row["error"] for row in rows] == [None, "InvalidCapture"]


def test_launches_before_are_warned_of_by_a_policy_that_warns_once_a_variant() -> None:
    policy = load_policy("most-held")
    again = Case("again", FALLS_BACK, ONE, (launch(i32("R", 7)), ONE))
    assert len(replay(CASE, policy).log) == 1
    assert len(replay(Case("plain", FALLS_BACK, ONE, (launch(i32("R", 7)),)), policy).log) == 1
    assert replay(again, policy).log == ()
    both = capture(variant("A", param("R")), variant("B", param("S")))
    other = Case("other", both, ONE, (launch(i32("S", 1)), ONE, launch(i32("S", 7))))
    assert replay(other, policy).log == ()
    assert len(replay(Case("miss", FALLS_BACK, ONE, (launch(i32("T", 1)),)), policy).log) == 1
    assert "before" not in case_to(CASE)
    assert case_from(case_to(again)) == again


def test_a_case_file_is_a_list_of_one_case_and_reads_back(tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    file.write_bytes(case_bytes(case_to(CASE, why="because")))
    assert file.read_bytes().startswith(b"[\n {\n")
    assert file.read_bytes().endswith(b"]\n")
    (value,) = read_cases(file)
    assert value["why"] == "because"
    assert case_from(value) == CASE


@pytest.mark.parametrize(
    ("value", "name"), [({"name": "x"}, "x"), ({"name": 7}, "7"), ({}, ""), ([], ""), ("name", "")]
)
def test_a_case_without_a_name_has_an_empty_one(value: object, name: str) -> None:
    assert case_name(value) == name


# Strict JSON.


def test_a_file_over_the_limit_is_refused_and_one_at_the_limit_is_read(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_bytes(b"x" * (2 << 20))
    assert len(read_bytes(file, limit=2 << 20)) == 2 << 20
    with pytest.raises(FoldproofError, match="is larger than 1 MiB") as problem:
        read_bytes(file, limit=(2 << 20) - 1)
    assert problem.value.where == str(file)
    with pytest.raises(FoldproofError, match="cannot be read: embedded null byte"):
        read_bytes(Path("nul\0.json"))
    with pytest.raises(FoldproofError) as problem:
        read_bytes(tmp_path / "absent")
    assert (problem.value.why, problem.value.where) == (
        "cannot be read: No such file or directory",
        str(tmp_path / "absent"),
    )
    assert MAX_BYTES == 64 * 2**20


@pytest.mark.parametrize(
    ("text", "why", "where"),
    [
        ('{"a": 1,\n "b": }', "is not JSON: Expecting value", "f: line 2 column 7"),
        ("NaN", "is not JSON: NaN is no JSON number", "f"),
        ("-Infinity", "is not JSON: -Infinity is no JSON number", "f"),
        (
            '{"a": "7",\n "b": ' + "9" * 5000 + "}",
            "is not JSON: a number of more than 4300 digits",
            "f: line 2 column 7",
        ),
        ('{"a": 1}\n]', "is not JSON: something follows the value", "f: line 2 column 1"),
        (b"\xff", "is not UTF-8 at byte 0", "f"),
        (b"[1, \xff]", "is not UTF-8 at byte 4", "f"),
        ("[" * 200_000, "is nested too deeply", "f"),
    ],
)
def test_what_is_not_json_is_told_with_its_place(text: str | bytes, why: str, where: str) -> None:
    with pytest.raises(InvalidCapture) as problem:
        parse(text, "f", InvalidCapture)
    assert problem.value.why.startswith(why)
    assert problem.value.where == where


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ('{"a": [1,', "the file may be cut short"),
        ('{"a": "half', "the file may be cut short"),
        ('{"a": b}', "correct it there"),
        ('{"a": 1} {', "remove what follows, or write one value a line"),
        ("[" + "9" * 5000 + "]", "write numbers that fit 64 bits"),
        ("[NaN]", "write numbers as plain integers"),
    ],
)
def test_what_to_do_fits_what_is_wrong(text: str, fix: str) -> None:
    with pytest.raises(InvalidCapture) as problem:
        parse(text, "f", InvalidCapture)
    assert problem.value.fix == fix
    assert "set_int_max" not in str(problem.value)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert parse(b"\xef\xbb\xbf[1]", "f") == [1]


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ('{"a": 1, "a": 2}', "$", "the key 'a' is repeated"),
        ('{"a": 1, "b": 2, "c": 3, "b": 4, "a": 5}', "$", "the key 'b' is repeated"),
        ('[1, {"x": [{}, {"b": 1, "b": 2}]}]', "$[1].x[1]", "the key 'b' is repeated"),
        ('{"x": "\\ud800"}', "$.x", "half of a surrogate pair"),
        ('{"\\ud800": 1}', "$", "half of a surrogate pair"),
        ('["ok", "\\udfff"]', "$[1]", "half of a surrogate pair"),
        ('"\\ud800"', "$", "half of a surrogate pair"),
    ],
)
def test_what_is_said_twice_or_in_halves_is_refused_with_its_path(text: str, where: str, why: str) -> None:
    value = parse(text, "f")
    with pytest.raises(InvalidCapture) as problem:
        reject_repeats(value, InvalidCapture)
    assert problem.value.where == where
    assert why in problem.value.why


def test_whole_text_and_plain_values_pass() -> None:
    for value in ({"é": ["ü", {"x": "日本"}]}, 7, None, True, 1.5, {"a": {}, "b": []}):
        reject_repeats(value, InvalidCapture)
    repeated = parse('{"a": 1, "a": 2}', "f")
    assert isinstance(repeated, RepeatedKey)
    assert (dict(repeated), repeated.key) == ({"a": 2}, "a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2]", [("$[0]", 1), ("$[1]", 2)]),
        ("\ufeff \t\r\n[3]", [("$[0]", 3)]),
        ('{\n "a": 1\n}', [("$", {"a": 1})]),
        ("7\n8\n", [("line 1", 7), ("line 2", 8)]),
        (" " * 5000 + "[1]", [("$[0]", 1)]),
        ('{"a": 1}', [("line 1", {"a": 1})]),
        ('\n{"a": 1}\n\n  \n{"b": 2}\n', [("line 2", {"a": 1}), ("line 5", {"b": 2})]),
    ],
)
def test_many_values_are_a_list_one_object_or_lines(text: str, expected: list[object], tmp_path: Path) -> None:
    file = tmp_path / "values"
    file.write_text(text, "utf-8")
    assert list(read_many(file)) == expected


def test_a_file_of_nothing_or_of_half_a_line_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "values"
    for text, why in (("", "is empty"), (" \n\t\r\n", "is empty"), ('{"a": 1}\n{"b":\n', "is not JSON")):
        file.write_text(text)
        with pytest.raises(InvalidCapture, match=why) as problem:
            list(read_many(file, InvalidCapture))
        assert problem.value.where.startswith(str(file))
    file.write_text('{"a": 1}\n{"b":\n')
    with pytest.raises(InvalidCapture) as problem:
        list(read_many(file, InvalidCapture))
    assert problem.value.where == f"{file}: line 2: line 1 column 6"


def test_a_file_may_be_twice_as_large_for_many_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldproof.impl.strictjson.MAX_BYTES", 10)
    file = tmp_path / "values"
    file.write_text(json.dumps([1] * 6) + "  ")
    assert len(list(read_many(file))) == 6
    file.write_text(json.dumps([1] * 7))
    with pytest.raises(FoldproofError, match="is larger"):
        list(read_many(file))


# Errors.


def test_an_error_says_where_what_and_what_to_do_in_one_line() -> None:
    bare, placed = FoldproofError("is odd"), FoldproofError("is odd", where="$.a", fix="do this")
    assert (str(bare), str(placed)) == ("is odd", "$.a: is odd (do this)")
    assert str(placed.at("f.json")) == "f.json: $.a: is odd (do this)"
    assert str(InvalidCapture("is odd").at(Path("f.json"))) == "f.json: is odd"
    assert isinstance(InvalidCapture("is odd").at("f"), InvalidCapture)
    assert str(FoldproofError("a\nb\x1b[31m\ud800é")) == "a\\nb\\x1b[31m\\ud800é"


def test_a_long_text_is_cut() -> None:
    assert one_line("x" * 600) == "x" * 600
    assert one_line("x" * 601) == "x" * 597 + "..."


def test_the_error_of_a_selection_is_its_whole_message() -> None:
    missing, ambiguous = MissingTritonVariant("a\nb"), AmbiguousTritonVariant("c", ("A", "B"))
    assert (str(missing), missing.among, missing.code) == ("a\nb", (), "MissingTritonVariant")
    assert (str(ambiguous), ambiguous.among, ambiguous.code) == ("c", ("A", "B"), "AmbiguousTritonVariant")


def test_a_fault_of_a_launch_is_none_of_the_capture() -> None:
    with pytest.raises(InvalidCapture):
        capture_from({"kernels": [{"fn": "k"}]})
    assert parse("[]", "f") == []
