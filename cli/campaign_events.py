"""From a campaign on a selector to the events of its run: `fuzz` and `exhaust`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

import msgspec
from foldproof.cli.digests import policy_digest, selector_files
from foldproof.impl.cases import case_from, replay
from foldproof.impl.explain import case_table, decides
from foldproof.impl.policy import Policy
from foldproof.props.fuzz_record import FuzzRecord
from foldproof.reports.events import CampaignRan, CaseFound, FileRef
from foldproof.reports.recorder import Recorder

CURVE_POINTS = 200
"""Points of a discovery curve that are kept, spread evenly over the campaign."""
Curve = Sequence[tuple[int, int]]


def noted(curve: list[tuple[int, int]], point: tuple[int, int]) -> None:
    """Add a point; a curve that grows past sixteen times what is kept loses every second one, so that it stays small.

    What is left of an old stretch is then sparser than what is new, which a plot over launches does not mind.
    """
    curve.append(point)
    if len(curve) > 16 * CURVE_POINTS:
        del curve[1::2]


def thinned(curve: Curve) -> tuple[tuple[int, int], ...]:
    """At most `CURVE_POINTS` of the points, the first and the last among them."""
    if len(curve) <= CURVE_POINTS:
        return tuple(curve)
    step = (len(curve) - 1) / (CURVE_POINTS - 1)
    return tuple(curve[round(n * step)] for n in range(CURVE_POINTS))


class Answered(msgspec.Struct, frozen=True):
    """A finding in words: what the reference answers and what the selector does, and the line that shows it again.

    `stage` is fuzz or exhaust; `launches` is how many showed it, `known` whether the corpus held it already.
    """

    stage: str
    command: str
    title: str
    expected: str
    got: str
    launches: int | None = None
    known: bool = False


def emit_case(to: Recorder, policy: Policy, ref: FileRef, content: bytes, said: Answered) -> None:
    """A finding whose case file is `ref`, with the case on one screen."""
    case = case_from(json.loads(content)[0])
    outcome = replay(case, policy)
    columns, rows = case_table(case, outcome)
    to.emit(
        CaseFound(
            stage=said.stage,
            title=said.title,
            policy=policy.name,
            policy_sha256=policy_digest(policy),
            why=f"the selector answers {said.got}, and {policy.name} {said.expected}",
            file=ref,
            command=said.command,
            expected=said.expected,
            got=said.got,
            columns=columns,
            rows=rows,
            decides=decides(case, outcome),
            launches=said.launches,
            known=said.known,
        )
    )


def emit_fuzz(  # noqa: PLR0913, PLR0917 (all that a campaign's record rests on)
    to: Recorder, record: FuzzRecord, files: Mapping[str, bytes], policy: Policy, named: str, curve: Curve,
    capture_sha256: str | None,
) -> FuzzRecord:  # fmt: skip
    """The cases of a campaign and the campaign; the record with each case under the name that it was written by."""
    findings = []
    for finding in record.findings:
        if not finding.file:
            findings.append(finding)
            continue
        ref = to.file(finding.file, files[finding.file])
        placed = msgspec.structs.replace(
            finding, file=ref.path, command=finding.command.replace(finding.file, ref.path)
        )
        findings.append(placed)
        words = ["foldproof", "fuzz", "--selector", record.selector, "--against", named, "--replay", ref.path]
        answers = finding.kind, finding.expected, finding.got, finding.launches, finding.known
        emit_case(to, policy, ref, files[finding.file], Answered("fuzz", shlex.join(words), *answers))
    covered = record.coverage
    to.emit(
        CampaignRan(
            stage="fuzz",
            policy=policy.name,
            policy_sha256=policy_digest(policy),
            seed=str(record.seed),
            cases=record.launches,
            outcomes=record.outcomes,
            disagreements=len(record.findings),
            selector=record.selector,
            selector_files=selector_files(record.selector),
            capture_sha256=capture_sha256,
            faults=record.stray_faults,
            state=record.run_state,
            endings=covered.endings,
            coverage=covered.rows,
            visited=covered.visited,
            possible=covered.possible,
            curve=thinned(curve),
            chance_of_new=record.chance_of_new,
            chance_of_failure=record.chance_of_failure,
            seconds=round(record.seconds, 3),
            rate=round(record.rate, 1),
        )
    )
    return msgspec.structs.replace(record, findings=tuple(findings))
