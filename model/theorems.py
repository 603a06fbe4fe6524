"""The theorems of DESIGN.md section 5, each a premise and a conclusion over a scope.

A theorem is stated of a declared policy; `run` gives the answers of the code under proof, which for the zoo is
the policy itself and for a mutant is a policy with a planted fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import z3
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Strictness
from foldproof.model.rules import SOUND, Flaws, assumption_holds, conj, disj, source_admits
from foldproof.model.scope import Scope, same_class_launch
from foldproof.model.selection import Answer, answer, pass_of, picked
from foldproof.model.terms import Bool


@dataclass(frozen=True, slots=True)
class Setting:
    """What a theorem is stated about: a scope, the declared policy, the code that runs, an older policy for T09."""

    scope: Scope
    policy: Policy
    running: Policy
    flaws: Flaws = SOUND
    old: Policy | None = None
    _main: list[Answer] = field(default_factory=list, compare=False, repr=False)

    def run(self, order: Sequence[int] | None = None, scope: Scope | None = None) -> Answer:
        """The running code's answer over the candidates in `order`."""
        if order is None and scope is None:
            if not self._main:
                self._main.append(answer(self.scope, self.running, flaws=self.flaws))
            return self._main[0]
        return answer(scope or self.scope, self.running, order, self.flaws)

    def admits(self, index: int, strictness: Strictness) -> Bool:
        """The candidate is admissible by the declared policy's own rules of that strictness."""
        return self.scope.admits(index, self.policy.rules(strictness))

    def declared(self) -> Answer:
        """What the declared policy answers."""
        return answer(self.scope, self.policy)

    @property
    def indices(self) -> range:
        """The candidate indices."""
        return range(self.scope.size.candidates)


@dataclass(frozen=True, slots=True)
class Statement:
    """Premise and conclusion; the theorem holds if no well-formed scope meets the one and breaks the other.

    `removed` and `swapped`, one flag a candidate, say in a counterexample which change of the capture it needs.
    """

    premise: Bool
    conclusion: Bool
    also: Bool = field(default_factory=lambda: z3.BoolVal(True))
    """Further well-formedness: that of a second launch."""


def t01(s: Setting) -> Statement:
    """T01 folded-one-wins."""
    run, scope = s.run(), s.scope
    premise = disj(z3.And(s.admits(k, Strictness.GENERAL), scope.folds_every_one(k)) for k in s.indices)
    return Statement(premise, conj(z3.Implies(run.picks[i], z3.Not(_falls_back(scope, i))) for i in s.indices))


def _falls_back(scope: Scope, index: int) -> Bool:
    return disj(scope.reads_one(index))


def t02(s: Setting) -> Statement:
    """T02 exact-first."""
    run = s.run()
    exact = [s.admits(k, Strictness.EXACT) for k in s.indices]
    passes = zip(run.won, s.running.passes, strict=False)
    among_exact = disj(won for won, p in passes if p.rules == Strictness.EXACT)
    kept = [z3.Implies(run.picks[i], exact[i]) for i in s.indices]
    return Statement(disj(exact), z3.And(z3.Not(run.missing), z3.Implies(run.ambiguous, among_exact), *kept))


def t03(s: Setting) -> Statement:
    """T03 fallback-last."""
    run = s.run()
    premise = disj(z3.And(run.picks[i], _falls_back(s.scope, i)) for i in s.indices)
    stricter = [s.admits(k, strictness) for k in s.indices for strictness in (Strictness.EXACT, Strictness.GENERAL)]
    return Statement(premise, z3.Not(disj(stricter)))


def t04(s: Setting) -> Statement:
    """T04 guards-imply-assumptions."""
    run, args = s.run(), s.scope.launch.args
    kept = []
    for i in s.indices:
        candidate = s.scope.candidates[i]
        holds = conj(assumption_holds(a, p) for a, p in zip(args, candidate.places, strict=True))
        kept.append(z3.Implies(run.picks[i], z3.And(holds, z3.Not(candidate.extra), _consts_hold(s.scope, i))))
    return Statement(picked(run), conj(kept))


