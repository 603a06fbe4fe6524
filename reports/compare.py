"""Two releases held against each other: what became refuted, proved, owed or slower, and which launches moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from foldproof.reports.canonical import canonical
from foldproof.reports.changes import (
    DROPPED,
    ENDING,
    FASTER,
    LOST_LAUNCH,
    NEW_LAUNCH,
    SLOWER,
    VARIANT,
    WORSE,
    Change,
    Comparison,
)
from foldproof.reports.duty import Word
from foldproof.reports.events import CampaignRan, LaunchesExamined, TheoremJudged
from foldproof.reports.picks import Pick, launch_words
from foldproof.reports.settling import THEOREM, THEOREM_WORDS
from foldproof.reports.view import Report

RATIO = 1.5
"""Slower, or faster, is by this factor at least: two runs on one machine differ by less."""
NOISE = 1.0
"""Seconds; where both releases took less, a ratio says nothing."""
MOST = 1000
"""Changed launches that are listed one by one; `Comparison.moved` counts all."""
VERDICTS: Mapping[Word, str] = {"holds": "proved", "fails": "refuted", "undecided": "undecided", "owed": "owed"}
Picks = Mapping[str, Iterable[Pick]]
"""The picks of a release, by the path of their file (`LaunchesExamined.picks`)."""


def compare(old: Report, new: Report, picks_old: Picks, picks_new: Picks) -> Comparison:
    """What changed. `old` is best made with `then.report_then`, which holds old records against nothing but themselves.

    The policies of the two reports are compared with each other, whatever they are called; another policy with its
    namesake. Launches are joined by their canonical JSON, capture by capture; picks are compared by hash, so the same
    code under another hash counts as another variant: no file says that it is the same.
    """
    unmeasured: list[str] = []
    launches = _launches(old, new, picks_old, picks_new, unmeasured)
    changes = [*_verdicts(old, new), *_speeds(old, new, unmeasured), *launches.changes]
    changes.sort(key=lambda change: change.what not in WORSE)
    return replace(launches, changes=tuple(changes), unmeasured=tuple(unmeasured))


# --- verdicts ------------------------------------------------------------------------------------------------------


def _verdicts(old: Report, new: Report) -> Iterator[Change]:
    before, after = dict(_words(old)), dict(_words(new))
    for subject in dict.fromkeys((*after, *before)):
        was, is_ = before.get(subject, ""), after.get(subject, "")
        if was != is_:
            yield Change(is_ or DROPPED, subject, was, is_)


def _words(report: Report) -> Iterator[tuple[str, str]]:
    """Each theorem and each obligation, with its verdict; of a theorem, what an obligation says comes last."""
    for fact, e in report.found.of(TheoremJudged):
        subject = _theorem(e.theorem, e.old) + ("" if e.policy == report.policy else f" of {e.policy}")
        word = THEOREM_WORDS.get(e.verdict, "owed")
        yield subject, "owed" if fact.stale else VERDICTS[word]
    for row in report.rows:
        subject = row.key or row.what
        yield subject, VERDICTS[row.verdict] if subject.startswith(THEOREM) else row.verdict


def _theorem(theorem: str, old: str) -> str:
    return f"{THEOREM}{theorem}" + (f" against {old}" if old else "")


# --- speeds --------------------------------------------------------------------------------------------------------


def _speeds(old: Report, new: Report, unmeasured: list[str]) -> Iterator[Change]:
    before, after = dict(_rates(old)), dict(_rates(new))
    for subject in (subject for subject in after if subject in before):
        was, is_ = before[subject], after[subject]
        if not was or not is_:
            unmeasured.append(f"the speed of the {subject}: one of the two releases did not measure it")
        elif max(was, is_) >= RATIO * min(was, is_):
            yield Change(SLOWER if is_ < was else FASTER, subject, f"{was:,.1f} cases/s", f"{is_:,.1f} cases/s")
    yield from _proof_times(old, new)


def _rates(report: Report) -> Iterator[tuple[str, float | None]]:
    """Each campaign and its cases a second; those of another policy than the report's by its name."""
    for fact, e in report.found.of(CampaignRan):
        if not fact.stale:
            of = "" if e.policy == report.policy else f" of {e.policy}"
            words = [e.stage, "campaign" + of, f"against {e.selector}" if e.selector else "", e.scope]
            yield " ".join(word for word in words if word), e.rate


