"""A device run in words and numbers: its plan, its profile, and what it found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

import msgspec
from foldproof.gpu.replay.arena import lay_out
from foldproof.gpu.replay.batch import RUNS
from foldproof.gpu.replay.inputs import SetClass
from foldproof.gpu.replay.receipts import Receipt, corrected_labels, silent_controls
from foldproof.gpu.replay.replaying import Plan
from foldproof.gpu.replay.tally import BoutCount

LAUNCH_S = 8e-6
BYTES_PER_S = 2.5e9
"""What the plan's estimate takes a launch, and a byte of input on its way from the generator to the device, to cost."""


def say(text: str, file: TextIO | None = None) -> None:
    """Print a line at once: the run may be cut short."""
    print(text, file=file, flush=True)


def described(plan: Plan, sets: Mapping[SetClass, int]) -> str:
    """The plan in numbers, with an estimate of its time."""
    total = sum(sets.values())
    runnable = plan.runnable
    runs = sum(len(bout.variants) for bout in runnable) * len(RUNS) * total
    strides = {bout.record.name: lay_out(bout.record).stride for bout in runnable}
    moved = sum(strides.values()) * total
    pairs = sum(len(bout.matchups) for bout in plan.bouts)
    compared = sum(len(bout.matchups) for bout in runnable)
    seconds = runs * LAUNCH_S + moved / BYTES_PER_S
    lines = [
        f"{pairs + len(plan.missing)} pairs, {len(plan.bouts)} launches; to run: {compared} and {len(runnable)}",
        f"{pairs - compared} pairs of identical code, {len(plan.missing)} without a second variant",
        f"{total} input sets a launch {dict(sets)}, {runs} kernel launches, {compared * total} pair-input sets",
        f"{moved} bytes of images, the largest slot {max(strides.values(), default=0)} bytes",
        f"expected {seconds:.0f} s for the pairs, about 30 s for the rest",
    ]
    return "\n".join(lines)


def profiled(plan: Plan, counts: Mapping[str, BoutCount], wall: float) -> dict[str, Any]:
    """Where the time of the pairs went: seconds by phase, pair-input sets a second, and the share beside kernels."""
    phases: dict[str, float] = {}
    sets = launches = 0
    for count in counts.values():
        launches += count.launches
        sets += sum(pair.sets for pair in count.pairs)
        for name, seconds in count.seconds.items():
            phases[name] = phases.get(name, 0.0) + seconds
    inside = sum(phases.values())
    useful = phases.get("kernels", 0.0) + phases.get("compare", 0.0)
    return {
        "bouts": len(plan.runnable),
        "pair_input_sets": sets,
        "kernel_launches": launches,
        "seconds_by_phase": {name: round(seconds, 4) for name, seconds in phases.items()},
        "seconds_in_bouts": round(inside, 4),
        "seconds_wall": round(wall, 4),
        "pair_input_sets_per_s": round(sets / inside, 1) if inside else 0.0,
        "share_beside_launches_and_compares": round(1 - useful / inside, 4) if inside else 0.0,
    }


def brief(piece: Any) -> str:
    """The numbers and words of a finished piece, without what is nested in it."""
    if not isinstance(piece, dict):
        return "not run"
    shown = {key: value for key, value in piece.items() if isinstance(value, (int, float, str, bool))}
    return msgspec.json.encode(shown).decode()


def summary(receipt: Receipt, profile: Mapping[str, Any]) -> None:
    """Say what a run found: verdicts, profile, ablation, labels that did not hold, what is owed."""
    say(f"verdicts: {msgspec.json.encode(receipt.counts).decode()}")
    say(f"profile: {msgspec.json.encode(profile).decode()}")
    passed = sum(row.passed for row in receipt.ablation)
    say(f"ablation: {passed} PASS, {len(receipt.ablation) - passed} FAIL")
    say(f"negative controls that did not differ: {', '.join(silent_controls(receipt)) or 'none'}")
    for pair in corrected_labels(receipt):
        found = pair.verdicts[pair.domain or "every bit pattern"]
        say(
            f"label: {pair.launch} {', '.join(pair.change)} {pair.first}/{pair.second}: "
            f"expected {pair.expected} on {pair.domain}, found {found.word}: {found.reason}"
        )
    for owed in receipt.owed:
        say(f"owed: {owed.what}: {owed.needs}")
