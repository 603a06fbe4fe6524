"""The result of a run as data: what was shown, by what, on what, and what is still owed.

`result.json` is this structure, keys in order, null where nothing was measured. Times stand in fields named
`seconds` alone, so that two runs can be compared without them.
"""

from __future__ import annotations

from typing import Any

import msgspec

SCHEMA_VERSION = 1


class CaptureRecord(msgspec.Struct, frozen=True):
    """The capture at hand: where it was named, sha256 of its `aot.json`, how many variants, functions and cubins."""

    name: str
    sha256: str
    variants: int
    functions: int
    cubins_missing: int


class TheoremRow(msgspec.Struct, frozen=True):
    """One theorem of one policy; `counterexample` is a file below the report folder."""

    policy: str
    theorem: str
    name: str
    sentence: str
    verdict: str
    promised: bool
    scope: str = ""
    old: str = ""
    reason: str = ""
    counterexample: str | None = None
    premises_met_by: str | None = None
    passes_reached: tuple[str, ...] = ()
    killed_by: tuple[str, ...] = ()
    seconds: float = 0.0


class ObligationRow(msgspec.Struct, frozen=True):
    """One obligation and what each solver answers: `unsat` holds. Its script is `smt/NAME.smt2`."""

    name: str
    says: str
    z3: str
    cvc5: str


class CounterexampleRecord(msgspec.Struct, frozen=True):
    """A case that breaks something: its file, the words for it, and its table (see `impl.explain.case_table`)."""

    file: str
    theorem: str
    policy: str
    why: str
    command: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    decides: str = ""


class CampaignRecord(msgspec.Struct, frozen=True):
    """The campaign of the reference against the model."""

    seed: int
    cases: int
    outcomes: dict[str, int]
    disagreements: int
    violated: dict[str, int]
    seconds: float


class LaunchRow(msgspec.Struct, frozen=True):
    """The launches of one function: how many end in which way, and what its variants leave open."""

    fn: str
    variants: int
    launches: int
    exact: int
    general: int
    fallback: int
    ambiguous: int
    missing: int
    order_dependent: int
    free_constants: int


class EvidenceRow(msgspec.Struct, frozen=True):
    """A device receipt: what ran where and when, whether it speaks of the capture at hand, and its verdicts.

    `counts` are pairs by input domain and verdict; empty where the receipt is stale or of another kind.
    """

    kind: str
    device: str
    date: str
    commit: str | None
    dirty: bool | None
    state: str
    counts: dict[str, dict[str, int]]
    command: str


class Owed(msgspec.Struct, frozen=True):
    """Something that this run did not show, and what would settle it."""

    what: str
    why: str
    settle: str


class Result(msgspec.Struct, frozen=True):
    """Everything that a run of `check` says."""

    schema_version: int
    tool: str
    versions: dict[str, str]
    command: str
    run_state: str
    seed: int
    policy: str
    capture: CaptureRecord
    launches_from: str
    theorems: tuple[TheoremRow, ...]
    counterexamples: tuple[CounterexampleRecord, ...]
    obligations: tuple[ObligationRow, ...]
    campaign: CampaignRecord | None
    launches: tuple[LaunchRow, ...]
    evidence: tuple[EvidenceRow, ...]
    owed: tuple[Owed, ...]
    exit_code: int
    seconds: float

    def as_json(self) -> bytes:
        """The bytes of `result.json`."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def promises_broken(result: Result) -> list[TheoremRow]:
    """The rows that a release must stop for."""
    return [row for row in result.theorems if row.promised and row.verdict == "refuted"]


def findings(result: Result) -> list[TheoremRow]:
    """Refuted theorems that the policy does not promise."""
    return [row for row in result.theorems if not row.promised and row.verdict == "refuted"]


def tidy(value: Any) -> Any:
    """A decoded `result.json` with every time taken out, for comparing two runs."""
    if isinstance(value, dict):
        return {key: tidy(item) for key, item in value.items() if key != "seconds"}
    return [tidy(item) for item in value] if isinstance(value, list) else value
