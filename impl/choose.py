"""What a pass prefers among its admissible candidates, and what it refuses as ambiguous.

Each key maps one candidate to a number or text; the least wins, key by key, and what still ties goes to the
earlier candidate. Names are those of the policy language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from foldproof.impl.capture import Const, Param, Variant
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.impl.rules import has_alignment, is_foldable_one, is_one

Candidate: TypeAlias = tuple[int, Variant]
"""A candidate: its index in the capture, and the variant."""


def ones_read(variant: Variant, launch: Launch) -> tuple[str, ...]:
    """The foldable 1s that the variant reads at run time, in launch order (*ones*)."""
    params = {param.name: param for param in variant.params}
    return tuple(a.name for a in launch.args if a.name in params and is_foldable_one(a, params[a.name]))


def runtime_ones(variant: Variant, launch: Launch) -> int:
    """How many 1s the variant reads at all, through nospec and annotated params too."""
    read = {param.name for param in variant.params}
    return sum(is_one(arg) and arg.name in read for arg in launch.args)


def assumptions(variant: Variant, launch: Launch) -> int:
    """How many assumptions the variant makes about the args: folded ints and div16 params."""
    params = {param.name: param for param in variant.params}
    return sum(
        params[arg.name].div16 and has_alignment(arg) if arg.name in params else is_folded(variant, arg)
        for arg in launch.args
    )


def is_folded(variant: Variant, arg: Arg) -> bool:
    """Whether the variant holds the arg as a folded 1."""
    return folds(arg, variant.consts.get(arg.name))


def folds(arg: Arg, const: Const | None) -> bool:
    """Whether the constant is the arg folded: an i32 1 on an int 1."""
    return is_one(arg) and const is not None and const.kind == "int" and const.value == 1


def is_held(arg: Arg, param: Param | None, const: Const | None) -> bool:
    """Whether `most-held` and `least-held` count the arg: placed as the compiler would place it."""
    if param is None:
        return folds(arg, const)
    aligned = arg.number % 16 == 0
    if arg.kind == Kind.I32:
        return (param.nospec or arg.number != 1) and param.div16 == (aligned and not param.nospec)
    if arg.kind in (Kind.PTR, Kind.U64):
        return param.div16 == aligned
    return arg.kind == Kind.FP32


def held(variant: Variant, launch: Launch) -> int:
    """How many args the variant holds."""
    params = {param.name: param for param in variant.params}
    return sum(is_held(arg, params.get(arg.name), variant.consts.get(arg.name)) for arg in launch.args)


KEYS: Mapping[str, Callable[[Candidate, Launch], Any]] = {
    "first": lambda candidate, _: candidate[0],
    "last": lambda candidate, _: -candidate[0],
    "hash": lambda candidate, _: candidate[1].hash,
    "fewest-ones": lambda candidate, launch: len(ones_read(candidate[1], launch)),
    "fewest-runtime-ones": lambda candidate, launch: runtime_ones(candidate[1], launch),
    "most-assumptions": lambda candidate, launch: -assumptions(candidate[1], launch),
    "fewest-assumptions": lambda candidate, launch: assumptions(candidate[1], launch),
    "most-held": lambda candidate, launch: -held(candidate[1], launch),
    "fewest-held": lambda candidate, launch: held(candidate[1], launch),
}
TIE_BREAKS = frozenset({"first", "last", "hash"})
"""Keys that tell candidates apart without preferring one for what it assumes: no part of the score."""


def best(candidates: Sequence[Candidate], choose: Sequence[str], launch: Launch) -> Candidate:
    """The candidate that the keys prefer; ties go to the earlier."""
    return min(candidates, key=lambda c: (_score(c, choose, launch), c[0]))


def best_scored(candidates: Sequence[Candidate], choose: Sequence[str], launch: Launch) -> list[Candidate]:
    """The candidates whose score is the least, tie-breaks left aside."""
    keys = [key for key in choose if key not in TIE_BREAKS]
    scores = [_score(c, keys, launch) for c in candidates]
    least = min(scores)
    return [c for c, score in zip(candidates, scores, strict=True) if score == least]


def _score(candidate: Candidate, keys: Sequence[str], launch: Launch) -> list[Any]:
    return [KEYS[key](candidate, launch) for key in keys]


def _free_constants(variant: Variant, launch: Launch) -> dict[str, Any]:
    named = {arg.name for arg in launch.args} | set(launch.consts)
    return {name: const for name, const in variant.consts.items() if name not in named}


def _identity(variant: Variant, _: Launch) -> tuple[Any, Any]:
    return {param.name: param for param in variant.params}, variant.consts


REFUSALS: Mapping[str, tuple[bool, Callable[[Variant, Launch], Any], bool]] = {
    # name: (among the best-scored only, what is compared, whether difference or equality is ambiguous)
    "free-constants": (False, _free_constants, True),
    "warps-and-stages": (False, lambda variant, _: (variant.num_warps, variant.num_stages), True),
    "launch-options": (True, lambda variant, _: variant.options, True),
    "twins": (True, _identity, False),
}
"""The refusals of the policy language. The trait of each is compared between pairs of candidates."""


def ambiguous(
    name: str, admissible: Sequence[Candidate], scored: Sequence[Candidate], launch: Launch
) -> list[Candidate]:
    """The candidates between which the refusal `name` finds no ground to choose; empty if it finds none.

    A trait that must not differ names the first candidate and all that differ from it; one that must not be
    shared names all that share it with another.
    """
    best_only, trait, refuses_difference = REFUSALS[name]
    group = scored if best_only else admissible
    traits = [trait(variant, launch) for _, variant in group]
    if refuses_difference:
        differing = [c for c, t in zip(group, traits, strict=True) if t != traits[0]]
        return [group[0], *differing] if differing else []
    return [c for c, t in zip(group, traits, strict=True) if traits.count(t) > 1]
