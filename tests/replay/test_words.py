"""The ladder from counts to verdicts, rung by rung, without a device."""

from __future__ import annotations

from typing import Any

import pytest
from foldproof.gpu.replay.bouts import Bout, Matchup, Missing
from foldproof.gpu.replay.inputs import DOMAINS, SetClass
from foldproof.gpu.replay.tally import (
    BoutCount,
    Difference,
    PairCount,
    Refusal,
    VariantCount,
    merged,
    merged_pair,
)
from foldproof.gpu.replay.trace import Record
from foldproof.gpu.replay.verdicts import (
    PairVerdict,
    Verdict,
    _refused,
    identical,
    missing_verdicts,
    pair_verdicts,
    with_instability,
)
from helpers import i32, launch

MATCHUP = Matchup("A", "B", ("R folded",), "differs", "finite")
BOUT = Bout(Record("one", launch(i32("R", 1)), (1, 1, 1), {}), ("A", "B"), (MATCHUP,))
WHERE = Difference("finite", "wide", 3, "OUT", 8, 1, "001133", "002244")


def variant(name: str, cls: SetClass = "finite", **more: Any) -> VariantCount:
    return VariantCount(name, cls, 10, **({"written": 40} | more))


def pair(cls: SetClass = "finite", **more: Any) -> PairCount:
    return PairCount("A", "B", cls, 10, **({"bytes": 80} | more))


def words(
    variants: tuple[VariantCount, ...] = (variant("A"), variant("B")),
    pairs: tuple[PairCount, ...] = (pair(),),
    digests: dict[str, str] | None = None,
    **more: Any,
) -> dict[str, Verdict]:
    (found,) = pair_verdicts(BOUT, BoutCount("one", variants, pairs, **more), digests or {})
    return dict(found.verdicts)


def test_a_pair_carries_its_launch_its_change_and_what_is_expected() -> None:
    (found,) = pair_verdicts(BOUT, None, {})
    assert (found.launch, found.fn, found.first, found.second) == ("one", "k", "A", "B")
    assert (found.change, found.basis, found.expected, found.domain) == (("R folded",), "replay", "differs", "finite")
    assert found.verdicts == {domain: Verdict("owed", "not run") for domain in DOMAINS}


def test_equal_bytes_are_equal_on_the_domains_whose_sets_were_compared() -> None:
    found = words()
    assert found["finite"] == Verdict("equal", sets=10, bytes=80, written=40)
    # A domain takes in the counts of every class of its own: the finite ones stand for all until others are run.
    assert found["no NaN"] == found["every bit pattern"] == found["finite"]
    assert words(pairs=(pair("nan"),))["finite"] == Verdict("owed", "not run")
    assert words(pairs=(pair("nan"),))["every bit pattern"].sets == 10


def test_what_was_written_least_counts_and_nothing_written_is_no_comparison() -> None:
    assert words((variant("A", written=7), variant("B", written=9)))["finite"].written == 7
    assert words((variant("A", written=9), variant("B", written=1)))["finite"].written == 1
    nothing = Verdict("owed", "a variant wrote nothing, so nothing was compared", 10)
    assert words((variant("A", written=0), variant("B")))["finite"] == nothing
    assert words((variant("A"),))["finite"] == nothing


def test_a_difference_is_counted_over_the_classes_of_the_domain() -> None:
    pairs = (pair(differing=2, differing_bytes=5, difference=WHERE), pair("nan", differing=3), pair("infinite"))
    found = words(pairs=pairs)
    assert found["finite"] == Verdict("differs", "", 10, 2, 80, difference=WHERE)
    assert found["no NaN"] == Verdict("differs", "", 20, 2, 160, difference=WHERE)
    assert found["every bit pattern"] == Verdict("differs", "", 30, 5, 240, difference=WHERE)
    assert found["finite"].reason == ("in 2 of 10 sets: first in OUT at byte 8, 0x11 against 0x22 (wide set 3)")
    assert Verdict("differs", "", 10, 2).reason == "in 2 of 10 sets"
    assert words()["finite"].reason == "10 sets, 80 bytes compared, 40 written"
    assert Verdict("owed", "not run", 5).reason == "not run"


