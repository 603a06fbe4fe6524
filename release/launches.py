"""Launches from the files that people have: NDJSON, traces, case files, and both dialects of the public needs file.

NDJSON is read a line at a time and never held whole, so that a day's trace costs the memory of its classes alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
from foldproof.impl.capture import Capture, Const, Consts, converted
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.files import opened
from foldproof.impl.launch import INT_KINDS, Arg, Kind, Launch, launch_from
from foldproof.impl.strictjson import located, parse, reject_repeats
from foldproof.props.derive import ALIGNED, KIND_OF, MULTIPLE_OF_16, OTHER, UNALIGNED

MOST_BYTES = 32 << 20
"""Bytes of one JSON value: of a whole document, or of one line."""


class Counted(msgspec.Struct, frozen=True):
    """A launch, how often the file says that it happens, and where; `record` is the JSON around it, where that is more
    than the launch (a trace says the grid).
    """

    launch: Launch
    count: int = 1
    place: str = ""
    record: Any = None


def read_launches(path: Path, capture: Capture) -> Iterator[Counted]:
    """The launches of a file, plain or gzip. `capture` tells folded args of the second needs dialect from constexprs.

    Raises `InvalidLaunch` with file, line or JSON path, and reason.
    """
    with opened(path, InvalidLaunch) as stream:
        yield from _values(path, stream, capture)


def _values(path: Path, stream: IO[bytes], capture: Capture) -> Iterator[Counted]:
    number, line = 0, b""
    while not line.strip():
        line, number = _line(path, stream, number), number + 1
        if not line:
            raise InvalidLaunch("is empty", where=str(path), fix="write one launch a line, or a JSON list")
    if not _is_whole_object(line):
        rest = stream.read(MOST_BYTES + 1 - len(line))
        if len(line) + len(rest) > MOST_BYTES:
            why = f"is one JSON value of more than {MOST_BYTES >> 20} MiB"
            raise InvalidLaunch(why, where=str(path), fix="write one launch a line")
        yield from _document(path, parse(line + rest, str(path), InvalidLaunch), capture)
        return
    while line:
        if line.strip():
            place = f"{path}: line {number}"
            yield from _document(place, parse(line, place, InvalidLaunch), capture)
        line, number = _line(path, stream, number), number + 1


def _line(path: Path, stream: IO[bytes], number: int) -> bytes:
    line = stream.readline(MOST_BYTES + 1)
    if len(line) > MOST_BYTES:
        why = f"is longer than {MOST_BYTES >> 20} MiB"
        raise InvalidLaunch(why, where=f"{path}: line {number + 1}", fix="write one launch a line")
    return line


def _is_whole_object(line: bytes) -> bool:
    if not line.lstrip(b"\xef\xbb\xbf \t").startswith(b"{"):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _document(place: Path | str, value: Any, capture: Capture) -> Iterator[Counted]:
    """The launches of one JSON value: a list of them, a needs file, or one launch (a case and a record wrap theirs)."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _document(f"{place}: $[{position}]", item, capture)
    elif isinstance(value, dict) and isinstance(value.get("needs"), list):
        yield from _each(place, "needs", value, _from_need)
    elif isinstance(value, dict) and isinstance(value.get("kernels"), list) and "launch" not in value:
        yield from _each(place, "kernels", value, lambda item: _from_kernel(item, capture))
    else:
        wrapped = isinstance(value, dict) and "launch" in value
        inner = value["launch"] if wrapped else value
        yield Counted(located(place, lambda: launch_from(inner)), 1, str(place), value if wrapped else None)


def _each(place: Path | str, key: str, value: Mapping[str, Any], read: Any) -> Iterator[Counted]:
    for position, item in enumerate(value[key]):
        where = f"{place}: $.{key}[{position}]"
        launch, count = located(where, lambda item=item: read(item))  # type: ignore[misc]
        yield Counted(launch, count, where)


Count = Annotated[int, msgspec.Meta(le=2**63 - 1)]


class _NeedArg(msgspec.Struct, frozen=True):
    name: str
    kind: str
    type: str = ""
    align16: bool = False
    value: int | bool = 0
    bits: int = 0


