"""A small evidence folder with every kind of event, its names as hostile as a caller likes, and its report."""

from __future__ import annotations

from pathlib import Path

from foldproof.impl.cases import case_bytes
from foldproof.reports.events import (
    BytesJudged,
    BytesRow,
    CampaignRan,
    CaptureSeen,
    CaseFound,
    LaunchesExamined,
    LaunchRow,
    MutantsHunted,
    ObligationDecided,
    Owed,
    PolicySeen,
    RunStarted,
    SelectorSeen,
    TheoremJudged,
)
from foldproof.reports.evidence import AtHand
from foldproof.reports.obligations import BitsTable, CaptureTable, Config, FuzzTable, PolicyTable
from foldproof.reports.recorder import now, recording
from foldproof.reports.store import read
from foldproof.reports.view import Report, build

POLICY, CAPTURE, SELECTOR = "a" * 64, "b" * 64, {"./my-selector": "c" * 64}
CUBINS = {"k1": "d" * 64, "k2": "e" * 64}
HOSTILE = (
    "<script>alert(1)</script>",
    "a|b`c``d*_[x](javascript:alert(1))",
    "K" * 10_000,
    "\u202egnitset\u202c",
    "line one\nline two\r\n::error::three",
    "]]> --> &amp; </td>",
)
R = {"name": "R", "type": "i32", "div16": False, "nospec": False}
CASE = case_bytes(
    {
        "name": "seed",
        "capture": {
            "kernels": [
                {"fn": "k", "hash": "k1", "name": "k", "num_warps": 4, "params": [R], "consts": {}},
                {"fn": "k", "hash": "k2", "name": "k", "num_warps": 4, "params": [], "consts": {"R": {"int": 1}}},
            ]
        },
        "launch": {"fn": "k", "args": [{"name": "R", "kind": "i32", "value": 1}]},
    }
)


