"""The theorems of docs/reference/theorems.md as formulas: each a premise and a conclusion over a world.

A theorem is stated of a declared policy; `run` gives the answers of the code under proof, which for the zoo is
the policy itself and for a mutant is a policy with a planted fault. `model.theorems` has the sentences.

Longer than 250 lines because the theorems are read side by side, one function each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import z3
from foldproof.impl.policy import Policy
from foldproof.impl.rules import STRICTEST_FIRST, Strictness
from foldproof.model.rules import conj, disj
from foldproof.model.selection import Answer, answer, pass_is, picked
from foldproof.model.terms import Bool
from foldproof.model.world import SOUND, Flaws, Index, Order, Predicate, World


@dataclass(frozen=True, slots=True)
class Setting:
    """What a theorem is stated about: a world, the declared policy, the code that runs, an older policy for T09."""

    world: World
    policy: Policy
    running: Policy
    flaws: Flaws = SOUND
    old: Policy | None = None
    _main: list[Answer] = field(default_factory=list, compare=False, repr=False)

    def run(self) -> Answer:
        """The running code's answer to the world as it stands."""
        if not self._main:
            self._main.append(self.rerun())
        return self._main[0]

    def rerun(self, order: Order | None = None, world: World | None = None) -> Answer:
        """The running code's answer over another order or in another world."""
        return answer(world or self.world, self.running, order, self.flaws)

    def admits(self, index: Index, strictness: Strictness) -> Bool:
        """The candidate is in the capture and admissible by the declared policy's own rules."""
        return z3.And(self.world.order.holds(index), self.world.admits(index, self.policy.rules(strictness)))

    def always(self, antecedent: Predicate, consequent: Predicate) -> Bool:
        """Of every candidate the one implies the other."""
        return self.world.forall(lambda i: z3.Implies(antecedent(i), consequent(i)))


@dataclass(frozen=True, slots=True)
class Statement:
    """Premise and conclusion; the theorem holds if nothing well-formed meets the one and breaks the other."""

    premise: Bool
    conclusion: Bool


TRUE = z3.BoolVal(True)


def t01(s: Setting) -> Statement:
    """T01 folded-one-wins."""
    w, run = s.world, s.run()
    premise = w.exists(lambda k: z3.And(s.admits(k, Strictness.GENERAL), w.folds_every_one(k)))
    return Statement(premise, s.always(run.picks, lambda i: z3.Not(w.falls_back(i))))


def t02(s: Setting) -> Statement:
    """T02 exact-first: an ambiguity is among exact matches if all that its pass admits are."""
    run = s.run()

    def is_exact(i: Index) -> Bool:
        return s.admits(i, Strictness.EXACT)

    # Of an exact pass that is known, and the proof needs no quantifier for it.
    passes = zip(run.won, run.admissible, s.running.passes, strict=False)
    among_exact = disj(
        won if sweep.rules == Strictness.EXACT else z3.And(won, s.always(row, is_exact)) for won, row, sweep in passes
    )
    kept = s.always(run.picks, is_exact)
    premise = s.world.exists(lambda k: s.admits(k, Strictness.EXACT))
    return Statement(premise, z3.And(z3.Not(run.missing), z3.Implies(run.ambiguous, among_exact), kept))


def t03(s: Setting) -> Statement:
    """T03 fallback-last, as: where a candidate is admissible without a fallback, the selection is none."""
    w, run = s.world, s.run()
    stricter = (Strictness.EXACT, Strictness.GENERAL)
    premise = w.exists(lambda k: disj(s.admits(k, one) for one in stricter))
    return Statement(premise, s.always(run.picks, lambda i: z3.Not(w.falls_back(i))))


def t04(s: Setting) -> Statement:
    """T04 guards-imply-assumptions."""
    run = s.run()
    return Statement(picked(s.world, run), s.always(run.picks, s.world.assumptions_hold))


