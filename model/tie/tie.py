"""The whole tie in one call: rules on one arg, parts, counts, and both loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType

from foldproof.impl import rules
from foldproof.impl.policy import Policy
from foldproof.model.tie.args import Tied, tie_args, tie_counts, tie_parts
from foldproof.model.tie.loops import tie_argument_loop, tie_pass_loop


def tie_rules(module: ModuleType = rules) -> Iterator[Tied]:
    """Every comparison of the rule functions with their formulas."""
    yield from tie_parts(module)
    yield from tie_counts(module)
    yield from tie_args(module)
    yield from tie_argument_loop(module)


def first_gap(module: ModuleType, function: str) -> str:
    """Where the tie fails for a module in which `function` was changed, "" if it holds after all.

    Code that the executor cannot follow, or that raises, counts as a failure: nothing is proved of it.
    """
    loops = function in ("refusals", "_option_refusals")
    ties = tie_argument_loop(module) if loops else tie_rules(module)
    try:
        return next((f"{tied.rule}: {tied.setting}" for tied in ties if tied.gap), "")
    except Exception as problem:  # noqa: BLE001 (a mutant may raise anything)
        return f"{type(problem).__name__}: {problem}"


def tie_policies(policies: Sequence[Policy], count: int = 3) -> Iterator[Tied]:
    """The pass loop of each policy against its formulas, for up to `count` candidates."""
    for policy in policies:
        for candidates in range(1, count + 1):
            yield from tie_pass_loop(policy, candidates)
