"""The stages of `check`, each from data to data: load, prove, examine launches, and the record of it all."""

from __future__ import annotations

import hashlib
import platform
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from foldproof import __version__
from foldproof.cli.ui import Steps
from foldproof.gpu.bundle import bundled_capture
from foldproof.impl.capture import Capture, capture_file, load_capture, missing_cubins
from foldproof.impl.cases import Case, case_bytes, case_to, replay
from foldproof.impl.errors import AmbiguousTritonVariant
from foldproof.impl.explain import case_table, decides
from foldproof.impl.launch import Launch, load_launches
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.rules import refusal
from foldproof.impl.select import Selection, decide
from foldproof.model.lemmas import lemmas
from foldproof.model.matrix import SEARCH, Settled, settle, with_lemmas
from foldproof.model.prove import Bench, Question, questions
from foldproof.model.solvers import Decision, decide_text
from foldproof.model.theorems import THEOREMS
from foldproof.model.verdict import Status, Verdict
from foldproof.props.campaign import Campaign, Disagreement
from foldproof.props.checks import violation
from foldproof.props.derive import derive
from foldproof.reports.record import (
    SCHEMA_VERSION,
    CampaignRecord,
    CaptureRecord,
    CounterexampleRecord,
    EvidenceRow,
    LaunchRow,
    ObligationRow,
    Owed,
    Result,
    TheoremRow,
)

DEPENDENCIES = ("z3-solver", "cvc5", "hypothesis", "numpy", "pandas", "msgspec", "cuda-python")


@dataclass(frozen=True, slots=True)
class Subject:
    """What is checked: the capture, where it came from, and the launches."""

    capture: Capture
    record: CaptureRecord
    launches: tuple[Launch, ...]
    launches_from: str
    path: Path


def load(path: Path | None, launches: Path | None) -> Subject:
    """The capture and its launches. Raises `InvalidCapture` or `InvalidLaunch`."""
    folder = bundled_capture() if path is None else path
    capture, file = load_capture(folder), capture_file(folder)
    given = launches or (file.parent / "launches.json" if path is None else None)
    if given is not None:
        decided = load_launches(given)
        source = "its recorded launches" if launches is None else str(launches)
    else:
        decided, source = tuple(d.launch for d in derive(capture)), "launches derived from its variants"
    record = CaptureRecord(
        "the bundled capture" if path is None else str(path),
        hashlib.sha256(file.read_bytes()).hexdigest(),
        len(capture.kernels),
        len(capture.functions),
        len(missing_cubins(folder, capture)),
    )
    return Subject(capture, record, decided, source, folder)


@dataclass(frozen=True, slots=True)
class Proofs:
    """A verdict for each theorem, and every script with both solvers' answers."""

    verdicts: tuple[Verdict, ...]
    scripts: tuple[tuple[str, Decision], ...]


def prove(policy: Policy, shown: Steps) -> Proofs:
    """A verdict for each theorem of the policy: unbounded by two solvers, or the smallest counterexample."""
    asked, obligations = list(questions(policy)), list(lemmas([policy]))
    shown.step("prove", len(asked) + 1)
    scripts = [(o.smt2(), o) for o in obligations]
    decided = [(script, decide_text(o.name, o.says, script)) for script, o in scripts]
    bench, cells = Bench(SEARCH), []
    for done, question in enumerate(asked, 1):
        cells.append(settle(bench, question, None) if isinstance(question, Question) else Settled(question))
        shown.at(done, cells[-1].verdict.theorem)
    cells = list(with_lemmas(cells, decided))
    shown.close()
    own = [(cell.script, cell.decision) for cell in cells if cell.decision is not None]
    return Proofs(tuple(cell.verdict for cell in cells), (*decided, *own))