def _consts_hold(scope: Scope, index: int) -> Bool:
    pairs = zip(scope.launch.consts, scope.candidates[index].named, strict=True)
    return conj(wanted.same(present) for wanted, present in pairs)


def t05(s: Setting) -> Statement:
    """T05 loud-miss."""
    run = s.run()
    some = disj(term for row in s.declared().admissible for term in row.values())
    loud = z3.Implies(run.missing, z3.BoolVal(run.dumps))
    return Statement(z3.BoolVal(True), z3.And(run.missing == z3.Not(some), loud))


def _same_pass_and_ones(s: Setting, one: Answer, other: Answer) -> Bool:
    """Both miss, both are ambiguous, or both pick with the same pass and the same ones."""
    scope, parts = s.scope, [one.missing == other.missing, one.ambiguous == other.ambiguous]
    for i in one.picks:
        for k in other.picks:
            if i != k:
                passes = zip(pass_of(scope, s.policy, i), pass_of(scope, s.policy, k), strict=True)
                reads = zip(scope.reads_one(i), scope.reads_one(k), strict=True)
                alike = conj(a == b for a, b in (*passes, *reads))
                parts.append(z3.Implies(z3.And(one.picks[i], other.picks[k]), alike))
    return conj(parts)


def _swaps(s: Setting) -> list[Answer]:
    """The answers after each swap of neighbours; such swaps generate every order."""
    full = list(s.indices)
    return [s.run([*full[:i], full[i + 1], full[i], *full[i + 2 :]]) for i in range(len(full) - 1)]


def t06(s: Setting) -> Statement:
    """T06 order-independence of pass and ones."""
    return Statement(z3.BoolVal(True), conj(_same_pass_and_ones(s, s.run(), swapped) for swapped in _swaps(s)))


def t06v(s: Setting) -> Statement:
    """T06v order-independence of the variant."""
    run = s.run()
    same = [run.picks[i] == swapped.picks[i] for swapped in _swaps(s) for i in s.indices]
    return Statement(z3.BoolVal(True), conj(same))


def _without(s: Setting, index: int) -> Answer:
    return s.run([i for i in s.indices if i != index])


def t07(s: Setting) -> Statement:
    """T07 monotone: with candidate x the selection is no miss and in no later pass than without it."""
    run, parts, premises = s.run(), [], []
    for x in s.indices:
        before = _without(s, x)
        premises.append(picked(before))
        parts.append(z3.Implies(picked(before), z3.Not(run.missing)))
        for i in before.picks:
            for k in s.indices:
                later = _later(pass_of(s.scope, s.policy, k), pass_of(s.scope, s.policy, i))
                parts.append(z3.Not(z3.And(before.picks[i], run.picks[k], later)))
    return Statement(disj(premises), conj(parts))


def _later(one: Sequence[Bool], other: Sequence[Bool]) -> Bool:
    """The first pass is later than the second; no pass at all counts as the latest."""
    return disj(z3.And(one[a], other[b]) for a in range(len(one)) for b in range(a))


def t08(s: Setting) -> Statement:
    """T08 irrelevant-candidates."""
    run, parts = s.run(), []
    for x in s.indices:
        after = _without(s, x)
        parts += [z3.Implies(run.picks[i], after.picks[i]) for i in after.picks]
    return Statement(picked(run), conj(parts))


def t09(s: Setting) -> Statement:
    """T09 conservative-extension of an older policy."""
    served, run = _served_before(s), s.run()
    return Statement(disj(served.values()), conj(z3.Implies(served[i], run.picks[i]) for i in s.indices))


def t09c(s: Setting) -> Statement:
    """T09c conservative-extension of the pass: the same pass or an ambiguity, the same variant if it is alone."""
    served, run, parts = _served_before(s), s.run(), []
    for i in s.indices:
        passes = pass_of(s.scope, s.policy, i)
        same_pass = [
            z3.And(run.picks[k], a, b)
            for k in s.indices
            for a, b in zip(passes, pass_of(s.scope, s.policy, k), strict=True)
        ]
        rows = zip(passes[:3], (Strictness.EXACT, Strictness.GENERAL, Strictness.RUNTIME_ONE), strict=True)
        alone = conj(
            z3.Implies(a, z3.Not(disj(s.admits(k, strictness) for k in s.indices if k != i))) for a, strictness in rows
        )
        kept = z3.And(z3.Or(run.ambiguous, *same_pass), z3.Implies(alone, run.picks[i]))
        parts.append(z3.Implies(served[i], kept))
    return Statement(disj(served.values()), conj(parts))


