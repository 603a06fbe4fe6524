"""Obligations against evidence: what a release owes, what shows it, and the verdict. No evidence, no claim."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from foldproof.reports.byte_duties import byte_rows, scenario_row
from foldproof.reports.duty import Asked, Row, Word
from foldproof.reports.events import CampaignRan, LaunchesExamined, TheoremJudged
from foldproof.reports.evidence import BUNDLED, FOLDER, AtHand, Evidence, Fact
from foldproof.reports.obligations import CaptureTable, Config, FuzzTable

THEOREM = "theorem "
"""How the key of a theorem's row starts."""
THEOREM_WORDS: Mapping[str, Word] = {"proved": "holds", "refuted": "fails", "undecided": "undecided"}
ENOUGH = 0.99
"""A campaign that was told to run for some seconds may end a shard early."""
ENDINGS = ("launches", "exact", "general", "fallback", "ambiguous", "missing")


def settle(config: Config, found: Evidence, at_hand: AtHand, promises: tuple[str, ...]) -> tuple[Row, ...]:
    """A row for each obligation of `config`, in its order. `promises` are those of the policy, as it writes them.

    `found` holds the newest fact of each subject (see `newest.newest`).
    """
    policy = config.policy.name
    rows = [*_theorems(config, found, promises, at_hand), _own_campaign(config, found, at_hand)]
    if config.fuzz:
        rows.append(_fuzz(config.fuzz, found, policy, at_hand))
    rows += [_launches(table, found, at_hand, policy) for table in config.capture]
    if config.bits:
        rows += byte_rows(config.bits, found, at_hand)
    if config.scenarios:
        check = _checking(next(iter(config.capture), None), policy, at_hand)
        rows += [scenario_row(device, found, check) for device in config.scenarios.devices]
    return tuple(rows)


def _said(policy: str, at_hand: AtHand) -> str:
    """How a command line names the policy."""
    return at_hand.named.get(policy, policy)


def _checking(table: CaptureTable | None, policy: str, at_hand: AtHand) -> str:
    """The `check` of a capture and its launches that writes to the folder of the records."""
    words = ["foldproof", "check", *([] if table is None or table.path == BUNDLED else [table.path])]
    words += ["--policy", _said(policy, at_hand)]
    words += ["--launches", table.launches] if table is not None and table.launches else []
    return shlex.join([*words, *([] if at_hand.folder == FOLDER else ["--out", at_hand.folder])])


def _theorems(config: Config, found: Evidence, promises: tuple[str, ...], at_hand: AtHand) -> Iterator[Row]:
    policy = config.policy.name
    said = _said(policy, at_hand)
    judged = {(e.theorem, e.old): (fact, e) for fact, e in found.of(TheoremJudged) if e.policy == policy}
    promised = {(theorem, old): None for theorem, _, old in (promise.partition(":") for promise in promises)}
    for theorem, old in _wanted(config.prove.theorems, promised, judged):
        what = f"{theorem} of {policy}" + (f" against {old}" if old else "")
        words = ["foldproof", "prove", "--policy", said, "--theorem", theorem, *(("--old", old) if old else ())]
        words += ["--out", at_hand.folder]
        asked = Asked(what, "proved", shlex.join(words), f"{THEOREM}{theorem}" + (f" against {old}" if old else ""))
        if (theorem, old) not in judged:
            yield asked.unmet()
            continue
        fact, event = judged[theorem, old]
        observed = f"proved, {event.scope}" if event.verdict == "proved" else event.verdict
        if event.reason and event.verdict != "proved":
            observed += f": {event.reason}"
        row = replace(asked, what=f"{what}: {event.name}").shown(
            fact, THEOREM_WORDS.get(event.verdict, "owed"), observed
        )
        # A refuted theorem that is neither promised nor asked for by name is a finding: it is shown, and stops nothing.
        named = {theorem, f"{theorem}:{old}"} & set(config.prove.theorems)
        yield replace(row, required=bool(named) or (theorem, old) in promised)


