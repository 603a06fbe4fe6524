"""Plain cases: ints and pointers, fold, div16 and the switches, and nothing else that could refuse a candidate.

A case of `generate.make_case` often ends at an option or a constant; here the passes themselves decide.
"""

from __future__ import annotations

from foldproof.impl.capture import Capture, Const, Param, Variant
from foldproof.impl.cases import Case
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.props.generate import FN, Choose

POINTEE = "*bf16"
_INTS = (1, 1, 1, 7, 16)
_ADDRESSES = (0x1000, 0x1004)
_RARE = ("",) * 6 + ("nospec", "range32")
_INT_PLACES = ("runtime", "runtime", "div16", "folded", "folded", "nospec", "noalign", "annotated")


def plain_case(choose: Choose, kinds: tuple[Kind, ...]) -> Case:
    """Two to four candidates of one to four args, each int placed at random; for selectors that know ints."""
    usable = [kind for kind in (Kind.I32, Kind.I32, Kind.PTR) if kind in kinds]
    args = tuple(_arg(choose, f"{'RSTU'[place]}", choose(usable)) for place in range(choose((2, 2, 3, 3, 4, 1))))
    marks = list("ABCD"[: choose((2, 3, 3, 4))])
    kernels = []
    while marks:
        mark = choose(marks)
        marks.remove(mark)
        kernels.append(_variant(choose, mark, args))
    return Case("plain", Capture(tuple(kernels)), Launch(FN, args))


def _arg(choose: Choose, name: str, kind: Kind) -> Arg:
    if kind == Kind.PTR:
        return Arg(name, kind, choose(_ADDRESSES), POINTEE, choose((None, None, 4096)))
    return Arg(name, kind, choose(_INTS))


def _variant(choose: Choose, mark: str, args: tuple[Arg, ...]) -> Variant:
    params, consts = [], {}
    for arg in args:
        if arg.kind == Kind.PTR:
            rare = choose(_RARE)
            named = {"range32": True} if rare == "range32" else {}
            params.append(Param(arg.name, POINTEE, choose((False, True)), rare == "nospec", **named))
            continue
        place = choose(_INT_PLACES)
        if place == "folded":
            consts[arg.name] = Const(int_=1)
        else:
            switch = {place: True} if place in ("noalign", "annotated") else {}
            params.append(Param(arg.name, "i32", div16=place == "div16", nospec=place == "nospec", **switch))
    return Variant(FN, mark, 4, tuple(params), consts)