def test_pairs_and_variants_of_others_are_not_counted() -> None:
    others = tuple(PairCount(*names, "finite", 10, 9) for names in ("AC", "BA", "AA"))
    assert words(pairs=others)["finite"] == Verdict("owed", "not run")
    assert words((variant("A"), variant("B"), variant("C", unstable=1)))["finite"].word == "equal"
    assert words(pairs=(pair(), *others))["finite"].word == "equal"


@pytest.mark.parametrize(
    ("counted", "verdict"),
    [
        (
            variant("B", spills=1, unstable=2, reads_fill=3),
            Verdict("fault", "B writes outside its buffers in 1 of 10 sets", 10),
        ),
        (
            variant("B", unstable=2, reads_fill=3, first=WHERE),
            Verdict("unstable", "B differs from itself run to run in 2 of 10 sets", 10, difference=WHERE),
        ),
        (
            variant("B", reads_fill=3, first=WHERE),
            Verdict("unstable", "B reads bytes that the launch does not give it in 3 of 10 sets", 10, difference=WHERE),
        ),
    ],
)
def test_what_a_variant_does_to_itself_rules_out_a_comparison(counted: VariantCount, verdict: Verdict) -> None:
    assert words((variant("A"), counted))["finite"] == verdict
    assert words((counted, variant("A")), pairs=(pair(differing=1),))["finite"] == verdict
    same = {"A": "d", "B": "d"}
    assert words((variant("A"), counted), digests=same)["finite"] == verdict


def test_a_fault_on_nan_sets_is_none_on_finite_ones() -> None:
    found = words((variant("A"), variant("B"), variant("B", "nan", unstable=1)))
    assert [found[domain].word for domain in DOMAINS] == ["equal", "equal", "unstable"]


@pytest.mark.parametrize(
    ("refusals", "expected"),
    [
        ([("A", "fault", "x")], ("fault", "x")),
        ([("B", "owed", "y"), ("A", "fault", "x")], ("owed", "y")),
        ([("A", "fault", "x"), ("B", "owed", "y"), ("B", "no reference", "z")], ("no reference", "z")),
        ([("A", "owed", "first"), ("B", "owed", "second")], ("owed", "first")),
        ([("C", "fault", "x")], ("equal", "")),
    ],
)
def test_a_refusal_of_either_variant_is_the_verdict(
    refusals: list[tuple[str, str, str]], expected: tuple[str, str]
) -> None:
    found = words(refusals=tuple(Refusal(*row) for row in refusals))
    assert {(v.word, v.why) for v in found.values()} == {expected}


def test_a_refusal_of_an_unknown_word_is_no_verdict() -> None:
    with pytest.raises(AssertionError, match="unknown word"):
        _refused([Refusal("A", "equal", "")])


def test_what_was_not_run_is_owed_with_its_reason() -> None:
    assert words(owed="the device is gone")["finite"] == Verdict("owed", "the device is gone")
    assert words(pairs=(pair(differing=1),), owed="half done")["finite"] == Verdict("owed", "half done")
    assert words(pairs=(PairCount("A", "B", "finite", 0),))["finite"] == Verdict("owed", "not run")


def test_identical_code_is_equal_without_a_run() -> None:
    (found,) = pair_verdicts(BOUT, None, {"A": "d", "B": "d"})
    assert found.basis == "identical code"
    assert set(found.verdicts.values()) == {Verdict("equal", "the two cubins are the same bytes; not run")}
    for digests in ({}, {"A": "d"}, {"B": "d"}, {"A": "d", "B": "e"}, {"A": "e", "B": "d"}):
        assert not identical(MATCHUP, digests)