def examine_launches(subject: Subject, policy: Policy, shown: Steps) -> tuple[LaunchRow, ...]:
    """How the launches of each function end, and what its variants leave open."""
    shown.step("launches", len(subject.launches))
    recommended = load_policy("recommended")
    counts: dict[str, Counter[str]] = {}
    for done, launch in enumerate(subject.launches, 1):
        row = counts.setdefault(launch.fn, Counter())
        row["launches"] += 1
        row[_ending(subject.capture, launch, policy)] += 1
        case = _own_case(subject.capture, launch)
        if case is not None:
            row["order_dependent"] += violation("T06v", case, policy) is not None
            row["free_constants"] += _leaves_constants_open(case, recommended)
        shown.at(done, launch.fn)
    return tuple(_launch_row(subject.capture, fn, counts[fn]) for fn in sorted(counts))


def _ending(capture: Capture, launch: Launch, policy: Policy) -> str:
    outcome = decide(capture, launch, policy)
    if isinstance(outcome, Selection):
        return "fallback" if outcome.is_fallback else str(outcome.strictness or "no rules")
    return "ambiguous" if outcome.code == AmbiguousTritonVariant.code else "missing"


def _own_case(capture: Capture, launch: Launch) -> Case | None:
    """The case over the candidates that some rules admit; None where fewer than two are left to choose from."""
    loosest = load_policy("three-pass").strictest_first[-1]
    kernels = tuple(v for v in capture.kernels if v.fn == launch.fn and refusal(v, launch, loosest) is None)
    return Case("", Capture(kernels), launch) if len(kernels) > 1 else None


def _leaves_constants_open(case: Case, recommended: Policy) -> bool:
    outcome = replay(case, recommended)
    return not isinstance(outcome, Selection) and "constant" in outcome.detail


def _launch_row(capture: Capture, fn: str, row: Counter[str]) -> LaunchRow:
    names = ("launches", "exact", "general", "fallback", "ambiguous", "missing", "order_dependent", "free_constants")
    return LaunchRow(fn, len(capture.candidates(fn)), *(row[name] for name in names))


def owed(subject: Subject, settled: Collection[frozenset[str]]) -> tuple[Owed, ...]:
    """What no stage of `check` shows: bytes, which need a device run. `settled` are the pairs that a receipt has."""
    loosest = load_policy("three-pass").strictest_first[-1]
    pairs: set[frozenset[str]] = set()
    for launch in subject.launches:
        fitting = [v.hash for v in subject.capture.kernels if v.fn == launch.fn and refusal(v, launch, loosest) is None]
        pairs.update(frozenset((a, b)) for i, a in enumerate(fitting) for b in fitting[i + 1 :])
    open_pairs = pairs - set(settled)
    if not open_pairs:
        return ()
    what = f"byte equality of {len(open_pairs)} interchangeable pairs of variants"
    why = "no variant of theirs was run" if settled else "no variant was run"
    return (Owed(what, why, "foldproof replay on a device; foldproof bits needs none"),)


@dataclass(frozen=True, slots=True)
class Findings:
    """What the stages found, before it becomes a record."""

    subject: Subject
    policy: Policy
    proofs: Proofs
    campaign: Campaign
    launches: tuple[LaunchRow, ...]
    evidence: tuple[EvidenceRow, ...]
    owed: tuple[Owed, ...]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of the proofs."""
        return self.proofs.verdicts

    def next_command(self, out: Path) -> str:
        """The command to type next after a broken promise, "" if there is none."""
        for verdict in self.verdicts:
            if verdict.breaks_a_promise:
                return f"foldproof select --policy {self.policy.name} --cases {out / case_file(verdict)}"
        return ""


def case_file(verdict: Verdict) -> str:
    """Where a verdict's counterexample is written, below the report folder."""
    return f"cases/{verdict.theorem}-{Path(verdict.policy).stem}.json"