def t05(s: Setting) -> Statement:
    """T05 loud-miss."""
    run, declared = s.run(), answer(s.world, s.policy)
    loud = z3.Implies(run.missing, z3.BoolVal(run.dumps))
    return Statement(TRUE, z3.And(run.missing == declared.missing, loud))


def t06(s: Setting) -> Statement:
    """T06 order-independence of the outcome, the pass and the ones."""
    run = s.run()
    return Statement(TRUE, conj(_same_pass_and_ones(s, run, s.rerun(order)) for order in s.world.other_orders()))


def _same_pass_and_ones(s: Setting, one: Answer, other: Answer) -> Bool:
    """Both miss, both are ambiguous, or both pick with the same pass and the same ones."""
    w = s.world

    def alike(i: Index, k: Index) -> Bool:
        passes = zip(pass_is(w, s.policy, i), pass_is(w, s.policy, k), strict=True)
        return z3.And(w.same_reads(i, k), *(a == b for a, b in passes))

    both = w.forall(lambda i: w.forall(lambda k: z3.Implies(z3.And(one.picks(i), other.picks(k)), alike(i, k))))
    return z3.And(one.missing == other.missing, one.ambiguous == other.ambiguous, both)


def t06v(s: Setting) -> Statement:
    """T06v order-independence of the variant."""
    run = s.run()
    others = [s.rerun(order) for order in s.world.other_orders()]
    return Statement(TRUE, s.world.forall(lambda i: conj(run.picks(i) == other.picks(i) for other in others)))


def t07(s: Setting) -> Statement:
    """T07 monotone: with any candidate x the selection is no miss and in no later pass than without it."""
    w, run, premises, parts = s.world, s.run(), [], []
    for x in w.any_candidate():
        before = s.rerun(w.order.without(x))

        premises.append(picked(w, before))
        parts.append(z3.Implies(picked(w, before), z3.Not(run.missing)))
        parts.append(_in_no_later_pass(s, before, run))
    return Statement(disj(premises), conj(parts))


def _in_no_later_pass(s: Setting, before: Answer, after: Answer) -> Bool:
    w = s.world

    def kept(i: Index, k: Index) -> Bool:
        later = _later(pass_is(w, s.policy, k), pass_is(w, s.policy, i))
        return z3.Not(z3.And(before.picks(i), after.picks(k), later))

    return w.forall(lambda i: w.forall(lambda k: kept(i, k)))


def _later(one: tuple[Bool, ...], other: tuple[Bool, ...]) -> Bool:
    """The first pass is later than the second; no pass at all counts as the latest."""
    return disj(z3.And(one[a], other[b]) for a in range(len(one)) for b in range(a))


def t08(s: Setting) -> Statement:
    """T08 irrelevant-candidates."""
    w, run, parts = s.world, s.run(), []
    for x in w.any_candidate():
        order = w.order.without(x)
        parts.append(_stays(s, order, run, s.rerun(order)))
    return Statement(picked(w, run), conj(parts))


def _stays(s: Setting, order: Order, before: Answer, after: Answer) -> Bool:
    return s.always(order.holds, lambda i: z3.Implies(before.picks(i), after.picks(i)))


def t09(s: Setting) -> Statement:
    """T09 conservative-extension of an older policy."""
    served = _served_before(s)
    return Statement(s.world.exists(served), s.always(served, s.run().picks))


def t09c(s: Setting) -> Statement:
    """T09c conservative-extension of the pass: the same pass or an ambiguity, the same variant if it is alone."""
    w, served, run = s.world, _served_before(s), s.run()

    def kept(i: Index) -> Bool:
        passes = pass_is(w, s.policy, i)

        def picks_in_the_pass(k: Index) -> Bool:
            pairs = zip(passes, pass_is(w, s.policy, k), strict=True)
            return z3.And(run.picks(k), *(a == b for a, b in pairs))

        def is_alone(strictness: Strictness) -> Bool:
            return w.forall(lambda k: z3.Or(w.equal(i, k), z3.Not(s.admits(k, strictness))))

        named = zip(passes[:3], STRICTEST_FIRST, strict=True)
        alone = conj(z3.Implies(is_it, is_alone(strictness)) for is_it, strictness in named)
        return z3.And(z3.Or(run.ambiguous, w.exists(picks_in_the_pass)), z3.Implies(alone, run.picks(i)))

    return Statement(w.exists(served), s.always(served, kept))


