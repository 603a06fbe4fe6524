"""What a capture leaves open: how launches of each function end under each policy, and what that hangs on.

A launch is order dependent if reversing the candidates changes its variant: a policy that takes the first (or last)
of several then takes another, and one that does not, does not. It has free constants if, with no constant named, two
admissible candidates of the winning pass differ in one (T14): what tells them apart is then up to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import msgspec
import numpy as np
from foldproof.impl.batch import AMBIGUOUS, MISSING, Verdicts, sweep
from foldproof.impl.batch.verdicts import BITS, Ints, keys_used, refusals_used, strictnesses, tie_break_rows
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.choose import KEYS, REFUSALS, TIE_BREAKS, ones_read
from foldproof.impl.launch import Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Rules, Strictness, is_one, named_const_refusal, refusal
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]
"""A row a variant, a column a launch."""
FREE = "free-constants"


class FunctionRow(msgspec.Struct, frozen=True):
    """The launches of one function under one policy: how many end in which way, and what they hang on.

    `exact`, `general` and `runtime_one` are selections by their strictness, `no_rules` those that meet none;
    `fallback` are the selections that read a foldable 1. `free_constants` counts launches without their constants.
    """

    policy: str
    fn: str
    variants: int
    launches: int
    exact: int
    general: int
    runtime_one: int
    no_rules: int
    ambiguous: int
    missing: int
    fallback: int
    order_dependent: int
    free_constants: int


class FunctionSummary(msgspec.Struct, frozen=True):
    """What one function can do, each with the policies under which it does."""

    fn: str
    falls_back: tuple[str, ...]
    order_dependent: tuple[str, ...]
    free_constants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Function:
    """The variants and launches of one function, and what the rules said of each pair so far.

    `some` are the pairs that some rules admit: few, so keys and traits are asked of those alone. `bare` are the
    launches without their constants, which are compared once and not for every set of rules.
    """

    fn: str
    variants: tuple[Variant, ...]
    launches: tuple[Launch, ...]
    bare: tuple[Launch, ...]
    bits: dict[Rules, Mask]
    some: Mask
    keys: dict[str, Ints]
    traits: dict[str, Ints]

    @classmethod
    def of(
        cls, fn: str, variants: tuple[Variant, ...], launches: tuple[Launch, ...], policies: Sequence[Policy]
    ) -> Self:
        """The function as the rules of these policies see it."""
        some = np.zeros((len(variants), len(launches)), np.bool_)
        bare = tuple(msgspec.structs.replace(launch, consts={}) for launch in launches)
        made = cls(fn, variants, launches, bare, {}, some, {}, {})
        for policy in policies:
            for strictness in strictnesses(policy):
                np.logical_or(some, made._admits(policy.rules(strictness)), out=some)
        return made

    def verdicts(self, policy: Policy) -> Verdicts:
        """The verdicts of a policy; what it shares with another is not asked again."""
        for key in keys_used(policy):
            if key not in self.keys:
                self.keys[key] = (
                    tie_break_rows(key, self.variants)
                    if key in TIE_BREAKS
                    else self._each(lambda i, j, of=KEYS[key]: of((i, self.variants[i]), self.launches[j]))  # type: ignore[misc]
                )
        for name in (*refusals_used(policy), FREE):
            if name not in self.traits:
                ids = _Ids(REFUSALS[name][1])
                self.traits[name] = self._each(lambda i, j, of=ids: of(self.variants[i], self.launches[j]))  # type: ignore[misc]
        bits = sum((self.bits[policy.rules(s)] * np.uint8(BITS[s]) for s in strictnesses(policy)), np.uint8(0))
        return Verdicts(np.asarray(bits, np.uint8), self.keys, self.traits)

    def _admits(self, rules: Rules) -> Mask:
        """Which pairs the rules admit, asked only where looser rules of the same dialect admit."""
        if rules not in self.bits:
            looser = _looser(rules)
            admits = np.zeros(self.some.shape, np.bool_)
            for i, j in np.argwhere(self._consts_fit() if looser == rules else self._admits(looser)).tolist():
                admits[i, j] = refusal(self.variants[i], self.bare[j], rules) is None
            self.bits[rules] = admits
        return self.bits[rules]

    def _consts_fit(self) -> Mask:
        """Which pairs the named constants leave open, whatever the rules: asked once a set of named constants."""
        groups: dict[bytes, list[int]] = {}
        for place, launch in enumerate(self.launches):
            groups.setdefault(msgspec.json.encode(launch.consts, order="deterministic"), []).append(place)
        fit = np.zeros(self.some.shape, np.bool_)
        for places in groups.values():
            named = self.launches[places[0]].consts.items()
            for i, variant in enumerate(self.variants):
                fit[i, places] = not any(named_const_refusal(c, variant.consts.get(name)) for name, c in named)
        return fit

    def _each(self, ask: Callable[[int, int], int]) -> Ints:
        found = np.zeros(self.some.shape, np.int32)
        for i, j in np.argwhere(self.some).tolist():
            found[i, j] = ask(i, j)
        return found


def _looser(rules: Rules) -> Rules:
    """The loosest rules that admit whatever these do: options and source not looked at, a 1 read at run time."""
    loosest = rules.strictness if rules.strictness == Strictness.LINKER else Strictness.RUNTIME_ONE
    return Rules(loosest, rules.public, options=False, source=False)


class _Ids:
    """Ids of a refusal's traits: equal where the traits are. Traits hold dicts, so their text is the key."""

    def __init__(self, trait: Callable[[Variant, Launch], Any]) -> None:
        self._trait = trait
        self._known: dict[bytes, int] = {}

    def __call__(self, variant: Variant, launch: Launch) -> int:
        text = msgspec.json.encode(self._trait(variant, launch), order="deterministic")
        return self._known.setdefault(text, len(self._known))