def test_identical_code_that_differs_from_itself_elsewhere_is_unstable() -> None:
    rows = pair_verdicts(BOUT, None, {"A": "d", "B": "d"})
    (ran,) = pair_verdicts(BOUT, BoutCount("one", (variant("A"), variant("B")), (pair(),)), {})
    for name in ("A", "B"):
        counts = [BoutCount("two", (variant(name, "infinite", unstable=1), variant("C", unstable=1)))]
        (corrected, kept) = with_instability((*rows, ran), counts)
        why = f"identical code, and under another launch {name} differs from itself run to run"
        assert corrected.verdicts == {
            "finite": rows[0].verdicts["finite"],
            "no NaN": Verdict("unstable", why),
            "every bit pattern": Verdict("unstable", why),
        }
        assert kept == ran
    steady = [BoutCount("two", (variant("A"), variant("C", unstable=1)))]
    assert with_instability(rows, steady) == rows


def test_a_pair_of_which_one_does_not_exist_has_no_reference() -> None:
    (found,) = missing_verdicts([Missing("k", "A", "no twin", ("R",), "equal", "the compiler folds it")])
    assert (found.launch, found.fn, found.basis) == ("k: A against no twin", "k", "none")
    assert (found.first, found.second, found.change) == ("A", "no twin", ("R",))
    assert (found.expected, found.domain) == ("equal", "every bit pattern")
    assert found.verdicts == {domain: Verdict("no reference", "the compiler folds it") for domain in DOMAINS}


@pytest.mark.parametrize(
    ("word", "expected", "domain", "confirmed"),
    [
        ("differs", "differs", "finite", True),
        ("equal", "differs", "finite", False),
        ("differs", "equal", "finite", False),
        ("unstable", "equal", "finite", False),
        ("owed", "differs", "finite", None),
        ("differs", "", "finite", None),
        ("differs", "differs", None, None),
    ],
)
def test_a_label_is_confirmed_by_what_was_run(word: Any, expected: str, domain: Any, confirmed: bool | None) -> None:
    verdicts = {name: Verdict("equal") for name in DOMAINS} | {"finite": Verdict(word)}
    row = PairVerdict("one", "k", "A", "B", (), "replay", verdicts, expected, domain)  # type: ignore[arg-type]
    assert row.confirmed is confirmed


def test_the_counts_of_two_batches_add_up_and_the_earlier_difference_stays() -> None:
    later = Difference("finite", "wide", 9, "OUT", 0, 0, "01", "02")
    one = VariantCount("A", "finite", 1, 2, 3, 4, 5)
    two = VariantCount("A", "finite", 10, 20, 30, 40, 50, later)
    assert merged(one, two) == VariantCount("A", "finite", 11, 22, 33, 44, 55, later)
    assert merged(VariantCount("A", "finite", 1, first=WHERE), two).first == WHERE
    first, second = PairCount("A", "B", "nan", 1, 2, 3, 4), PairCount("A", "B", "nan", 10, 20, 30, 40, later)
    assert merged_pair(first, second) == PairCount("A", "B", "nan", 11, 22, 33, 44, later)
    assert merged_pair(PairCount("A", "B", "nan", 1, difference=WHERE), second).difference == WHERE
    assert WHERE.values == ("11", "22")
    assert later.values == ("01", "02")


def test_nothing_is_counted_unless_it_is_said() -> None:
    assert VariantCount("A", "nan", 1) == VariantCount("A", "nan", 1, 0, 0, 0, 0, None)
    assert PairCount("A", "B", "nan", 1) == PairCount("A", "B", "nan", 1, 0, 0, 0, None)
    assert Verdict("equal") == Verdict("equal", "", 0, 0, 0, 0, None)
    assert BoutCount("one").launches == 0
    for kind in (Verdict, PairVerdict, Difference, VariantCount, PairCount, Refusal, BoutCount):
        assert kind.__struct_config__.frozen
    assert Verdict.__struct_config__.omit_defaults
    assert PairVerdict.__struct_config__.omit_defaults
