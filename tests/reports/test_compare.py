"""Two releases compared: each kind of change, both ways."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from foldproof.impl.errors import FoldproofError
from foldproof.reports import picks as picks_module
from foldproof.reports.changes import Change, Comparison
from foldproof.reports.compare import compare
from foldproof.reports.duty import Row
from foldproof.reports.events import CampaignRan, FileRef, LaunchesExamined, PolicySeen, TheoremJudged
from foldproof.reports.evidence import Evidence
from foldproof.reports.picks import Pick, pick_bytes, read_picks
from foldproof.reports.store import read
from foldproof.reports.tables import tables
from foldproof.reports.then import at_hand_then, report_then
from foldproof.reports.view import Report, build
from samples import CONFIG, POLICY, at_hand, fill, sample


def changed(report: Report, kind: type[Any], **fields: Any) -> Report:
    """The report with fields of each event of a kind replaced."""
    facts = tuple(
        replace(fact, event=msgspec.structs.replace(fact.event, **fields)) if isinstance(fact.event, kind) else fact
        for fact in report.found.facts
    )
    return replace(report, found=Evidence(report.found.runs, facts))


def verdict(report: Report, theorem: str, word: str) -> Report:
    facts = tuple(
        replace(f, event=msgspec.structs.replace(e, verdict=word))
        if isinstance(e := f.event, TheoremJudged) and e.theorem == theorem
        else f
        for f in report.found.facts
    )
    return replace(report, found=Evidence(report.found.runs, facts), rows=())


def diff(old: Report, new: Report, before: list[Pick] | None = None, after: list[Pick] | None = None) -> Comparison:
    return compare(old, new, {"p": before or []}, {"p": after or []})


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return changed(sample(tmp_path, refuted=False), LaunchesExamined, picks=FileRef("p", "0" * 64))


def test_a_release_does_not_differ_from_itself(report: Report) -> None:
    assert diff(report, report) == Comparison("three-pass", "three-pass", ())


@pytest.mark.parametrize("word", ["refuted", "proved", "undecided", "owed"])
@pytest.mark.parametrize("other", ["refuted", "proved", "undecided", "owed"])
def test_a_theorem_that_becomes(report: Report, word: str, other: str) -> None:
    old, new = verdict(report, "T01", word), verdict(report, "T01", other)
    wanted = () if word == other else (Change(other, "theorem T01", word, other),)
    assert diff(old, new).changes == wanted


def test_a_theorem_that_nothing_judged_is_owed_and_one_that_nothing_asks_for_is_dropped(report: Report) -> None:
    facts = tuple(fact for fact in report.found.facts if getattr(fact.event, "theorem", "") != "T01")
    rows = tuple(row for row in report.rows if row.key != "theorem T01")
    gone = replace(report, found=Evidence(report.found.runs, facts), rows=rows)
    assert diff(report, gone).changes == (Change("dropped", "theorem T01", "proved", ""),)
    assert diff(gone, report).changes == (Change("proved", "theorem T01", "", "proved"),)
    asked = replace(gone, rows=(*rows, Row("T01 of x", "proved", "no evidence", "owed", key="theorem T01")))
    assert diff(report, asked).changes == (Change("owed", "theorem T01", "proved", "owed"),)


@pytest.mark.parametrize("words", [("holds", "fails"), ("fails", "holds"), ("holds", "owed"), ("owed", "holds")])
def test_an_obligation_that_becomes(report: Report, words: tuple[str, str]) -> None:
    old, new = (
        replace(report, rows=tuple(replace(r, verdict=w) if r.key.startswith("launches") else r for r in report.rows))
        for w in words
    )
    assert diff(old, new).changes == (Change(words[1], "launches of _rms_norm", *words),)


def test_the_policies_of_two_releases_are_compared_whatever_they_are_called(report: Report) -> None:
    renamed = report
    for kind in (TheoremJudged, CampaignRan, LaunchesExamined):
        renamed = changed(renamed, kind, policy="recommended")
    config = msgspec.structs.replace(CONFIG, policy=msgspec.structs.replace(CONFIG.policy, name="recommended"))
    renamed = replace(renamed, config=config)
    found = diff(report, renamed)
    assert (found.old, found.new, found.changes) == ("three-pass", "recommended", ())


@pytest.mark.parametrize(("old", "new", "word"), [(300.0, 200.0, "slower"), (200.0, 300.0, "faster")])
def test_a_campaign_that_is_slower_or_faster(report: Report, old: float, new: float, word: str) -> None:
    before, after = changed(report, CampaignRan, rate=old), changed(report, CampaignRan, rate=new)
    said = (f"{old:.1f} cases/s", f"{new:.1f} cases/s")
    assert set(diff(before, after).changes) == {
        Change(word, "check campaign", *said),
        Change(word, "fuzz campaign against ./my-selector", *said),
    }
    assert not diff(before, changed(report, CampaignRan, rate=old * 1.4)).changes


def test_a_speed_that_one_release_did_not_measure_is_said_and_not_judged(report: Report) -> None:
    found = diff(changed(report, CampaignRan, rate=None), report)
    assert not found.changes
    assert len(found.unmeasured) == 2
    assert "check campaign" in found.unmeasured[0]


@pytest.mark.parametrize(("old", "new", "word"), [(2.0, 3.0, "slower"), (3.0, 2.0, "faster")])
def test_proofs_that_take_longer_or_less(report: Report, old: float, new: float, word: str) -> None:
    before, after = changed(report, TheoremJudged, seconds=old), changed(report, TheoremJudged, seconds=new)
    said = (f"{3 * old:.1f} s", f"{3 * new:.1f} s")
    assert diff(before, after).changes == (Change(word, "proofs of 3 theorems", *said),)


def test_times_below_the_noise_and_theorems_of_one_release_alone_are_no_change(report: Report) -> None:
    quick = [changed(report, TheoremJudged, seconds=seconds) for seconds in (0.01, 0.3)]
    assert not diff(*quick).changes
    facts = tuple(f for f in report.found.facts if getattr(f.event, "theorem", "") != "T09")
    fewer = changed(replace(report, found=Evidence(report.found.runs, facts)), TheoremJudged, seconds=5.0)
    assert not diff(fewer, changed(report, TheoremJudged, seconds=5.0)).of("slower", "faster")


def pick(value: int, ending: str, hash_: str | None) -> Pick:
    return Pick({"fn": "k", "args": [{"kind": "i32", "name": "R", "value": value}]}, ending, hash_)


@pytest.mark.parametrize(
    ("was", "is_", "word"),
    [
        (("exact", "k1"), ("fallback", "k2"), "another variant"),
        (("exact", "k1"), ("missing", None), "another variant"),
        (("missing", None), ("exact", "k1"), "another variant"),
        (("exact", "k1"), ("general", "k1"), "another ending"),
        (("missing", None), ("ambiguous", None), "another ending"),
    ],
)
def test_a_launch_that_moves(report: Report, was: tuple[str, Any], is_: tuple[str, Any], word: str) -> None:
    same = pick(2, "exact", "k9")
    found = diff(report, report, [pick(1, *was), same], [same, pick(1, *is_)])
    launch = "k(R=1)"
    said = [" ".join(part for part in side if part) for side in (was, is_)]
    assert found.changes == (Change(word, launch, *said),)
    assert (found.launches, found.moved) == (2, 1)


def test_the_order_of_keys_in_a_launch_is_no_change(report: Report) -> None:
    turned = Pick(dict(reversed(pick(1, "exact", "k").launch.items())), "exact", "k")
    assert diff(report, report, [turned], [pick(1, "exact", "k")]).launches == 1


def test_launches_of_one_release_alone_are_counted(report: Report) -> None:
    one, two = [pick(1, "exact", "k")], [pick(1, "exact", "k"), pick(2, "exact", "k"), pick(3, "exact", "k")]
    assert diff(report, report, one, two).changes == (Change("new launches", "launches of _rms_norm", "", "2"),)
    assert diff(report, report, two, one).changes == (Change("lost launches", "launches of _rms_norm", "2", ""),)


def test_of_many_changed_launches_the_first_are_listed_and_all_are_counted(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foldproof.reports.compare.MOST", 20)
    before = [pick(n, "exact", "a") for n in range(25)]
    found = diff(report, report, before, [pick(n, "exact", "b") for n in range(25)])
    assert found.moved == 25
    assert len(found.changes) == 21
    assert found.changes[-1].subject == "5 further launches"


def test_a_capture_that_lay_elsewhere_is_the_same_one_and_of_two_each_is_its_own(report: Report) -> None:
    moved = changed(report, LaunchesExamined, capture="/elsewhere")
    old, new = [pick(1, "exact", "a")], [pick(1, "exact", "b")]
    assert diff(report, moved, old, new).moved == 1
    fact = next(f for f in moved.found.facts if isinstance(f.event, LaunchesExamined))
    second = replace(fact, event=msgspec.structs.replace(fact.event, capture="third", picks=FileRef("q", "0" * 64)))
    two = replace(moved, found=Evidence(moved.found.runs, (*moved.found.facts, second)))
    assert compare(report, two, {"p": old}, {"p": new, "q": new}).moved == 0


def test_a_release_without_picks_is_said(tmp_path: Path) -> None:
    bare = sample(tmp_path, refuted=False)
    found = diff(bare, bare)
    assert not found.changes
    assert "no record of what they select" in found.unmeasured[0]


def test_the_table_of_changes_has_them_the_worse_first(report: Report) -> None:
    assert tables(report)["changes"].empty
    old = verdict(verdict(report, "T01", "refuted"), "T09", "proved")
    new = verdict(verdict(report, "T01", "proved"), "T09", "refuted")
    frame = tables(replace(new, compared=diff(old, new)))["changes"]
    assert list(frame.columns) == ["what", "subject", "old", "new"]
    assert list(frame["what"]) == ["refuted", "proved"]


def test_an_old_release_is_read_as_it_was(tmp_path: Path) -> None:
    fill(tmp_path, refuted=False)
    stored, _ = read(tmp_path)
    today = build(CONFIG, stored, replace(at_hand(), policies={"three-pass": "9" * 64}, captures={}), ("T01",))
    then = report_then(CONFIG, stored)
    assert {row.verdict for row in today.rows} == {"owed"}
    assert not [fact for fact in then.found.facts if fact.stale]
    assert [(row.what, row.verdict) for row in then.rows] == [
        (row.what, row.verdict) for row in sample(tmp_path / "again", refuted=False).rows
    ]
    found = compare(then, today, {}, {})
    assert Change("owed", "theorem T01", "proved", "owed") in found.changes
    assert Change("proved", "theorem T01", "owed", "proved") in compare(today, then, {}, {}).changes


def test_an_old_release_about_another_policy_is_about_that_one(tmp_path: Path) -> None:
    fill(tmp_path, refuted=False)
    stored, _ = read(tmp_path)
    config = msgspec.structs.replace(CONFIG, policy=msgspec.structs.replace(CONFIG.policy, name="recommended"))
    then = report_then(config, stored)
    assert then.policy == "three-pass"
    assert [row.verdict for row in then.rows if row.key == "theorem T01"] == ["holds"]
    assert at_hand_then(stored).policies == {"three-pass": POLICY, "two-pass": POLICY}
    assert [e.promises for _, e in then.found.of(PolicySeen)] == [("T01", "T09:two-pass")]


# --- the file of picks ---------------------------------------------------------------------------------------------


def test_picks_come_back_and_equal_ones_give_equal_bytes() -> None:
    made = [pick(1, "exact", "k1"), pick(2, "missing", None)]
    assert list(read_picks(pick_bytes(made), "f")) == made
    assert pick_bytes(made) == pick_bytes([Pick(dict(reversed(p.launch.items())), *p[1:]) for p in made])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        pick_bytes([pick(1, "exact", "k")])[:-9],
        gzip.compress(b'{"launch": [], "ending": "exact", "hash": null}\n', mtime=0),
        gzip.compress(b'{"launch": {}, "ending": "exact"}\n', mtime=0),
        gzip.compress(b"[" * 100_000, mtime=0),
        gzip.compress(b"\xff\n", mtime=0),
        b"\x1f\x8b\x08\x00" + bytes(6) + b"\xff" * 40,
    ],
)
def test_what_holds_no_picks_is_told_in_one_line(content: bytes) -> None:
    with pytest.raises(FoldproofError, match="holds no picks") as told:
        list(read_picks(content, "f"))
    assert "\n" not in str(told.value)


def test_a_packed_file_is_unpacked_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picks_module, "MAX_BYTES", 1000)
    with pytest.raises(FoldproofError, match="more than 1000 bytes"):
        list(read_picks(gzip.compress(b" " * 2000, mtime=0), "f"))
