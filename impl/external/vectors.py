"""Conformance vectors of `foldproof-selector/1`: messages and the answers that `three-pass` gives to them.

    python -m foldproof.impl.external.vectors > three-pass.ndjson

writes the file again from the cases below. A line is `{"send": message}`, with `"expect": answer` if it is answered.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import msgspec
from foldproof.impl.external.serve import Session
from foldproof.impl.policy import load_policy

POLICY = "three-pass"
Json = dict[str, Any]


def _param(name: str, kind: str = "i32", **switches: bool) -> Json:
    return {"name": name, "type": kind, "div16": False, "nospec": False, **switches}


def _variant(mark: str, *params: Json, consts: Json | None = None, **more: Any) -> Json:
    return {"fn": "k", "hash": mark, "num_warps": 4, "params": list(params), "consts": consts or {}, **more}


def _int(name: str, value: Any, kind: str = "i32") -> Json:
    return {"name": name, "kind": kind, "value": value}


def _ptr(addr: str = "0x1000", **more: int) -> Json:
    return {"name": "P", "kind": "ptr", "type": "*bf16", "addr": addr, **more}


def _launch(*args: Json, consts: Json | None = None, **pinned: Any) -> Json:
    return {"fn": "k", "args": list(args), "consts": consts or {}, **pinned}


ONE = {"int": 1}
FOLDED = _variant("folded", consts={"S": ONE})
RUNTIME = _variant("runtime", _param("S"))
DIV16 = _variant("div16", _param("S", div16=True))
PTR = _variant("ptr", _param("P", "*bf16"))
PTR16 = _variant("ptr16", _param("P", "*bf16", div16=True))


def _wide(kind: str, **switches: bool) -> list[Json]:
    return [_variant("w16", _param("S", kind, div16=True, **switches)), _variant("w", _param("S", kind, **switches))]


CASES: tuple[tuple[str, list[Any], list[Json]], ...] = (
    (
        "folded, div16 and plain ints",
        [RUNTIME, FOLDED, DIV16],
        [_launch(_int("S", value)) for value in (1, 16, 7, 0, -16, -1, 2**31 - 1)],
    ),
    ("a foldable 1 is read only in the last pass", [RUNTIME], [_launch(_int("S", 1)), _launch(_int("S", 32))]),
    ("no pass reads 1 as a multiple of 16", [DIV16], [_launch(_int("S", 1)), _launch(_int("S", 16))]),
    (
        "only an i32 of value 1 is folded",
        [FOLDED],
        [_launch(_int("S", 2)), _launch(_int("S", 1, "i64")), _launch(_int("S", True, "u1")), _launch(_int("S", 1))],
    ),
    ("folded is int 1 and nothing else", [_variant("t", consts={"S": {"bool": True}})], [_launch(_int("S", 1))]),
    (
        "nospec: never folded, never div16",
        [_variant("n", _param("S", nospec=True))],
        [_launch(_int("S", value)) for value in (1, 16, 7)],
    ),
    (
        "nospec with div16 assumes what the compiler never does",
        [_variant("n", _param("S", div16=True, nospec=True))],
        [_launch(_int("S", value)) for value in (16, 7)],
    ),
    (
        "noalign: folded, never div16",
        [_variant("n", _param("S", noalign=True)), FOLDED],
        [_launch(_int("S", value)) for value in (1, 16)],
    ),
    (
        "annotated: div16, never folded, any int that the type holds",
        _wide("i64", annotated=True),
        [_launch(_int("S", 1)), _launch(_int("S", 16)), _launch(_int("S", 1, "i64")), _launch(_int("S", 2**63, "u64"))],
    ),
    ("i64", _wide("i64"), [_launch(_int("S", value, "i64")) for value in (1, 2**40, 2**40 + 1, -(2**63))]),
    ("u64: 1 is an ordinary one", _wide("u64"), [_launch(_int("S", v, "u64")) for v in (1, 2**63, 2**64 - 1)]),
    (
        "u1",
        [_variant("b", _param("S", "u1", div16=True))],
        [_launch(_int("S", value, "u1")) for value in (True, False)],
    ),
    (
        "fp32 never folds, and div16 says nothing of it",
        [_variant("f", _param("S", "fp32", div16=True)), FOLDED],
        [_launch({"name": "S", "kind": "fp32", "bits": bits}) for bits in (0x3F800000, 0)],
    ),
    (
        "None matches none",
        [_variant("n", consts={"S": {"none": True}}), FOLDED, RUNTIME],
        [_launch({"name": "S", "kind": "none"}), _launch(_int("S", 1))],
    ),
    (
        "pointers",
        [PTR, PTR16],
        [_launch(_ptr(addr)) for addr in ("0x1000", "0x1008", "0x0", "0xffffffffffffffff")],
    ),
    ("an unaligned pointer does not fit div16", [PTR16], [_launch(_ptr("0x1008"))]),
    ("an aligned one fits plain, not exactly", [PTR], [_launch(_ptr()), _launch(_ptr("0x1008"))]),
    (
        "a pointer's nospec and noalign",
        [
            _variant("n", _param("P", "*bf16", nospec=True)),
            _variant("a", _param("P", "*bf16", div16=True, noalign=True)),
        ],
        [_launch(_ptr()), _launch(_ptr("0x1008"))],
    ),
    ("a pointer's type", [_variant("p", _param("P", "*fp16", div16=True))], [_launch(_ptr())]),
    (
        "range32",
        [_variant("r", _param("P", "*bf16", div16=True, range32=True))],
        [_launch(_ptr(bytes=2**31 - 1)), _launch(_ptr(bytes=2**31)), _launch(_ptr())],
    ),
    ("range32 takes no int", [_variant("r", _param("S", range32=True))], [_launch(_int("S", 7))]),
    (
        "args and params are matched by name, all of them",
        [_variant("two", _param("A"), _param("B", div16=True))],
        [
            _launch(_int("B", 16), _int("A", 7)),
            _launch(_int("A", 7)),
            _launch(_int("A", 7), _int("B", 16), _int("C", 2)),
        ],
    ),
    (
        "constants by kind and value",
        [
            _variant(f"c{i}", consts={"C": const})
            for i, const in enumerate(({"int": 1}, {"bool": True}, {"f32": 1}, {"str": "1"}, {"none": True}))
        ],
        [
            *(_launch(consts={"C": const}) for const in ({"none": True}, {"str": "1"}, {"f32": 1}, {"bool": True})),
            _launch(consts={"C": {"int": 2}}),
            _launch(consts={"D": {"int": 1}}),
            _launch(),
        ],
    ),
    (
        "-0.0 differs from 0.0, and ints have 64 bits",
        [_variant("z", consts={"C": {"f32": 0x80000000}}), _variant("m", consts={"C": {"int": 2**64 - 1}})],
        [_launch(consts={"C": const}) for const in ({"f32": 0}, {"f32": 0x80000000}, {"int": -1}, {"int": 2**64 - 1})],
    ),
    (
        "launch options",
        [
            _variant("a", num_stages=2, arch="sm_90", enable_fp_fusion=True),
            _variant("b", num_stages=0),
            _variant("c", num_stages=3, num_warps=8, arch="sm_100", enable_fp_fusion=False),
        ],
        [
            _launch(num_warps=8),
            _launch(num_stages=3),
            _launch(arch="sm_100"),
            _launch(enable_fp_fusion=False),
            _launch(num_warps=8, arch="sm_90"),
            _launch(),
        ],
    ),
    (
        "source",
        [_variant("a", source="v1"), _variant("b", source="v2"), _variant("c")],
        [_launch(source="v2"), _launch(source="v3"), _launch()],
    ),
    (
        "the first match of the strictest pass",
        [
            _variant("p", _param("P", "*bf16"), _param("S")),
            _variant("q", _param("P", "*bf16", div16=True), _param("S")),
        ],
        [_launch(_ptr(), _int("S", 7)), _launch(_ptr(), _int("S", 1)), _launch(_ptr(), _int("S", 16))],
    ),
    (
        "any match of the general pass comes before a fallback",
        [
            _variant("p", _param("P", "*bf16", div16=True), _param("S")),
            _variant("q", _param("P", "*bf16"), consts={"S": ONE}),
        ],
        [_launch(_ptr(), _int("S", 1)), _launch(_ptr("0x1008"), _int("S", 1)), _launch(_ptr(), _int("S", 7))],
    ),
    ("another function", [RUNTIME], [{"fn": "other", "args": [], "consts": {}}]),
    (
        "text beyond ASCII, and escapes",
        [_variant("ü", _param('größe"\n'), source="\U0001f600")],
        [_launch(_int('größe"\n', 1), source="\U0001f600"), _launch(_int('größe"', 1))],
    ),
    (
        "invalid launches",
        [RUNTIME],
        [
            _launch(_int("S", 1), _int("S", 1)),
            _launch(_int("S", 2**31)),
            _launch(_int("S", -1, "u64")),
            _launch(_int("S", True)),
            _launch(_int("S", 1, "u1")),
            _launch(_ptr("0x10000000000000000")),
            _launch({"name": "S", "kind": "i32"}),
            _launch({"name": "S", "kind": "i16", "value": 1}),
            _launch(_int("S", 1), consts={"C": {}}),
            _launch(_int("S", 1), surprise=1),
        ],
    ),
    ("an unknown attribute of a param", [_variant("x", {**_param("S"), "div8": True})], [_launch(_int("S", 7))]),
    ("an unknown field of a variant", [_variant("x", _param("S"), ttir="x")], [_launch(_int("S", 7))]),
    ("a name that is param and const", [_variant("x", _param("S"), consts={"S": ONE})], [_launch(_int("S", 7))]),
    ("two params of one name", [_variant("x", _param("S"), _param("S"))], [_launch(_int("S", 7))]),
    ("two variants of one hash", [FOLDED, FOLDED], [_launch(_int("S", 1))]),
    ("annotated with a pointer", [_variant("x", _param("P", "*i8", annotated=True))], [_launch(_ptr())]),
    ("a constant of two kinds", [_variant("x", consts={"C": {"int": 1, "bool": True}})], [_launch()]),
    ("no variants", [], [_launch()]),
)
"""What is shown, the kernels, and the launches against them."""


def lines() -> Iterator[Json]:
    """The lines of the file, each answer as the reference gives it now."""
    session = Session(load_policy(POLICY))
    number = 0
    for capture, (why, kernels, launches) in enumerate(CASES):
        message: Json = {"type": "capture", "id": capture, "kernels": kernels}
        session.message(msgspec.json.encode(message), "")
        yield {"why": why, "send": message}
        for launch in launches:
            asked = {"type": "launch", "id": number, "capture": capture, "launch": launch}
            (answer,) = session.message(msgspec.json.encode(asked), "")
            yield {"send": asked, "expect": {key: value for key, value in answer.items() if key != "detail"}}
            number += 1


if __name__ == "__main__":
    sys.stdout.buffer.writelines(msgspec.json.encode(line) + b"\n" for line in lines())
