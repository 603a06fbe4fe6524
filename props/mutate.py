"""Launches near a launch: other numbers of every class, and one structural change each.

Numbers are drawn as whole arrays, for the batch reference and the C interface; structural changes one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
from foldproof.impl.capture import Capture, Const
from foldproof.impl.launch import INT_KINDS, Arg, Kind, Launch
from foldproof.props.generate import CONSTS, POINTERS, SIZES, Choose
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.uint64]
"""A row a launch, a column an arg: 64 bits each, negative ints as two's complement (`records.encode_family`)."""

_put = msgspec.structs.replace
_MASK = 2**64 - 1


def _palette(numbers: Sequence[int]) -> Numbers:
    return np.array([number & _MASK for number in numbers], np.uint64)


PALETTES: Mapping[Kind, Numbers] = {
    # 1 as often as all else together: it is what folding, nospec and fallbacks turn on.
    Kind.I32: _palette(
        (*[1] * 16, 7, 7, 16, 16, 16, 0, -32, 8, -1, 2, 17, 127, 128, 255, 32768, 65536, 2**31 - 1, -(2**31))
    ),
    Kind.I64: _palette((1, 1, 2**31, 2**31 + 1, 2**40, 2**32 + 8, -(2**63), 2**63 - 1, -(2**31) - 1, 16, 0)),
    Kind.U64: _palette((1, 1, 2**63, 2**63 + 1, 2**64 - 1, 2**63 + 8, 16, 7, 0)),
    Kind.PTR: _palette((0x1000, 0x1000, 0x1000, 0x1004, 0x1008, 0x8000000000000010, 0x10, 0, 2**64 - 1)),
    Kind.FP32: _palette((0x3F800000, 0x80000000, 0, 1, 0x7FC00001)),
    Kind.U1: _palette((0, 1)),
    Kind.NONE: _palette((0,)),
}
"""The numbers that tell rules apart, by kind: classes of T15, borders of annotated types, multiples of 8 but not 16."""


def rows(draw: np.random.Generator, launch: Launch, count: int) -> Numbers:
    """`count` rows of numbers around those of the launch; the first row is the launch itself.

    A launch of many args keeps most of them, or hardly any row would fit a variant.
    """
    own = _palette([arg.number for arg in launch.args])
    if not len(own):
        return np.zeros((1, 0), np.uint64)
    numbers = np.tile(own, (count, 1))
    changes = draw.random(numbers.shape) < max(0.1, min(0.6, 2 / len(own)))
    changes[0] = False
    for column, arg in enumerate(launch.args):
        drawn = PALETTES[arg.kind][draw.integers(0, len(PALETTES[arg.kind]), count)]
        np.copyto(numbers[:, column], drawn, where=changes[:, column])
    return numbers


def launch_of_row(template: Launch, row: Sequence[int]) -> Launch:
    """The launch that a row of numbers stands for."""
    args = tuple(
        Arg(arg.name, arg.kind, _number(arg.kind, number), arg.pointee, arg.bytes)
        for arg, number in zip(template.args, row, strict=True)
    )
    return _put(template, args=args)


def _number(kind: Kind, number: int) -> int:
    return number - 2**64 if number >= 2**63 and kind in (Kind.I32, Kind.I64) else number


Change: TypeAlias = Callable[[Choose, Capture, Launch], Launch | None]
"""One structural change; None where the launch has nothing to change."""


def structural(choose: Choose, capture: Capture, launch: Launch, count: int) -> tuple[Launch, ...]:
    """Up to `count` launches with one structural change each."""
    made = (choose(CHANGES)(choose, capture, launch) for _ in range(count))
    return tuple(other for other in made if other is not None)


def _with_arg(launch: Launch, place: int, arg: Arg) -> Launch:
    return _put(launch, args=(*launch.args[:place], arg, *launch.args[place + 1 :]))


def _drop_arg(choose: Choose, _: Capture, launch: Launch) -> Launch | None:
    if not launch.args:
        return None
    gone = choose(range(len(launch.args)))
    return _put(launch, args=(*launch.args[:gone], *launch.args[gone + 1 :]))


