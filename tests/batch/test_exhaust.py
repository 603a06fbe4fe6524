"""Exhaustive scopes find planted faults, count them exactly, and add up whatever way they are cut."""

from __future__ import annotations

import itertools
import json
import pickle
import random
from collections import Counter
from dataclasses import dataclass
from functools import reduce
from operator import add

import msgspec
import numpy as np
import pytest
from foldproof.impl import FoldproofError, Policy, Selection, capture_from, decide
from foldproof.impl.batch import MISSING
from foldproof.impl.cases import case_from, case_to, replay
from foldproof.impl.policy import zoo_policy
from foldproof.impl.rules import STRICTEST_FIRST, refusal
from foldproof.props.exhaust import Block, Picks, ReferenceSelector, exhaust
from foldproof.props.tally import NO_ANSWER, Tally
from foldproof.props.universe import Universe

THREE_PASS, SINGLE_GUARD = zoo_policy("three-pass"), zoo_policy("single-guard")
SMALL = Universe(2, 2, 1)


def brute_force_differences(universe: Universe, one: Policy, other: Policy) -> int:
    def pick(policy: Policy, number: int, place: int) -> object:
        outcome = decide(universe.capture(number), universe.launches[place], policy)
        return outcome.index if isinstance(outcome, Selection) else outcome.code

    cases = itertools.product(range(universe.captures), range(universe.launch_count))
    return sum(pick(one, *case) != pick(other, *case) for case in cases)


@dataclass(frozen=True)
class Wrong:
    """The reference, wrong on chosen cases."""

    wrong: dict[tuple[int, int], int]

    def decide_many(self, block: Block) -> Picks:
        picks = ReferenceSelector(THREE_PASS).decide_many(block).copy()
        for (capture, launch), pick in self.wrong.items():
            if block.start <= capture < block.stop:
                picks[capture - block.start, launch] = pick
        return picks


@pytest.mark.parametrize("planted", ["single-guard", "two-pass", "most-held", "recommended"])
def test_a_planted_policy_is_found_as_often_as_brute_force_says(planted: str) -> None:
    universe = Universe(2, 1, 2) if planted != "single-guard" else Universe(2, 2, 0)
    want = brute_force_differences(universe, THREE_PASS, zoo_policy(planted))
    tally = exhaust(ReferenceSelector(zoo_policy(planted)), universe, THREE_PASS)
    assert tally.disagreements == want > 0
    assert tally.decisions == universe.type_count**2 * universe.launch_count


def test_single_guard_is_counted_on_the_full_scope_as_combinatorics_says() -> None:
    """9.4 million cases. It differs where no variant is exact, one is general, and the first admissible is neither."""
    universe, want = Universe(), 0
    for launch in universe.launches:
        met: Counter[object] = Counter(
            next((r.strictness for r in THREE_PASS.strictest_first if refusal(v, launch, r) is None), None)
            for v in universe.plain_variants
        )
        _, general, runtime, none = (met[s] for s in (*STRICTEST_FIRST, None))
        sequences = itertools.product(((general, "g"), (runtime, "r"), (none, "x")), repeat=3)
        for sequence in sequences:
            letters = "".join(letter for _, letter in sequence)
            if "g" in letters and letters.replace("x", "")[0] == "r":
                want += int(np.prod([count for count, _ in sequence]))
    tally = exhaust(ReferenceSelector(SINGLE_GUARD), universe, THREE_PASS)
    assert tally.decisions == 64**3 * 36 == 9_437_184
    assert tally.disagreements == want == 178_620
    assert tally.kinds == {("a variant", "a variant"): want}


def test_the_scope_reaches_every_pass_and_every_refusal() -> None:
    outcomes = exhaust(ReferenceSelector(THREE_PASS), SMALL, zoo_policy("recommended")).outcomes
    assert set(outcomes) == {"exact", "general", "runtime-one", "MissingTritonVariant", "AmbiguousTritonVariant"}
    assert sum(outcomes.values()) == SMALL.decisions


class Forgetful:
    """`three-pass` that forgets a field of the launch."""

    def __init__(self, **forgotten: object) -> None:
        self.forgotten = forgotten

    def decide_many(self, block: Block) -> Picks:
        launches = [msgspec.structs.replace(launch, **self.forgotten) for launch in block.launches]
        captures = [block.universe.capture(number) for number in range(block.start, block.stop)]
        outcomes = [[decide(capture, launch, THREE_PASS) for launch in launches] for capture in captures]
        return np.array([[o.index if isinstance(o, Selection) else MISSING for o in row] for row in outcomes], np.int32)


@pytest.mark.parametrize(("switch", "forgotten"), [("free_const", {"consts": {}}), ("options", {"num_warps": None})])
def test_an_added_dimension_finds_what_the_plain_scope_cannot(switch: str, forgotten: dict[str, object]) -> None:
    plain, added = Universe(2, 1, 0), Universe(2, 1, 0, **{switch: True})
    assert added.decisions == plain.decisions * 2**3
    assert exhaust(Forgetful(**forgotten), plain, THREE_PASS).disagreements == 0
    tally = exhaust(Forgetful(**forgotten), added, THREE_PASS)
    # A forgotten pin or constant shows on the half of the launches that say it, where the first variant breaks it.
    assert 0 < tally.disagreements < added.decisions // 2
    assert set(tally.kinds) == {("MissingTritonVariant", "a variant"), ("a variant", "a variant")}


