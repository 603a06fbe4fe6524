"""Launches derived from a capture's own variants: each variant's own launch, and the same with one assumption lost."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from foldproof.impl.capture import Capture, Consts, Param, Variant
from foldproof.impl.launch import Arg, Kind, Launch

KIND_OF = {"i32": Kind.I32, "i64": Kind.I64, "u64": Kind.U64, "fp32": Kind.FP32, "u1": Kind.U1}
OTHER = {Kind.I32: 7, Kind.I64: 2**31 + 1, Kind.U64: 2**63 + 1}
MULTIPLE_OF_16 = {Kind.I32: 48, Kind.I64: 2**31, Kind.U64: 2**63}
ALIGNED, UNALIGNED = 0x1000, 0x1004


class Derived(msgspec.Struct, frozen=True):
    """A derived launch: the index of the variant it comes from, and the assumption that was taken away."""

    variant: int
    launch: Launch
    lost: str = ""


def derive(capture: Capture) -> Iterator[Derived]:
    """Every launch that can be derived; a variant with a type that no arg has gives none."""
    for index, variant in enumerate(capture.kernels):
        folded = folded_names(capture, variant)
        args = [*(_own_arg(p) for p in variant.params), *(Arg(n, Kind.I32, 1) for n in folded)]
        if any(arg is None for arg in args):
            continue
        consts: Consts = {name: const for name, const in variant.consts.items() if name not in folded}
        options = {name: getattr(variant, name) or None for name in ("num_warps", "num_stages", "arch", "source")}
        known = [arg for arg in args if arg is not None]
        launch = Launch(variant.fn, tuple(known), consts, enable_fp_fusion=variant.enable_fp_fusion, **options)
        yield Derived(index, launch)
        for j, arg in enumerate(known):
            for lost, other in _losses(arg, variant.param(arg.name)):
                yield Derived(index, msgspec.structs.replace(launch, args=(*known[:j], other, *known[j + 1 :])), lost)


def folded_names(capture: Capture, variant: Variant) -> list[str]:
    """The constants of the variant that are folded args: int 1 here, and a param of another variant of the function.

    The format does not tell a folded arg from a constexpr of value 1; another variant that reads the name does.
    """
    read = {p.name for v in capture.kernels if v.fn == variant.fn for p in v.params}
    return [n for n, c in variant.consts.items() if c.kind == "int" and c.value == 1 and n in read]


def _own_arg(param: Param) -> Arg | None:
    """An arg for which the compiler would have made this param."""
    if param.type.startswith("*"):
        size = 4096 if param.range32 else None
        return Arg(param.name, Kind.PTR, ALIGNED if param.div16 else UNALIGNED, param.type, size)
    kind = KIND_OF.get(param.type)
    if kind is None and param.annotated:
        kind = Kind.I32
    if kind is None or kind in (Kind.FP32, Kind.U1):
        return None if kind is None else Arg(param.name, kind, 0)
    return Arg(param.name, kind, (MULTIPLE_OF_16 if param.div16 else OTHER)[kind])


def _losses(arg: Arg, param: Param | None) -> Iterator[tuple[str, Arg]]:
    """The arg with one assumption lost, or with the value 1 where the param reads it at run time."""
    if param is None:
        yield f"the fold of {arg.name}", msgspec.structs.replace(arg, number=OTHER[Kind.I32])
        return
    if param.div16 and arg.kind in (Kind.PTR, *OTHER):
        other = UNALIGNED if arg.kind == Kind.PTR else OTHER[arg.kind]
        yield f"div16 of {arg.name}", msgspec.structs.replace(arg, number=other)
    if arg.kind == Kind.I32:
        yield f"{arg.name} is 1", msgspec.structs.replace(arg, number=1)
