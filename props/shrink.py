"""Structural shrinking: the smallest case for which a property still holds.

A step drops a candidate, an arg, a constant, an option or a switch, or makes a number plainer. Steps are tried
in that order until none helps, so the result is a fixed point and the same for the same start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from foldproof.impl.capture import Capture, Const, Variant
from foldproof.impl.cases import Case
from foldproof.impl.launch import Kind, Launch

OPTION_FIELDS = ("num_warps", "num_stages", "arch", "enable_fp_fusion", "source")
PLAINEST = {"num_warps": 4, "num_stages": 0}
_put = msgspec.structs.replace


def shrink(case: Case, still: Callable[[Case], bool], most: int = 5000) -> Case:
    """The smallest case reached in at most `most` trials for which `still` holds; `case` itself must hold."""
    trials = 0
    improved = True
    while improved and trials < most:
        improved = False
        for smaller in steps(case):
            trials += 1
            if still(smaller):
                case, improved = smaller, True
                break
            if trials >= most:
                break
    return case


def steps(case: Case) -> Iterator[Case]:
    """Every case one step smaller, the largest steps first."""
    kernels = case.capture.kernels
    for i in range(len(kernels)):
        if len(kernels) > 1:
            yield _put(case, capture=Capture((*kernels[:i], *kernels[i + 1 :])))
    for arg in case.launch.args:
        yield _without(case, arg.name)
    for name in case.launch.consts:
        yield _without(case, name)
    if case.before and case.before != (case.launch,):
        yield _put(case, before=())
    for field in OPTION_FIELDS:
        if getattr(case.launch, field) is not None:
            yield _with_launch(case, _put(case.launch, **{field: None}))
    for i, variant in enumerate(kernels):
        for smaller in _variant_steps(variant, {arg.name for arg in case.launch.args} | set(case.launch.consts)):
            yield _put(case, capture=Capture((*kernels[:i], smaller, *kernels[i + 1 :])))
    yield from _plainer_numbers(case)


def _with_launch(case: Case, launch: Launch) -> Case:
    before = tuple(launch if earlier == case.launch else earlier for earlier in case.before)
    return _put(case, launch=launch, before=before)


def _without(case: Case, name: str) -> Case:
    """The case without the arg or constant of that name, in the launch and in every variant."""
    kernels = []
    for variant in case.capture.kernels:
        params = tuple(param for param in variant.params if param.name != name)
        consts = {other: const for other, const in variant.consts.items() if other != name}
        kernels.append(_put(variant, params=params, consts=consts))
    launch = case.launch
    args = tuple(arg for arg in launch.args if arg.name != name)
    consts = {other: const for other, const in launch.consts.items() if other != name}
    return _with_launch(_put(case, capture=Capture(tuple(kernels))), _put(launch, args=args, consts=consts))


def _variant_steps(variant: Variant, named: set[str]) -> Iterator[Variant]:
    for field in OPTION_FIELDS:
        if getattr(variant, field) != PLAINEST.get(field):
            yield _put(variant, **{field: PLAINEST.get(field)})
    for name in variant.consts:
        if name not in named:
            yield _put(variant, consts={k: v for k, v in variant.consts.items() if k != name})
    for i, param in enumerate(variant.params):
        if param.name not in named:
            yield _put(variant, params=(*variant.params[:i], *variant.params[i + 1 :]))
        for switch in ("noalign", "annotated", "range32", "nospec", "div16"):
            if getattr(param, switch):
                plainer = _put(param, **{switch: False})
                yield _put(variant, params=(*variant.params[:i], plainer, *variant.params[i + 1 :]))
    ordered = tuple(sorted(variant.params, key=lambda param: param.name))
    if ordered != variant.params:
        yield _put(variant, params=ordered)


PLAIN_NUMBERS = {Kind.PTR: (0x1000, 0x1004), Kind.FP32: (0,), Kind.U1: (0,)}


def _plainer_numbers(case: Case) -> Iterator[Case]:
    launch = case.launch
    for i, arg in enumerate(launch.args):
        wanted = PLAIN_NUMBERS.get(arg.kind, (1, 7, 16) if arg.kind == Kind.I32 else (2**31, 2**63))
        plainer = wanted[: wanted.index(arg.number)] if arg.number in wanted else wanted
        replacements = [_put(arg, number=n) for n in plainer if arg.kind in PLAIN_NUMBERS or _fits(arg.kind, n)]
        if arg.bytes is not None:
            replacements.append(_put(arg, bytes=None))
        for other in replacements:
            yield _with_launch(case, _put(launch, args=(*launch.args[:i], other, *launch.args[i + 1 :])))
    for name, const in launch.consts.items():
        if const != Const(int_=64):
            kernels = tuple(_with_const(v, name, const) for v in case.capture.kernels)
            smaller = _put(case, capture=Capture(kernels))
            yield _with_launch(smaller, _put(launch, consts={**launch.consts, name: Const(int_=64)}))


def _fits(kind: Kind, number: int) -> bool:
    return {Kind.I32: number < 2**31, Kind.I64: 2**31 <= number < 2**63, Kind.U64: number >= 2**63}.get(kind, False)


def _with_const(variant: Variant, name: str, old: Const) -> Variant:
    if variant.consts.get(name) != old:
        return variant
    return _put(variant, consts={**variant.consts, name: Const(int_=64)})