class _Need(msgspec.Struct, frozen=True):
    fn: str
    args: tuple[_NeedArg, ...]
    consts: Consts = {}
    count: Count = 1
    num_warps: int | None = None
    num_stages: int | None = None
    arch: str | None = None
    enable_fp_fusion: bool | None = None
    source: str | None = None


def _from_need(value: Any) -> tuple[Launch, int]:
    reject_repeats(value, InvalidLaunch)
    need = converted(value, _Need, InvalidLaunch)
    kinds = {"f32": "fp32"}
    args = []
    for arg in need.args:
        json_arg: dict[str, Any] = {"name": arg.name, "kind": kinds.get(arg.kind, arg.kind)}
        if arg.kind == "ptr":
            json_arg |= {"type": arg.type, "addr": ALIGNED if arg.align16 else UNALIGNED}
        elif json_arg["kind"] == "fp32":
            json_arg["bits"] = arg.bits
        elif arg.kind == "u1":
            json_arg["value"] = bool(arg.value)
        elif arg.kind != "none":
            json_arg["value"] = arg.value
        args.append(json_arg)
    launch: dict[str, Any] = {"fn": need.fn, "args": args, "consts": msgspec.to_builtins(need.consts)}
    # A need of no recorded stages pins none.
    for name in ("num_warps", "num_stages", "arch", "enable_fp_fusion", "source"):
        launch[name] = getattr(need, name) or None
    launch["enable_fp_fusion"] = need.enable_fp_fusion
    return launch_from(launch), max(need.count, 0)


class _Runtime(msgspec.Struct, frozen=True):
    type: str
    div16: bool = False


class _Kernel(msgspec.Struct, frozen=True):
    runtime: dict[str, _Runtime]
    fn: str = ""
    function: str = ""
    consts: dict[str, Any] = {}
    launches: Count = 1
    num_warps: int | None = None
    num_stages: int | None = None


def _from_kernel(value: Any, capture: Capture) -> tuple[Launch, int]:
    """A kernel as an engine compiled it just in time: the launch for which the compiler would make it."""
    reject_repeats(value, InvalidLaunch)
    if isinstance(value, dict) and "hash" in value and "params" in value:
        why = "is a capture's entry, not a launch"
        raise InvalidLaunch(why, fix="give the capture first, then the launches")
    kernel = converted(value, _Kernel, InvalidLaunch)
    fn = kernel.fn or kernel.function
    read = {p.name for v in capture.kernels if v.fn == fn for p in v.params}
    args = [_runtime_arg(name, one) for name, one in kernel.runtime.items()]
    consts = {name: converted(_const_value(c), Const, InvalidLaunch) for name, c in kernel.consts.items()}
    for name in [n for n, c in consts.items() if n in read and (c.kind, c.value) == ("int", 1)]:
        del consts[name]
        args.append(Arg(name, Kind.I32, 1))
    try:
        launch = Launch(fn, tuple(args), consts, kernel.num_warps, kernel.num_stages or None)
    except ValueError as problem:
        raise InvalidLaunch(str(problem), where="$.runtime", fix="name each arg once") from None
    return launch, max(kernel.launches, 0)


def _const_value(value: Any) -> Any:
    """A constant as the format writes it; the second dialect may also write a bare int, bool, text or null."""
    if isinstance(value, bool):
        return {"bool": value}
    if value is None:
        return {"none": True}
    if isinstance(value, (int, str)):
        return {"int" if isinstance(value, int) else "str": value}
    return value


def _runtime_arg(name: str, one: _Runtime) -> Arg:
    if one.type.startswith("*"):
        return Arg(name, Kind.PTR, ALIGNED if one.div16 else UNALIGNED, one.type)
    kind = KIND_OF.get(one.type)
    if kind is None:
        raise InvalidLaunch(f"no arg is a {one.type!r}", where=f"$.runtime.{name}", fix="see docs/reference/release.md")
    number = (MULTIPLE_OF_16 if one.div16 else OTHER)[kind] if kind in INT_KINDS else 0
    return Arg(name, kind, number)