def _served_before(s: Setting) -> dict[int, Bool]:
    """The old policy picks the candidate, and its source is not another than the launch's.

    Without the second half, T11 and T09 against an older policy that looks at no source would contradict.
    """
    if s.old is None:
        raise ValueError("T09 and T09c are about a pair of policies: give the older one")
    before, wanted = answer(s.scope, s.old), s.scope.launch.source
    return {i: z3.And(before.picks[i], source_admits(s.scope.candidates[i].source, wanted)) for i in s.indices}


def t10(s: Setting) -> Statement:
    """T10 logged-iff-fallback."""
    run = s.run()
    right = [z3.If(_falls_back(s.scope, i), run.lines[i] == 1, run.lines[i] == 0) for i in s.indices]
    return Statement(picked(run), conj(z3.Implies(run.picks[i], right[i]) for i in s.indices))


def t11(s: Setting) -> Statement:
    """T11 source."""
    run, wanted = s.run(), s.scope.launch.source
    kept = []
    for i in s.indices:
        own = s.scope.candidates[i].source
        other = z3.And(own.given, wanted.given, own.value != wanted.value)
        kept.append(z3.Implies(run.picks[i], z3.Not(other)))
    return Statement(z3.And(picked(run), wanted.given), conj(kept))


def t12(s: Setting) -> Statement:
    """T12 folded-over-nospec."""
    run, scope = s.run(), s.scope
    ones = [scope.ones(i) for i in s.indices]
    unfoldable = [scope.runtime_ones(i) - ones[i] for i in s.indices]
    kept = []
    for won, row in zip(run.won, run.admissible, strict=True):
        for i in s.indices:
            fewer = disj(z3.And(row[k], ones[k] == ones[i], z3.ULT(unfoldable[k], unfoldable[i])) for k in s.indices)
            kept.append(z3.Not(z3.And(won, run.picks[i], fewer)))
    return Statement(picked(run), conj(kept))


def t13(s: Setting) -> Statement:
    """T13 fewest-runtime-ones."""
    run, scope = s.run(), s.scope
    premise = disj(z3.And(run.picks[i], _falls_back(scope, i)) for i in s.indices)
    kept = []
    for i in s.indices:
        fewer = disj(
            z3.And(s.admits(k, Strictness.RUNTIME_ONE), z3.ULT(scope.ones(k), scope.ones(i))) for k in s.indices
        )
        kept.append(z3.Implies(z3.And(run.picks[i], _falls_back(scope, i)), z3.Not(fewer)))
    return Statement(premise, conj(kept))


def t14(s: Setting) -> Statement:
    """T14 no-free-constants."""
    run, clashes = s.run(), []
    for won, row in zip(run.won, run.admissible, strict=True):
        for i in s.indices:
            clashes += [z3.And(won, row[i], row[k], s.scope.differs_in_free(i, k)) for k in range(i)]
    return Statement(disj(clashes), run.ambiguous)


def t15(s: Setting) -> Statement:
    """T15 class-only: another launch of the same classes gets the same variant, pass and ones."""
    other, same = same_class_launch(s.scope)
    run, twin = s.run(), s.run(scope=other)
    parts = [run.missing == twin.missing, run.ambiguous == twin.ambiguous]
    for i in s.indices:
        passes = zip(pass_of(s.scope, s.policy, i), pass_of(other, s.policy, i), strict=True)
        reads = zip(s.scope.reads_one(i), other.reads_one(i), strict=True)
        alike = conj(a == b for a, b in (*passes, *reads))
        parts += [run.picks[i] == twin.picks[i], z3.Implies(run.picks[i], alike)]
    return Statement(same, conj(parts), same)


