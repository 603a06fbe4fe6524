"""The file that says what an engine can produce: TOML, a table a function, ranges and classes of its args.

```toml
[_gemm]
args = { nt = "1..4096", rows = "16..8192 step 16", X = "aligned", B = ["none", "any"] }
consts = { K = [1024, 2048], FUSED = true }
options = { num_warps = 4 }
```

`[[_gemm]]` gives several ways to launch one function. An arg that is not mentioned may have any value.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from foldproof.impl.capture import INT_TYPES, Const
from foldproof.impl.errors import FoldproofError, one_line
from foldproof.impl.launch import INT_KINDS, Arg, Kind
from foldproof.impl.strictjson import located
from foldproof.impl.tomlfile import toml_text
from foldproof.props.derive import ALIGNED, UNALIGNED
from foldproof.release.shapes import Family

RANGE = re.compile(r"\s*(-?\d{1,40})\s*\.\.\s*(-?\d{1,40})(?:\s+step\s+(\d{1,40}))?\s*")
FIX = "see docs/reference/release.md"
WORDS = ("any", "aligned", "unaligned", "none")
PLAIN = 2
OPTIONS = ("num_warps", "num_stages", "arch", "enable_fp_fusion", "source")


class InvalidRanges(FoldproofError):
    """The file of reachable launches breaks its format, or names what the capture does not have."""

    code = "InvalidRanges"


class Scenario(msgspec.Struct, frozen=True):
    """One way to launch a function: the domain of each arg, the values of each constant, the pinned options."""

    fn: str
    args: Mapping[str, Sequence[Any]]
    consts: Mapping[str, Sequence[Const]]
    options: Mapping[str, Any]
    where: str


def read_ranges(path: Path) -> list[Scenario]:
    """The scenarios of a TOML file, in its order. Raises `InvalidRanges` with the place of what it cannot mean."""
    text = toml_text(path, InvalidRanges)
    try:
        value = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:  # TOMLDecodeError, and numbers of thousands of digits
        raise InvalidRanges(f"is not TOML: {one_line(str(problem))}", where=str(path), fix=FIX) from None
    found = [scenario for fn, tables in value.items() for scenario in _scenarios(path, fn, tables)]
    if not found:
        raise InvalidRanges("says nothing", where=str(path), fix="add a table named as the function")
    return found


def _scenarios(path: Path, fn: str, tables: Any) -> Iterator[Scenario]:
    several = tables if isinstance(tables, list) else [tables]
    for position, table in enumerate(several):
        where = f"{path}: {fn}" + (f"[{position}]" if len(several) > 1 else "")
        if not isinstance(table, dict):
            raise InvalidRanges("is no table", where=where, fix=FIX)
        for name in sorted(set(table) - {"args", "consts", "options"}):
            raise InvalidRanges(f"has {name!r}; a function has args, consts and options", where=where, fix=FIX)
        parts = {name: table.get(name, {}) for name in ("args", "consts", "options")}
        for name, part in parts.items():
            if not isinstance(part, dict):
                raise InvalidRanges("is no table", where=f"{where}.{name}", fix=FIX)
        for name in sorted(set(parts["options"]) - set(OPTIONS)):
            raise InvalidRanges(f"no option is named {name!r}", where=f"{where}.options", fix=f"one of {OPTIONS}")
        consts = {n: [_const(v, f"{where}.consts.{n}") for v in _list(c)] for n, c in parts["consts"].items()}
        yield Scenario(fn, {n: _list(a) for n, a in parts["args"].items()}, consts, parts["options"], where)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _const(value: Any, where: str) -> Const:
    if isinstance(value, dict):
        as_json = value
    elif isinstance(value, bool):
        as_json = {"bool": value}
    elif isinstance(value, (int, str)):
        as_json = {"int" if isinstance(value, int) else "str": value}
    else:
        raise InvalidRanges(f"{value!r} is no constant", where=where, fix="a float is {f32 = its 32 bits}")
    try:
        return msgspec.convert(as_json, Const)
    except (msgspec.ValidationError, ValueError) as problem:
        raise InvalidRanges(one_line(str(problem)), where=where, fix=FIX) from None


def arg_domain(family: Family, name: str, wanted: Sequence[Any], where: str) -> tuple[Arg, ...]:
    """An arg for each class that the domain holds and the variants can tell apart, the least assuming first."""
    known = family.classes(name)
    found = [arg for item in wanted for arg in _item(name, known, item, f"{where}.args.{name}")]
    return tuple(sorted(dict.fromkeys(found), key=lambda arg: _rank(arg, known)))


def _rank(arg: Arg, known: Sequence[Arg]) -> tuple[int, int]:
    assumes = 2 if arg.kind == Kind.I32 and arg.number == 1 else int(arg.number % 16 == 0)
    return assumes, next((i for i, other in enumerate(known) if other.kind == arg.kind), 0)


def _item(name: str, known: Sequence[Arg], item: Any, where: str) -> list[Arg]:
    if isinstance(item, bool):
        return _of_kind(name, known, (Kind.U1,), f"the bool {item}", where)
    if isinstance(item, int):
        return located(where, lambda: int_classes(name, known, item, item, 1))
    if not isinstance(item, str):
        raise InvalidRanges(f"{item!r} is no range", where=where, fix=FIX)
    if match := RANGE.fullmatch(item):
        low, high, step = int(match[1]), int(match[2]), int(match[3] or 1)
        if low > high or step == 0:
            raise InvalidRanges(f"the range {item!r} is empty", where=where, fix="write low..high step 1 or more")
        return located(where, lambda: int_classes(name, known, low, high, step))
    pointee, _, word = item.rpartition(" ")
    if word not in WORDS or (pointee and not pointee.startswith("*")):
        raise InvalidRanges(f"{item[:60]!r} is no range", where=where, fix='such as "1..64 step 2", "aligned", "any"')
    if word == "none":
        return [Arg(name, Kind.NONE)]
    if word == "any" and not pointee:
        return any_value(name, known)
    pointers = _of_kind(name, known, (Kind.PTR,), f"{item!r}, and no variant has a pointer here", where)
    types = [pointee] if pointee else list(dict.fromkeys(arg.pointee for arg in pointers))
    sizes = list(dict.fromkeys(arg.bytes for arg in pointers))
    numbers = {"aligned": (ALIGNED,), "unaligned": (UNALIGNED,)}.get(word, (UNALIGNED, ALIGNED))
    return [Arg(name, Kind.PTR, n, t, s) for t in types for s in sizes for n in numbers]


def _of_kind(name: str, known: Sequence[Arg], kinds: Sequence[Kind], what: str, where: str) -> list[Arg]:
    found = [arg for arg in known if arg.kind in kinds]
    if not found:
        raise InvalidRanges(f"{name} is said to be {what}", where=where, fix="check the name and the range")
    return found


def any_value(name: str, known: Sequence[Arg]) -> list[Arg]:
    """Every class that an unrestricted arg may have: any i32 for an int, any address for a pointer."""
    low, high = INT_TYPES["i32"]
    ints = int_classes(name, known, low, high, 1) if any(arg.kind in INT_KINDS for arg in known) else []
    return [*ints, *(arg for arg in known if arg.kind not in INT_KINDS)]


def int_classes(name: str, known: Sequence[Arg], low: int, high: int, step: int) -> list[Arg]:
    """An arg for each class of ints that the progression low, low + step, ... reaches, with the first such value.

    The classes are those of `known`, told apart by where its own values lie; the launcher narrows each value.
    """
    narrowed(low), narrowed(high)
    starts = sorted({arg.number - arg.number % 16 for arg in known if arg.kind in INT_KINDS and arg.number != 1})
    ends = [*(cut for cut in starts if low < cut <= high), high + 1]
    found: list[Arg] = []
    bottom = low
    for top in ends:
        first = bottom + (low - bottom) % step
        if first < PLAIN < top:
            # Small positive values read best, and where there is room they have every residue too.
            above = first + -(-(PLAIN - first) // step) * step
            first = above if above + 18 * step <= top else first
        # Residues modulo 16 repeat after 16 steps; one more step makes up for a 1 among them.
        members = range(first, min(top, first + 18 * step), step)
        classes: dict[object, int] = {}
        for value in members:
            classes.setdefault("one" if value == 1 else value % 16 == 0, value)
        found += [Arg(name, narrowed(value), value) for value in classes.values()]
        if low <= 1 < high and bottom <= 1 < top and (1 - low) % step == 0:
            found.append(Arg(name, Kind.I32, 1))
        bottom = top
    return list(dict.fromkeys(found))


def narrowed(value: int) -> Kind:
    """The kind that the launcher gives an int."""
    for kind in INT_KINDS:
        low, high = INT_TYPES[kind]
        if low <= value <= high:
            return kind
    raise InvalidRanges(f"{value} is no int of 64 bits", fix="an int arg lies in [-2^63, 2^64)")
