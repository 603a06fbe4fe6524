"""The values of a dumped launch, as an engine's log writes them, read as the launch format has them.

What a value may look like is said in docs/reference/release.md.
"""

from __future__ import annotations

import re
from typing import Any

from foldproof.impl.errors import one_line

_POINTER = re.compile(r"(?P<type>\*\w+)(?P<rest>\b.*)")
_NUMBER = re.compile(r"(?P<kind>i32|i64|u64) ?[=(: ] ?(?P<value>-?\d+)\)?")
_FLOAT = re.compile(r"(?:fp32|f32)(?: bits)?(?: ?[=(: ] ?(?P<bits>0x[0-9a-fA-F]+|\d+)\)?)?")
_BOOL = re.compile(r"(?:u1|bool) ?[=(: ] ?(?P<value>[Tt]rue|[Ff]alse|0|1)\)?")
_CONST = re.compile(r"(?P<kind>int|f32|bool|str|none)\b(?P<value>.*)")
_INT = re.compile(r"-?\d+")
_BOOLS = {"True": True, "true": True, "1": True, "False": False, "false": False, "0": False}
MOST_DIGITS = 20
"""Digits of the longest number that any kind can have."""


def arg_json(text: str) -> dict[str, Any]:
    """An arg of a dump as a launch has it; what is not understood as a whole becomes a kind that no launch has."""
    value = " ".join(text.split())
    if match := _POINTER.fullmatch(value):
        return {"kind": "ptr", "type": match["type"], **_address(match["rest"])}
    if match := _NUMBER.fullmatch(value):
        return {"kind": match["kind"], "value": _number(match["value"])}
    if match := _BOOL.fullmatch(value):
        return {"kind": "u1", "value": match["value"] in ("True", "true", "1")}
    if match := _FLOAT.fullmatch(value):
        return {"kind": "fp32", "bits": _number(match["bits"] or "0")}
    if value.lower() == "none":
        return {"kind": "none"}
    if _INT.fullmatch(value) and isinstance(number := _number(value), int):
        kind = "i32" if -(2**31) <= number < 2**31 else "i64" if number < 2**63 else "u64"
        return {"kind": kind, "value": number}
    return {"kind": one_line(value)}


def says_kind(text: str) -> bool:
    """Whether the text begins as an arg does: with a kind, or with the type of a pointer."""
    return re.match(r"\*|(?:i32|i64|u64|fp32|f32|u1|bool)\b", text) is not None


def _number(text: str) -> int | str:
    """The number; a text that is too long for one stays a text, which no launch has."""
    if len(text) > MOST_DIGITS:
        return text
    return int(text, 16 if text.startswith("0x") else 10)


def _address(rest: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if match := re.search(r"0x[0-9a-fA-F]+", rest):
        found["addr"] = match[0]
    else:
        unaligned = re.search(r"unaligned|misaligned|(?:align16|div16|aligned) ?[=:] ?(?:false|0)", rest, re.IGNORECASE)
        found["addr"] = "0x1004" if unaligned or not re.search(r"align|div16", rest, re.IGNORECASE) else "0x1000"
    if match := re.search(r"(?<!\d)(\d{1,20}) bytes", rest):
        found["bytes"] = int(match[1])
    return found


def const_json(value: str) -> dict[str, Any]:
    """A constant of a dump: `int 64`, `bool True`, `f32 1065353216`, `str x`, `none`, or a bare int, bool or text.

    One that says its kind and not a value of it becomes a constant that no launch has.
    """
    if match := _CONST.fullmatch(value):
        kind, said = match["kind"], match["value"].strip(" =:()")
        if kind in ("int", "f32"):
            return {kind: _number(said) if re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", said) else said}
        if kind == "bool":
            return {"bool": _BOOLS.get(said, said)}
        if kind == "str":
            return {"str": said}
        if not said:
            return {"none": True}
    if _INT.fullmatch(value):
        return {"int": _number(value)}
    if value in ("True", "False", "true", "false"):
        return {"bool": value in ("True", "true")}
    return {"none": True} if value == "None" else {"str": value}


def option_json(value: str) -> Any:
    """The value of a pinned option."""
    if value in ("True", "False"):
        return value == "True"
    return _number(value) if re.fullmatch(r"\d+", value) else value
