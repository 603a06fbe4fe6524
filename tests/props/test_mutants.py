"""Every planted fault is caught by the campaign, or the model says that there is nothing to catch."""

from __future__ import annotations

import pytest
from foldproof.impl import ZOO, load_policy
from foldproof.impl import rules as impl_rules
from foldproof.impl.select import decide
from foldproof.model.mutants import IN_THE_CODE, Mutant, mutants
from foldproof.props.mutants import FLAWS, decide_as, planted
from foldproof.props.mutation import EQUIVALENT, MutationScore, hunt, score
from foldproof.props.rounds import Kind, Source

THREE_PASS = load_policy("three-pass")


def test_each_fault_of_the_model_is_built_into_the_reference() -> None:
    assert list(FLAWS) == list(IN_THE_CODE)


def test_a_fault_is_there_only_while_the_mutant_decides() -> None:
    before = {name: getattr(impl_rules, name) for name in dir(impl_rules)}
    for name in FLAWS:
        with planted(Mutant(name, "", THREE_PASS, frozenset({name}))):
            pass
        assert {name: getattr(impl_rules, name) for name in dir(impl_rules)} == before
    with pytest.raises(KeyError), planted(Mutant("", "", THREE_PASS, frozenset({"div16-ignored", "no such fault"}))):
        pass
    assert {name: getattr(impl_rules, name) for name in dir(impl_rules)} == before


def test_a_mutant_without_a_fault_is_the_reference() -> None:
    source, sound = Source.of(frozenset(Kind)), Mutant("sound", "", THREE_PASS)
    for number in range(6):
        of = source.round(1, number)
        for launch in of.others:
            assert decide_as(sound, of.capture, launch) == decide(of.capture, launch, THREE_PASS)


def test_the_mutants_of_three_pass_are_all_caught_or_explained() -> None:
    found = score(THREE_PASS)
    missed = [row.mutant for row in found.rows if not row.caught]
    assert missed == ["bare-miss"]
    assert [row.theorem for row in found.rows if not row.caught] == ["T05"]
    assert found.real == len(found.rows) == len(list(mutants(THREE_PASS)))
    assert all(row.variants <= 3 and row.args <= 3 for row in found.rows)
    assert str(found) == "48 of 49 mutants caught by the campaign; 1 of the other 1 explained"


def test_a_mutant_that_is_none_has_the_models_word() -> None:
    policy = load_policy("exact-first")
    (mutant,) = mutants(policy, ("log-dropped",))
    row = hunt(policy, mutant, seconds=0.5)
    assert not row.caught
    assert row.why.startswith(EQUIVALENT)
    assert MutationScore((row,)).real == 0


def test_a_mutant_that_is_only_missed_is_not_explained() -> None:
    (mutant,) = mutants(THREE_PASS, ("last-match",))
    row = hunt(THREE_PASS, mutant, seconds=0)
    assert not row.caught
    assert not row.explained


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ZOO if name != "three-pass"])
def test_the_mutants_of_every_policy_are_caught_or_explained(name: str) -> None:
    found = score(load_policy(name))
    assert [row.mutant for row in found.rows if not row.explained] == []
    assert found.caught > len(found.rows) / 2
