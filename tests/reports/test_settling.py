"""Obligations against evidence: what holds, fails and is owed; what is stale; which of many runs counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foldproof.impl.errors import FoldproofError
from foldproof.reports.duty import Row
from foldproof.reports.events import (
    AnyEvent,
    BytesJudged,
    BytesRow,
    CampaignRan,
    CaptureSeen,
    CaseFound,
    FileRef,
    LaunchesExamined,
    LaunchRow,
    Owed,
    PolicySeen,
    Record,
    RunFinished,
    RunStarted,
    SelectorSeen,
    TheoremJudged,
)
from foldproof.reports.evidence import AtHand, Run, staleness
from foldproof.reports.obligations import (
    BitsTable,
    CaptureTable,
    Config,
    FuzzTable,
    PolicyTable,
    ProveTable,
    ScenariosTable,
    load_config,
)
from foldproof.reports.store import Damage, Stored
from foldproof.reports.view import Report, build
from samples import CAPTURE, CONFIG, CUBINS, POLICY, SELECTOR, at_hand, sample

HERE = at_hand()
P = PolicyTable("three-pass")
OTHER = "9" * 64


def run(*events: AnyEvent, verb: str = "check", killed: bool = False, name: str = "") -> list[Stored]:
    """The records of one run; `name` orders runs that have the same start."""
    name = name or f"run-{verb}"
    began = RunStarted(verb=verb, command=f"foldproof {verb}", tool="t", versions={}, started=f"2026-12-01T{name}")
    last = () if killed else (RunFinished(state="complete", exit_code=0, records=()),)
    return [
        Stored(f"{name}-{place}", Record(1, name, place, event)) for place, event in enumerate((began, *events, *last))
    ]


def report(config: Config, *runs: Sequence[Stored], here: AtHand = HERE, promises: tuple[str, ...] = ()) -> Report:
    return build(config, [stored for one in runs for stored in one], here, promises)


def row(made: Report, start: str) -> Row:
    found = [one for one in made.rows if one.what.startswith(start)]
    assert len(found) == 1, [one.what for one in made.rows]
    return found[0]


def theorem(verdict: str = "proved", name: str = "T01", old: str = "", **more: Any) -> TheoremJudged:
    fields = {"policy": "three-pass", "policy_sha256": POLICY, "promised": True, "sentence": "s", "name": "n"}
    fields |= {"old": old, "old_sha256": POLICY if old else "", "scope": "unbounded" if verdict == "proved" else ""}
    return TheoremJudged(theorem=name, verdict=verdict, **(fields | more))


def campaign(stage: str = "check", **more: Any) -> CampaignRan:
    fields = {"policy": "three-pass", "policy_sha256": POLICY, "seed": "1", "cases": 5, "outcomes": {}}
    fields |= {"disagreements": 0, "seconds": 60.0}
    if stage != "check":
        fields |= {"selector": "./my-selector", "selector_files": SELECTOR}
    return CampaignRan(stage=stage, **(fields | more))


def judged(
    word: str = "equal", *, device: str = "NVIDIA H200", pair: tuple[str, str] = ("k1", "k2"), **more: Any
) -> Any:
    fields = {"what": "replay", "capture_sha256": CAPTURE, "cubins": CUBINS, "counts": {"finite": {word: 1}}}
    fields |= {"rows": (BytesRow("k", "l", "fold", *pair, {"finite": word}),), "date": "2026-12-01"}
    by = "device" if device else "symbolic"
    return BytesJudged(by=by, device=device, **(fields | more))


def finding(stage: str = "fuzz", path: str = "cases/f.json", **more: Any) -> CaseFound:
    fields = {"title": "t", "policy": "three-pass", "policy_sha256": POLICY, "why": "w", "command": "c"}
    return CaseFound(stage=stage, file=FileRef(path, "d"), **(fields | more))


# --- theorems ------------------------------------------------------------------------------------------------------


def test_without_evidence_everything_is_owed_with_the_command_that_settles_it() -> None:
    config = replace_in(CONFIG, scenarios=ScenariosTable(("H200",)))
    made = report(config, run(), promises=("T01", "T09:two-pass"))
    assert {one.verdict for one in made.rows} == {"owed"}
    assert {one.observed for one in made.rows} == {"no evidence"}
    assert [one.settle for one in made.rows] == [
        "foldproof prove --policy three-pass --theorem T01 --out foldproof-report",
        "foldproof prove --policy three-pass --theorem T09 --old two-pass --out foldproof-report",
        "foldproof check _rms_norm --policy three-pass",
        "foldproof fuzz --selector ./my-selector --against three-pass --seconds 60 --seed 0 --out foldproof-report",
        "foldproof check _rms_norm --policy three-pass",
        *["foldproof bits _rms_norm --out foldproof-report"] * 2,
        *["foldproof replay _rms_norm --out foldproof-report"] * 2,
        (
            "python3 -m foldproof.gpu.replay.device --out receipts, on the device; then "
            "foldproof check _rms_norm --policy three-pass --receipts receipts"
        ),
    ]
    assert made.exit_code == 3
    assert len({one.key for one in made.rows}) == len(made.rows)


def test_what_is_owed_is_settled_in_the_folder_of_the_records() -> None:
    config = replace_in(CONFIG, scenarios=ScenariosTable(("H200",)))
    made = report(config, run(), here=replace(HERE, folder="my reports"), promises=("T01", "T09:two-pass"))
    check = "foldproof check _rms_norm --policy three-pass --out 'my reports'"
    assert [one.settle for one in made.rows] == [
        "foldproof prove --policy three-pass --theorem T01 --out 'my reports'",
        "foldproof prove --policy three-pass --theorem T09 --old two-pass --out 'my reports'",
        check,
        "foldproof fuzz --selector ./my-selector --against three-pass --seconds 60 --seed 0 --out 'my reports'",
        check,
        *["foldproof bits _rms_norm --out 'my reports'"] * 2,
        *["foldproof replay _rms_norm --out 'my reports'"] * 2,
        f"python3 -m foldproof.gpu.replay.device --out receipts, on the device; then {check} --receipts receipts",
    ]


def test_the_campaign_of_the_reference_is_settled_with_the_capture_that_is_owed_for() -> None:
    for tables, words in (
        ((), ""),
        ((CaptureTable("the bundled capture"),), ""),
        ((CaptureTable("zoo", "all.json"), CaptureTable("other")), " zoo"),
    ):
        made = report(Config(policy=P, capture=tables), run(campaign(cases=0)))
        launches = " --launches all.json" if words else ""
        assert row(made, "campaign").settle == f"foldproof check{words} --policy three-pass{launches}"


def replace_in(config: Config, **tables: Any) -> Config:
    return Config(**{name: getattr(config, name) for name in config.__struct_fields__} | tables)


@pytest.mark.parametrize(
    ("verdict", "word", "code"),
    [("proved", "holds", 0), ("refuted", "fails", 1), ("undecided", "undecided", 3), ("odd", "owed", 3)],
)
def test_a_promise_ends_as_its_theorem(verdict: str, word: str, code: int) -> None:
    made = report(Config(policy=P), run(theorem(verdict), campaign()), promises=("T01",))
    assert row(made, "T01").verdict == word
    assert made.exit_code == code


@pytest.mark.parametrize(
    ("verdict", "reason", "said"),
    [
        ("proved", "", "proved, unbounded"),
        ("proved", "by chance", "proved, unbounded"),
        ("refuted", "", "refuted"),
        ("refuted", "k2 is picked", "refuted: k2 is picked"),
        ("undecided", "time ran out", "undecided: time ran out"),
        ("odd", "", "odd"),
        ("odd", "who knows", "odd: who knows"),
    ],
)
def test_what_is_said_of_a_theorem(verdict: str, reason: str, said: str) -> None:
    made = report(Config(policy=P), run(theorem(verdict, reason=reason)), promises=("T01",))
    assert row(made, "T01").observed == said


def test_what_settles_a_row_is_said_where_it_does_not_hold() -> None:
    events = (theorem(), theorem("refuted", "T02"), theorem("undecided", "T03"), campaign())
    made = report(Config(policy=P), run(*events), promises=("T01", "T02", "T03"))
    assert [bool(one.settle) for one in made.rows] == [False, True, True, False]
    assert {(one.date, one.exit, one.command) for one in made.rows} == {("2026-12-01", 0, "foldproof check")}


JUDGED = (theorem(), theorem(name="T06", promised=False), theorem(name="T09", old="two-pass"))
JUDGED = (*JUDGED, theorem(name="T09", old="exact-first", old_sha256=POLICY, promised=False))


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("promised",), ["T01", "T09 against two-pass", "T10"]),
        (("all",), ["T01", "T09 against two-pass", "T10", "T06", "T09 against exact-first"]),
        (("T09",), ["T09 against two-pass", "T09 against exact-first"]),
        (("T09:exact-first",), ["T09 against exact-first"]),
        (("T10", "T01"), ["T10", "T01"]),
        (("T11", "T01:two-pass"), ["T11", "T01 against two-pass"]),
        (("T06", "promised"), ["T06", "T01", "T09 against two-pass", "T10"]),
    ],
)
def test_the_theorems_that_the_words_ask_for(words: tuple[str, ...], keys: list[str]) -> None:
    config = Config(policy=P, prove=ProveTable(words))
    made = report(config, run(*JUDGED), promises=("T01", "T09:two-pass", "T10"))
    assert [one.key for one in made.rows if one.key.startswith("theorem")] == [f"theorem {key}" for key in keys]


@pytest.mark.parametrize("other", ["two-pass", "exact-first"])
def test_what_another_policy_keeps_is_no_evidence(other: str) -> None:
    named = {"policy": other, "policy_sha256": POLICY}
    events = (theorem(**named), campaign(**named), campaign("fuzz", **named), launches(**named))
    config = Config(policy=P, fuzz=FuzzTable("./my-selector"), capture=(CaptureTable("_rms_norm"),))
    here = replace(HERE, policies={**HERE.policies, "exact-first": POLICY})
    made = report(config, run(*events), here=here, promises=("T01",))
    assert [one.observed for one in made.rows] == ["no evidence"] * 4


def test_a_verdict_of_another_policy_or_another_pair_settles_nothing() -> None:
    events = (theorem(policy="two-pass"), theorem(name="T09", old="exact-first"))
    made = report(Config(policy=P), run(*events, campaign()), promises=("T01", "T09:two-pass"))
    assert [row(made, name).verdict for name in ("T01", "T09")] == ["owed", "owed"]


@pytest.mark.parametrize(
    ("words", "required"),
    [(("all",), False), (("all", "T06"), True), (("T06",), True), (("promised",), None), (("all", "T01"), False)],
)
def test_a_refuted_theorem_stops_a_release_where_it_is_promised_or_named(
    words: tuple[str, ...], required: bool | None
) -> None:
    config = Config(policy=P, prove=ProveTable(words))
    events = (theorem(), theorem("refuted", "T06", promised=False), campaign())
    made = report(config, run(*events), promises=("T01",))
    rows = [one for one in made.rows if one.what.startswith("T06")]
    assert [one.required for one in rows] == ([] if required is None else [required])
    assert made.exit_code == (1 if required else 0)


def test_a_pair_of_policies_is_named_with_a_colon() -> None:
    config = Config(policy=P, prove=ProveTable(("T09:two-pass",)))
    events = (theorem(name="T09", old="two-pass"), theorem("refuted", "T09", old="exact-first"), campaign())
    made = report(config, run(*events), here=replace(HERE, policies={**HERE.policies, "exact-first": POLICY}))
    assert made.rows[0].what == "T09 of three-pass against two-pass: n"
    assert made.exit_code == 0


# --- campaigns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "holds"),
        ({"disagreements": 1}, "fails"),
        ({"violated_promises": {"T01": 2}}, "fails"),
        ({"violated": {"T06": 2}}, "holds"),
        ({"cases": 0}, "owed"),
    ],
)
def test_the_campaign_of_the_reference(fields: dict[str, Any], word: str) -> None:
    assert row(report(Config(policy=P), run(campaign(**fields))), "campaign").verdict == word


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "holds"),
        ({"seconds": 59.5}, "holds"),
        ({"seconds": 59.0}, "owed"),
        ({"seconds": None}, "owed"),
        ({"cases": 0}, "owed"),
        ({"disagreements": 1}, "fails"),
        ({"disagreements": 1, "seconds": 1.0}, "fails"),
        ({"faults": ("crashed",)}, "fails"),
        ({"selector": "./other"}, "owed"),
        ({"policy": "two-pass"}, "owed"),
    ],
)
def test_a_campaign_against_a_selector_must_be_long_enough_and_find_nothing(fields: dict[str, Any], word: str) -> None:
    config = Config(policy=P, fuzz=FuzzTable("./my-selector", 60.0))
    made = report(config, run(campaign("fuzz", **fields), verb="fuzz"))
    assert row(made, "campaign: ./my-selector").verdict == word


@pytest.mark.parametrize("stage", ["fuzz", "a stage before", "exhaust"])
def test_a_campaign_of_another_stage_is_no_evidence(stage: str) -> None:
    assert row(report(Config(policy=P), run(campaign(stage))), "campaign").observed == "no evidence"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "5 cases, 0 differences"),
        ({"cases": 1_000, "disagreements": 2}, "1,000 cases, 2 differences"),
        ({"violated_promises": {"T01": 2, "T02": 1}}, "5 cases, 0 differences, 3 cases that break a promise"),
        ({"violated_promises": {"T01": 0}}, "5 cases, 0 differences"),
    ],
)
def test_what_is_said_of_the_campaign_of_the_reference(fields: dict[str, Any], said: str) -> None:
    assert row(report(Config(policy=P), run(campaign(**fields))), "campaign").observed == said


@pytest.mark.parametrize(
    ("fields", "asked", "word", "said"),
    [
        ({}, 60.0, "holds", "5 launches in 60.0 s, 0 kinds of finding"),
        ({"seconds": 60.0 * 0.99}, 60.0, "holds", "5 launches in 59.4 s, 0 kinds of finding"),
        ({"seconds": None}, 1.0, "owed", "5 launches in 0.0 s, 0 kinds of finding"),
        ({"seconds": None}, 0, "holds", "5 launches in 0.0 s, 0 kinds of finding"),
        ({"disagreements": 1, "faults": ("crashed",)}, 60.0, "fails", "5 launches in 60.0 s, 2 kinds of finding"),
    ],
)
def test_what_is_said_of_a_campaign_against_a_selector(
    fields: dict[str, Any], asked: float, word: str, said: str
) -> None:
    config = Config(policy=P, fuzz=FuzzTable("./my-selector", asked))
    found = row(report(config, run(campaign("fuzz", **fields))), "campaign: ./my")
    assert (found.verdict, found.observed) == (word, said)
    assert found.expected == ("no difference in 60 s" if asked == 60 else f"no difference{' in 1 s' if asked else ''}")


@pytest.mark.parametrize("wrong", [{"disagreements": 1}, {"violated_promises": {"T01": 1}}])
def test_of_several_scopes_the_one_that_found_something_speaks_for_the_reference(wrong: dict[str, Any]) -> None:
    first, second = campaign(scope="a", seconds=1.0, cases=7, **wrong), campaign(scope="b")
    for order in ((first, second), (second, first)):
        found = row(report(Config(policy=P), run(*order)), "campaign")
        assert (found.verdict, found.observed[:7]) == ("fails", "7 cases")


def test_of_several_scopes_the_last_that_found_something_or_else_the_longest_speaks() -> None:
    config = Config(policy=P, fuzz=FuzzTable("./my-selector", 60.0))

    def said(*scopes: dict[str, Any]) -> str:
        events = [campaign("fuzz", scope=str(n), cases=n, **fields) for n, fields in enumerate(scopes, 1)]
        return row(report(config, run(*events)), "campaign: ./my").observed

    assert said({"disagreements": 1}, {"disagreements": 2}, {}).startswith("2 launches")
    assert said({"seconds": 60.0}, {"seconds": 90.0}, {"seconds": 70.0}).startswith("2 launches")
    assert said({"seconds": None}, {"seconds": 0.5}).startswith("2 launches")
    stale = {"selector_files": {"./my-selector": OTHER}}
    assert said(stale, stale) == "stale: the selector has other bytes"
    assert said(stale, {"seconds": 1.0}).startswith("2 launches")


def test_of_what_is_stale_the_last_is_told() -> None:
    stale = {"selector_files": {"./my-selector": OTHER}}
    events = [campaign("fuzz", scope=str(n), cases=n, **stale) for n in (1, 2)]
    config = Config(policy=P, fuzz=FuzzTable("./my-selector"))
    assert row(report(config, run(*events)), "campaign: ./my").why.startswith("it said: 2 launches")


def test_no_later_campaign_of_another_scope_hides_a_difference() -> None:
    config = Config(policy=P, fuzz=FuzzTable("./my-selector", 60.0))
    first, second = campaign("fuzz", disagreements=1, scope="all of it"), campaign("fuzz", scope="a part")
    for order in ((first, second), (second, first)):
        assert row(report(config, run(*order, verb="fuzz")), "campaign: ./my").verdict == "fails"
    short = campaign("fuzz", seconds=1.0, scope="a part")
    assert row(report(config, run(campaign("fuzz"), short, verb="fuzz")), "campaign: ./my").verdict == "holds"
    stale = campaign("fuzz", scope="a part", selector_files={"./my-selector": OTHER})
    assert row(report(config, run(campaign("fuzz"), stale, verb="fuzz")), "campaign: ./my").verdict == "holds"


def launches(**more: Any) -> LaunchesExamined:
    rows = (LaunchRow("k", 2, 10, 10, 0, 0, 0, 0, 0, 0),)
    fields = {"source": "s", "capture": "c", "capture_sha256": CAPTURE, "policy": "three-pass", "policy_sha256": POLICY}
    return LaunchesExamined(**(fields | {"rows": rows} | more))


@pytest.mark.parametrize(
    ("fields", "word"),
    [({}, "holds"), ({"rows": ()}, "owed"), ({"policy": "two-pass"}, "owed"), ({"capture_sha256": OTHER}, "owed")],
)
def test_the_launches_of_a_capture(fields: dict[str, Any], word: str) -> None:
    config = Config(policy=P, capture=(CaptureTable("_rms_norm"),))
    assert row(report(config, run(launches(**fields))), "launches").verdict == word


CAPTURED = Config(policy=P, capture=(CaptureTable("_rms_norm"),))


def test_what_is_said_of_the_launches_of_a_capture() -> None:
    rows = (LaunchRow("k", 2, 1_000, 500, 0, 300, 150, 50, 0, 0), LaunchRow("l", 1, 2, 2, 0, 0, 0, 0, 0, 0))
    said = "1,002 launches, 502 exact, 300 fallback, 150 ambiguous, 50 missing"
    assert row(report(CAPTURED, run(launches(rows=rows))), "launches").observed == said
    assert row(report(CAPTURED, run(launches(rows=()))), "launches").observed == "no launch"


@pytest.mark.parametrize("other", ["_another", "_zoo"])
def test_the_launches_of_another_capture_are_no_evidence(other: str) -> None:
    here = replace(HERE, captures={**HERE.captures, OTHER: CUBINS}, names={**HERE.names, OTHER: other})
    made = report(CAPTURED, run(launches(capture=other, capture_sha256=OTHER)), here=here)
    assert row(made, "launches").observed == "no evidence"
    gone = report(CAPTURED, run(launches(capture=other, capture_sha256=OTHER)))
    assert row(gone, "launches").observed == "no evidence"


def test_launches_of_a_capture_that_lay_there_before_are_stale_or_another_ones() -> None:
    """Another capture moved to the path: where the older one still is, its launches are its own."""
    older = launches(capture="_rms_norm", capture_sha256=OTHER)
    assert row(report(CAPTURED, run(older)), "launches").observed == "stale: made on another capture"
    here = replace(HERE, captures={**HERE.captures, OTHER: CUBINS}, names={**HERE.names, OTHER: "_moved"})
    made = report(CAPTURED, run(older), here=here)
    assert (row(made, "launches").verdict, row(made, "launches").observed) == ("owed", "no evidence")
    moved = Config(policy=P, capture=(CaptureTable("_moved"),))
    assert row(report(moved, run(older), here=here), "launches").verdict == "holds"
    # Two paths with one capture: the digest has the name of one of them.
    twice = report(CAPTURED, run(launches(capture="_rms_norm")), here=replace(HERE, names={CAPTURE: "_twin"}))
    assert row(twice, "launches").verdict == "holds"


def test_of_the_launches_of_a_capture_the_newest_fresh_ones_speak() -> None:
    def of(source: str, **more: Any) -> LaunchesExamined:
        return launches(source=source, rows=(LaunchRow("k", 2, int(source), 0, 0, 0, 0, 0, 0, 0),), **more)

    stale = {"capture": "_rms_norm", "capture_sha256": OTHER}
    for events, said in (
        ((of("1"), of("2")), "2 launches"),
        ((of("1"), of("2"), of("3", **stale)), "2 launches"),
        ((of("1", **stale), of("2")), "2 launches"),
    ):
        assert row(report(CAPTURED, run(*events)), "launches").observed == said
    assert row(report(CAPTURED, run(of("1", **stale), of("2", **stale))), "launches").why == "it said: 2 launches"


@pytest.mark.parametrize(("name", "words"), [("zoo", " zoo"), ("_rms_norm", " _rms_norm"), ("the bundled capture", "")])
def test_no_command_line_names_the_bundled_capture(name: str, words: str) -> None:
    config = Config(policy=P, capture=(CaptureTable(name),), bits=BitsTable(devices=("H200", "tesla", "symbolic")))
    made = report(config, run(), here=replace(HERE, names={CAPTURE: name}))
    assert [one.settle for one in made.rows[1:]] == [
        f"foldproof check{words} --policy three-pass",
        *[f"foldproof replay{words} --out foldproof-report"] * 2,
        f"foldproof bits{words} --out foldproof-report",
    ]


# --- bytes ---------------------------------------------------------------------------------------------------------


def bits(must: str = "judged", **more: Any) -> Config:
    return Config(policy=P, bits=BitsTable(devices=("H200",), must=must, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "judged_is", "equal_is"),
    [
        ("equal", "holds", "holds"),
        ("equal modulo contraction", "holds", "holds"),
        ("differs", "holds", "fails"),
        ("unstable", "holds", "fails"),
        ("no reference", "holds", "fails"),
        ("a word of tomorrow", "holds", "fails"),
        ("unknown", "owed", "owed"),
        ("owed", "owed", "owed"),
    ],
)
def test_what_a_byte_verdict_settles(word: str, judged_is: str, equal_is: str) -> None:
    for must, wanted in (("judged", judged_is), ("equal", equal_is)):
        assert row(report(bits(must), run(judged(word))), "bytes").verdict == wanted


def test_the_worst_launch_of_a_pair_speaks_for_it() -> None:
    rows = tuple(
        BytesRow("k", launch, "c", "k1", "k2", {"finite": word}) for launch, word in (("a", "equal"), ("b", "differs"))
    )
    for order in (rows, rows[::-1]):
        assert row(report(bits("equal"), run(judged(rows=order))), "bytes").observed.startswith("1 differs")


@pytest.mark.parametrize("word", ["unknown", "owed", "equal", "equal modulo contraction"])
def test_a_difference_on_one_launch_of_a_pair_is_no_matter_of_order(word: str) -> None:
    rows = tuple(BytesRow("k", w, "c", "k1", "k2", {"finite": w}) for w in (word, "differs"))
    for order in (rows, rows[::-1]):
        found = row(report(bits("equal"), run(judged(rows=order))), "bytes")
        assert (found.verdict, found.observed) == ("fails", "1 differs on NVIDIA H200, 2026-12-01")


@pytest.mark.parametrize(("device", "by"), [("symbolic", "device"), ("symbolic", "timing"), ("H200", "symbolic")])
def test_who_judged_the_bytes_decides_which_device_is_settled(device: str, by: str) -> None:
    config = Config(policy=P, bits=BitsTable(devices=(device,)))
    mine, other = ("symbolic", "") if device == "symbolic" else ("device", "NVIDIA H200"), (by, "")
    for (name, where), word in ((mine, "holds"), (other, "owed")):
        event = BytesJudged(
            by=name, what="replay", capture_sha256=CAPTURE, cubins=CUBINS, device=where, date="2026-12-01",
            counts={"finite": {"equal": 1}}, rows=(BytesRow("k", "l", "fold", "k1", "k2", {"finite": "equal"}),),
        )  # fmt: skip
        assert row(report(config, run(event)), "bytes").verdict == word


def test_a_device_is_a_part_of_its_name_in_any_case() -> None:
    for device in ("h200", "Tesla", "tesla t4"):
        config = Config(policy=P, bits=BitsTable(devices=(device,)), scenarios=ScenariosTable((device,)))
        event = judged(what="scenarios", counts={"scenarios": {"equal": 1}}, rows=(), device="Tesla T4")
        made = report(config, run(judged(device="Tesla T4"), event))
        assert [one.verdict for one in made.rows[1:]] == ["owed" if device == "h200" else "holds"] * 2


@pytest.mark.parametrize(("must", "asked"), [("judged", "a verdict for each pair"), ("equal", "equal, each pair")])
def test_what_is_expected_of_bytes(must: str, asked: str) -> None:
    assert row(report(bits(must), run()), "bytes").expected == asked


def test_a_row_of_bytes_says_how_many_pairs_of_which_capture() -> None:
    def what(here: AtHand) -> str:
        return row(report(bits(), run(), here=here), "bytes").what

    two = frozenset(map(frozenset, (("k1", "k2"), ("k1", "k3"))))
    assert what(HERE) == "bytes of 1 pair of _rms_norm, finite, by H200"
    assert what(replace(HERE, pairs={CAPTURE: two})) == "bytes of 2 pairs of _rms_norm, finite, by H200"
    assert what(replace(HERE, pairs={CAPTURE: frozenset()})) == "bytes of 0 pairs of _rms_norm, finite, by H200"
    assert what(replace(HERE, names={})) == "bytes of 1 pair of bbbbbbbbbbbb, finite, by H200"
    assert what(AtHand()) == "bytes of the pairs of a capture, finite, by H200"


@pytest.mark.parametrize(
    ("cubins", "others", "counts"),
    [
        (("k1", "k2", "k3"), ("x1", "x2"), [3, 2]),
        (("k1", "k2"), ("k1", "k2"), [4, 4]),
        (("k1", "k2", "k3"), ("k1", "k2"), [4, 3]),
        (("k1",), ("k1", "k2", "k3"), [2, 4]),
    ],
)
def test_pairs_named_one_by_one_are_owed_where_their_cubins_are(
    cubins: tuple[str, ...], others: tuple[str, ...], counts: list[int]
) -> None:
    """Four pairs; those of no capture are owed by each."""
    captures = {CAPTURE: dict.fromkeys(cubins, "1"), OTHER: dict.fromkeys(others, "2")}
    named = (("k1", "k2"), ("k1", "k3"), ("x1", "x2"), ("z1", "z2"))
    made = report(bits(pairs=named), run(), here=replace(HERE, captures=captures, names={}))
    assert [int(one.what.split()[2]) for one in made.rows[1:]] == counts


def test_of_several_verdicts_on_bytes_the_newest_fresh_one_is_dated() -> None:
    stale = {"cubins": {**CUBINS, "k2": OTHER}}

    def made(*events: BytesJudged) -> Row:
        return row(report(bits(), run(*events)), "bytes")

    first, second = judged(arch="a", date="2026-12-02"), judged(arch="b", date="2026-12-03")
    third = judged(arch="c", date="2026-12-04", **stale)
    assert made(first, second).observed == "1 equal on NVIDIA H200, 2026-12-03"
    assert made(first, second, third).observed == "1 equal on NVIDIA H200, 2026-12-03"
    worse = judged("differs", arch="d", **stale)
    assert made(third, worse).why == "it said: 1 differs"
    assert made(worse, third).why == "it said: 1 equal"


@pytest.mark.parametrize(
    "fields",
    [{"what": "scenarios"}, {"what": "a timing"}, {"device": "AMD"}, {"device": ""}, {"capture_sha256": OTHER}],
)
def test_byte_verdicts_of_something_else_settle_nothing(fields: dict[str, Any]) -> None:
    assert row(report(bits(), run(judged(**fields))), "bytes").verdict == "owed"


def test_a_domain_that_was_not_run_is_owed() -> None:
    made = report(bits(domains=("finite", "no NaN")), run(judged()))
    assert [one.verdict for one in made.rows[1:]] == ["holds", "owed"]


def test_a_pair_that_was_not_run_is_owed() -> None:
    here = replace(HERE, pairs={CAPTURE: frozenset(map(frozenset, (("k1", "k2"), ("k1", "k3"))))})
    made = row(report(bits(), run(judged()), here=here), "bytes")
    assert (made.verdict, made.observed) == ("owed", "1 equal, 1 owed on NVIDIA H200, 2026-12-01")


def test_explicit_pairs_are_owed_by_the_capture_that_has_their_cubins() -> None:
    second = {"x1": "1" * 64, "x2": "2" * 64}
    here = replace(HERE, captures={CAPTURE: CUBINS, OTHER: second}, names={CAPTURE: "one", OTHER: "two"})
    config = bits(pairs=(("k1", "k2"), ("x1", "x2"), ("z1", "z2")))
    made = report(config, run(judged(), judged(pair=("x1", "x2"), capture_sha256=OTHER, cubins=second)), here=here)
    assert [one.observed for one in made.rows[1:]] == ["1 equal, 1 owed on NVIDIA H200, 2026-12-01"] * 2
    alone = report(bits(pairs=(("k2", "k1"),)), run(judged()))
    assert row(alone, "bytes of 1 pair").verdict == "holds"


def test_verdicts_on_one_capture_say_nothing_of_another() -> None:
    here = replace(
        HERE, captures={CAPTURE: CUBINS, OTHER: CUBINS}, pairs=dict.fromkeys((CAPTURE, OTHER), HERE.pairs[CAPTURE])
    )
    made = report(bits(), run(judged()), here=here)
    assert [one.verdict for one in made.rows[1:]] == ["holds", "owed"]
    made = report(bits(), run(judged(capture_sha256=OTHER)), here=here)
    assert [one.verdict for one in made.rows[1:]] == ["owed", "holds"]


def test_a_capture_without_interchangeable_pairs_owes_none() -> None:
    made = row(report(bits(), run(), here=replace(HERE, pairs={CAPTURE: frozenset()})), "bytes")
    assert (made.verdict, made.observed, made.settle) == ("holds", "no two variants are interchangeable", "")


def test_bytes_without_a_capture_are_owed_and_not_passed_over() -> None:
    made = row(report(bits(), run(judged()), here=AtHand()), "bytes")
    assert (made.verdict, made.settle) == ("owed", "name the [[capture]] in foldproof.toml")


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ({"equal": 2}, "holds"),
        ({"equal": 2, "differs": 0}, "holds"),
        ({"equal": 1, "differs": 1}, "fails"),
        ({"equal": 1, "differs": 1, "owed": 1}, "fails"),
        ({}, "owed"),
        ({"equal": 0}, "owed"),
        ({"owed": 1}, "owed"),
        ({"equal": 1, "owed": 1}, "owed"),
        ({"equal": 1, "a word of tomorrow": 1}, "owed"),
    ],
)
def test_scenarios(counts: dict[str, int], word: str) -> None:
    config = Config(policy=P, scenarios=ScenariosTable(("H200",)))
    event = judged(what="scenarios", counts={"scenarios": counts}, rows=())
    assert row(report(config, run(event)), "scenarios").verdict == word


@pytest.mark.parametrize("fields", [{"what": "replay"}, {"what": "timing"}, {"device": "AMD"}])
def test_what_is_no_scenario_of_the_device_is_no_evidence(fields: dict[str, Any]) -> None:
    config = Config(policy=P, scenarios=ScenariosTable(("H200",)))
    event = judged(**({"what": "scenarios", "counts": {"scenarios": {"equal": 1}}, "rows": ()} | fields))
    assert row(report(config, run(event)), "scenarios").observed == "no evidence"


def test_of_several_runs_of_the_scenarios_the_newest_fresh_one_speaks() -> None:
    config = Config(policy=P, scenarios=ScenariosTable(("H200",)))

    def of(number: int, **more: Any) -> BytesJudged:
        counts = {"scenarios": {"equal": number}}
        return judged(what="scenarios", counts=counts, rows=(), arch=str(number), **more)  # type: ignore[no-any-return]

    def made(*events: BytesJudged) -> Row:
        return row(report(config, run(*events)), "scenarios")

    stale = {"cubins": {**CUBINS, "k2": OTHER}}
    assert made(of(1), of(2)).observed == "2 equal on NVIDIA H200, 2026-12-01"
    assert made(of(1), of(2), of(3, **stale)).observed == "2 equal on NVIDIA H200, 2026-12-01"
    assert made(of(1, **stale), of(2, **stale)).why == "it said: 2 equal on NVIDIA H200, 2026-12-01"


# --- staleness -----------------------------------------------------------------------------------------------------

CHANGED = {
    "policy": (replace(HERE, policies={**HERE.policies, "three-pass": OTHER}), "the policy three-pass has changed"),
    "older policy": (replace(HERE, policies={**HERE.policies, "two-pass": OTHER}), "the policy two-pass has changed"),
    "policy gone": (replace(HERE, policies={}), "the policy three-pass is not at hand"),
    "selector": (replace(HERE, selectors={"./my-selector": {"./my-selector": OTHER}}), "the selector has other bytes"),
    "selector gone": (replace(HERE, selectors={}), "the selector is not at hand"),
    "capture": (replace(HERE, captures={OTHER: CUBINS}), "made on another capture"),
    "cubin": (
        replace(HERE, captures={CAPTURE: {**CUBINS, "k2": "e" * 63 + "f"}}),
        "1 cubins have other bytes, k2 among them",
    ),
    "cubin added": (
        replace(HERE, captures={CAPTURE: {**CUBINS, "k3": OTHER}}),
        "1 cubins were not there, k3 among them",
    ),
    "cubin gone": (replace(HERE, captures={CAPTURE: {"k1": CUBINS["k1"]}}), "1 cubins are not at hand, k2 among them"),
}
SEEN = CaptureSeen(name="c", sha256=CAPTURE, variants=2, functions=1, cubins=CUBINS, cubins_missing=0)
STALE = {
    "policy": (theorem(), campaign(), finding(), launches(), PolicySeen(name="three-pass", sha256=POLICY, promises=())),
    "older policy": (theorem(name="T09", old="two-pass"),),
    "policy gone": (theorem(), campaign()),
    "selector": (campaign("fuzz"), SelectorSeen(spec="./my-selector", name="n", files=SELECTOR)),
    "selector gone": (campaign("fuzz"), SelectorSeen(spec="./my-selector", name="n", files=SELECTOR)),
    "capture": (launches(), judged(), SEEN, campaign(capture_sha256=CAPTURE)),
    "cubin": (judged(), SEEN),
    "cubin added": (judged(), SEEN),
    "cubin gone": (judged(), SEEN),
}


@pytest.mark.parametrize("change", STALE)
def test_a_fact_is_stale_when_what_it_speaks_of_changed_and_only_then(change: str) -> None:
    here, why = CHANGED[change]
    for event in STALE[change]:
        assert staleness(event, HERE) == ""
        assert staleness(event, here) == why
    for other in STALE.keys() - {change}:
        for event in STALE[other]:
            spoken = staleness(event, here)
            assert spoken in ("", why), (other, event)


@pytest.mark.parametrize(
    ("here", "why"),
    [
        ({"k1": "0" * 64, "k2": "0" * 64, "k3": "1" * 64}, "2 cubins have other bytes, k1 among them"),
        ({**CUBINS, "k4": OTHER, "k3": OTHER}, "2 cubins were not there, k3 among them"),
        ({}, "2 cubins are not at hand, k1 among them"),
        ({"k1": "f" * 64, "k2": CUBINS["k2"]}, "1 cubins have other bytes, k1 among them"),
        ({"k1": "0" * 64, "k2": CUBINS["k2"]}, "1 cubins have other bytes, k1 among them"),
    ],
)
def test_how_many_cubins_are_others_and_the_first_of_them(here: dict[str, str], why: str) -> None:
    assert staleness(SEEN, replace(HERE, captures={CAPTURE: here})) == why


def test_what_speaks_of_no_cubin_stays_when_a_cubin_changes() -> None:
    assert staleness(launches(), CHANGED["cubin"][0]) == ""


@pytest.mark.parametrize(
    ("change", "start"),
    [("policy", "T01"), ("cubin", "bytes"), ("selector", "campaign: ./my"), ("capture", "launches")],
)
def test_a_stale_row_is_owed_and_says_what_it_said(change: str, start: str, tmp_path: Path) -> None:
    here, why = CHANGED[change]
    fresh = sample(tmp_path, refuted=False)
    here = replace(
        here,
        names={**HERE.names, **dict.fromkeys(here.captures, "_rms_norm")},
        pairs=dict.fromkeys(here.captures, HERE.pairs[CAPTURE]),
    )
    facts = [Stored(f.digest, Record(1, "r", n, f.event)) for n, f in enumerate(fresh.found.facts)]
    began = fresh.found.runs[0].started
    made = build(CONFIG, [Stored("s", Record(1, "r", -1, began)), *facts], here, ("T01",))
    before = {one.key: one for one in fresh.rows}
    rows = [one for one in made.rows if one.what.startswith(start)]
    assert rows
    for one in rows:
        assert (one.verdict, one.observed) == ("owed", f"stale: {why}")
        assert before[one.key].verdict in ("holds", "owed")
        assert one.settle
        assert one.why.startswith("it said: ")
        assert one.date


def test_a_case_is_as_stale_as_its_campaign() -> None:
    records = run(finding(), campaign("fuzz", disagreements=1), verb="fuzz")
    config = Config(policy=P, fuzz=FuzzTable("./my-selector"))
    assert [fact.stale for fact, _ in report(config, records).cases()] == [""]
    stale = [fact.stale for fact, _ in report(config, records, here=CHANGED["selector"][0]).cases()]
    assert stale == ["the selector has other bytes"]


# --- which of many runs counts -------------------------------------------------------------------------------------


def test_the_newest_verdict_counts_and_a_fresh_one_before_a_stale_one() -> None:
    first, second = run(theorem("refuted"), name="1"), run(theorem("proved"), name="2")
    assert row(report(Config(policy=P), first, second, promises=("T01",)), "T01").verdict == "holds"
    assert row(report(Config(policy=P), second, first, promises=("T01",)), "T01").verdict == "fails"
    stale = run(theorem("refuted", policy_sha256=OTHER), name="3")
    assert row(report(Config(policy=P), second, stale, promises=("T01",)), "T01").verdict == "holds"


def test_a_counterexample_goes_with_its_verdict() -> None:
    broken = theorem("refuted", counterexample=FileRef("cases/T01.json", "d"))
    first = run(broken, finding("theorem", "cases/T01.json", theorem="T01"), name="1")
    assert len(report(Config(policy=P), first, promises=("T01",)).cases()) == 1
    assert report(Config(policy=P), first, run(theorem(), name="2"), promises=("T01",)).cases() == []


def test_a_finding_goes_when_a_later_campaign_of_its_subject_finds_none() -> None:
    first = run(finding(), campaign("fuzz", disagreements=1), verb="fuzz", name="1")
    again = run(campaign("fuzz"), verb="fuzz", name="2")
    other = run(campaign("fuzz", scope="another"), verb="fuzz", name="3")
    assert len(report(Config(policy=P), first).cases()) == 1
    assert report(Config(policy=P), first, again).cases() == []
    assert len(report(Config(policy=P), first, other).cases()) == 1


def test_the_same_case_under_two_policies_is_two_findings() -> None:
    here = replace(HERE, policies={**HERE.policies, "mine": POLICY})
    records = run(finding(), finding(policy="mine"), campaign("fuzz"), campaign("fuzz", policy="mine"), verb="fuzz")
    assert len(report(Config(policy=P), records, here=here).cases()) == 2


def test_a_killed_run_loses_nothing_that_it_had_told() -> None:
    seen = SelectorSeen(spec="./my-selector", name="n", files=SELECTOR)
    killed = run(
        seen, theorem("refuted"), finding(), Owed(what="w", why="y", settle="s"), verb="fuzz", killed=True, name="1"
    )
    made = report(Config(policy=P), killed, promises=("T01",))
    assert [one.state for one in made.found.runs] == ["killed"]
    assert row(made, "T01").verdict == "fails"
    assert row(made, "T01").exit is None
    assert len(made.cases()) == 1
    assert [e.what for _, e in made.found.of(Owed)] == ["w"]
    ended = run(campaign("fuzz"), verb="fuzz", name="2")
    assert report(Config(policy=P), killed, ended).cases() == []
    elsewhere = run(campaign("fuzz", selector="./other"), verb="fuzz", name="3")
    assert len(report(Config(policy=P), killed, elsewhere).cases()) == 1
    before = run(campaign("fuzz"), verb="fuzz", name="0")
    assert len(report(Config(policy=P), before, killed).cases()) == 1


@pytest.mark.parametrize(
    ("stage", "policy"), [("exhaust", "three-pass"), ("check", "three-pass"), ("fuzz", "two-pass"), ("fuzz", "mine")]
)
def test_only_a_campaign_like_it_takes_a_finding_of_a_killed_run_away(stage: str, policy: str) -> None:
    killed = run(finding(), verb="fuzz", killed=True, name="1")
    ended = run(campaign(stage, policy=policy), verb="fuzz", name="2")
    assert len(report(Config(policy=P), killed, ended).cases()) == 1
    alike = run(campaign("fuzz"), verb="fuzz", name="3")
    assert report(Config(policy=P), killed, alike).cases() == []


def test_what_a_later_run_of_the_verb_does_not_owe_is_owed_no_more() -> None:
    owing = run(Owed(what="w", why="y", settle="s"), name="1")
    quiet = run(campaign(), name="2")
    assert len(list(report(Config(policy=P), owing).found.of(Owed))) == 1
    assert len(list(report(Config(policy=P), quiet, owing).found.of(Owed))) == 1
    assert list(report(Config(policy=P), owing, quiet).found.of(Owed)) == []
    other = run(campaign(), verb="prove", name="3")
    assert len(list(report(Config(policy=P), owing, other).found.of(Owed))) == 1
    for name in ("0", "3"):
        assert list(report(Config(policy=P), owing, run(campaign(), name=name)).found.of(Owed)) == []


def test_records_of_a_run_that_nothing_began_count_for_nothing() -> None:
    headless = run(theorem())[1:]
    made = report(Config(policy=P), headless, promises=("T01",))
    assert made.found.runs == ()
    assert row(made, "T01").verdict == "owed"
    after = report(Config(policy=P), headless, run(theorem(), name="whole"), promises=("T01",))
    assert row(after, "T01").verdict == "holds"


def test_a_run_knows_its_state() -> None:
    began = RunStarted(verb="check", command="c", tool="t", versions={}, started="s")
    ended = RunFinished(state="interrupted", exit_code=None, records=())
    assert [Run("r", began, last, 1).state for last in (None, ended)] == ["killed", "interrupted"]


# --- the verdict on top --------------------------------------------------------------------------------------------


def test_damage_fails_whatever_holds(tmp_path: Path) -> None:
    made = sample(tmp_path, refuted=False)
    broken = replace(made, damaged=(Damage("records/x.json", "was changed"),))
    assert broken.exit_code == 1
    assert broken.headline.startswith("1 files of the evidence are damaged: records/x.json was changed")


@pytest.mark.parametrize(
    ("verdict", "required", "code"),
    [
        ("fails", True, 1),
        ("fails", False, 0),
        ("owed", True, 3),
        ("undecided", True, 3),
        ("owed", False, 0),
        ("holds", True, 0),
    ],
)
def test_the_exit_code_is_of_what_is_required(verdict: Any, required: bool, code: int, tmp_path: Path) -> None:
    made = replace(sample(tmp_path), rows=(Row("x", "y", "z", verdict, required=required),))
    assert made.exit_code == code


def headline(*rows: tuple[str, Any, bool], damaged: tuple[Damage, ...] = ()) -> str:
    made = tuple(Row(what, "y", "z", verdict, required=required) for what, verdict, required in rows)
    return replace(report(Config(policy=P), run()), rows=made, damaged=damaged).headline


def test_the_verdict_in_one_sentence() -> None:
    holds, extra = ("A", "holds", True), ("X", "owed", False)
    fails = [(name, "fails", True) for name in "BCDE"]
    open_ = [("G", "owed", True), ("H", "undecided", True)]
    assert headline(holds, holds) == "three-pass keeps all 2 obligations."
    assert headline(holds, extra) == "three-pass keeps all 1 obligations; 1 that nothing asks for are owed."
    assert headline(holds, ("F", "fails", False)) == "three-pass keeps all 1 obligations."
    assert headline(holds, extra, *open_) == "2 of 4 obligations of three-pass are owed; 1 hold."
    assert headline(holds, *open_, fails[0]) == "three-pass fails 1 of 4 obligations: B."
    assert headline(holds, *fails[:3]) == "three-pass fails 3 of 4 obligations: B, C, D."
    assert headline(*fails) == "three-pass fails 4 of 4 obligations: B, C, D, ...."
    damaged = tuple(Damage(f"records/{name}.json", f"is {name}") for name in "xyz")
    assert headline(*fails, damaged=damaged) == "3 files of the evidence are damaged: records/x.json is x."


def test_the_promised_theorems_that_are_refuted() -> None:
    events = (
        theorem("refuted", "T01"), theorem("refuted", "T02", promised=False), theorem("proved", "T03"),
        theorem("undecided", "T04"), theorem("refuted", "T05", policy_sha256=OTHER), theorem("owed", "T06"),
        theorem("undecided", "T07", promised=False), theorem("proved", "T08", promised=False, policy_sha256=OTHER),
    )  # fmt: skip
    assert [event.theorem for _, event in report(Config(policy=P), run(*events)).promised_refuted()] == ["T01"]


# --- foldproof.toml ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("[fuzz]\n", "$.fuzz", "missing required field `selector`"),
        ("[fuzz]\nselector = ''\n", "$.fuzz.selector", "length >= 1"),
        ("[fuzz]\nselector = 'x'\nseconds = 0\n", "$.fuzz.seconds", "> 0"),
        ("[fuzz]\nselector = 'x'\nseconds = nan\n", "$.fuzz.seconds", "> 0"),
        ("[fuzz]\nselector = 'x'\nseconds = inf\n", "$.fuzz.seconds", "<="),
        ("[fuzz]\nselector = 'x'\nsecond = 5\n", "$.fuzz", "unknown field `second`"),
        ("[polcy]\nname = 'x'\n", "$", "unknown field `polcy`"),
        ("[[capture]]\npath = 5\n", "$.capture[0].path", "Expected `str`"),
        ("[bits]\ndomains = ['all']\n", "$.bits.domains[0]", "Invalid enum value"),
        ("[bits]\ndevices = ['']\n", "$.bits.devices[0]", "length >= 1"),
        ("[bits]\npairs = [['a']]\n", "$.bits.pairs[0]", "length"),
        ("[bits]\nmust = 'differ'\n", "$.bits.must", "Invalid enum value"),
        ("[report]\nformats = ['pdf']\n", "$.report.formats[0]", "Invalid enum value"),
        ("[scenarios]\n", "$.scenarios", "missing required field `devices`"),
        ("policy = 5\n", "$.policy", "Expected `object`"),
        ("[policy\n", "", "is not TOML"),
        ("a = 1\na = 2\n", "", "is not TOML"),
    ],
)
def test_what_is_wrong_in_foldproof_toml_is_told_with_its_place(
    text: str, place: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "foldproof.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(FoldproofError) as told:
        load_config(file)
    assert told.value.where == (f"{file}: {place}" if place else str(file))
    assert why in told.value.why
    assert told.value.fix


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x00"])
def test_what_is_no_text_is_no_toml(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_bytes(content)
    with pytest.raises(FoldproofError, match="is not TOML"):
        load_config(tmp_path / "f.toml")
    with pytest.raises(FoldproofError, match="is a directory"):
        load_config(tmp_path)


def test_a_campaign_lasts_a_year_at_most_and_a_minute_where_nothing_is_said(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    for said, seconds in (("", 60.0), ("seconds = 31_536_000\n", 365 * 86400.0), ("seconds = 31_536_001\n", None)):
        file.write_text(f"[fuzz]\nselector = 'x'\n{said}", "utf-8")
        if seconds is None:
            with pytest.raises(FoldproofError, match="<= 31536000"):
                load_config(file)
        else:
            assert load_config(file).fuzz == FuzzTable("x", seconds, 0)


def test_an_empty_file_owes_what_the_policy_promises(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_bytes(b"")
    assert load_config(tmp_path / "f.toml") == Config()
