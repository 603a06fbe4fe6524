"""Ablation: what the selector does for a launch once the folded variant is gone, and whether the bits stay.

For each folded and runtime variant that one launch may be served by: from the full set the policy takes the folded one;
without it (and without what the policy prefers in between) it falls back to the runtime one and logs that; and the two
wrote the same bytes. Selection is decided here, the bytes are those of the pair's verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from foldproof.gpu.replay.bouts import Bout, Matchup
from foldproof.gpu.replay.inputs import DOMAINS
from foldproof.gpu.replay.verdicts import PairVerdict
from foldproof.impl import Capture, Launch, Policy, Selection, Variant, decide
from foldproof.impl.choose import ones_read


class Served(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a policy comes to serve a launch by a variant: under which pass, without which others, logging what."""

    strictness: str
    without: tuple[str, ...] = ()
    ones: tuple[str, ...] = ()
    log: tuple[str, ...] = ()


class AblationRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the ablation: PASS, or FAIL with the reason."""

    launch: str
    fn: str
    folded: str
    runtime: str
    passed: bool
    reason: str
    full: Served | None = None
    ablated: Served | None = None

    def __str__(self) -> str:
        word = "PASS" if self.passed else "FAIL"
        return f"{word} {self.launch} {self.folded} / {self.runtime}: {self.reason}"


def served_by(
    capture: Capture, launch: Launch, policy: Policy, wanted: str, without: Sequence[str] = ()
) -> Served | str:
    """Take away what the policy prefers, one variant after the other, until it serves the launch by `wanted`.

    Gives the reason as text where it refuses the launch before it gets there.
    """
    removed = list(without)
    while True:
        kept = tuple(v for v in capture.kernels if v.hash not in removed)
        outcome = decide(msgspec.structs.replace(capture, kernels=kept), launch, policy) if kept else None
        if not isinstance(outcome, Selection):
            why = outcome.code if outcome else "nothing is left"
            return f"{policy.name} never selects {wanted}: {why} without {', '.join(removed) or 'removing any'}"
        if outcome.variant.hash == wanted:
            return Served(str(outcome.strictness), tuple(removed), outcome.ones, outcome.log)
        removed.append(outcome.variant.hash)


def ablations(
    capture: Capture, bouts: Iterable[Bout], pairs: Mapping[tuple[str, str, str], PairVerdict], policy: Policy
) -> tuple[AblationRow, ...]:
    """A row for each folded and runtime variant of each bout. `pairs` are the verdicts by launch, first and second."""
    variants = {variant.hash: variant for variant in capture.kernels}
    rows = []
    for bout in bouts:
        for matchup in bout.matchups:
            ordered = _folded_and_runtime(matchup, variants, bout.record.launch)
            if ordered is not None:
                verdict = pairs.get((bout.record.name, matchup.first, matchup.second))
                rows.append(_row(capture, bout, ordered, verdict, policy))
    return tuple(rows)


def _folded_and_runtime(matchup: Matchup, variants: Mapping[str, Variant], launch: Launch) -> tuple[str, str] | None:
    """The pair as (folded, runtime): the second reads a foldable 1 that the first has folded. None for other pairs."""
    reads = {name: set(ones_read(variants[name], launch)) for name in (matchup.first, matchup.second)}
    if reads[matchup.second] - reads[matchup.first]:
        return matchup.first, matchup.second
    if reads[matchup.first] - reads[matchup.second]:
        return matchup.second, matchup.first
    return None


def _row(
    capture: Capture, bout: Bout, ordered: tuple[str, str], verdict: PairVerdict | None, policy: Policy
) -> AblationRow:
    folded, runtime = ordered
    launch = bout.record.launch
    full = served_by(capture, launch, policy, folded)
    if isinstance(full, str):
        return AblationRow(bout.record.name, launch.fn, folded, runtime, passed=False, reason=full)
    ablated = served_by(capture, launch, policy, runtime, (*full.without, folded))
    if isinstance(ablated, str):
        return AblationRow(bout.record.name, launch.fn, folded, runtime, passed=False, reason=ablated, full=full)
    passed, reason = _judged(full, ablated, verdict)
    return AblationRow(bout.record.name, launch.fn, folded, runtime, passed, reason, full, ablated)


def _judged(full: Served, ablated: Served, verdict: PairVerdict | None) -> tuple[bool, str]:
    if full.ones or full.log:
        return False, f"the folded variant is itself a fallback that reads {', '.join(full.ones)}"
    if ablated.strictness != "runtime-one":
        return False, f"the runtime variant is selected by the {ablated.strictness} pass, not by fallback"
    if len(ablated.log) != 1:
        return False, f"the fallback is logged {len(ablated.log)} times"
    if verdict is None:
        return False, "the pair was not run"
    how = f"{full.strictness}, then fallback reading {', '.join(ablated.ones)}"
    words = {domain: verdict.verdicts[domain] for domain in DOMAINS}
    every = words["every bit pattern"]
    if every.word == "equal":
        ground = every.why or f"on {every.sets} sets"
        return True, f"{how}; equal, {ground}"
    narrower = [domain for domain, found in words.items() if found.word == "equal"]
    kept = f"; equal on the domain {narrower[-1]!r}" if narrower else ""
    ground = f"in {every.differing} of {every.sets} sets" if every.word == "differs" else every.reason
    return False, f"{how}; {every.word}, {ground}{kept}"