def exit_code(found: Findings) -> int:
    """1 a promise is refuted or something disagrees, 3 undecided, else 0."""
    campaign = found.campaign
    if any(v.breaks_a_promise for v in found.verdicts) or campaign.disagreements or campaign.violations:
        return 1
    if any(v.status == Status.UNDECIDED for v in found.verdicts):
        return 3
    return 0


def to_result(found: Findings, command: str, seed: int, seconds: float) -> tuple[Result, dict[str, bytes]]:
    """The record of a run, and the case files that belong to it."""
    files = {f"smt/{decision.name}.smt2": script.encode() for script, decision in found.proofs.scripts}
    examples, rows = [], []
    for verdict in found.verdicts:
        file = None
        if verdict.counterexample is not None:
            file = case_file(verdict)
            example, value = _example(verdict, found.policy, file)
            examples.append(example)
            files[file] = case_bytes(value)
        rows.append(_theorem_row(verdict, file))
    for number, differing in enumerate(found.campaign.disagreements):
        examples.append(_disagreement(differing, found.policy, f"cases/disagreement-{number}.json"))
        files[examples[-1].file] = case_bytes(case_to(differing.case, why=differing.why))
    campaign = found.campaign
    result = Result(
        SCHEMA_VERSION,
        f"foldproof {__version__}",
        {"python": platform.python_version()} | {name: metadata.version(name) for name in DEPENDENCIES},
        command,
        "complete",
        seed,
        found.policy.name,
        found.subject.record,
        found.subject.launches_from,
        tuple(rows),
        tuple(examples),
        tuple(ObligationRow(d.name, d.says, d.z3, d.cvc5) for _, d in found.proofs.scripts),
        CampaignRecord(
            seed, campaign.cases, campaign.outcomes, len(campaign.disagreements), campaign.violated, campaign.seconds
        ),
        found.launches,
        found.evidence,
        found.owed,
        exit_code(found),
        seconds,
    )
    return result, files


def _theorem_row(verdict: Verdict, file: str | None) -> TheoremRow:
    theorem = THEOREMS[verdict.theorem]
    return TheoremRow(
        verdict.policy,
        theorem.id,
        theorem.name,
        theorem.sentence,
        str(verdict.status),
        verdict.promised,
        verdict.scope if verdict.status == Status.PROVED else "",
        verdict.old,
        verdict.reason,
        file,
        verdict.witness.name if verdict.witness else None,
        tuple(f"{name}{' under the premises' if under else ''}" for name, _, under in verdict.reached),
        verdict.killed_by,
        verdict.seconds,
    )


def _example(verdict: Verdict, policy: Policy, file: str) -> tuple[CounterexampleRecord, dict[str, object]]:
    """The counterexample as a record and as a case file that `foldproof select` replays."""
    example = verdict.counterexample
    assert example is not None
    old = load_policy(verdict.old) if verdict.old else None
    broken = violation(verdict.theorem, example.case, policy, old, example.other_launch)
    outcome = replay(example.case, policy)
    columns, rows = case_table(example.case, outcome)
    why = broken.why if broken else "the model refutes it, and the reference does not: report this"
    command = f"foldproof select --policy {policy.name} --cases {file}"
    record = CounterexampleRecord(
        file, verdict.theorem, policy.name, why, command, columns, rows, decides(example.case, outcome)
    )
    expect = (
        {"pick": outcome.variant.hash, "pass": outcome.strictness}
        if isinstance(outcome, Selection)
        else {"error": outcome.code}
    )
    more = {"theorem": verdict.theorem, "policy": policy.name, "expect": expect, "why": why}
    if broken and broken.twin:
        more["twin"] = case_to(broken.twin)
    return record, case_to(example.case, **more)


def _disagreement(found: Disagreement, policy: Policy, file: str) -> CounterexampleRecord:
    outcome = replay(found.case, policy)
    columns, rows = case_table(found.case, outcome)
    command = f"foldproof select --policy {policy.name} --cases {file}"
    return CounterexampleRecord(file, "model", policy.name, found.why, command, columns, rows)