def landscape(
    capture: Capture,
    launches: Sequence[Launch],
    policies: Sequence[Policy],
    tick: Callable[[str], None] = lambda _: None,
) -> Iterator[FunctionRow]:
    """A row for each policy and function that has launches, functions in the order of the capture."""
    for fn in capture.functions:
        own = tuple(launch for launch in launches if launch.fn == fn)
        if own:
            variants = tuple(v for v in capture.kernels if v.fn == fn)
            of = _Function.of(fn, variants, own, policies)
            bare = _Function.of(fn, variants, _unnamed(own), policies)
            yield from (_row(of, bare, policy) for policy in policies)
            tick(fn)


def _unnamed(launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """The launches with no constant named, each once."""
    bare = (msgspec.structs.replace(launch, consts={}) for launch in launches)
    return tuple({msgspec.json.encode(launch): launch for launch in bare}.values())


def _row(of: _Function, bare: _Function, policy: Policy) -> FunctionRow:
    verdicts = of.verdicts(policy)
    picks, strictness = sweep(verdicts, policy)
    backwards, _ = sweep(_reversed(verdicts, of.variants), policy)
    turned = np.where(backwards >= 0, len(of.variants) - 1 - backwards, backwards)
    selected = picks >= 0
    exact, general, runtime_one, no_rules = (int((selected & (strictness == code)).sum()) for code in range(4))
    return FunctionRow(
        policy.name,
        of.fn,
        len(of.variants),
        len(of.launches),
        exact,
        general,
        runtime_one,
        no_rules,
        int((picks == AMBIGUOUS).sum()),
        int((picks == MISSING).sum()),
        _fallbacks(of, picks),
        int((selected & (picks != turned)).sum()),
        _open(bare.verdicts(policy), policy),
    )


def _reversed(verdicts: Verdicts, variants: Sequence[Variant]) -> Verdicts:
    """The verdicts of the same candidates in reverse order."""
    turned = tuple(reversed(variants))
    keys: Mapping[str, Ints] = {
        key: tie_break_rows(key, turned) if key in TIE_BREAKS else rows[::-1] for key, rows in verdicts.keys.items()
    }
    return replace(
        verdicts,
        bits=verdicts.bits[::-1],
        keys=keys,
        traits={name: rows[::-1] for name, rows in verdicts.traits.items()},
    )


def _fallbacks(of: _Function, picks: NDArray[np.int32]) -> int:
    """Selections that read a foldable 1."""
    return sum(
        pick >= 0 and any(map(is_one, launch.args)) and bool(ones_read(of.variants[pick], launch))
        for launch, pick in zip(of.launches, picks.tolist(), strict=True)
    )


def _open(verdicts: Verdicts, policy: Policy) -> int:
    """Launches of which two admissible candidates of the winning pass differ in a free constant."""
    traits = verdicts.traits[FREE]
    undecided, found = np.ones(verdicts.bits.shape[1], np.bool_), 0
    for step in policy.passes:
        admissible = ((verdicts.bits & BITS[step.rules]) != 0) & undecided
        most = np.where(admissible, traits, -1).max(axis=0)
        least = np.where(admissible, traits, np.iinfo(np.int32).max).min(axis=0)
        won = admissible.any(axis=0)
        found += int((won & (most != least)).sum())
        undecided &= ~won
    return found


def summaries(rows: Sequence[FunctionRow]) -> tuple[FunctionSummary, ...]:
    """What each function can do, in the order of the rows."""

    def under(fn: str, field: str) -> tuple[str, ...]:
        return tuple(row.policy for row in rows if row.fn == fn and getattr(row, field))

    return tuple(
        FunctionSummary(fn, under(fn, "fallback"), under(fn, "order_dependent"), under(fn, "free_constants"))
        for fn in dict.fromkeys(row.fn for row in rows)
    )
