"""A capture grows and shrinks while launches arrive: a selector with a memory agrees with a fresh one (T07 T08 T15)."""

from __future__ import annotations

import msgspec
import pytest
from foldproof.impl import ZOO, Capture, Kind, Launch, Policy, Selection, Variant, decide, load_policy
from foldproof.impl.errors import MissingTritonVariant
from foldproof.impl.rules import STRICTEST_FIRST
from foldproof.model.mutants import Mutant, mutants
from foldproof.props.generate import Shape, make_case, make_variant, seeded
from foldproof.props.memo import MemoSelector, Picked
from foldproof.props.mutants import decide_as
from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

MARKS = [f"h{number}" for number in range(8)]
SEEDS = st.integers(0, 2**16)
"""Candidates are made from a drawn seed: a draw for each of their choices would take ten times as long."""
NUMBERS = {Kind.I32: (1, 7, 16, 24, 2**31 - 1), Kind.PTR: (0x1000, 0x1008, 0x20)}
FEW = settings(
    max_examples=20,
    stateful_step_count=20,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def outcome_of(mutant: Mutant, variants: list[Variant], launch: Launch) -> Picked:
    return Picked.of(decide_as(mutant, Capture(tuple(variants)), launch))


class Growing(RuleBasedStateMachine):
    """One launch template; candidates made around it come and go; numbers of the launch change."""

    mutant: Mutant

    @initialize(seed=SEEDS)
    def start(self, seed: int) -> None:
        self.template = make_case(seeded(seed), Shape(candidates=1, args=3)).launch
        self.memo = MemoSelector(self.mutant.running)
        self.asked: list[Launch] = [self.template]

    @precondition(lambda self: len(self.memo.variants) < len(MARKS))
    @rule(seed=SEEDS, place=st.integers(0, 8))
    def grow(self, seed: int, place: int) -> None:
        held = {variant.hash for variant in self.memo.variants}
        choose = seeded(seed)
        variant = make_variant(choose, self.template, choose([mark for mark in MARKS if mark not in held]))
        before = [self._fresh(launch) for launch in self.asked] if held else []
        self.memo.add(variant, min(place, len(held)))
        for launch, old in zip(self.asked, before, strict=False):
            self._monotone(old, self._fresh(launch))

    @precondition(lambda self: len(self.memo.variants) > 1)
    @rule(place=st.integers(0, 8))
    def shrink(self, place: int) -> None:
        self.memo.remove(self.memo.variants[place % len(self.memo.variants)].hash)

    @rule(place=st.integers(0, 3), number=st.integers(0, 9))
    def launch(self, place: int, number: int) -> None:
        args = list(self.template.args)
        at = place % len(args)
        numbers = NUMBERS.get(args[at].kind, (args[at].number,))
        args[at] = msgspec.structs.replace(args[at], number=numbers[number % len(numbers)])
        self.template = msgspec.structs.replace(self.template, args=tuple(args))
        self.asked = [*self.asked[-5:], self.template]

    @invariant()
    def memory_and_fresh_selector_agree(self) -> None:
        for launch in self.asked if self.memo.variants else ():
            assert self._remembered(launch) == self._fresh(launch), launch

    @invariant()
    def note_how_it_ends(self) -> None:
        if self.memo.variants:
            picked = self._fresh(self.template)
            event(str(picked.strictness or picked.error))

    def _fresh(self, launch: Launch) -> Picked:
        return outcome_of(self.mutant, self.memo.variants, launch)

    def _remembered(self, launch: Launch) -> Picked:
        return self.memo.ask(launch)

    def _monotone(self, old: Picked, new: Picked) -> None:
        if not old.hash or not self.mutant.running.promised("T07"):
            return
        assert new.error != MissingTritonVariant.code
        if new.hash and old.strictness in STRICTEST_FIRST and new.strictness in STRICTEST_FIRST:
            assert STRICTEST_FIRST.index(new.strictness) <= STRICTEST_FIRST.index(old.strictness)


def machine(mutant: Mutant) -> type[Growing]:
    """The machine for a mutant, its memory filled by the mutant's own answers."""

    class Own(Growing):
        def _remembered(self, launch: Launch) -> Picked:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("foldproof.props.memo.decide", lambda capture, x, _: decide_as(mutant, capture, x))
                return self.memo.ask(launch)

    Own.mutant = mutant
    return Own


def sound(policy: Policy) -> Mutant:
    return Mutant("sound", "", policy)


@pytest.mark.parametrize("name", ZOO)
def test_a_memory_agrees_with_a_fresh_selector(name: str) -> None:
    run_state_machine_as_test(machine(sound(load_policy(name))), settings=FEW)


@pytest.mark.parametrize("flaw", ["second-best", "div16-weakened-to-8", "only-the-first-candidate"])
def test_a_fault_in_t07_t08_or_t15_is_seen(flaw: str) -> None:
    (mutant,) = mutants(load_policy("three-pass"), (flaw,))
    quick = settings(FEW, max_examples=400, phases=[Phase.generate], print_blob=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine(mutant), settings=quick)


def test_the_memory_is_used_and_forgets_no_more_than_it_must() -> None:
    choose, policy = seeded(3), load_policy("three-pass")
    cases = (make_case(choose) for _ in range(10_000))
    case = next(
        case
        for case in cases
        if len(case.capture.kernels) == 3
        and {v.fn for v in case.capture.kernels} == {"k"}
        and isinstance(decide(case.capture, case.launch, policy), Selection)
    )
    memo = MemoSelector(policy)
    for place, variant in enumerate(case.capture.kernels):
        memo.add(variant, place)
    picked = memo.ask(case.launch)
    assert picked.hash
    assert memo.ask(case.launch) is picked
    assert memo.decided == 1
    memo.remove(next(v.hash for v in case.capture.kernels if v.hash != picked.hash))
    assert memo.ask(case.launch) == picked
    assert memo.decided == 1
    memo.remove(picked.hash)
    memo.ask(case.launch)
    assert memo.decided == 2
