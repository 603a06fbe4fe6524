"""Launches as the arrays of foldproof_selector.h: NumPy dtypes equal to its structs, and the encoding into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
import numpy as np
from foldproof.impl.capture import Const
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.launch import Arg, Kind, Launch
from numpy.typing import NDArray

Records: TypeAlias = NDArray[Any]

ABI = 1
ABSENT = 0xFFFF_FFFF
UNWRITTEN = -(2**31)
KINDS = (Kind.I32, Kind.I64, Kind.U64, Kind.U1, Kind.FP32, Kind.NONE, Kind.PTR)
"""Arg kinds by their number in the header."""

STRING = np.dtype([("offset", "u4"), ("length", "u4")])
ARG = np.dtype(
    [
        ("number", "u8"),
        ("bytes", "u8"),
        ("name", "u4"),
        ("type", "u4"),
        ("kind", "u1"),
        ("has_bytes", "u1"),
        ("reserved", "u1", 6),
    ]
)
CONST = np.dtype([("value", "u8"), ("name", "u4"), ("kind", "u1"), ("reserved", "u1", 3)])
LAUNCH = np.dtype(
    [
        ("num_warps", "i8"),
        ("num_stages", "i8"),
        ("fn", "u4"),
        ("first_arg", "u4"),
        ("arg_count", "u4"),
        ("first_const", "u4"),
        ("const_count", "u4"),
        ("arch", "u4"),
        ("source", "u4"),
        ("enable_fp_fusion", "i4"),
    ]
)

_KIND_NUMBER = {kind: number for number, kind in enumerate(KINDS)}
_CONST_NUMBER = {"int": 0, "f32": 2, "bool": 3, "str": 4, "none": 5}
_UINT = 1
_MASK = 0xFFFF_FFFF_FFFF_FFFF


class Encoded(msgspec.Struct, frozen=True, eq=False):
    """Launches and the tables that they index, as `foldproof_batch` wants them. Encode once, decide often."""

    text: bytes
    strings: Records
    args: Records
    consts: Records
    launches: Records

    def __len__(self) -> int:
        return len(self.launches)

    @property
    def tables(self) -> tuple[bytes, Records, Records, Records, Records]:
        """The five tables in the order of `foldproof_batch`."""
        return self.text, self.strings, self.args, self.consts, self.launches


class _Strings(dict[str, int]):
    """Text to its string index."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number

    def tables(self) -> tuple[bytes, Records]:
        texts = [text.encode() for text in self]
        strings = np.zeros(len(texts), STRING)
        strings["length"] = [len(text) for text in texts]
        strings["offset"] = [0, *accumulate(len(text) for text in texts[:-1])][: len(texts)]
        return b"".join(texts), strings


class _Consts(dict[tuple[tuple[str, Const], ...], tuple[int, int]]):
    """The constants of a launch to their range in `rows`; launches that name the same ones share it."""

    def __init__(self, strings: _Strings) -> None:
        super().__init__()
        self.strings = strings
        self.rows: list[tuple[int, int, int, tuple[int, ...]]] = []

    def __missing__(self, consts: tuple[tuple[str, Const], ...]) -> tuple[int, int]:
        found = self[consts] = (len(self.rows), len(consts))
        for name, const in consts:
            value, kind = const.value, _CONST_NUMBER[const.kind]
            number = self.strings[value] if isinstance(value, str) else int(value)
            row_kind = _UINT if kind == 0 and number >= 2**63 else kind
            self.rows.append((number & _MASK, self.strings[name], row_kind, _ZEROS[:3]))
        return found


_ZEROS = (0,) * 6


def _too_big(what: str) -> InvalidLaunch:
    return InvalidLaunch(f"{what}, more than 64 bits hold", where="$", fix="say what hardware can have")


def encode(launches: Sequence[Launch]) -> Encoded:
    """The launches as records. Raises `InvalidLaunch` for a size or a pin that 64 bits do not hold."""
    strings = _Strings()
    records = np.zeros(len(launches), LAUNCH)
    fns, arg_lists, consts, warps, stages, arches, fusions, sources = _columns(launches, Launch)
    args = _encode_args([arg for args in arg_lists for arg in args], strings)
    records["fn"] = _numbered(fns, strings)
    counts = [len(args) for args in arg_lists]
    records["arg_count"] = counts
    records["first_arg"] = list(accumulate(counts, initial=0))[:-1]
    ranges = _Consts(strings)
    pairs = [ranges[tuple(named.items())] if named else (0, 0) for named in consts]
    records["first_const"], records["const_count"] = zip(*pairs, strict=True) if pairs else ((), ())
    try:
        records["num_warps"] = _or(warps, -1)
        records["num_stages"] = _or(stages, -1)
    except OverflowError:
        raise _too_big("num_warps or num_stages of a launch is") from None
    records["arch"] = [ABSENT if text is None else strings[text] for text in arches]
    records["source"] = [ABSENT if text is None else strings[text] for text in sources]
    records["enable_fp_fusion"] = _or(fusions, -1)
    return Encoded(*strings.tables(), args, np.array(ranges.rows, CONST), records)


