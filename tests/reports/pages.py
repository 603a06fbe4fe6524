"""Reports for the page: one of a whole zoo of policies, one as large as a release gets, names as hostile as asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from foldproof.reports.events import (
    BytesJudged,
    BytesRow,
    CampaignRan,
    CaseFound,
    FileRef,
    HexWindow,
    LaunchesExamined,
    LaunchRow,
    MutantsHunted,
    RunStarted,
    TheoremJudged,
)
from foldproof.reports.evidence import AtHand
from foldproof.reports.obligations import DOMAINS
from foldproof.reports.recorder import now, recording
from foldproof.reports.store import read
from foldproof.reports.view import Report, build
from samples import CAPTURE, CASE, CONFIG, POLICY, at_hand, fill

POLICIES = ("exact-first", "exact-pinned", "two-pass", "single-guard", "three-pass", "most-held", "recommended")
THEOREMS = tuple(f"T{number:02}" for number in range(1, 16))


def run() -> RunStarted:
    """The beginning of a run: the newest one counts."""
    return RunStarted(verb="prove", command="foldproof prove", tool="foldproof 0.1.0", versions={}, started=now())


def judged(policy: str, theorem: str, case: FileRef, *, stale: bool = False) -> TheoremJudged:
    """A verdict of the zoo: what falls, and what of it is promised, follows from the two names."""
    number = POLICIES.index(policy) + THEOREMS.index(theorem)
    refuted = number % 4 == 0
    return TheoremJudged(
        policy=policy, policy_sha256="0" * 64 if stale else POLICY, theorem=theorem, name=f"name-of-{theorem}",
        sentence="A sentence.", verdict="refuted" if refuted else "proved", promised=number % 3 > 0, scope="unbounded",
        reason="also 2 variants x 2 params", counterexample=case if refuted else None, seconds=0.5,
    )  # fmt: skip


def zoo(folder: Path, fn: str = "_rms_norm", policies: tuple[str, ...] = POLICIES) -> Report:
    """`samples.fill` and the matrix of the zoo; all of `exact-pinned` is stale."""
    fill(folder, fn)
    with recording(folder, run()) as to:
        for policy in policies:
            for theorem in THEOREMS:
                if policy != "three-pass":
                    case = to.file(f"cases/{theorem}-{policy}.json", CASE)
                    event = judged(policy, theorem, case, stale=policy == "exact-pinned")
                    to.emit(event)
                    if event.counterexample:
                        to.emit(
                            CaseFound(
                                stage="theorem", title=theorem, theorem=theorem, policy=policy, policy_sha256=POLICY,
                                file=case, why=f"in another order the answer is B of {fn}", expected="A", got="B",
                                columns=("", "", "R", "S *"), decides="S", command=f"foldproof select --cases {fn}",
                                rows=(("launch", fn, "i32 = 1", "i32 = 1"), ("picked", "A", "i32 nospec", "i32")),
                            )
                        )  # fmt: skip
        to.exit_code = 1
    return report_of(folder, fn)


def report_of(folder: Path, fn: str = "_rms_norm") -> Report:
    """The report of what was written, with every policy of the zoo at hand."""
    stored, damaged = read(folder)
    here = at_hand(fn)
    known: AtHand = replace(here, policies=dict.fromkeys(POLICIES, POLICY) | dict(here.policies))
    return build(CONFIG, stored, known, ("T01", "T09:two-pass"), damaged)


def big(folder: Path, fn: str = "_rms_norm", variants: int = 343, mutants: int = 5_000) -> Report:
    """A release of 343 variants: thousands of byte rows on two judges, a long campaign, thousands of mutants."""
    hashes = [f"{place:016x}" for place in range(variants)]
    rows = tuple(
        BytesRow(
            f"{fn}{first % 42}", f"{fn}{first % 42}[S=1, RS=4096, {step} warps, fusion on]", "fold of S, div16 of X",
            hashes[first], hashes[(first + step) % variants],
            dict.fromkeys(DOMAINS, "differs" if first % 50 == 0 else "equal"), "replay",
            "in 3 of 512 sets: first in OUT at byte 0, 0xc5 against 0xc4" if first % 50 == 0 else "",
            HexWindow("OUT", 9_796, 8, "7a3a823a823a663a7d3a743a663a7a3a", "7a3a823a823a663a7c3a743a663a7a3a"),
        )
        for first in range(variants)
        for step in range(1, 6)
    )  # fmt: skip
    fill(folder, fn)
    with recording(folder, run()) as to:
        case = to.file("cases/many.json", CASE)
        for by, device in (("device", "NVIDIA H200"), ("symbolic", "")):
            to.emit(
                BytesJudged(
                    by=by, what="replay", capture_sha256=CAPTURE, cubins={}, device=device, date="2026-12-01",
                    counts={domain: {"equal": len(rows)} for domain in DOMAINS}, rows=rows,
                )
            )  # fmt: skip
        to.emit(
            CampaignRan(
                stage="exhaust", policy="three-pass", policy_sha256=POLICY, seed="1", cases=10**6, disagreements=0,
                outcomes={"exact": 10**6}, endings=("exact", "general", "fallback"),
                coverage=tuple((f"class {n}", f"{n}/60", "", "0/9") for n in range(60)), visited=9_000,
                possible=10_000, curve=tuple((n * 100, round(9_000 * n / (n + 200))) for n in range(1, 10_001)),
            )
        )  # fmt: skip
        for number in range(300):
            to.emit(
                CaseFound(
                    stage="campaign", title=f"difference {number}", policy="three-pass", policy_sha256=POLICY,
                    why=fn, file=FileRef(f"cases/{number}.json", case.sha256), command="foldproof select",
                    columns=("", "", *(f"A{n}" for n in range(12))), rows=(("launch", fn, *["i32 = 1"] * 12),) * 9,
                )
            )  # fmt: skip
        planted = tuple((f"m{n}", "a fault", "" if n % 10 == 0 else "T01") for n in range(mutants))
        to.emit(MutantsHunted(policy="three-pass", policy_sha256=POLICY, caught=1, real=mutants, rows=planted))
        functions = tuple(LaunchRow(f"{fn}{n}", 8, 16, 9, 3, n % 3, 0, 4, n % 2, 0) for n in range(200))
        to.emit(
            LaunchesExamined(
                source="traffic", capture=fn, capture_sha256=CAPTURE, policy="three-pass", policy_sha256=POLICY,
                rows=functions,
            )
        )  # fmt: skip
        to.exit_code = 1
    return report_of(folder, fn)
