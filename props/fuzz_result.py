"""The record of a campaign, and the files that belong to it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from foldproof import __version__
from foldproof.impl.cases import Case
from foldproof.impl.external.answers import Fault
from foldproof.impl.launch import Kind
from foldproof.impl.policy import Policy
from foldproof.props.corpus import Reached
from foldproof.props.coverage import Coverage, table
from foldproof.props.example_patch import example_lines
from foldproof.props.fuzz_record import SCHEMA_VERSION, CoverageRecord, FindingRecord, FuzzRecord
from foldproof.props.fuzz_run import Done, Plan
from foldproof.props.pin import Finding, Seen, case_file

MOST_STRAY = 8
"""Faults that belong to no launch, of which the text is kept."""


class Campaign(msgspec.Struct, frozen=True):
    """A campaign that is done: what it was, what it showed, what the corpus held, and the words that asked for it.

    `again` are the answers to the corpus's cases, with each case; `against` and `capture` are the options as given;
    `stray` are the faults that belong to no launch, those of the selector's end included.
    """

    plan: Plan
    done: Done
    name: str
    kinds: frozenset[Kind]
    reached: Reached
    again: Sequence[tuple[str, Case, Seen]]
    against: str
    capture: str | None
    command: str
    out: str
    stray: Sequence[Fault]


def to_record(campaign: Campaign) -> tuple[FuzzRecord, dict[str, bytes]]:
    """The record, and the case files below the report folder."""
    plan, done = campaign.plan, campaign.done
    found = [*_known(campaign), *_new(campaign)]
    stray = tuple(dict.fromkeys(str(fault) for fault in campaign.stray))[:MOST_STRAY]
    part, total = done.part, campaign.reached.coverage + done.part.coverage
    every = campaign.reached.launches + part.launches
    record = FuzzRecord(
        SCHEMA_VERSION,
        f"foldproof {__version__}",
        campaign.command,
        plan.spec.text,
        campaign.name,
        plan.policy.name,
        plan.seed,
        campaign.capture,
        done.start,
        part.rounds,
        part.launches,
        total.rounds,
        every,
        part.unasked,
        len(campaign.again),
        dict(sorted(part.outcomes.items())),
        coverage_record(total, plan.policy, campaign.kinds),
        total.chance_of_new,
        3 / total.rounds if total.rounds and not found and not stray else None,
        tuple(row for row, _ in found),
        stray,
        "complete",
        int(bool(found or stray)),
        plan.workers,
        done.seconds,
        part.launches / done.seconds if done.seconds else 0.0,
    )
    return record, {row.file: content for row, content in found if row.file}


def coverage_record(coverage: Coverage, policy: Policy, kinds: frozenset[Kind]) -> CoverageRecord:
    """What was visited of what there is."""
    made = table(coverage, policy, kinds)
    remaining = tuple((cell.arg, cell.place, cell.ending) for cell in made.remaining)
    return CoverageRecord(made.endings, made.rows, made.visited, made.possible, remaining)


def _new(campaign: Campaign) -> Iterator[tuple[FindingRecord, bytes]]:
    for finding in campaign.done.findings:
        file = f"cases/fuzz-{finding.slug}.json"
        case = finding.case
        row = FindingRecord(
            finding.kind,
            finding.launches,
            finding.expected,
            finding.got,
            file,
            len(case.capture.kernels),
            len(case.launch.args),
            finding.reproduced,
            _replay(campaign, f"{campaign.out}/{file}") if finding.reproduced else _rerun(campaign, finding),
            finding.round,
            finding.stderr,
            "\n".join(example_lines(case)),
            seconds=finding.seconds,
        )
        yield row, case_file(finding, campaign.plan.policy, campaign.plan.spec.text)


def _known(campaign: Campaign) -> Iterator[tuple[FindingRecord, bytes]]:
    """Cases of the corpus that the selector answers otherwise, the first of each kind: failures first, then cells."""
    kinds = Counter(seen.kind for _, _, seen in campaign.again if seen.kind)
    first = {seen.kind: (case, seen) for _, case, seen in reversed(campaign.again) if seen.kind}
    for kind, count in kinds.items():
        case, seen = first[kind]
        stderr = seen.fault.stderr if seen.fault else ""
        finding = Finding(kind, case, seen.expected, seen.got, 0, 0, count, True, 1, stderr)
        file = f"cases/fuzz-known-{finding.slug}.json"
        sizes = len(case.capture.kernels), len(case.launch.args)
        words = seen.expected, seen.got, file, *sizes, True, _replay(campaign, f"{campaign.out}/{file}")
        example = "\n".join(example_lines(case))
        row = FindingRecord(kind, count, *words, stderr=stderr, example=example, known=True)
        yield row, case_file(finding, campaign.plan.policy, campaign.plan.spec.text)


def _replay(campaign: Campaign, file: str) -> str:
    return shlex.join([*_head(campaign), "--replay", file])


def _rerun(campaign: Campaign, finding: Finding) -> str:
    more = ["--capture", campaign.capture] if campaign.capture else []
    seed = str(campaign.plan.seed)
    return shlex.join([*_head(campaign), *more, "--seed", seed, "--round", str(finding.round)])


def _head(campaign: Campaign) -> list[str]:
    return ["foldproof", "fuzz", "--selector", campaign.plan.spec.text, "--against", campaign.against]