def _columns(structs: Sequence[Launch] | Sequence[Arg], kind: type[Launch | Arg]) -> list[list[Any]]:
    """The fields of many structs, a list a field. Field by field: a tuple a struct keeps the garbage collector busy."""
    return [list(map(attrgetter(field), structs)) for field in kind.__struct_fields__]


def _encode_args(args: Sequence[Arg], strings: _Strings) -> Records:
    """Column by column: a launch at a time would take ten times as long."""
    records = np.zeros(len(args), ARG)
    names, kinds, numbers, pointees, sizes = _columns(args, Arg)
    records["name"] = _numbered(names, strings)
    records["kind"] = list(map(_KIND_NUMBER.__getitem__, kinds))
    is_pointer = records["kind"] == _KIND_NUMBER[Kind.PTR]
    records["type"] = ABSENT
    records["type"][is_pointer] = _numbered([pointee for pointee in pointees if pointee], strings)
    try:
        records["number"] = np.array(numbers, np.int64).view(np.uint64)
    except OverflowError:
        records["number"] = [number & _MASK for number in numbers]
    if sizes.count(None) < len(sizes):
        try:
            records["bytes"] = _or(sizes, 0)
        except OverflowError:
            raise _too_big("the bytes of an arg are") from None
        records["has_bytes"] = [size is not None for size in sizes]
    return records


def _numbered(texts: Sequence[str], strings: _Strings) -> list[int]:
    return list(map(strings.__getitem__, texts))


def _or(values: Sequence[Any], absent: int) -> list[int] | int:
    """The values, and `absent` for None; one number where all are None."""
    return [absent if value is None else value for value in values] if values.count(None) < len(values) else absent


def encode_family(template: Launch, numbers: NDArray[np.uint64]) -> Encoded:
    """Launches that differ from `template` in the numbers of its args: row i of `numbers` holds those of launch i.

    A number is 64 bits, as in the header: a negative int as two's complement. Nothing else is copied a launch.
    """
    if numbers.ndim != 2 or numbers.shape[1] != len(template.args):
        why = f"numbers has the shape {numbers.shape}, and the launch has {len(template.args)} args"
        raise InvalidLaunch(why, where="$.args", fix="give one column an arg")
    one = encode([template])
    count = len(numbers)
    args = np.tile(one.args, count)
    args["number"] = numbers.reshape(-1)
    records = np.repeat(one.launches, count)
    records["first_arg"] = np.arange(count, dtype=np.uint32) * np.uint32(len(template.args))
    return Encoded(one.text, one.strings, args, one.consts, records)


def launch_at(encoded: Encoded, position: int) -> Launch:
    """The launch at a position: `encode` undone."""

    def text(number: int) -> str:
        offset, length = encoded.strings[number].tolist()
        return encoded.text[offset : offset + length].decode()

    warps, stages, fn, first, count, first_const, const_count, arch, source, fusion = encoded.launches[
        position
    ].tolist()
    return Launch(
        text(fn),
        tuple(_arg_of(row, text) for row in encoded.args[first : first + count].tolist()),
        dict(_const_of(row, text) for row in encoded.consts[first_const : first_const + const_count].tolist()),
        num_warps=None if warps < 0 else warps,
        num_stages=None if stages < 0 else stages,
        arch=None if arch == ABSENT else text(arch),
        enable_fp_fusion=None if fusion < 0 else bool(fusion),
        source=None if source == ABSENT else text(source),
    )


def _arg_of(row: tuple[Any, ...], text: Callable[[int], str]) -> Arg:
    number, size, name, pointee, kind_number, has_bytes, _ = row
    kind = KINDS[kind_number]
    if kind in (Kind.I32, Kind.I64) and number >= 2**63:
        number -= 2**64
    pointer = kind == Kind.PTR
    return Arg(text(name), kind, number, text(pointee) if pointer else "", size if has_bytes else None)


def _const_of(row: tuple[Any, ...], text: Callable[[int], str]) -> tuple[str, Const]:
    value, name, kind, _ = row
    if kind in (0, _UINT):
        return text(name), Const(int_=value - 2**64 if kind == 0 and value >= 2**63 else value)
    made = {2: lambda: Const(f32=value), 3: lambda: Const(bool_=bool(value)), 4: lambda: Const(str_=text(value))}
    return text(name), made[kind]() if kind in made else Const(none=True)