def _served_before(s: Setting) -> Predicate:
    """The old policy picks the candidate, and its source is not another than the launch's.

    Without the second half, T11 and T09 against an older policy that looks at no source would contradict.
    """
    if s.old is None:
        raise ValueError("T09 and T09c are about a pair of policies: give the older one")
    before = answer(s.world, s.old)
    return lambda i: z3.And(before.picks(i), z3.Not(s.world.other_source(i)))


def t10(s: Setting) -> Statement:
    """T10 logged-iff-fallback."""
    w, run = s.world, s.run()
    return Statement(picked(w, run), s.always(run.picks, lambda i: z3.If(w.falls_back(i), run.once(i), run.silent(i))))


def t11(s: Setting) -> Statement:
    """T11 source."""
    w, run = s.world, s.run()
    premise = z3.And(picked(w, run), w.exists(w.other_source))
    return Statement(premise, s.always(run.picks, lambda i: z3.Not(w.other_source(i))))


def t12(s: Setting) -> Statement:
    """T12 folded-over-nospec."""
    w, run = s.world, s.run()

    def fewer(i: Index, k: Index) -> Bool:
        return z3.And(w.ones(k) == w.ones(i), w.less(w.unfoldable_ones(k), w.unfoldable_ones(i)))

    def none_reads_fewer(i: Index) -> Bool:
        def in_row(row: Predicate) -> Bool:
            return w.forall(lambda k: z3.Not(z3.And(row(k), fewer(i, k))))

        return conj(z3.Implies(won, in_row(row)) for won, row in zip(run.won, run.admissible, strict=True))

    return Statement(picked(w, run), s.always(run.picks, none_reads_fewer))


def t13(s: Setting) -> Statement:
    """T13 fewest-runtime-ones."""
    w, run = s.world, s.run()

    def falls_back(i: Index) -> Bool:
        return z3.And(run.picks(i), w.falls_back(i))

    def reads_fewest(i: Index) -> Bool:
        return s.always(lambda k: s.admits(k, Strictness.RUNTIME_ONE), lambda k: z3.Not(w.less(w.ones(k), w.ones(i))))

    return Statement(picked(w, run), s.always(falls_back, reads_fewest))


def t14(s: Setting) -> Statement:
    """T14 no-free-constants."""
    w, run = s.world, s.run()

    def differ(row: Predicate) -> Bool:
        return w.exists(lambda i: w.exists(lambda k: z3.And(row(i), row(k), w.differs_in_free(i, k))))

    premise = disj(z3.And(won, differ(row)) for won, row in zip(run.won, run.admissible, strict=True))
    return Statement(premise, run.ambiguous)


def t15(s: Setting) -> Statement:
    """T15 class-only: another launch of the same classes gets the same outcome, variant, pass and ones."""
    w = s.world
    other, same = w.same_class_launch()
    run, twin = s.run(), s.rerun(world=other)

    def alike(i: Index) -> Bool:
        passes = zip(pass_is(w, s.policy, i), pass_is(other, s.policy, i), strict=True)
        return z3.And(w.same_reads(i, i, other), *(a == b for a, b in passes))

    picks = w.forall(lambda i: z3.And(run.picks(i) == twin.picks(i), z3.Implies(run.picks(i), alike(i))))
    return Statement(same, z3.And(run.missing == twin.missing, run.ambiguous == twin.ambiguous, picks))
