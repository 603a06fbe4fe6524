"""Cases that reach the interesting classes on purpose: fold x div16 x switches x alignment, several ones, mixed
pointers, free constants, options and sources.

`make_case` asks a `Choose` for every decision and puts the plainest option first, so that Hypothesis shrinks it
well and a seeded generator drives it fast.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from foldproof.impl.capture import Capture, Const, Consts, Param, Variant
from foldproof.impl.cases import Case
from foldproof.impl.launch import Arg, Kind, Launch

T = TypeVar("T")
Choose: TypeAlias = Callable[[Sequence[Any]], Any]
"""Picks one of several options."""

FN = "k"
POINTERS = ("*bf16", "*fp32", "*i32")
INTS: tuple[tuple[Kind, int], ...] = (
    *((Kind.I32, value) for value in (1, 1, 1, 1, 1, 1, 1, 7, 16, 0, -32, 2**31 - 1, -(2**31))),
    *((Kind.I64, value) for value in (2**31, 1, 2**40, -(2**63))),
    *((Kind.U64, value) for value in (2**63, 1, 16, 2**64 - 1)),
)
"""Int args, the most telling first: 1, other, a multiple of 16, and the borders of each kind."""
ADDRESSES = (0x1000, 0x1004, 0x8000000000000010, 0)
SIZES = (None, 4096, 2**31 - 1, 2**31)
CONSTS = (Const(int_=64), Const(int_=1), Const(bool_=True), Const(f32=0x3F800000), Const(str_="x"), Const(none=True))


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a case may be, and which arg kinds it may use."""

    candidates: int = 4
    args: int = 4
    kinds: tuple[Kind, ...] = tuple(Kind)


def make_case(choose: Choose, shape: Shape = Shape(), name: str = "generated") -> Case:
    """A valid case whose candidates are made around its launch, so that many are admissible."""
    args = [
        _arg(choose, f"{'RSTUVWXYZ'[j % 9]}{j if j > 8 else ''}", shape)
        for j in range(choose(range(1, shape.args + 1)))
    ]
    named: Consts = {"BLOCK": choose(CONSTS)} if choose((False, True)) else {}
    options = {
        "num_warps": choose((None, None, None, 4, 8)),
        "num_stages": choose((None, None, None, 2)),
        "arch": choose((None, None, None, "sm_90")),
        "enable_fp_fusion": choose((None, None, None, True)),
        "source": choose((None, None, "a")),
    }
    launch = Launch(FN, tuple(args), named, **options)
    count = choose(range(1, shape.candidates + 1))
    hashes = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count])
    kernels = []
    for _ in range(count):
        mark = choose(hashes)
        hashes.remove(mark)
        kernels.append(make_variant(choose, launch, mark))
    return Case(name, Capture(tuple(kernels)), launch, (launch,) if choose((False, False, True)) else ())


def _arg(choose: Choose, name: str, shape: Shape) -> Arg:
    families = [Kind.I32, Kind.I32, Kind.PTR, Kind.PTR, Kind.FP32, Kind.U1, Kind.NONE, Kind.I64, Kind.U64]
    kind = choose([k for k in families if k in shape.kinds])
    if kind == Kind.PTR:
        return Arg(name, kind, choose(ADDRESSES), choose(POINTERS), choose(SIZES))
    if kind == Kind.FP32:
        return Arg(name, kind, choose((0x3F800000, 0x80000000, 0)))
    if kind == Kind.U1:
        return Arg(name, kind, choose((1, 0)))
    if kind == Kind.NONE:
        return Arg(name, kind)
    return Arg(name, kind, choose([value for k, value in INTS if k == kind]))


def make_variant(choose: Choose, launch: Launch, mark: str) -> Variant:
    """A variant of the hash `mark` that was compiled for something near the launch."""
    params: list[Param] = []
    consts: Consts = {}
    for arg in launch.args:
        place = _place(choose, arg)
        if isinstance(place, Param):
            params.append(place)
        elif place is not None:
            consts[arg.name] = place
    for name, wanted in launch.consts.items():
        const = choose((wanted, wanted, wanted, wanted, *CONSTS, None))
        if const is not None:
            consts[name] = const
    if (free := choose((None, None, None, Const(int_=2), Const(none=True)))) is not None:
        consts["FREE"] = free
    if choose((False,) * 15 + (True,)):
        params.append(Param("extra", "i32", div16=False, nospec=False))
    if choose((False, True)):
        params.reverse()
    return Variant(
        choose((FN,) * 15 + ("other",)),
        mark,
        choose((4, 4, 8)),
        tuple(params),
        consts,
        num_stages=choose((0, 0, 2, 3)),
        arch=choose((None, None, None, "sm_90", "sm_121")),
        enable_fp_fusion=choose((None, None, True, False)),
        source=choose((None, None, "a", "b")),
    )


def compiled_place(arg: Arg) -> Param | Const:
    """How the compiler would place the arg: 1 folded, div16 where it holds, None as a none constant."""
    if arg.kind == Kind.NONE:
        return Const(none=True)
    if arg.kind == Kind.I32 and arg.number == 1:
        return Const(int_=1)
    return Param(arg.name, arg.type, div16=arg.kind not in (Kind.FP32, Kind.U1) and arg.number % 16 == 0, nospec=False)


def _place(choose: Choose, arg: Arg) -> Param | Const | None:
    own_type = "i32" if arg.kind == Kind.NONE else arg.type

    def param(type_name: str = own_type, *, div16: bool = False, **switches: bool) -> Param:
        return Param(arg.name, type_name, div16=div16, nospec=switches.pop("nospec", False), **switches)

    aligned = arg.number % 16 == 0
    is_int = arg.kind in (Kind.I32, Kind.I64, Kind.U64)
    usual: list[Param | Const | None] = [*([compiled_place(arg)] * 6), *([param()] * 5)]
    rare: list[Param | Const | None] = [
        param(div16=True),
        param(nospec=True),
        param(nospec=True, div16=aligned),
        param(noalign=True),
        param(range32=True, div16=aligned),
        param("*fp16" if arg.kind == Kind.PTR else "fp64", div16=aligned),
        Const(int_=1),
        Const(none=True),
        Const(bool_=True),
        Const(int_=2),
        None,
    ]
    if is_int:
        rare += [param(t, annotated=True, div16=aligned) for t in ("i32", "i64", "u64", "i8")]
        rare.append(param("i64" if own_type == "i32" else "i32"))
    return choose(usual + rare) if choose((False, False, False, True)) else choose(usual)  # type: ignore[no-any-return]


def seeded(seed: int) -> Choose:
    """Choices from a seed: the same seed makes the same cases on every machine."""
    generator = random.Random(seed)  # noqa: S311 (no secret)
    return lambda options: options[int(generator.random() * len(options))]
