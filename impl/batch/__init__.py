"""The batch reference: the decisions of `impl.select` over arrays of launches, in NumPy.

One launch decides in microseconds there; a campaign or an exhaustive scope needs tens of millions a second.
The rules are not restated: each is asked of `impl.rules` and `impl.choose` once a class (T15), and what is
batched is their composition. `tests/batch` proves the two equal, case by case, over whole small scopes.
"""

from foldproof.impl.batch.capture import BatchCapture
from foldproof.impl.batch.classes import NARROWED, ArgShape, LaunchShape
from foldproof.impl.batch.sweep import AMBIGUOUS, MISSING, NO_STRICTNESS, STRICTNESS_CODES, Decisions, sweep
from foldproof.impl.batch.verdicts import Verdicts, check_servable, verdicts_of

__all__ = [
    "AMBIGUOUS",
    "MISSING",
    "NARROWED",
    "NO_STRICTNESS",
    "STRICTNESS_CODES",
    "ArgShape",
    "BatchCapture",
    "Decisions",
    "LaunchShape",
    "Verdicts",
    "check_servable",
    "sweep",
    "verdicts_of",
]
