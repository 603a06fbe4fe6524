"""The launch format: one request for a kernel, read strictly from JSON.

The launcher has narrowed already: the kind of an int arg is its type (docs/reference/rules.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
from foldproof.impl.capture import INT_TYPES, Consts, Text, converted
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.strictjson import located, read_many, reject_repeats
from msgspec import Meta


class Kind(StrEnum):
    """The kinds of an arg."""

    I32 = "i32"
    I64 = "i64"
    U64 = "u64"
    U1 = "u1"
    FP32 = "fp32"
    NONE = "none"
    PTR = "ptr"


_HEX = re.compile(r"0x[0-9a-fA-F]{1,64}")
INT_KINDS = (Kind.I32, Kind.I64, Kind.U64)
_FIELDS: Mapping[Kind, frozenset[str]] = {
    **dict.fromkeys((*INT_KINDS, Kind.U1), frozenset({"value"})),
    Kind.FP32: frozenset({"bits"}),
    Kind.NONE: frozenset(),
    Kind.PTR: frozenset({"type", "addr"}),
}


class Arg(msgspec.Struct, frozen=True, omit_defaults=True):
    """One argument of a launch.

    `number` is what alignment and the fold look at: the value of an int, the address of a pointer, the bits of
    a float, 0 or 1 for a bool, 0 for None. `pointee` is the type of a pointer (`*bf16`), empty for other kinds.
    `bytes` is the size of a pointer's allocation where the launch says it.
    """

    name: str
    kind: Kind
    number: int = 0
    pointee: str = ""
    bytes: int | None = None

    @property
    def type(self) -> str:
        """The type that a param must have to take this arg: the kind, or the pointer's type; "" for None."""
        return self.pointee if self.kind in (Kind.PTR, Kind.NONE) else self.kind.value

    def __str__(self) -> str:
        if self.kind == Kind.PTR:
            size = "" if self.bytes is None else f", {self.bytes} bytes"
            return f"{self.pointee} at {self.number:#x}{size}"
        if self.kind == Kind.FP32:
            return f"fp32 bits {self.number:#010x}"
        if self.kind == Kind.U1:
            return f"u1 = {bool(self.number)}"
        return "None" if self.kind == Kind.NONE else f"{self.kind.value} = {self.number}"


class Launch(msgspec.Struct, frozen=True):
    """A function name, its args in launch order, the constants it names, and the launch options it pins."""

    fn: str
    args: tuple[Arg, ...]
    consts: Consts = msgspec.field(default_factory=dict)
    num_warps: int | None = None
    num_stages: int | None = None
    arch: str | None = None
    enable_fp_fusion: bool | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        names = [arg.name for arg in self.args]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the arg {twice!r} is given twice")

    @property
    def options(self) -> tuple[tuple[str, object], ...]:
        """The pinned launch options, as (name, value)."""
        names = ("num_warps", "num_stages", "arch", "enable_fp_fusion")
        pairs = ((name, getattr(self, name)) for name in names)
        return tuple((name, value) for name, value in pairs if value is not None)