def fill(folder: Path, fn: str = "_rms_norm", *, refuted: bool = True) -> None:
    """Write a run with one event of each kind; every untrusted text in it is, or holds, `fn`."""
    started = RunStarted(
        verb="check",
        command=f"foldproof check '{fn}' --policy three-pass",
        tool="foldproof 0.1.0",
        versions={"python": "3.11.7", "z3-solver": "4.15"},
        started=now(),
        seed="7",
        commit="1" * 40,
        dirty=False,
    )
    with recording(folder, started) as to:
        script = to.file("smt/T01.smt2", b"(assert false)\n(check-sat)\n")
        case = to.file("cases/T06-three-pass.json", CASE)
        to.emit(CaptureSeen(name=fn, sha256=CAPTURE, variants=2, functions=1, cubins=CUBINS, cubins_missing=0))
        to.emit(PolicySeen(name="three-pass", sha256=POLICY, promises=("T01", "T09:two-pass")))
        to.emit(SelectorSeen(spec="./my-selector", name=fn, files=SELECTOR, kinds=("i32", "ptr")))
        for theorem, old, verdict in (("T01", "", "proved"), ("T06", "", "refuted"), ("T09", "two-pass", "proved")):
            broken = verdict == "refuted"
            to.emit(
                TheoremJudged(
                    policy="three-pass", policy_sha256=POLICY, theorem=theorem, name=f"name-of-{theorem}",
                    sentence="A sentence.", verdict=verdict, promised=not broken, scope="" if broken else "unbounded",
                    old=old, old_sha256=POLICY if old else "", reason=fn if broken else "",
                    obligations=() if broken else ("T01",), counterexample=case if broken else None, seconds=0.25,
                )
            )  # fmt: skip
        to.emit(ObligationDecided(name="T01", says="a folded 1 wins", script=script, z3="unsat", cvc5="unsat"))
        table = (("", "", "R *"), (("launch", fn, "i32 = 1"), ("picked", "k1", "i32"), ("", "k2", "folded 1")))
        to.emit(
            CaseFound(
                stage="theorem", title="T06", theorem="T06", policy="three-pass", policy_sha256=POLICY, file=case,
                why=f"another order picks k2 of {fn}", expected="exact k2", got="exact k1", columns=table[0],
                rows=table[1], decides="R", command="foldproof select --policy three-pass --cases X",
            )
        )  # fmt: skip
        for stage, selector, wrong in (("check", "", 0), ("fuzz", "./my-selector", 1 if refuted else 0)):
            to.emit(
                CampaignRan(
                    stage=stage, policy="three-pass", policy_sha256=POLICY, seed="7", cases=10**6, disagreements=wrong,
                    outcomes={"exact": 600_000, "general": 300_000, "fallback": 99_000, "MissingTritonVariant": 1_000},
                    selector=selector, selector_files=SELECTOR if selector else {},
                    endings=("exact", "general", "fallback", "MissingTritonVariant"),
                    coverage=(("i32 = 1", "3/3", "2/3", "1/1", "1/1"), ("ptr aligned", "2/2", "1/2", "0/2", "1/1")),
                    visited=11, possible=15, curve=tuple((n * n * 100, min(11, n)) for n in range(1, 101)),
                    chance_of_new=0.002, chance_of_failure=0.003, seconds=61.5, rate=16_260.0,
                )
            )  # fmt: skip
        if refuted:
            to.emit(
                CaseFound(
                    stage="fuzz", title="pick differs", policy="three-pass", policy_sha256=POLICY, file=case, why=fn,
                    expected="fallback k1", got="general k1", columns=table[0], rows=table[1], launches=123,
                    command=f"foldproof fuzz --replay '{fn}'",
                )
            )  # fmt: skip
        to.emit(
            MutantsHunted(
                policy="three-pass",
                policy_sha256=POLICY,
                caught=1,
                real=2,
                rows=(("m1", "drops T01", "T01"), ("m2", fn, "")),
            )
        )
        rows = (LaunchRow(fn, 2, 10, 5, 2, 1, 1, 1, 3, 0), LaunchRow("_copy", 4, 20, 20, 0, 0, 0, 0, 0, 0))
        to.emit(
            LaunchesExamined(
                source="launches derived from its variants", capture=fn, capture_sha256=CAPTURE, policy="three-pass",
                policy_sha256=POLICY, rows=rows,
            )
        )  # fmt: skip
        for by, device, words, detail in (
            ("device", "NVIDIA H200", {"every bit pattern": "differs", "no NaN": "equal", "finite": "equal"},
             "Y byte 4: 7f against ff, set 3"),
            ("symbolic", "", {"every bit pattern": "unknown", "no NaN": "equal", "finite": "equal"}, "NaN payload"),
        ):  # fmt: skip
            to.emit(
                BytesJudged(
                    by=by, what="replay", capture_sha256=CAPTURE, cubins=CUBINS, device=device, date="2026-12-01",
                    counts={domain: {word: 1} for domain, word in words.items()}, driver="580.1" if device else "",
                    rows=(BytesRow(fn, f"{fn}[R=1]", "fold of R", "k1", "k2", words, "replay", detail),),
                )
            )  # fmt: skip
        to.emit(Owed(what=f"bytes of {fn}", why="no variant was run", settle="foldproof replay"))
        to.exit_code = 1 if refuted else 0


def at_hand(fn: str = "_rms_norm") -> AtHand:
    """What matches every digest of `fill`."""
    return AtHand(
        captures={CAPTURE: CUBINS},
        policies={"three-pass": POLICY, "two-pass": POLICY},
        selectors={"./my-selector": SELECTOR},
        pairs={CAPTURE: frozenset({frozenset({"k1", "k2"})})},
        names={CAPTURE: fn},
    )


CONFIG = Config(
    policy=PolicyTable("three-pass"),
    fuzz=FuzzTable("./my-selector", 60.0),
    capture=(CaptureTable("_rms_norm"),),
    bits=BitsTable(domains=("every bit pattern", "finite"), devices=("symbolic", "H200")),
)


def sample(folder: Path, fn: str = "_rms_norm", *, refuted: bool = True) -> Report:
    """The report of `fill`."""
    fill(folder, fn, refuted=refuted)
    stored, damaged = read(folder)
    return build(CONFIG, stored, at_hand(fn), ("T01", "T09:two-pass"), damaged)