def _proof_times(old: Report, new: Report) -> Iterator[Change]:
    """The seconds of all theorems of a policy that both releases judged and measured."""
    before, after = _seconds(old), _seconds(new)
    for policy in (policy for policy in after if policy in before):
        both = before[policy].keys() & after[policy].keys()
        was, is_ = (sum(side[policy][theorem] for theorem in both) for side in (before, after))
        longer, shorter = max(was, is_), min(was, is_)
        if both and longer >= NOISE and longer >= RATIO * shorter:
            subject = f"proofs of {len(both)} theorems" + (f" of {policy}" if policy else "")
            yield Change(SLOWER if is_ > was else FASTER, subject, f"{was:,.1f} s", f"{is_:,.1f} s")


def _seconds(report: Report) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for fact, e in report.found.of(TheoremJudged):
        if e.seconds is not None and not fact.stale:
            found["" if e.policy == report.policy else e.policy][_theorem(e.theorem, e.old)] = e.seconds
    return found


# --- launches ------------------------------------------------------------------------------------------------------


def _launches(old: Report, new: Report, picks_old: Picks, picks_new: Picks, unmeasured: list[str]) -> Comparison:
    before, after = _decided(old, picks_old, unmeasured), _decided(new, picks_new, unmeasured)
    if len(before) == len(after) == 1 and before.keys() != after.keys():
        # One capture on each side is the same one, wherever it lay.
        before = {next(iter(after)): next(iter(before.values()))}
    found: list[Change] = []
    shared = moved = 0
    for capture in dict.fromkeys((*after, *before)):
        was, is_ = before.get(capture, {}), after.get(capture, {})
        both = [launch for launch in is_ if launch in was]
        shared += len(both)
        for launch in both:
            change = _moved(was[launch], is_[launch])
            if change:
                moved += 1
                if moved <= MOST:
                    found.append(change)
        for word, one, other in ((NEW_LAUNCH, is_, was), (LOST_LAUNCH, was, is_)):
            number = sum(launch not in other for launch in one)
            if number:
                said = (f"{number}", "") if word == LOST_LAUNCH else ("", f"{number}")
                found.append(Change(word, f"launches of {capture}", *said))
    if moved > MOST:
        found.append(Change(VARIANT, f"{moved - MOST} further launches", "", ""))
    return Comparison(old.policy, new.policy, tuple(found), shared, moved)


def _decided(report: Report, picks: Picks, unmeasured: list[str]) -> dict[str, dict[bytes, Pick]]:
    """The picks of the report's policy by capture and by the launch's canonical JSON."""
    found: dict[str, dict[bytes, Pick]] = {}
    for _, e in report.found.of(LaunchesExamined):
        if e.policy != report.policy:
            continue
        if e.picks is None or e.picks.path not in picks:
            unmeasured.append(f"launches of {e.capture} under {e.policy}: a release has no record of what they select")
            continue
        found.setdefault(e.capture, {}).update({canonical(pick.launch): pick for pick in picks[e.picks.path]})
    return found


def _moved(was: Pick, is_: Pick) -> Change | None:
    if (was.ending, was.hash) == (is_.ending, is_.hash):
        return None
    word = ENDING if was.hash == is_.hash else VARIANT
    return Change(word, launch_words(is_.launch), _said(was), _said(is_))


def _said(pick: Pick) -> str:
    return f"{pick.ending} {pick.hash}" if pick.hash else pick.ending