def _wanted(
    words: tuple[str, ...], promised: Mapping[tuple[str, str], None], judged: Mapping[tuple[str, str], object]
) -> dict[tuple[str, str], None]:
    """The theorems that the configuration asks for, each with the older policy that it is about."""
    wanted: dict[tuple[str, str], None] = {}
    for word in words:
        if word in ("promised", "all"):
            wanted |= dict.fromkeys(promised)
        if word == "all":
            wanted |= dict.fromkeys(judged)
        if word not in ("promised", "all"):
            theorem, _, old = word.partition(":")
            known = [] if old else [key for key in (*judged, *promised) if key[0] == theorem]
            wanted |= dict.fromkeys(known or [(theorem, old)])
    return wanted


def _own_campaign(config: Config, found: Evidence, at_hand: AtHand) -> Row:
    policy = config.policy.name
    asked = Asked(
        f"campaign: reference of {policy} against the model",
        "no difference",
        # The campaign needs no capture; a check of one that is owed for settles the launches of it, too.
        _checking(next(iter(config.capture), None), policy, at_hand),
        "campaign of the reference",
    )
    facts = [(fact, e) for fact, e in found.of(CampaignRan) if (e.stage, e.policy) == ("check", policy)]
    if not facts:
        return asked.unmet()
    fact, event = _telling(facts, lambda e: bool(e.disagreements or any(e.violated_promises.values())))
    broken = sum(event.violated_promises.values())
    observed = f"{event.cases:,} cases, {event.disagreements} differences"
    if broken:
        observed += f", {broken} cases that break a promise"
    wrong = event.disagreements or broken
    return asked.shown(fact, "fails" if wrong else "holds" if event.cases else "owed", observed)


def _fuzz(table: FuzzTable, found: Evidence, policy: str, at_hand: AtHand) -> Row:
    words = ["foldproof", "fuzz", "--selector", table.selector, "--against", _said(policy, at_hand)]
    words += [*(["--seconds", f"{table.seconds:g}"] if table.seconds else []), "--seed", str(table.seed)]
    words += ["--out", at_hand.folder]
    asked = Asked(
        f"campaign: {table.selector} against {policy}",
        "no difference" + (f" in {table.seconds:g} s" if table.seconds else ""),
        shlex.join(words),
        f"campaign of {table.selector}",
    )
    facts = [
        (fact, e)
        for fact, e in found.of(CampaignRan)
        if (e.stage, e.policy, e.selector) == ("fuzz", policy, table.selector)
    ]
    if not facts:
        return asked.unmet()
    fact, event = _telling(facts, lambda e: bool(e.disagreements or e.faults))
    wrong = event.disagreements + len(event.faults)
    observed = f"{event.cases:,} launches in {event.seconds or 0:.1f} s, {wrong} kinds of finding"
    if wrong:
        return asked.shown(fact, "fails", observed)
    enough = bool(event.cases) and (event.seconds or 0) >= table.seconds * ENOUGH
    return asked.shown(fact, "holds" if enough else "owed", observed)


def _telling(
    facts: Sequence[tuple[Fact, CampaignRan]], wrong: Callable[[CampaignRan], bool]
) -> tuple[Fact, CampaignRan]:
    """Of campaigns of one subject in several scopes, the one that decides: a fresh one, of these one that found.

    No later campaign of another scope hides a difference; of those that found none, the longest speaks.
    """
    fresh = [pair for pair in facts if not pair[0].stale]
    found = [pair for pair in fresh if wrong(pair[1])]
    return found[-1] if found else max(fresh, key=lambda pair: pair[1].seconds or 0) if fresh else facts[-1]


def _launches(table: CaptureTable, found: Evidence, at_hand: AtHand, policy: str) -> Row:
    asked = Asked(
        f"launches of {table.path} under {policy}",
        "each decided",
        _checking(table, policy, at_hand),
        f"launches of {table.path}",
    )
    here = {digest for digest, name in at_hand.names.items() if name == table.path}
    # A name alone says nothing: another capture may have been moved to the path since. It leads to what is stale.
    facts = [
        (fact, e)
        for fact, e in found.of(LaunchesExamined)
        if e.policy == policy and (e.capture_sha256 in here or (e.capture == table.path and (fact.stale or not here)))
    ]
    if not facts:
        return asked.unmet()
    fact, event = next((pair for pair in reversed(facts) if not pair[0].stale), facts[-1])
    counts = {name: sum(getattr(row, name) for row in event.rows) for name in ENDINGS}
    observed = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return asked.shown(fact, "holds" if counts["launches"] else "owed", observed or "no launch")
