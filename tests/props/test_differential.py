from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from foldproof.impl import ZOO, Selection, load_policy
from foldproof.impl.cases import Case, replay
from foldproof.props import campaign, differential
from foldproof.props.campaign import ending, run
from foldproof.props.checks import violation
from foldproof.props.differential import Oracle, disagreements
from foldproof.props.generate import make_case, seeded
from foldproof.props.shrink import shrink
from foldproof.props.strategies import cases
from hypothesis import HealthCheck, event, given, settings

POLICIES = [load_policy(name) for name in ZOO]


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle(POLICIES)


@pytest.mark.parametrize("count", [150, pytest.param(2000, marks=pytest.mark.slow)])
def test_model_and_reference_agree_on_generated_cases(oracle: Oracle, count: int) -> None:
    choose = seeded(20261201)
    for number in range(count):
        case = make_case(choose, name=f"case {number}")
        assert disagreements(oracle, case) == []


@given(case=cases())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_model_and_reference_agree_on_what_hypothesis_draws(oracle: Oracle, case: Case) -> None:
    event(ending(case, load_policy("three-pass")))
    assert disagreements(oracle, case) == []


def test_a_changed_rule_is_seen_by_the_differential_test(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldproof.impl.rules.is_alignable", lambda *_: True)
    choose = seeded(0)
    assert any(disagreements(oracle, make_case(choose)) for _ in range(200))


def test_generated_cases_reach_every_ending() -> None:
    choose = seeded(1)
    made = [make_case(choose) for _ in range(1500)]
    seen = {name: Counter(ending(case, load_policy(name)) for case in made) for name in ZOO}
    for name in ("three-pass", "recommended"):
        for end in ("exact", "general", "fallback", "MissingTritonVariant"):
            assert seen[name][end] > 10, (name, end)
    assert seen["recommended"]["AmbiguousTritonVariant"] > 10
    assert seen["linker-order"]["no rules"] > 10
    kinds = {arg.kind for case in made for arg in case.launch.args}
    assert len(kinds) == 7
    switches = Counter(
        s
        for c in made
        for v in c.capture.kernels
        for p in v.params
        for s in p.__struct_fields__
        if getattr(p, s) is True
    )
    assert min(switches[s] for s in ("div16", "nospec", "noalign", "annotated", "range32")) > 50


@pytest.mark.parametrize(
    "policy", ["three-pass", *(pytest.param(p, marks=pytest.mark.slow) for p in ("two-pass", "recommended"))]
)
def test_promises_hold_on_generated_cases(policy: str) -> None:
    found = run(load_policy(policy), seconds=60, seed=3, most=120)
    assert found.cases == 120
    assert found.violations == ()
    assert found.disagreements == ()


@pytest.mark.slow
def test_a_campaign_finds_what_single_guard_breaks_and_shrinks_it() -> None:
    found = run(load_policy("single-guard"), seconds=60, seed=0, most=500)
    by_theorem = {v.theorem: v for v in found.violations}
    assert {"T01", "T03", "T10"} <= set(by_theorem)
    smallest = by_theorem["T01"].case
    assert (len(smallest.capture.kernels), len(smallest.launch.args)) == (2, 2)


@pytest.mark.slow
def test_a_campaign_reports_a_disagreement_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    real = differential.replay

    def wrong(case: Case, policy: object) -> object:
        outcome = real(case, policy)  # type: ignore[arg-type]
        return msgspec.structs.replace(outcome, ones=()) if isinstance(outcome, Selection) else outcome

    monkeypatch.setattr(differential, "replay", wrong)
    found = campaign.run(load_policy("three-pass"), seconds=60, seed=0, most=400)
    assert len(found.disagreements) == 1
    assert len(found.disagreements[0].case.capture.kernels) == 1
    assert len(found.disagreements[0].case.launch.args) == 1


def test_a_seed_makes_the_same_cases() -> None:
    once, again = seeded(7), seeded(7)
    assert [make_case(once) for _ in range(20)] == [make_case(again) for _ in range(20)]


def test_shrinking_keeps_the_property_and_ends_at_a_fixed_point() -> None:
    choose = seeded(5)
    policy = load_policy("single-guard")

    def breaks(case: Case) -> bool:
        return violation("T10", case, policy) is not None

    start = next(case for case in iter(lambda: make_case(choose), None) if breaks(case))
    small = shrink(start, breaks)
    assert breaks(small)
    assert (len(small.capture.kernels), len(small.launch.args), small.launch.options) == (1, 1, ())
    assert replay(small, policy).is_fallback  # type: ignore[union-attr]
    assert shrink(small, breaks) == small
