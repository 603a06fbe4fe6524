"""The numbers of a capture at their limits, what is taken where nothing is said, and where a fault is placed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from foldproof.impl import Const, InvalidCapture, capture_from
from foldproof.impl.capture import INT_TYPES, capture_file, load_capture, missing_cubins
from helpers import param, variant


def loaded(**more: Any) -> Any:
    return capture_from({"kernels": [variant("A", param("R")) | more]}).kernels[0]


@pytest.mark.parametrize(
    ("field", "least"),
    [
        ("num_warps", 1),
        ("num_ctas", 1),
        ("num_stages", 0),
        ("shared", 0),
        ("global_scratch", 0),
        ("global_align", 0),
        ("profile_scratch", 0),
    ],
)
def test_a_count_is_taken_from_its_least_on(field: str, least: int) -> None:
    for value in (least, least + 1, 1 << 20):
        assert getattr(loaded(**{field: value}), field) == value
    with pytest.raises(InvalidCapture, match=rf"\$\.kernels\[0\]\.{field}"):
        loaded(**{field: least - 1})


def test_what_an_entry_does_not_say() -> None:
    one = loaded()
    assert (one.name, one.num_stages, one.num_ctas, one.shared, one.pdl) == ("", 0, 1, 0, False)
    assert (one.global_scratch, one.global_align, one.profile_scratch) == (0, 1, 0)
    assert (one.arch, one.enable_fp_fusion, one.source, one.options) == (None, None, None, (4, 0, None, None))
    (read,) = one.params
    assert not any((read.div16, read.nospec, read.noalign, read.annotated, read.range32))
    whole = capture_from({"kernels": [variant("A")]})
    assert (whole.bin_dir, whole.bin_ext, whole.generator, whole.target) == ("cubins", ".cubin", None, None)


def test_what_is_written_says_no_default() -> None:
    assert json.loads(msgspec.json.encode(loaded())) == variant("A", param("R"))


@pytest.mark.parametrize("more", [{"fn": ""}, {"arch": ""}, {"source": ""}, {"params": [param("")]}])
def test_an_empty_text_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidCapture, match="length >= 1"):
        loaded(**more)


@pytest.mark.parametrize(
    ("const", "kind", "value", "text"),
    [
        ({"int": -(2**63)}, "int", -(2**63), f"int {-(2**63)}"),
        ({"int": 2**64 - 1}, "int", 2**64 - 1, f"int {2**64 - 1}"),
        ({"int": 0}, "int", 0, "int 0"),
        ({"f32": 0}, "f32", 0, "f32 0"),
        ({"f32": 0xFFFF_FFFF}, "f32", 0xFFFF_FFFF, "f32 4294967295"),
        ({"bool": False}, "bool", False, "bool False"),
        ({"str": ""}, "str", "", "str "),
        ({"none": True}, "none", True, "none"),
    ],
)
def test_constants_at_their_limits(const: dict[str, Any], kind: str, value: object, text: str) -> None:
    held = loaded(consts={"C": const}).consts["C"]
    assert (held.kind, held.value, str(held)) == (kind, value, text)
    assert held.value is value or held.value == value


@pytest.mark.parametrize(
    "const", [{"f32": -1}, {"f32": 2**32}, {"int": 2**64}, {"int": 2**64 + 1}, {"int": -(2**63) - 1}, {"none": False}]
)
def test_constants_beyond_their_limits(const: dict[str, Any]) -> None:
    with pytest.raises(InvalidCapture, match=r"\$\.kernels\[0\]\.consts\.C"):
        loaded(consts={"B": {"int": 1}, "C": const, "D": {"int": 1}})


def test_a_constant_with_more_to_it_is_refused() -> None:
    with pytest.raises(InvalidCapture, match="shiny"):
        loaded(consts={"C": {"int": 1, "shiny": 2}})


def test_a_constant_of_no_kind_or_two_is_none() -> None:
    for values in ({}, {"int_": 1, "bool_": True}, {"str_": "", "none": True}):
        with pytest.raises(ValueError, match="exactly one of"):
            Const(**values)  # type: ignore[arg-type]


def test_integer_types_hold_what_their_bits_hold() -> None:
    assert INT_TYPES == {
        "i8": (-128, 127), "i16": (-(2**15), 2**15 - 1), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1),
        "u8": (0, 255), "u16": (0, 2**16 - 1), "u32": (0, 2**32 - 1), "u64": (0, 2**64 - 1),
    }  # fmt: skip
    for name in INT_TYPES:
        assert loaded(params=[param("x", name, annotated=True)]).params[0].annotated
    with pytest.raises(InvalidCapture, match="annotated is for an integer type, not 'u1'"):
        loaded(params=[param("x", "u1", annotated=True)])


@pytest.mark.parametrize(
    ("hash_", "good"),
    [
        ("a" * 200, True), ("a" * 201, False), ("a.b", True), (".a", False), ("a/b", False), ("a\\b", False),
        ("a\x1f", False), ("a\x7f", False), ("a b", True), ("é", True), ("..", False),
    ],
)  # fmt: skip
def test_a_hash_is_a_plain_file_name(hash_: str, good: bool) -> None:
    if good:
        assert loaded(hash=hash_).hash == hash_
        return
    with pytest.raises(InvalidCapture, match="is no plain file name"):
        loaded(hash=hash_)


@pytest.mark.parametrize(
    ("where", "good"),
    [
        ({"bin_dir": "a/b"}, True), ({"bin_dir": "a/../b"}, False), ({"bin_dir": "/a"}, False),
        ({"bin_dir": "."}, True),
        ({"bin_dir": "a\0"}, False), ({"bin_ext": ""}, True), ({"bin_ext": "/x"}, False), ({"bin_ext": ".c"}, True),
    ],
)  # fmt: skip
def test_cubins_lie_inside_the_capture(where: dict[str, str], good: bool) -> None:
    value = {"kernels": [variant("A")]} | where
    if good:
        assert capture_from(value).kernels[0].hash == "A"
        return
    with pytest.raises(InvalidCapture, match="bin_"):
        capture_from(value)


def test_two_equal_hashes_and_two_equal_params_are_named() -> None:
    entries = [variant(mark) for mark in ("A", "B", "C", "B")]
    with pytest.raises(InvalidCapture, match=r"kernels\[1\] and kernels\[3\] share the hash 'B'"):
        capture_from({"kernels": entries})
    with pytest.raises(InvalidCapture, match=r"kernels\[0\] and kernels\[2\] share the hash 'A'"):
        capture_from({"kernels": [variant(mark) for mark in ("A", "B", "A")]})
    with pytest.raises(InvalidCapture, match="two params are named 'y'"):
        loaded(params=[param(name) for name in ("x", "y", "y", "z", "z")])
    with pytest.raises(InvalidCapture, match="'y' is both a param and a const"):
        loaded(params=[param("x"), param("y")], consts={"y": {"int": 1}, "z": {"int": 1}})


def test_a_param_is_found_by_its_name() -> None:
    one = loaded(params=[param("x"), param("y", "i64")])
    found = one.param("y")
    assert found is not None
    assert found.type == "i64"
    assert (one.param("z"), one.param("a")) == (None, None)


def test_a_capture_is_its_folder_or_its_file(tmp_path: Path) -> None:
    (tmp_path / "aot.json").write_text('{"kernels": [{"fn": "k", "hash": "A"}]}')
    assert capture_file(tmp_path) == tmp_path / "aot.json"
    assert capture_file(tmp_path / "aot.json") == tmp_path / "aot.json"
    assert capture_file(tmp_path / "absent.json") == tmp_path / "absent.json"
    with pytest.raises(InvalidCapture) as problem:
        load_capture(tmp_path)
    assert problem.value.where == f"{tmp_path / 'aot.json'}: $.kernels[0]"
    assert problem.value.why == "Object missing required field `num_warps`"
    with pytest.raises(InvalidCapture) as problem:
        capture_from({})
    assert (problem.value.where, problem.value.why) == ("$", "Object missing required field `kernels`")


def test_a_cubin_is_a_file_beside_the_capture(tmp_path: Path) -> None:
    whole = capture_from({"kernels": [variant("A"), variant("B"), variant("C")], "bin_dir": "x/y"})
    (tmp_path / "aot.json").write_text("{}")
    (tmp_path / "x/y/B.cubin").mkdir(parents=True)
    (tmp_path / "x/y/C.cubin").write_bytes(b"")
    assert missing_cubins(tmp_path, whole) == ("A", "B")
    assert missing_cubins(tmp_path / "aot.json", whole) == ("A", "B")
