"""Classes of args: what of a value a decision can depend on (T15), and the code of each class.

A class is an int's interval, whether it is a multiple of 16 and whether it is 1, or a pointer's alignment and
whether its allocation fits a range32 param. Only annotated params divide the number line into intervals, and
only range32 params look at sizes, so the classes are those that the candidates at hand can tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from foldproof.impl.capture import INT_TYPES, Const, Param
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.launch import INT_KINDS, Arg, Kind, Launch
from foldproof.impl.rules import RANGE32_BYTES, is_one

NARROWED = "int"
"""The kind of an arg shape whose launcher narrows: i32 where the value fits it, else i64, from 2^63 on u64."""

Codes: TypeAlias = npt.NDArray[np.uint8]
_I32, _I64, _U64 = (INT_TYPES[kind] for kind in INT_KINDS)
_NARROWED_SEGMENTS = (
    (_I64[0], _I32[0] - 1, Kind.I64),
    (*_I32, Kind.I32),
    (_I32[1] + 1, _I64[1], Kind.I64),
    (_I64[1] + 1, _U64[1], Kind.U64),
)


@dataclass(frozen=True, slots=True)
class ArgShape:
    """What every launch of a batch says of one arg: its name, its kind (or `NARROWED`), a pointer's type."""

    name: str
    kind: Kind | str
    pointee: str = ""

    def __post_init__(self) -> None:
        if self.kind != NARROWED and self.kind not in tuple(Kind):
            raise InvalidLaunch(f"{self.kind!r} is no kind of an arg", where=f"arg {self.name}", fix="see `Kind`")
        if (self.kind == Kind.PTR) != self.pointee.startswith("*"):
            fix = "a pointer, and nothing else, has a type that starts with '*'"
            raise InvalidLaunch(f"the type {self.pointee!r} does not fit", where=f"arg {self.name}", fix=fix)


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """What all launches of a batch share: everything but the numbers."""

    fn: str
    args: tuple[ArgShape, ...]
    consts: Mapping[str, Const]
    num_warps: int | None = None
    num_stages: int | None = None
    arch: str | None = None
    enable_fp_fusion: bool | None = None
    source: str | None = None

    @classmethod
    def of(cls, launch: Launch, narrow: bool = False) -> LaunchShape:
        """The shape of a launch; with `narrow` its int args take any value, typed as the launcher types it."""
        args = tuple(
            ArgShape(arg.name, NARROWED if narrow and arg.kind in INT_KINDS else arg.kind, arg.pointee)
            for arg in launch.args
        )
        options = (launch.num_warps, launch.num_stages, launch.arch, launch.enable_fp_fusion)
        return cls(launch.fn, args, launch.consts, *options, launch.source)

    def launch(self, args: Sequence[Arg]) -> Launch:
        """The launch of this shape with these args. Raises `InvalidLaunch` for a repeated name."""
        try:
            return Launch(
                self.fn,
                tuple(args),
                dict(self.consts),
                self.num_warps,
                self.num_stages,
                self.arch,
                self.enable_fp_fusion,
                self.source,
            )
        except ValueError as problem:
            raise InvalidLaunch(str(problem), where="the launch shape", fix="name each arg once") from None


