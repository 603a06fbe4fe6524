"""Aimed cases: one arg of a drawn class at a drawn place, and companions that let its variant win in a drawn pass."""

from __future__ import annotations

from foldproof.impl.capture import Capture, Const, Param, Variant
from foldproof.impl.cases import Case
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.props.classes import each_class, each_place
from foldproof.props.generate import FN, Choose, make_variant

_LOST = Arg("L", Kind.PTR, 0x1000, "*fp32"), Param("L", "*fp32", div16=False, nospec=False)
"""An aligned pointer that the variant does not use as such: no exact match any more."""
_ONE = Arg("N", Kind.I32, 1), Param("N", "i32", div16=False, nospec=False)
"""A foldable 1 that the variant reads: no match but by fallback."""
_COMPANIONS = ((), (_LOST,), (_ONE,), (_LOST, _ONE))


def aimed_case(choose: Choose, kinds: tuple[Kind, ...]) -> Case:
    """A case whose first args are in a drawn class, with a variant made for it and up to two others near it."""
    arg = choose([a for a in each_class() if a.kind in kinds])
    param, const = choose(list(each_place(arg)))
    companions = [pair for pair in choose(_COMPANIONS) if pair[0].kind in kinds]
    launch = Launch(FN, (arg, *(companion for companion, _ in companions)))
    params = tuple(p for p in (param, *(place for _, place in companions)) if p is not None)
    consts: dict[str, Const] = {} if const is None else {arg.name: const}
    kernels = [Variant(FN, choose("AZ"), 4, params, consts)]
    for mark in "MN"[: choose((0, 0, 1, 2))]:
        kernels.insert(choose(range(len(kernels) + 1)), make_variant(choose, launch, mark))
    return Case("aimed", Capture(tuple(kernels)), launch)
