"""The stages of `check`, each from data to data: load, prove, examine launches, and what is owed."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from foldproof.cli.digests import capture_seen, identified, interchangeable
from foldproof.cli.ui import Steps
from foldproof.gpu.bundle import bundled_capture
from foldproof.impl.capture import Capture, capture_file
from foldproof.impl.cases import Case, replay
from foldproof.impl.errors import AmbiguousTritonVariant
from foldproof.impl.launch import Launch, launch_to, load_launches
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.rules import refusal
from foldproof.impl.select import Selection, decide
from foldproof.model.lemmas import lemmas
from foldproof.model.matrix import SEARCH, Settled, settle, with_lemmas
from foldproof.model.prove import Bench, Question, questions
from foldproof.model.solvers import Decision, decide_text
from foldproof.model.verdict import Status
from foldproof.props.campaign import Campaign
from foldproof.props.checks import violation
from foldproof.props.derive import derive
from foldproof.reports.events import CaptureSeen, LaunchRow, Owed
from foldproof.reports.evidence import BUNDLED
from foldproof.reports.picks import Pick

RECORDED, DERIVED = "its recorded launches", "launches derived from its variants"
"""What records say of launches that no file on the command line gave."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is checked: the capture, where it came from, and the launches."""

    capture: Capture
    seen: CaptureSeen
    launches: tuple[Launch, ...]
    launches_from: str
    path: Path


def load(path: Path | None, launches: Path | None) -> Subject:
    """The capture and its launches. Raises `InvalidCapture` or `InvalidLaunch`."""
    folder = bundled_capture() if path is None else path
    capture, digests = identified(folder)
    given = launches or (capture_file(folder).parent / "launches.json" if path is None else None)
    if given is not None:
        decided = load_launches(given)
        source = RECORDED if launches is None else str(launches)
    else:
        decided, source = tuple(d.launch for d in derive(capture)), DERIVED
    seen = capture_seen(BUNDLED if path is None else str(path), capture, digests)
    return Subject(capture, seen, decided, source, folder)


@dataclass(frozen=True, slots=True)
class Proofs:
    """A verdict for each theorem with its own script, and the lemmas that all proofs rest on."""

    cells: tuple[Settled, ...]
    lemmas: tuple[tuple[str, Decision], ...]


def prove(policy: Policy, shown: Steps) -> Proofs:
    """A verdict for each theorem of the policy: unbounded by two solvers, or the smallest counterexample."""
    asked, obligations = list(questions(policy)), list(lemmas([policy]))
    shown.step("prove", len(asked) + 1)
    scripts = [(o.smt2(), o) for o in obligations]
    decided = tuple((script, decide_text(o.name, o.says, script)) for script, o in scripts)
    bench, cells = Bench(SEARCH), []
    for done, question in enumerate(asked, 1):
        cells.append(settle(bench, question, None) if isinstance(question, Question) else Settled(question))
        shown.at(done, cells[-1].verdict.theorem)
    shown.close()
    return Proofs(with_lemmas(cells, decided), decided)


@dataclass(frozen=True, slots=True)
class Examined:
    """The launches of a capture under a policy: a row a function, and what each launch selects."""

    rows: tuple[LaunchRow, ...]
    picks: tuple[Pick, ...]


def examine_launches(subject: Subject, policy: Policy, shown: Steps) -> Examined:
    """How the launches of each function end, what its variants leave open, and each launch's pick."""
    shown.step("launches", len(subject.launches))
    recommended, loosest = load_policy("recommended"), load_policy("three-pass").strictest_first[-1]
    by_function = {
        fn: [subject.capture.kernels[i] for i in subject.capture.candidates(fn)] for fn in subject.capture.functions
    }
    counts: dict[str, Counter[str]] = {}
    picks = []
    for done, launch in enumerate(subject.launches, 1):
        row = counts.setdefault(launch.fn, Counter())
        outcome = decide(subject.capture, launch, policy)
        ended = _ending(outcome)
        picks.append(Pick(launch_to(launch), ended, outcome.variant.hash if isinstance(outcome, Selection) else None))
        row["launches"] += 1
        row[ended] += 1
        # Only the candidates that some rules admit can be chosen between; with fewer than two nothing is left open.
        kernels = tuple(v for v in by_function.get(launch.fn, ()) if refusal(v, launch, loosest) is None)
        if len(kernels) > 1:
            case = Case("", Capture(kernels), launch)
            row["order_dependent"] += violation("T06v", case, policy) is not None
            row["free_constants"] += _leaves_constants_open(case, recommended)
        shown.at(done, launch.fn)
    rows = tuple(_launch_row(fn, len(by_function.get(fn, ())), counts[fn]) for fn in sorted(counts))
    return Examined(rows, tuple(picks))


def _ending(outcome: object) -> str:
    if isinstance(outcome, Selection):
        return "fallback" if outcome.is_fallback else str(outcome.strictness or "no rules")
    return "ambiguous" if isinstance(outcome, AmbiguousTritonVariant) else "missing"


def _leaves_constants_open(case: Case, recommended: Policy) -> bool:
    outcome = replay(case, recommended)
    return not isinstance(outcome, Selection) and "constant" in outcome.detail


def _launch_row(fn: str, variants: int, row: Mapping[str, int]) -> LaunchRow:
    names = ("launches", "exact", "general", "fallback", "ambiguous", "missing", "order_dependent", "free_constants")
    return LaunchRow(fn, variants, *(row[name] for name in names))


def owed(subject: Subject, settled: Collection[frozenset[str]], folder: str) -> tuple[Owed, ...]:
    """What no stage of `check` shows: bytes, which need a device run. `settled` are the pairs that a receipt has.

    `folder` is how a command line names the folder of the records.
    """
    open_pairs = interchangeable(subject.capture, subject.launches) - set(settled)
    if not open_pairs:
        return ()
    what = f"byte equality of {len(open_pairs)} interchangeable pairs of variants"
    why = "no variant of theirs was run" if settled else "no variant was run"
    named = [] if subject.seen.name == BUNDLED else [subject.seen.name]
    settle = shlex.join(["foldproof", "replay", *named, "--out", folder])
    return (Owed(what=what, why=f"{why}; foldproof bits needs no device", settle=settle),)


def exit_code(proofs: Proofs, campaign: Campaign) -> int:
    """1 a promise is refuted or something disagrees, 3 undecided, else 0."""
    verdicts = [cell.verdict for cell in proofs.cells]
    if any(v.breaks_a_promise for v in verdicts) or campaign.disagreements or campaign.violations:
        return 1
    return 3 if any(v.status == Status.UNDECIDED for v in verdicts) else 0
