"""Args of every kind: as text, as JSON, and what each of them is to a param."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from foldproof.impl import Arg, InvalidLaunch, Kind, launch_from
from foldproof.impl.launch import launch_to
from helpers import ptr

ARGS: list[tuple[dict[str, Any], str, str, int]] = [
    ({"name": "x", "kind": "i32", "value": -7}, "i32 = -7", "i32", -7),
    ({"name": "x", "kind": "i64", "value": 2**40}, "i64 = 1099511627776", "i64", 2**40),
    ({"name": "x", "kind": "u64", "value": 2**63}, "u64 = 9223372036854775808", "u64", 2**63),
    ({"name": "x", "kind": "u1", "value": True}, "u1 = True", "u1", 1),
    ({"name": "x", "kind": "u1", "value": False}, "u1 = False", "u1", 0),
    ({"name": "x", "kind": "fp32", "bits": 0x3F800000}, "fp32 bits 0x3f800000", "fp32", 0x3F800000),
    ({"name": "x", "kind": "fp32", "bits": 0xFFFF_FFFF}, "fp32 bits 0xffffffff", "fp32", 0xFFFF_FFFF),
    ({"name": "x", "kind": "fp32", "bits": 0}, "fp32 bits 0x00000000", "fp32", 0),
    ({"name": "x", "kind": "none"}, "None", "", 0),
    (ptr("x", 0x1000), "*bf16 at 0x1000", "*bf16", 0x1000),
    (ptr("x", 0, bytes=0), "*bf16 at 0x0, 0 bytes", "*bf16", 0),
    (ptr("x", 2**64 - 1, bytes=8), "*bf16 at 0xffffffffffffffff, 8 bytes", "*bf16", 2**64 - 1),
]


@pytest.mark.parametrize(("value", "text", "type_", "number"), ARGS)
def test_an_arg_as_text_and_back_to_json(value: dict[str, Any], text: str, type_: str, number: int) -> None:
    launch = launch_from({"fn": "k", "args": [value]})
    (arg,) = launch.args
    assert (str(arg), arg.type, arg.number) == (text, type_, number)
    assert launch_to(launch) == {"fn": "k", "args": [value], "consts": {}}
    assert type(launch_to(launch)["args"][0].get("value", 0)) is type(value.get("value", 0))


def test_an_address_may_be_a_plain_number() -> None:
    for given, number in ((0, 0), (4096, 4096), ("0xFf", 255), ("0x0", 0)):
        (arg,) = launch_from({"fn": "k", "args": [ptr("x", 0) | {"addr": given}]}).args
        assert arg.number == number


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (ptr("x", 0) | {"addr": -1}, "outside 64 bits"),
        (ptr("x", 0) | {"addr": 2**64}, "outside 64 bits"),
        (ptr("x", 0) | {"addr": 2**64 + 1}, "outside 64 bits"),
        (ptr("x", 0) | {"addr": ""}, "no hex number"),
        (ptr("x", 0) | {"addr": "0x" + "f" * 65}, "no hex number"),
        (ptr("x", 0) | {"type": ""}, "starts with '*'"),
        (ptr("x", 0, bytes=-1), "$.args[0].bytes"),
        ({"name": "", "kind": "none"}, "$.args[0].name"),
        ({"name": "x", "kind": "none", "value": 1}, "neither value nor type"),
        ({"name": "x", "kind": "fp32", "bits": -1}, "$.args[0].bits"),
        ({"name": "x", "kind": "i32", "value": -(2**31) - 1}, "is no i32"),
        ({"name": "x", "kind": "i64", "value": -(2**63) - 1}, "is no i64"),
        ({"name": "x", "kind": "u1", "value": 0}, "does not take 0"),
        ({"name": "x", "kind": "u64", "value": False}, "does not take False"),
        ({"name": "x", "kind": "fp32", "bits": 1, "bytes": 4}, "only a pointer has bytes"),
        ({"name": "x", "kind": "u64", "value": 1, "bytes": 4}, "only a pointer has bytes"),
        ({"name": "x", "kind": "i32", "value": 1, "bits": 1}, "takes value"),
        ({"name": "x", "kind": "fp32", "value": 1}, "takes bits"),
        (ptr("x", 0) | {"value": 1}, "takes addr and type"),
    ],
)
def test_a_value_that_is_none_of_its_kind_is_refused(value: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidLaunch) as problem:
        launch_from({"fn": "k", "args": [value]})
    assert why in str(problem.value)


def test_the_first_and_last_numbers_of_each_kind_are_taken() -> None:
    for kind, low, high in ((Kind.I32, -(2**31), 2**31 - 1), (Kind.I64, -(2**63), 2**63 - 1), (Kind.U64, 0, 2**64 - 1)):
        for number in (low, high):
            (arg,) = launch_from({"fn": "k", "args": [{"name": "x", "kind": kind.value, "value": number}]}).args
            assert arg.number == number


def test_options_and_source_are_kept_where_they_are_said() -> None:
    said = {"num_warps": 8, "num_stages": 0, "arch": "sm_90", "enable_fp_fusion": False, "source": "a"}
    value = {"fn": "k", "args": [], "consts": {"C": {"int": 1}, "N": {"none": True}}} | said
    assert launch_to(launch_from(value)) == value
    assert launch_from(value).options == tuple(list(said.items())[:4])
    assert launch_from({"fn": "k", "args": []}).options == ()
    assert launch_from({"fn": "k", "args": [], "num_warps": 1}).num_warps == 1
    assert Arg("x", Kind.NONE) == Arg("x", Kind.NONE, 0, "", None)
    assert msgspec.to_builtins(Arg("x", Kind.NONE)) == {"name": "x", "kind": "none"}
    for broken in ({"num_warps": 0}, {"num_stages": -1}, {"shiny": 1}, {"fn": ""}):
        with pytest.raises(InvalidLaunch):
            launch_from({"fn": "k", "args": []} | broken)


def test_the_arg_that_is_given_twice_is_the_first_such() -> None:
    args = [{"name": name, "kind": "none"} for name in ("a", "b", "c", "c", "b")]
    with pytest.raises(InvalidLaunch, match=r"\$\.args: the arg 'b' is given twice"):
        launch_from({"fn": "k", "args": args})
