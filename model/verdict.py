"""Verdicts: what was shown of a theorem for a policy, in what scope, and what it rests on."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from foldproof.impl.cases import Case
from foldproof.impl.launch import Launch


class Status(StrEnum):
    """What is said of a theorem and a policy; a theorem about a pair of policies is not applicable without a pair."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_APPLICABLE = "not applicable"


class Counterexample(msgspec.Struct, frozen=True):
    """A case that breaks a theorem, and what the model says the policy answers to it.

    `pick` is an index into the case's kernels, None for a miss or an ambiguity; `other_launch` is the second
    launch of T15.
    """

    case: Case
    pick: int | None
    missing: bool
    ambiguous: bool
    other_launch: Launch | None = None


class Verdict(msgspec.Struct, frozen=True):
    """One cell of the matrix policy x theorem.

    `scope` is "unbounded" or a size such as "4 variants x 4 params". `witness` meets the premises, so that a
    proof is not vacuous; `reached` says for each pass whether some launch reaches it at all and under the
    premise; `killed_by` names mutants of the policy that refute the theorem. `seconds` is wall time.
    """

    theorem: str
    policy: str
    status: Status
    promised: bool
    scope: str = ""
    old: str = ""
    reason: str = ""
    counterexample: Counterexample | None = None
    witness: Case | None = None
    reached: tuple[tuple[str, bool, bool], ...] = ()
    killed_by: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def breaks_a_promise(self) -> bool:
        """Whether a release must stop for it."""
        return self.promised and self.status == Status.REFUTED
