"""The tie of a module of rules in one call: rules on one arg, parts, counts, and the loop over arguments."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from foldproof.impl import rules
from foldproof.model.tie.args import Tied, tie_args, tie_counts, tie_parts
from foldproof.model.tie.loops import tie_argument_loop


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