@dataclass(frozen=True, slots=True)
class ArgClasses:
    """The classes of one arg. `representatives[code]` is an arg of class `code`.

    `cuts` are the lower ends of the intervals of an int arg, the lowest first; `low` and `high` what it can
    hold; `one` the code of an i32 or i64 of value 1, -1 where 1 is a value like others.
    """

    shape: ArgShape
    representatives: tuple[Arg, ...]
    cuts: tuple[int, ...] = ()
    low: int = 0
    high: int = 0
    one: int = -1
    sized: bool = False

    def __len__(self) -> int:
        return len(self.representatives)

    @property
    def ones(self) -> npt.NDArray[np.bool_]:
        """By code, whether the class is a 1 in the sense of the fold."""
        return np.array([is_one(arg) for arg in self.representatives])

    def encode(self, values: npt.NDArray[Any], sizes: npt.NDArray[Any] | None, out: Codes) -> None:
        """Write the class of each value into `out`; `sizes` are bytes, negative where the launch says none.

        Raises `InvalidLaunch` for values that the kind cannot hold, and for arrays of another kind.
        """
        kind = self.shape.kind
        if kind in (Kind.PTR, NARROWED, *INT_KINDS):
            self._check_ints(values)
            np.equal(values & 15, 0, out=out.view(np.bool_))
            for cut in self.cuts[1:]:
                out += (values >= cut).view(np.uint8) << 1
            if self.one >= 0:
                # Not a masked write: whether a value is 1 is chance, and a mispredicted branch costs ten additions.
                step = self.one - 2 * sum(cut <= 1 for cut in self.cuts[1:])
                out += (values == 1).view(np.uint8) * np.uint8(step)
            if self.sized and sizes is not None:
                out += ((sizes >= 0) & (sizes <= RANGE32_BYTES)).view(np.uint8) << 1
            return
        out[:] = 0
        if kind == Kind.U1 and values.dtype != np.bool_:
            raise self._invalid("a bool arg takes an array of bools")
        if kind == Kind.FP32 and values.dtype not in (np.float32, np.uint32):
            raise self._invalid("a float arg takes float32 values, or their bits as uint32")

    def _check_ints(self, values: npt.NDArray[Any]) -> None:
        if values.dtype.kind not in "iu":
            raise self._invalid(f"takes an array of integers, not {values.dtype}")
        if not values.size:
            return
        held = np.iinfo(values.dtype)
        if held.min < self.low and (least := int(values.min())) < self.low:
            raise self._invalid(f"{least} is no {self.shape.kind}")
        if held.max > self.high and (most := int(values.max())) > self.high:
            raise self._invalid(f"{most} is no {self.shape.kind}")

    def _invalid(self, why: str) -> InvalidLaunch:
        fix = "the launcher narrows: give each value under the kind that holds it, or use the kind NARROWED"
        return InvalidLaunch(why, where=f"arg {self.shape.name}", fix=fix)


def classes_of(shape: ArgShape, params: Sequence[Param]) -> ArgClasses:
    """The classes of an arg that `params`, the params of its name, can tell apart."""
    if shape.kind == Kind.PTR:
        return _pointer_classes(shape, any(param.range32 for param in params))
    if shape.kind == NARROWED or shape.kind in INT_KINDS:
        return _int_classes(shape, [INT_TYPES[param.type] for param in params if param.annotated])
    return ArgClasses(shape, (Arg(shape.name, Kind(shape.kind)),))


def _pointer_classes(shape: ArgShape, sized: bool) -> ArgClasses:
    known = (None, 4096) if sized else (None,)
    args = tuple(Arg(shape.name, Kind.PTR, number, shape.pointee, size) for size in known for number in (4104, 4096))
    return ArgClasses(shape, args, (0,), *_U64, sized=sized)


def _int_classes(shape: ArgShape, annotated: Sequence[tuple[int, int]]) -> ArgClasses:
    segments = _NARROWED_SEGMENTS if shape.kind == NARROWED else ((*INT_TYPES[shape.kind], Kind(shape.kind)),)
    low, high = segments[0][0], segments[-1][1]
    ends = {bottom for bottom, _, _ in segments} | {end for least, most in annotated for end in (least, most + 1)}
    cuts = tuple(sorted(cut for cut in ends if low <= cut <= high))
    args: list[Arg] = []
    for cut in cuts:
        kind = next(kind for bottom, top, kind in segments if bottom <= cut <= top)
        # Every cut is a multiple of 16 and every interval holds at least 128 values, so these two lie in it.
        args += [Arg(shape.name, kind, cut + 3), Arg(shape.name, kind, cut)]
    if shape.kind == Kind.U64:
        return ArgClasses(shape, tuple(args), cuts, low, high)
    one = Arg(shape.name, Kind.I32 if shape.kind == NARROWED else Kind(shape.kind), 1)
    return ArgClasses(shape, (*args, one), cuts, low, high, len(args))
