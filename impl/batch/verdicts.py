"""Verdicts: what the rules and the scores of a policy say of candidates, as arrays over launches.

Rows are candidates in candidate order, columns launches (or classes, or one column where nothing varies).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from foldproof.impl.capture import Variant
from foldproof.impl.choose import KEYS, REFUSALS, TIE_BREAKS
from foldproof.impl.errors import InvalidPolicy
from foldproof.impl.launch import Arg, Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import STRICTEST_FIRST, Strictness, arg_refusal, refusal

BITS: Mapping[Strictness, int] = {strictness: 1 << place for place, strictness in enumerate(Strictness)}
"""The bit of each strictness in a verdict: set where its rules admit the candidate."""

ADDITIVE = ("fewest-ones", "fewest-runtime-ones", "most-assumptions", "fewest-assumptions", "most-held", "fewest-held")
"""Keys whose value for a launch is the sum of their values for its args: those that can be tabled by arg."""

SERVED_REFUSALS = ("free-constants", "warps-and-stages", "launch-options", "twins")
"""Refusals whose trait depends on nothing of a launch but its names."""

Bits: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """`bits` by `BITS`; `keys` what each key of the policy says (the least wins); `traits` ids of what each
    refusal compares, equal where the traits are. Each array has a row a candidate; one column broadcasts.
    """

    bits: Bits
    keys: Mapping[str, Ints]
    traits: Mapping[str, Ints]

    def columns(self, which: npt.NDArray[np.intp]) -> Verdicts:
        """The verdicts of some launches, rows contiguous (which `[:, which]` would not leave them)."""

        def cut(array: Ints) -> Ints:
            return array if array.shape[1] == 1 else array.take(which, axis=1)

        return Verdicts(self.bits.take(which, axis=1), _map(self.keys, cut), _map(self.traits, cut))


def _map(arrays: Mapping[str, Ints], change: Callable[[Ints], Ints]) -> dict[str, Ints]:
    return {name: change(array) for name, array in arrays.items()}


def check_servable(policy: Policy) -> None:
    """Raise `InvalidPolicy` by name for what the batch reference cannot decide; the whole zoo it can."""
    for position, sweep in enumerate(policy.passes):
        where = f"{policy.name}: $.pass[{position}]"
        fix = "use impl.select.decide, which decides one launch at a time"
        for key in sweep.choose:
            if key not in TIE_BREAKS and key not in ADDITIVE:
                raise InvalidPolicy(f"the batch reference cannot decide the key {key!r}", where=where, fix=fix)
        for name in sweep.refuse:
            if name not in SERVED_REFUSALS:
                raise InvalidPolicy(f"the batch reference cannot decide the refusal {name!r}", where=where, fix=fix)


def strictnesses(policy: Policy) -> tuple[Strictness, ...]:
    """Those that its passes test and those that name the strictness of a selection."""
    tested = {sweep.rules for sweep in policy.passes} | set(STRICTEST_FIRST)
    return tuple(strictness for strictness in Strictness if strictness in tested)


def keys_used(policy: Policy) -> tuple[str, ...]:
    """The keys of the policy, each once. "first" needs no array: rows are in candidate order."""
    return tuple(dict.fromkeys(key for sweep in policy.passes for key in sweep.choose if key != "first"))


def refusals_used(policy: Policy) -> tuple[str, ...]:
    """The refusals of the policy, each once."""
    return tuple(dict.fromkeys(name for sweep in policy.passes for name in sweep.refuse))


def verdicts_of(variants: Sequence[Variant], launches: Sequence[Launch], policy: Policy) -> Verdicts:
    """The verdicts of every variant on every launch, each asked of `impl.rules` and `impl.choose`.

    Trait ids and hash ranks are comparable among all of `variants`, so that rows can be gathered into captures.
    """
    check_servable(policy)
    bits = [[_bits(refusal(v, x, policy.rules(s)) is None for s in Strictness) for x in launches] for v in variants]
    keys = {key: _key_rows(key, variants, launches) for key in keys_used(policy)}
    traits = {name: trait_ids(name, variants, launches) for name in refusals_used(policy)}
    return Verdicts(np.array(bits, np.uint8).reshape(len(variants), len(launches)), keys, traits)


def arg_bits(variants: Sequence[Variant], args: Sequence[Arg], policy: Policy) -> Bits:
    """What the rules say of one arg alone: a column each of `args`."""
    rows = [
        [
            _bits(
                arg_refusal(arg, v.param(arg.name), v.consts.get(arg.name), policy.rules(s)) is None for s in Strictness
            )
            for arg in args
        ]
        for v in variants
    ]
    return np.array(rows, np.uint8).reshape(len(variants), len(args))


def arg_scores(key: str, variants: Sequence[Variant], args: Sequence[Arg]) -> Ints:
    """What one arg adds to an additive key."""
    return _key_rows(key, variants, [Launch("", (arg,)) for arg in args])


def tie_break_rows(key: str, variants: Sequence[Variant]) -> Ints:
    """The rank of each candidate under a tie-break, in one column."""
    if key == "hash":
        ranks = {text: rank for rank, text in enumerate(sorted({v.hash for v in variants}))}
        return _column(ranks[v.hash] for v in variants)
    return _column(KEYS[key]((i, v), Launch("", ())) for i, v in enumerate(variants))


def trait_ids(name: str, variants: Sequence[Variant], launches: Sequence[Launch]) -> Ints:
    """Ids of the traits that a refusal compares: equal where, and only where, the traits are equal.

    Only which constants are free depends on the launch; every other trait fills one column.
    """
    trait = REFUSALS[name][1]
    if name != "free-constants":
        launches = [Launch("", ())]
    known: dict[Any, int] = {}
    rows = [[known.setdefault(_hashable(trait(v, launch)), len(known)) for launch in launches] for v in variants]
    return np.array(rows, np.int32).reshape(len(variants), len(launches))


def _hashable(trait: Any) -> Any:
    """The trait with its dicts as sets of items: equal where, and only where, the traits are."""
    if isinstance(trait, dict):
        return frozenset((name, _hashable(value)) for name, value in trait.items())
    return tuple(map(_hashable, trait)) if isinstance(trait, tuple) else trait


def _key_rows(key: str, variants: Sequence[Variant], launches: Sequence[Launch]) -> Ints:
    if key in TIE_BREAKS:
        return tie_break_rows(key, variants)
    rows = [[KEYS[key]((i, v), launch) for launch in launches] for i, v in enumerate(variants)]
    return np.array(rows, np.int32).reshape(len(variants), len(launches))


def _bits(admits: Iterable[bool]) -> int:
    return sum(1 << place for place, admitted in enumerate(admits) if admitted)


def _column(values: Iterable[int]) -> Ints:
    return np.array(list(values), np.int32).reshape(-1, 1)
