"""Rounds are reproducible, varied, and answered by the batch reference as `decide` answers them."""

from __future__ import annotations

import numpy as np
import pytest
from foldproof.impl import Capture, InvalidCapture, Kind, Selection, Variant, decide, load_capture, load_policy
from foldproof.impl.external.records import encode, launch_at
from foldproof.props.coverage import Coverage, possible, table, visited
from foldproof.props.drive import joined
from foldproof.props.rounds import ROWS, Source, own_case
from foldproof.props.selector_campaign import Part, compared
from foldproof.props.verdict_arrays import of_outcomes, reference
from helpers import capture, param, shared, variant

EVERY = frozenset(Kind)
POLICIES = ("three-pass", "recommended", "linker-order", "most-held", "exact-pinned")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_reference_of_a_round_is_decide(policy: str) -> None:
    rules, source = load_policy(policy), Source.of(EVERY)
    for number in range(45):
        of = source.round(3, number)
        wanted = of_outcomes([decide(of.capture, launch, rules) for launch in of.launches()], rules)
        given = reference(of, rules)
        assert given.picks.tolist() == wanted.picks.tolist()
        assert given.passes.tolist() == wanted.passes.tolist()
        assert given.logs.tolist() == wanted.logs.tolist()


def test_a_round_is_a_function_of_seed_and_number() -> None:
    one, other = Source.of(EVERY).round(5, 17), Source.of(EVERY).round(5, 17)
    assert (one.capture, one.template, one.others) == (other.capture, other.template, other.others)
    assert np.array_equal(one.numbers, other.numbers)
    assert Source.of(EVERY).round(6, 17).capture != one.capture


def test_a_launch_of_a_round_is_the_same_however_it_is_asked_for() -> None:
    of = Source.of(EVERY).round(0, 2)
    assert [of.launch(place) for place in range(len(of))] == list(of.launches())
    assert of.launch(0) == of.template


def test_rounds_use_only_the_kinds_that_the_selector_knows() -> None:
    source = Source.of(frozenset({Kind.I32, Kind.PTR}))
    known = {arg.kind for number in range(30) for arg in source.round(1, number).template.args}
    assert known == {Kind.I32, Kind.PTR}


def test_rounds_of_a_real_capture_take_it_whole_and_in_parts() -> None:
    real = load_capture(shared("captures/deepseek-v41-tp4"))
    source = Source.of(EVERY, real)
    captures = [source.round(0, number).capture for number in range(3, 200, 4)]
    parts = [c for c in captures if c is not real]
    assert 5 < len(parts) < len(captures) - 5
    assert all(len({v.fn for v in part.kernels}) == 1 for part in parts)
    orders = [[v.hash for v in part.kernels] for part in parts]
    assert any(order != sorted(order) for order in orders)
    generated = source.round(0, 0).capture
    assert generated == Source.of(EVERY).round(0, 0).capture


def test_a_capture_of_which_nothing_can_be_derived_is_refused() -> None:
    with pytest.raises(InvalidCapture, match="no launch can be derived"):
        Source.of(EVERY, capture(variant("x", param("F", "fp64"))))


def test_the_own_case_keeps_the_candidates_alone() -> None:
    case = Source.of(EVERY).round(0, 8).case(0, 0)
    other = Variant("other", "zz", 4, (), {})
    grown = type(case)(case.name, Capture((*case.capture.kernels, other)), case.launch)
    assert own_case(grown).capture == own_case(case).capture


def test_joined_batches_are_the_launches_of_each_in_order() -> None:
    source = Source.of(EVERY)
    groups = [list(source.round(1, number).launches()) for number in range(6)]
    one = joined([encode(group) for group in groups])
    assert [launch_at(one, at) for at in range(len(one))] == [launch for group in groups for launch in group]
    texts = [one.text[o : o + n] for o, n in one.strings.tolist()]
    assert len(set(texts)) == len(texts)


def test_coverage_counts_rounds_and_adds_up_in_any_order() -> None:
    source, rules = Source.of(EVERY), load_policy("three-pass")
    rounds = [source.round(2, number) for number in range(12)]
    parts = [compared(of, reference(of, rules), reference(of, rules), 2) for of in rounds]
    forward, backward = sum(parts, Part()), sum(reversed(parts), Part())
    assert forward == backward
    assert forward.coverage.rounds == 12
    assert forward.launches == sum(len(of) for of in rounds) > 12 * ROWS
    assert max(forward.coverage.seen.values()) <= 12
    assert sum(forward.outcomes.values()) == forward.launches


def test_good_turing_falls_as_cells_come_again() -> None:
    assert Coverage().chance_of_new is None
    once = Coverage(4, {("a", "b", "c"): 1})  # type: ignore[dict-item]
    assert once.chance_of_new == 0.25
    assert (once + once).chance_of_new == 3 / 8
    assert Coverage(100, {("a", "b", "c"): 50}).chance_of_new == 0.03  # type: ignore[dict-item]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_visited_cell_is_possible_and_most_possible_ones_are_visited(policy: str) -> None:
    source, rules = Source.of(EVERY), load_policy(policy)
    total, first = Coverage(), {}
    for number in range(240):
        of = source.round(9, number)
        cells = visited(of, reference(of, rules))
        total += Coverage(1, dict.fromkeys(cells, 1))
        for cell, place in cells.items():
            first.setdefault(cell, of.case(place, 9))
    assert set(total.seen) <= possible(rules)
    made = table(total, rules)
    assert made.visited > 0.6 * made.possible
    assert made.visited + len(made.remaining) == made.possible
    for cell, case in list(first.items())[::7]:
        outcome = decide(case.capture, case.launch, rules)
        ending = (outcome.strictness or "no rules") if isinstance(outcome, Selection) else outcome.code
        assert ending == cell.ending
