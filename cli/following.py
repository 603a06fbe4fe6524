"""The command to type next, the last line of a verb that ended with something wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from foldproof.cli.recording import under
from foldproof.impl.capture import Capture
from foldproof.impl.explain import Explanation
from foldproof.impl.launch import Launch
from foldproof.impl.policy import ZOO, Policy
from foldproof.impl.select import Refused
from foldproof.release.coverage import CoverageResult
from foldproof.release.diff import DiffResult
from foldproof.release.findings import Finding, at_or_above
from foldproof.release.reaching import why_not
from foldproof.reports.evidence import FOLDER

Decided = Sequence[tuple[tuple[Capture, Launch], Explanation]]
"""Launches, each with its capture and the decision of the policy."""
MOST_ASKED = 8
"""Candidates of which the nearest is looked for."""


def after_miss(words: tuple[str, str | None], policy: tuple[str, Policy], decided: Decided) -> list[str]:
    """What tells more of the first launch that `explain` found no variant for.

    `words` are CAPTURE and LAUNCH of the command line. A candidate that every launch has is asked about: the one that
    the launch is nearest to. Where there is none it goes on as after `--why-not`.
    """
    capture, launch = words
    (of, missed), explanation = next(pair for pair in decided if isinstance(pair[1].outcome, Refused))
    hashes = [row.hash for row in explanation.rows]
    shared = [mark for mark in hashes if all([row.hash for row in e.rows].count(mark) == 1 for _, e in decided)]
    if not shared:
        return after_why_not(capture, launch, policy[0])
    reasons = [why_not(of, missed, mark, policy[1]) for mark in shared[:MOST_ASKED]]
    nearest = min(reasons, key=lambda reason: (reason.reaching is None, len(reason.changes)))
    words_of_launch = [launch] if launch else []
    return ["foldproof", "explain", capture, *words_of_launch, *under(policy[0]), "--why-not", nearest.hash]


def after_why_not(capture: str, launch: str | None, policy: str) -> list[str]:
    """What tells more where a candidate was asked about already: what the capture serves, or the decision as a tree."""
    if launch is None:
        return ["foldproof", "explain", capture, *under(policy), "--tree"]
    given = [] if launch.lstrip().startswith("{") else [launch]
    return ["foldproof", "coverage", capture, *given, *under(policy)]


def after_lint(capture: str, policy: str, fail_on: str, listed: Sequence[Finding], ignored: Sequence[str]) -> list[str]:
    """The rule of the first finding that fails, alone; all rules, where it is the only one that is `listed`.

    Notes that fail and are not listed are asked for first.
    """
    command = ["foldproof", "lint", capture, *under(policy)]
    failing = [one for one in listed if at_or_above([one], fail_on)]
    if not failing:
        ignoring = [word for rule in ignored for word in ("--ignore", rule)]
        return [*command, *ignoring, "--fail-on", fail_on, "--notes"]
    if len({one.rule for one in listed}) == 1:
        return ["foldproof", "lint", "--rules"]
    return [*command, "--select", failing[0].rule]


def after_coverage(  # noqa: PLR0913, PLR0917 (one parameter an option)
    capture: str, policy: str, result: CoverageResult, launches: str | None, ranges: str | None, needs: str | None
) -> list[str]:
    """What writes down the variants to compile; what lints the capture where more variants would not help.

    With the file written, `needs`, what shows that what it lists is served once it is compiled.
    """
    if not result.needs["needs"]:
        return ["foldproof", "lint", capture, *under(policy)]
    if needs is not None:
        return ["foldproof", "coverage", capture, needs, *under(policy), "--strict"]
    words = ["foldproof", "coverage", capture, *([launches] if launches else []), *under(policy)]
    words += [*(["--reachable", ranges] if ranges else []), *(["--strict"] if result.strict else [])]
    return [*words, "--needs-out", "missing.json"]


def after_diff(result: DiffResult, old: str, new: str, policy: str) -> list[str]:
    """What shows an example of a difference: a proof's or a campaign's case, a launch that another variant serves.

    `policy` is the one that selects from captures.
    """
    if result.captures is not None:
        changed: list[dict[str, Any]] = [one.launch for one in result.captures.launches]
        changed += [one.launch for function in result.captures.functions for one in function.changes]
        if not changed:
            return ["foldproof", "coverage", new, *under(policy)]
        return ["foldproof", "explain", new, msgspec.json.encode(changed[0]).decode(), *under(policy)]
    broken = [one for one in result.proofs if one.verdict == "refuted" and one.old == result.old]
    if broken:
        return ["foldproof", "prove", "--policy", new, "--theorem", broken[0].theorem, "--old", old, "--out", FOLDER]
    known = [side for side in (old, new) if _is_policy(side)]
    if result.kind == "selector" and known:
        (selector,) = [side for side in (old, new) if side != known[0]]
        return ["foldproof", "fuzz", "--selector", selector, "--against", known[0]]
    return ["foldproof", "diff", old, new, "--format", "json"]


def _is_policy(side: str) -> bool:
    return side in ZOO or side.endswith(".toml")
