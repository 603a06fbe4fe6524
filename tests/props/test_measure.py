"""Two sides in turn, their ratio; curves and their exponents; what a regression is; the unrolled encoding."""

from __future__ import annotations

import subprocess
import sys

import pytest
import z3
from foldproof.impl.errors import FoldproofError
from foldproof.impl.policy import load_policy
from foldproof.model.prove import Bench, questions, refuting
from foldproof.model.scope import Size, make_scope
from foldproof.model.selection import answer
from foldproof.props import measure
from foldproof.props.growth import alike, at_once, one_by_one, plain_launch
from foldproof.props.measure import (
    Curve,
    Grown,
    Measure,
    Measured,
    NotMeasured,
    Point,
    Side,
    Spread,
    larger_half,
    ratios,
    regressions,
    seconds,
    slope,
    take,
)
from foldproof.props.unrolled import decide_t01, picked
from helpers import answer as reference


def test_the_exponent_of_a_planted_power_is_found() -> None:
    sizes = [8.0, 16.0, 64.0, 1024.0]
    for power in (0.0, 0.5, 1.0, 2.3):
        assert slope(sizes, [3e-7 * size**power for size in sizes]) == pytest.approx(power, abs=1e-9)


def curve(monkeypatch: pytest.MonkeyPatch, costs: dict[int, float]) -> Grown:
    """A curve whose sides cost what is planted, by a clock that they move."""
    now = [0.0]
    monkeypatch.setattr(measure, "_computed", lambda: now[0])

    def spend(cost: float) -> None:
        now[0] += cost

    sides = [Side(str(size), lambda cost=cost: spend(cost)) for size, cost in costs.items()]  # type: ignore[misc]
    taken = take(Curve("c", "what", "params", "launch", list(costs), sides, 3))
    assert isinstance(taken, Grown)
    return taken


def test_a_curve_is_fitted_over_its_larger_half_where_the_fixed_cost_no_longer_hides_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = curve(monkeypatch, {2: 1.0, 4: 1.0, 8: 1.0, 16: 5 * 16.0**2, 32: 5 * 32.0**2, 64: 5 * 64.0**2})
    assert found.exponent == pytest.approx(2.0)
    assert (found.first, found.last) == (16, 64)
    assert found.ratio == pytest.approx((1 / 2) / (5 * 64))
    linear = curve(monkeypatch, {n: 0.25 * n for n in (8, 16, 32, 64)})
    assert (linear.exponent, linear.ratio) == (pytest.approx(1.0), pytest.approx(1.0))


def test_the_larger_half_has_two_points_at_least() -> None:
    points = [Point(2**n, Spread("", 1.0, 1.0, 1.0)) for n in range(7)]
    assert [p.size for p in larger_half(points)] == [8, 16, 32, 64]
    assert [p.size for p in larger_half(points[:2])] == [1, 2]
    assert [p.size for p in larger_half(points[:3])] == [2, 4]


def test_both_sides_take_turns_and_the_ratio_is_that_of_the_medians_for_one_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, ran = [0.0], list[str]()
    monkeypatch.setattr(measure, "_computed", lambda: now[0])
    costs = {"ours": iter([9.0, 1.0, 2.0, 30.0]), "theirs": iter([9.0, 10.0, 12.0, 11.0])}

    def action(name: str) -> None:
        ran.append(name)
        now[0] += next(costs[name])

    sides = Side("ours", lambda: action("ours"), 2.0), Side("theirs", lambda: action("theirs"), 1.0)
    found = take(Measure("m", "what", "launch", *sides, 3))
    assert isinstance(found, Measured)
    assert ran == ["ours", "theirs", "ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert found.ours == Spread("ours", 1.0, 0.5, 15.0)
    assert found.theirs == Spread("theirs", 11.0, 10.0, 12.0)
    assert found.ratio == 11.0
    assert ratios([found, NotMeasured("x", "why")]) == {"m": 11.0}


def test_the_cpu_clock_counts_finished_children_and_no_waiting() -> None:
    spin = "import time\nwhile time.process_time() < 0.2: pass"
    assert seconds(lambda: subprocess.run([sys.executable, "-c", spin], check=True)) >= 0.2
    wait = [sys.executable, "-c", "import time; time.sleep(0.5)"]
    assert seconds(lambda: subprocess.run(wait, check=True)) < 0.4
    assert seconds(lambda: subprocess.run(wait, check=True), "wall") >= 0.5


def test_only_a_ratio_that_is_worse_by_two_is_a_regression_and_it_is_named() -> None:
    kept = {"a": 10.0, "b": 10.0, "c": 10.0, "gone": 1.0}
    (line,) = regressions({"a": 5.01, "b": 5.0, "c": 40.0, "new": 0.1}, kept)
    assert line.startswith("b: 5 x, kept 10 x")


@pytest.mark.parametrize("policy", ["three-pass", "single-guard"])
def test_the_unrolled_loop_picks_what_the_formulas_pick(policy: str) -> None:
    of, scope = load_policy(policy), make_scope(Size(3, 2))
    run, pick = answer(scope, of), picked(scope, of)
    solver = Bench(Size(3, 2)).solver()
    pairs = [run.picks(i) != (pick == i) for i in range(3)] + [run.missing != (pick == 3)]
    solver.add(scope.well_formed, z3.Or(pairs))
    assert str(solver.check()) == "unsat"


@pytest.mark.parametrize(("policy", "said"), [("three-pass", "unsat"), ("single-guard", "sat")])
def test_the_unrolled_encoding_decides_t01_as_the_scope_does(policy: str, said: str) -> None:
    size = Size(2, 2)
    (question,) = questions(load_policy(policy), ["T01"])
    assert decide_t01(load_policy(policy), size) == said
    assert str(refuting(Bench(size), question, size).check()) == said  # type: ignore[arg-type]


def test_a_policy_that_compares_candidates_has_no_loop_to_unroll() -> None:
    with pytest.raises(FoldproofError, match="more than the first match"):
        decide_t01(load_policy("recommended"), Size(2, 2))


def test_the_captures_of_the_curves_are_the_worst_case_that_they_say() -> None:
    assert str(getattr(reference(alike(5, 4, fits=False), plain_launch(4), "three-pass"), "code", "")) == (
        "MissingTritonVariant"
    )
    of_all = reference(alike(5, 4, fits=True), plain_launch(4), "recommended")
    assert getattr(of_all, "among", ()) == (0, 1, 2, 3, 4)
    assert getattr(reference(alike(5, 4, fits=True), plain_launch(4), "three-pass"), "strictness", None) == "exact"


def test_a_point_of_a_curve_says_how_many_launches_it_decides() -> None:
    policy = load_policy("three-pass")
    assert one_by_one(policy, 4, 2, 80, fits=False).units == 10
    assert one_by_one(policy, 1024, 8, 80, fits=False).units == 1
    side = at_once(policy, 4, 2, 50)
    assert len(side.action().picks) == side.units == 50  # type: ignore[attr-defined]