def _add_arg(choose: Choose, _: Capture, launch: Launch) -> Launch | None:
    names = {arg.name for arg in launch.args} | set(launch.consts)
    return None if "extra" in names else _put(launch, args=(*launch.args, Arg("extra", Kind.I32, choose((1, 7)))))


def _turn_args(choose: Choose, _: Capture, launch: Launch) -> Launch | None:
    if len(launch.args) < 2:
        return None
    start = choose(range(1, len(launch.args)))
    return _put(launch, args=(*launch.args[start:], *launch.args[:start]))


def _other_kind(choose: Choose, _: Capture, launch: Launch) -> Launch | None:
    if not launch.args:
        return None
    place = choose(range(len(launch.args)))
    arg = launch.args[place]
    if choose((False, False, False, True)):
        return _with_arg(launch, place, Arg(arg.name, Kind.NONE))
    if arg.kind == Kind.PTR:
        return _with_arg(launch, place, _put(arg, pointee=choose(POINTERS)))
    if arg.kind in INT_KINDS:
        number = arg.number if 0 <= arg.number < 2**31 else choose((1, 16))
        return _with_arg(launch, place, Arg(arg.name, choose(INT_KINDS), number))
    return _with_arg(launch, place, Arg(arg.name, Kind.U1, 1))


def _other_size(choose: Choose, _: Capture, launch: Launch) -> Launch | None:
    pointers = [place for place, arg in enumerate(launch.args) if arg.kind == Kind.PTR]
    if not pointers:
        return None
    place = choose(pointers)
    return _with_arg(launch, place, _put(launch.args[place], bytes=choose(SIZES)))


def _other_const(choose: Choose, _: Capture, launch: Launch) -> Launch | None:
    if not launch.consts:
        return None
    name = choose(list(launch.consts))
    return _put(launch, consts={**launch.consts, name: choose(CONSTS)})


def _drop_const(choose: Choose, _: Capture, launch: Launch) -> Launch | None:
    if not launch.consts:
        return None
    gone = choose(list(launch.consts))
    return _put(launch, consts={name: const for name, const in launch.consts.items() if name != gone})


def _name_const(choose: Choose, capture: Capture, launch: Launch) -> Launch | None:
    """Name a constant that a candidate has: by its own value, or by that of another kind or number."""
    named = {arg.name for arg in launch.args} | set(launch.consts)
    found = [pair for v in capture.kernels if v.fn == launch.fn for pair in v.consts.items() if pair[0] not in named]
    if not found:
        return None
    name, const = choose(found)
    return _put(launch, consts={**launch.consts, name: choose((const, const, other_kind(const), *CONSTS))})


def other_kind(const: Const) -> Const:
    """A constant of the same value under another kind, where there is one."""
    if const.kind == "int" and const.value in (0, 1):
        return Const(bool_=bool(const.value))
    if const.kind in ("bool", "f32"):
        return Const(int_=int(const.value))
    return Const(none=True)


def _pin(choose: Choose, capture: Capture, launch: Launch) -> Launch | None:
    field = choose(("num_warps", "num_stages", "arch", "enable_fp_fusion", "source"))
    known: list[Any] = [getattr(v, field) for v in capture.kernels if v.fn == launch.fn]
    other = {"num_warps": 2, "num_stages": 7, "arch": "sm_1", "enable_fp_fusion": False, "source": "none such"}
    return _put(launch, **{field: choose((*known, None, other[field]))})


def _other_fn(_: Choose, capture: Capture, launch: Launch) -> Launch | None:
    others = [fn for fn in capture.functions if fn != launch.fn]
    return _put(launch, fn=others[0] if others else "absent")


CHANGES: tuple[Change, ...] = (
    _drop_arg,
    _add_arg,
    _turn_args,
    _other_kind,
    _other_kind,
    _other_size,
    _other_const,
    _drop_const,
    _name_const,
    _name_const,
    _pin,
    _pin,
    _other_fn,
)
"""The structural changes, the telling ones twice."""
