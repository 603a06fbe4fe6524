"""The messages of `foldproof-selector/1`: captures and launches out, greetings and answers in.

Structs in the shape of the JSON, not dicts, because 200,000 launches a second leave 5 microseconds for each.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from foldproof.impl.capture import Capture, Consts
from foldproof.impl.cases import capture_to
from foldproof.impl.errors import InvalidCapture, InvalidLaunch, one_line
from foldproof.impl.external.answers import Reply, SelectorError
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.impl.strictjson import NOT_JSON

PROTOCOL = "foldproof-selector/1"
WINDOW = 1024
"""How many launches may be without an answer at once."""


class Hello(msgspec.Struct, frozen=True, tag="hello", tag_field="type"):
    """A selector's greeting; without `kinds` it knows all."""

    protocol: Literal["foldproof-selector/1"]
    name: str
    kinds: tuple[Kind, ...] = tuple(Kind)


class _Bare(msgspec.Struct, gc=False):
    name: str
    kind: Kind


class _Int(msgspec.Struct, gc=False):
    name: str
    kind: Kind
    value: int


class _Bits(msgspec.Struct, gc=False):
    name: str
    kind: Kind
    bits: int


class _Pointer(msgspec.Struct, gc=False, omit_defaults=True):
    name: str
    kind: Kind
    type: str
    addr: str
    bytes: int | None = None


_Arg: TypeAlias = _Bare | _Int | _Bits | _Pointer


class WireLaunch(msgspec.Struct, gc=False, omit_defaults=True):
    """A launch in the shape of its JSON."""

    fn: str
    args: list[_Arg]
    consts: Consts
    num_warps: int | None = None
    num_stages: int | None = None
    arch: str | None = None
    enable_fp_fusion: bool | None = None
    source: str | None = None


class _LaunchMessage(msgspec.Struct, gc=False, tag="launch", tag_field="type"):
    id: int
    capture: int
    launch: WireLaunch | msgspec.Raw


_INTS = frozenset({Kind.I32, Kind.I64, Kind.U64})
_I32, _PTR = Kind.I32, Kind.PTR
_ENCODER = msgspec.json.Encoder()


def _wire_arg(arg: Arg) -> _Arg:
    kind = arg.kind
    if kind == Kind.FP32:
        return _Bits(arg.name, kind, arg.number)
    if kind == Kind.NONE:
        return _Bare(arg.name, kind)
    return _Int(arg.name, kind, bool(arg.number) if kind == Kind.U1 else arg.number)


def wire_launch(launch: Launch) -> WireLaunch:
    """The launch in the shape of its JSON. Raises `InvalidLaunch` for a number that 64 bits do not hold."""
    args: list[_Arg] = []
    for arg in launch.args:
        kind = arg.kind
        if kind is _I32:
            args.append(_Int(arg.name, kind, arg.number))
        elif kind is _PTR:
            args.append(_Pointer(arg.name, kind, arg.pointee, hex(arg.number), arg.bytes))
            if arg.bytes is not None and arg.bytes >= 2**64:
                raise _too_big(f"arg {arg.name!r} has {arg.bytes} bytes")
        else:
            args.append(_wire_arg(arg))
    warps, stages = launch.num_warps, launch.num_stages
    if (warps is not None and warps >= 2**63) or (stages is not None and stages >= 2**63):
        raise _too_big(f"num_warps is {warps} and num_stages {stages}")
    fusion, arch, source = launch.enable_fp_fusion, launch.arch, launch.source
    return WireLaunch(launch.fn, args, launch.consts, warps, stages, arch, fusion, source)


def _too_big(what: str) -> InvalidLaunch:
    return InvalidLaunch(f"{what}, more than 64 bits hold", where="$", fix="say what hardware can have")


def launch_text(launch: Launch) -> bytes:
    """The JSON text of a launch: `launch_from` of it is the launch again. Raises `InvalidLaunch` as above."""
    return _ENCODER.encode(wire_launch(launch))


def kernels_text(capture: Capture) -> bytes:
    """The JSON text of a capture's `kernels`: what selection reads, defaults left out.

    Raises `InvalidCapture` for a number of a variant that 63 bits do not hold.
    """
    for position, variant in enumerate(capture.kernels):
        numbers = (variant.num_warps, variant.num_stages, variant.num_ctas, variant.shared)
        if max(*numbers, variant.global_scratch, variant.global_align, variant.profile_scratch) >= 2**63:
            why = "a number of the variant is more than 63 bits hold"
            raise InvalidCapture(why, where=f"kernels[{position}]", fix="check the capture's generator")
    return _ENCODER.encode(capture_to(capture)["kernels"])


def capture_message(number: int, kernels: bytes) -> bytes:
    """The line that gives a capture its number."""
    return b'{"type":"capture","id":%d,"kernels":%b}\n' % (number, kernels)


def launch_messages(first: int, capture: int, launches: list[WireLaunch | msgspec.Raw]) -> bytes:
    """The lines that ask for launches, numbered upwards from `first`."""
    lines = [_LaunchMessage(number, capture, launch) for number, launch in enumerate(launches, first)]
    return _ENCODER.encode_lines(lines)


def hello_from(line: bytes) -> Hello:
    """A greeting. Raises `SelectorError` for any other line."""
    try:
        return msgspec.json.decode(line, type=Hello)
    except NOT_JSON as problem:
        shown = one_line(line[:200].decode("utf-8", "replace"))
        why = f"its first line is no greeting ({one_line(str(problem))}): {shown}"
        raise SelectorError(why, fix="see docs/reference/protocol.md") from None


_REPLIES = msgspec.json.Decoder(Reply)


def replies_from(lines: bytes | bytearray) -> list[Reply]:
    """The answers in whole lines. Raises one of `NOT_JSON` if one of them is none."""
    return _REPLIES.decode_lines(lines)


def contradiction(reply: Reply) -> str:
    """Why an answer that has the right types is none all the same, "" if it is one."""
    if reply.pick is None:
        return "" if reply.error is not None else "it holds neither a pick nor an error"
    return "" if reply.error is None else "it holds both a pick and an error"