class _RawArg(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An arg as it stands in JSON; `__post_init__` checks what the kind allows."""

    name: Text
    kind: Kind
    value: int | bool | None = None
    bits: Annotated[int, Meta(ge=0, le=0xFFFF_FFFF)] | None = None
    type: str | None = None
    addr: str | int | None = None
    bytes: Annotated[int, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        given = {name for name in ("value", "bits", "type", "addr") if getattr(self, name) is not None}
        needed = _FIELDS[self.kind]
        if given != needed:
            wants = " and ".join(sorted(needed)) or "neither value nor type"
            raise ValueError(f"arg {self.name!r} of kind {self.kind} takes {wants}")
        if self.bytes is not None and self.kind != Kind.PTR:
            raise ValueError(f"arg {self.name!r}: only a pointer has bytes")
        if self.kind == Kind.PTR and not (self.type or "").startswith("*"):
            raise ValueError(f"arg {self.name!r}: a pointer's type starts with '*', not {self.type!r}")
        self.number()

    def number(self) -> int:
        """The arg's number (see `Arg`); ValueError where the value is not one of its kind."""
        if self.kind == Kind.PTR:
            return _address(self.name, self.addr)
        if self.kind == Kind.FP32:
            return self.bits or 0
        if self.kind == Kind.NONE:
            return 0
        is_bool = isinstance(self.value, bool)
        if self.value is None or is_bool != (self.kind == Kind.U1):
            raise ValueError(f"arg {self.name!r} of kind {self.kind} does not take {self.value!r}")
        if not is_bool:
            low, high = INT_TYPES[self.kind]
            if not low <= self.value <= high:
                raise ValueError(f"arg {self.name!r}: {self.value} is no {self.kind}")
        return int(self.value)


class _RawLaunch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fn: Text
    args: tuple[_RawArg, ...]
    consts: Consts = {}
    num_warps: Annotated[int, Meta(ge=1)] | None = None
    num_stages: Annotated[int, Meta(ge=0)] | None = None
    arch: str | None = None
    enable_fp_fusion: bool | None = None
    source: str | None = None


def _address(name: str, addr: str | int | None) -> int:
    if isinstance(addr, str) and not _HEX.fullmatch(addr):
        raise ValueError(f"arg {name!r}: the address {addr!r} is no hex number such as 0x1000")
    number = int(addr, 16) if isinstance(addr, str) else addr or 0
    if not 0 <= number < 2**64:
        raise ValueError(f"arg {name!r}: the address {addr!r} is outside 64 bits")
    return number


def launch_from(value: Any) -> Launch:
    """A launch from a decoded JSON value. Raises `InvalidLaunch` with the JSON path of the first fault."""
    reject_repeats(value, InvalidLaunch)
    raw: _RawLaunch = converted(value, _RawLaunch, InvalidLaunch)
    args = tuple(Arg(a.name, a.kind, a.number(), a.type or "", a.bytes) for a in raw.args)
    pinned = {name: getattr(raw, name) for name in ("num_warps", "num_stages", "arch", "enable_fp_fusion", "source")}
    try:
        return Launch(raw.fn, args, raw.consts, **pinned)
    except ValueError as problem:
        raise InvalidLaunch(str(problem), where="$.args", fix="name each arg once") from None


def launch_to(launch: Launch) -> dict[str, Any]:
    """The JSON value of a launch: `launch_from(launch_to(x)) == x`."""
    value: dict[str, Any] = {"fn": launch.fn, "args": [_arg_to(arg) for arg in launch.args]}
    value["consts"] = msgspec.to_builtins(launch.consts)
    value.update(launch.options)
    if launch.source is not None:
        value["source"] = launch.source
    return value


def _arg_to(arg: Arg) -> dict[str, Any]:
    value: dict[str, Any] = {"name": arg.name, "kind": arg.kind.value}
    if arg.kind == Kind.PTR:
        value |= {"type": arg.pointee, "addr": f"{arg.number:#x}"}
        if arg.bytes is not None:
            value["bytes"] = arg.bytes
    elif arg.kind == Kind.FP32:
        value["bits"] = arg.number
    elif arg.kind == Kind.U1:
        value["value"] = bool(arg.number)
    elif arg.kind != Kind.NONE:
        value["value"] = arg.number
    return value


def load_launches(path: Path) -> tuple[Launch, ...]:
    """The launches of a file: one launch, a JSON list or NDJSON, plain or gzip.

    A value that wraps its launch under the key `launch` (a case, a recorded launch) counts as that launch.
    Raises `InvalidLaunch` with file, place and reason.
    """
    return tuple(_launches(path))


def _launches(path: Path) -> Iterator[Launch]:
    for place, value in read_many(path, InvalidLaunch):
        inner = value["launch"] if isinstance(value, dict) and "launch" in value else value
        yield located(f"{path}: {place}", lambda inner=inner: launch_from(inner))  # type: ignore[misc]