def test_one_wrong_answer_in_a_million_is_found_and_kept_as_a_case_that_replays() -> None:
    universe = Universe(3, 2, 1)
    number, place = 20_000, 11
    right = int(ReferenceSelector(THREE_PASS).decide_many(Block(universe, number, number + 1))[0, place])
    tally = exhaust(Wrong({(number, place): 2 if right != 2 else 1}), universe, THREE_PASS)
    assert tally.disagreements == len(tally.findings) == 1
    finding = tally.findings[0]
    assert (finding.expected, finding.got) == (right, 2 if right != 2 else 1)
    again = case_from(json.loads(json.dumps(case_to(finding.case))))
    outcome = replay(again, THREE_PASS)
    assert (outcome.index if isinstance(outcome, Selection) else MISSING) == right
    assert f"expected {'kernels[' if right >= 0 else 'Missing'}" in str(finding)


def test_a_selector_that_fails_or_answers_out_of_range_is_counted_by_kind() -> None:
    wrong = {(0, 0): NO_ANSWER, (1, 0): 2, (2, 0): -77, (900, 17): 2**31 - 1, (5, 5): -2}
    tally = exhaust(Wrong(wrong), SMALL, THREE_PASS)
    got = Counter[str]()
    for (_, answer), count in tally.kinds.items():
        got[answer] += count
    assert got == {"no answer": 2, "out of range": 2, "AmbiguousTritonVariant": 1}


def test_findings_are_the_smallest_in_order_however_many_there_are() -> None:
    every = exhaust(ReferenceSelector(SINGLE_GUARD), SMALL, THREE_PASS, keep=10**6)
    assert len(every.findings) == every.disagreements > 60
    assert [f.rank for f in every.findings] == sorted(f.rank for f in every.findings)
    for keep in (0, 3, 60):
        assert exhaust(ReferenceSelector(SINGLE_GUARD), SMALL, THREE_PASS, keep=keep).findings == every.findings[:keep]


def test_a_finding_among_fewer_different_variants_is_smaller() -> None:
    tally = exhaust(ReferenceSelector(SINGLE_GUARD), Universe(3, 2, 0), THREE_PASS, keep=10**6)
    different = [len({v.hash.partition("-")[0] for v in f.case.capture.kernels}) for f in tally.findings]
    assert different == sorted(different)
    assert set(different) == {2, 3}


def test_shards_add_up_to_the_whole_in_any_order_and_survive_a_process_border() -> None:
    whole = exhaust(ReferenceSelector(SINGLE_GUARD), SMALL, THREE_PASS)
    parts = [
        pickle.loads(pickle.dumps(exhaust(ReferenceSelector(SINGLE_GUARD), SMALL, THREE_PASS, start=start, stop=stop)))  # noqa: S301
        for start, stop in SMALL.shards(7)
    ]
    random.Random(3).shuffle(parts)  # noqa: S311 (no secret)
    total: Tally = reduce(add, parts)
    assert total == whole
    assert total.is_complete
    assert not parts[0].is_complete
    with pytest.raises(FoldproofError, match="both decided"):
        parts[0] + parts[0]
    with pytest.raises(FoldproofError, match="different"):
        parts[0] + exhaust(ReferenceSelector(SINGLE_GUARD), SMALL, SINGLE_GUARD, stop=1)


def test_progress_is_told_after_each_block_and_ends_at_the_whole() -> None:
    told: list[int] = []
    universe = Universe(3, 2, 1)
    exhaust(ReferenceSelector(THREE_PASS), universe, THREE_PASS, progress=lambda tally: told.append(tally.captures))
    assert len(told) > 1
    assert told == sorted(set(told))
    assert told[-1] == universe.captures


@pytest.mark.parametrize(
    "answer",
    [lambda picks: picks[:, :-1], lambda picks: picks.astype(np.int64), lambda picks: picks.ravel()],
    ids=["launch missing", "int64", "flat"],
)
def test_answers_of_another_shape_are_refused(answer: object) -> None:
    class Misshapen:
        def decide_many(self, block: Block) -> Picks:
            return answer(ReferenceSelector(THREE_PASS).decide_many(block))  # type: ignore[operator]

    with pytest.raises(FoldproofError, match="picks of shape"):
        exhaust(Misshapen(), SMALL, THREE_PASS)


@pytest.mark.parametrize("bounds", [(-1, 5), (6, 5), (0, SMALL.captures + 1)])
def test_a_range_outside_the_universe_is_refused(bounds: tuple[int, int]) -> None:
    with pytest.raises(FoldproofError, match="outside"):
        exhaust(ReferenceSelector(THREE_PASS), SMALL, THREE_PASS, start=bounds[0], stop=bounds[1])


def test_capture_bytes_are_the_capture() -> None:
    universe = Universe(3, 2, 2, free_const=True, options=True)
    for number in (0, 1, 12_345, universe.captures // 3, universe.captures - 1):
        assert capture_from(json.loads(universe.capture_json(number))) == universe.capture(number)
