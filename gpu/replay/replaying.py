"""A replay from capture to receipt: plan, run what is not run yet, judge. CLI and device script both call it."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import foldproof
import msgspec
from foldproof.gpu.bundle import LAUNCHES
from foldproof.gpu.replay.ablating import AblationRow, ablations
from foldproof.gpu.replay.backend import DeviceFacts, NoDevice
from foldproof.gpu.replay.bouts import Bout, Missing, corpus_bouts, is_corpus, trace_bouts
from foldproof.gpu.replay.inputs import SetClass
from foldproof.gpu.replay.receipts import SCHEMA_VERSION, CaptureId, Owed, Receipt, capture_id, counted
from foldproof.gpu.replay.supervising import Supervisor
from foldproof.gpu.replay.tally import BoutCount
from foldproof.gpu.replay.trace import read_trace
from foldproof.gpu.replay.verdicts import (
    PairVerdict,
    identical,
    missing_verdicts,
    pair_verdicts,
    with_instability,
)
from foldproof.impl import InvalidCapture, load_capture, load_policy
from foldproof.impl.capture import capture_file

Progress = Callable[[int, int, BoutCount], None]
"""Called with the bouts done, the bouts in all, and what the last one counted."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What was done before, until when (on the monotonic clock) new bouts are started, and who hears of each.

    `search` is how many more finite sets a bout gets when a pair that its label says differs has not (see `running`).
    """

    done: Mapping[str, BoutCount] = field(default_factory=dict)
    deadline: float = math.inf
    progress: Progress | None = None
    search: int = 0


class Plan(msgspec.Struct, frozen=True):
    """What a replay of a capture will do: every bout, those of them that need a device, and what cannot be run."""

    bouts: tuple[Bout, ...]
    missing: tuple[Missing, ...]
    identity: CaptureId

    @property
    def runnable(self) -> tuple[Bout, ...]:
        """The bouts with a pair whose code differs, without the pairs whose code does not."""
        found = []
        for bout in self.bouts:
            matchups = tuple(m for m in bout.matchups if not identical(m, self.identity.cubins))
            names = dict.fromkeys(name for m in matchups for name in (m.first, m.second))
            if matchups:
                found.append(Bout(bout.record, tuple(names), matchups))
        return tuple(found)


def plan_replay(capture: Path, trace: Path | None = None) -> Plan:
    """The plan for a capture: from a trace if one is given, else from its corpus, else from launches recorded with it.

    Raises `InvalidCapture` or `InvalidLaunch` where something cannot be read, FoldproofError where no launch is known.
    """
    folder = capture_file(capture).parent
    loaded = load_capture(capture)
    if trace is not None:
        return Plan(trace_bouts(loaded, read_trace(trace)), (), capture_id(capture))
    if is_corpus(folder):
        bouts, missing = corpus_bouts(folder)
        return Plan(bouts, missing, capture_id(capture))
    if (folder / LAUNCHES).is_file():
        return Plan(trace_bouts(loaded, read_trace(folder / LAUNCHES)), (), capture_id(capture))
    why = f"has no {LAUNCHES} beside it, so nothing says with what its kernels are launched"
    raise InvalidCapture(why, where=str(folder), fix="record a trace and give it with --trace")


def run_plan(
    plan: Plan,
    supervisor: Supervisor,
    sets: Mapping[SetClass, int],
    schedule: Schedule | None = None,
) -> dict[str, BoutCount]:
    """The counts of every runnable bout by launch name: those done before, then the rest, as `schedule` says."""
    schedule = schedule or Schedule()
    counts = dict(schedule.done)
    runnable = plan.runnable
    for place, bout in enumerate(runnable, start=1):
        name = bout.record.name
        if name in counts and not counts[name].owed:
            continue
        if time.monotonic() > schedule.deadline:
            counts[name] = BoutCount(name, owed="the time for this run was up; run it again with --resume")
            continue
        counts[name] = supervisor.bout(bout, sets, schedule.search)
        if schedule.progress is not None:
            schedule.progress(place, len(runnable), counts[name])
    return counts


def judge(plan: Plan, counts: Mapping[str, BoutCount]) -> tuple[PairVerdict, ...]:
    """The verdicts of every pair of the plan."""
    verdicts = [
        v for bout in plan.bouts for v in pair_verdicts(bout, counts.get(bout.record.name), plan.identity.cubins)
    ]
    return (*with_instability(verdicts, counts.values()), *missing_verdicts(plan.missing))


def ablate(
    capture: Path, plan: Plan, verdicts: Iterable[PairVerdict], policy: str = "recommended"
) -> tuple[AblationRow, ...]:
    """The ablation rows of a plan (see `ablating`)."""
    by_pair = {(v.launch, v.first, v.second): v for v in verdicts}
    return ablations(load_capture(capture), plan.bouts, by_pair, load_policy(policy))


def device_facts(supervisor: Supervisor, capture: Path) -> DeviceFacts:
    """The device that the worker found. Raises NoDevice when no variant of the capture can run on it."""
    event = supervisor.ask("facts")
    if event["event"] != "done":
        raise NoDevice(f"the device does not answer: {event['reason']}", fix="try nvidia-smi")
    facts = msgspec.convert(event["facts"], DeviceFacts)
    if not event["fitting"]:
        wanted = sorted({variant.arch or "" for variant in load_capture(capture).kernels})
        why = f"the device is {facts.name} ({facts.arch}); the capture needs {', '.join(wanted)}"
        raise NoDevice(why, fix="run it on such a device")
    return facts


def owed_by(verdicts: Iterable[PairVerdict]) -> tuple[Owed, ...]:
    """What is owed, once a reason, with what it needs."""
    reasons: dict[str, list[str]] = {}
    for pair in verdicts:
        for domain, verdict in pair.verdicts.items():
            if verdict.word == "owed":
                reasons.setdefault(verdict.reason, []).append(f"{pair.launch} ({domain})")
    return tuple(Owed(f"{len(what)} verdicts, such as {what[0]}", reason) for reason, what in reasons.items())


def replay_receipt(  # noqa: PLR0913 -- a receipt has that many parts
    plan: Plan,
    counts: Mapping[str, BoutCount],
    facts: DeviceFacts,
    *,
    ablation: Sequence[AblationRow],
    sets: Mapping[SetClass, int],
    search: int = 0,
    started: dt.datetime,
    seconds: float,
    seed: int,
    command: str,
    commit: str | None,
    dirty: bool | None,
    owed: Sequence[Owed],
    results: Mapping[str, object],
) -> Receipt:
    """The receipt of a replay."""
    verdicts = judge(plan, counts)
    return Receipt(
        schema_version=SCHEMA_VERSION,
        kind="replay",
        foldproof=foldproof.__version__,
        capture=plan.identity,
        device=facts,
        started=started.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=round(seconds, 3),
        seed=seed,
        command=command,
        commit=commit,
        dirty=dirty,
        complete=not any(count.owed for count in counts.values()),
        sets={**{str(cls): number for cls, number in sets.items()}, "search": search},
        counts=counted(verdicts),
        pairs=verdicts,
        ablation=tuple(ablation),
        owed=(*owed_by(verdicts), *owed),
        results=dict(results),
    )