@dataclass(frozen=True, slots=True)
class Theorem:
    """A theorem: its id, its name, its sentence in English, and its statement."""

    id: str
    name: str
    sentence: str
    state: Callable[[Setting], Statement]
    pairwise: bool = False
    """Whether it is about a policy and an older one."""


def _theorem(id_: str, name: str, state: Callable[[Setting], Statement], sentence: str, pair: bool = False) -> Theorem:
    return Theorem(id_, name, sentence, state, pair)


THEOREMS: Mapping[str, Theorem] = {
    t.id: t
    for t in (
        _theorem(
            "T01",
            "folded-one-wins",
            t01,
            "If some candidate admissible by the general rules has every i32 1 of the launch folded, "
            "the selection reads no foldable 1.",
        ),
        _theorem(
            "T02",
            "exact-first",
            t02,
            "If some candidate matches exactly, the selection is an exact match, or is refused as ambiguous "
            "among exact matches.",
        ),
        _theorem(
            "T03",
            "fallback-last",
            t03,
            "A fallback is selected only when no candidate is admissible by the exact or general rules.",
        ),
        _theorem(
            "T04",
            "guards-imply-assumptions",
            t04,
            "Every assumption the selected variant was compiled under holds for the launch.",
        ),
        _theorem(
            "T05",
            "loud-miss",
            t05,
            "The outcome is missing exactly when no candidate is admissible in any pass of the policy; "
            "the error lists every arg and const.",
        ),
        _theorem(
            "T06", "order-independence", t06, "Reordering the candidates changes neither the pass nor the ones read."
        ),
        _theorem(
            "T06v", "order-independence-of-the-variant", t06v, "Reordering the candidates does not change the variant."
        ),
        _theorem(
            "T07",
            "monotone",
            t07,
            "Adding a candidate never turns a selection into a miss or moves it to a later pass "
            "(an ambiguity is no miss).",
        ),
        _theorem(
            "T08",
            "irrelevant-candidates",
            t08,
            "If a variant was selected, removing another candidate does not change the selection.",
        ),
        _theorem(
            "T09",
            "conservative-extension",
            t09,
            "Wherever the old policy selected a variant of no other source than the launch's, the new one selects "
            "the same variant.",
            True,
        ),
        _theorem(
            "T09c",
            "conservative-extension-of-the-pass",
            t09c,
            "Wherever the old policy selected a variant of no other source than the launch's, the new one selects in "
            "the same pass or refuses as ambiguous, and selects the same variant if it alone is admissible in "
            "that pass.",
            True,
        ),
        _theorem(
            "T10",
            "logged-iff-fallback",
            t10,
            "Each launch served by fallback is logged exactly once, naming the args read at run time; "
            "no other launch is.",
        ),
        _theorem("T11", "source", t11, "A variant from another source than the launch's is never selected."),
        _theorem(
            "T12",
            "folded-over-nospec",
            t12,
            "No candidate of the winning pass that reads as many foldable 1s reads fewer 1s through nospec or "
            "annotated params.",
        ),
        _theorem(
            "T13",
            "fewest-runtime-ones",
            t13,
            "A fallback reads no more foldable 1s than any other candidate that the runtime-one rules admit.",
        ),
        _theorem(
            "T14",
            "no-free-constants",
            t14,
            "Two admissible candidates of the winning pass that differ in a constant the launch names neither "
            "as const nor as arg are refused as ambiguous.",
        ),
        _theorem(
            "T15",
            "class-only",
            t15,
            "The selection (variant, pass, ones) depends only on each arg's class: type, is 1, multiple of 16 "
            "or aligned, allocation within 2^31 - 1 bytes.",
        ),
    )
}
"""The theorems by id, in the order of DESIGN.md."""

NEIGHBOURS: Mapping[str, str] = {
    "two-pass": "exact-first",
    "single-guard": "two-pass",
    "three-pass": "two-pass",
    "recommended": "three-pass",
}
"""The older policy that T09 and T09c are stated against when none is named."""
