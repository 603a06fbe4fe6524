"""The events that stages emit: each is one fact with the digests of what it speaks of. A record is an event on disk.

A record is `{"schema_version", "run", "sequence", "event"}` in canonical JSON. `event.kind` says which of the classes
below it is. Null means not measured. Seeds are text, since they may have 64 bits; times are seconds of wall time, and
`started` is UTC. A `FileRef` is a path below the evidence folder with the sha256 of the file.

Longer than 250 lines because it is one list: every kind of record, whose schema a reader finds in one place.
"""

from __future__ import annotations

from typing import Any

import msgspec

SCHEMA_VERSION = 1


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What all events have in common: `kind`."""


class FileRef(msgspec.Struct, frozen=True):
    """A file beside the records: a counterexample, a script, a rendered report."""

    path: str
    sha256: str


class RunStarted(Event, frozen=True, tag="run-started"):
    """A verb began. `commit` and `dirty` are of the working tree that it was called in, null outside one."""

    verb: str
    command: str
    tool: str
    versions: dict[str, str]
    started: str
    seed: str | None = None
    commit: str | None = None
    dirty: bool | None = None


class RunFinished(Event, frozen=True, tag="run-finished"):
    """A verb ended. `records` are the digests of all of its records before this one, in order.

    `state`: complete, interrupted or failed. A run without this record was killed.
    """

    state: str
    exit_code: int | None
    records: tuple[str, ...]
    seconds: float | None = None


class CaptureSeen(Event, frozen=True, tag="capture"):
    """A capture at hand. `sha256` is of its canonical `aot.json`; `cubins` those of each cubin there, by hash."""

    name: str
    sha256: str
    variants: int
    functions: int
    cubins: dict[str, str]
    cubins_missing: int


class PolicySeen(Event, frozen=True, tag="policy"):
    """A policy at hand, whole. `sha256` is of its canonical data; `promises` as the policy language writes them."""

    name: str
    sha256: str
    promises: tuple[str, ...]
    data: dict[str, Any] = {}


class SelectorSeen(Event, frozen=True, tag="selector"):
    """A selector under test. `files` is the sha256 of each file that its command names, its binary among them."""

    spec: str
    name: str
    files: dict[str, str]
    kinds: tuple[str, ...] = ()


class TheoremJudged(Event, frozen=True, tag="theorem"):
    """One theorem of one policy. `obligations` name the scripts that carry a proof, `counterexample` is a case file."""

    policy: str
    policy_sha256: str
    theorem: str
    name: str
    sentence: str
    verdict: str
    promised: bool
    scope: str = ""
    old: str = ""
    old_sha256: str = ""
    reason: str = ""
    obligations: tuple[str, ...] = ()
    counterexample: FileRef | None = None
    witness: FileRef | None = None
    passes_reached: tuple[str, ...] = ()
    killed_by: tuple[str, ...] = ()
    seconds: float | None = None


class ObligationDecided(Event, frozen=True, tag="obligation"):
    """A script, the claim in English, and what each solver answered: `unsat` holds."""

    name: str
    says: str
    script: FileRef
    z3: str
    cvc5: str


class CaseFound(Event, frozen=True, tag="case"):
    """A counterexample or a finding, in a case file that replays. `stage`: theorem, campaign, fuzz or exhaust.

    `expected` is the reference's answer, `got` that of the selector (or of the model, or of the broken promise).
    `columns` and `rows` are the case on one screen; `decides` names the arg that decides.
    """

    stage: str
    title: str
    policy: str
    policy_sha256: str
    why: str
    file: FileRef
    command: str
    theorem: str = ""
    old: str = ""
    expected: str = ""
    got: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    decides: str = ""
    launches: int | None = None
    known: bool = False


class CampaignRan(Event, frozen=True, tag="campaign"):
    """A campaign. `stage`: check (reference against model), fuzz or exhaust (selector against reference).

    `outcomes` count cases by ending; `violated` cases by theorem, `violated_promises` those of promises alone;
    `curve` is (cases, cells visited) so far; `coverage` has a row a class of arg, `endings` its columns, each cell
    "visited/possible". `selector_files` and `policy_sha256` say what it speaks of. `chance_of_failure` is the 95 %
    bound for one more round.
    """

    stage: str
    policy: str
    policy_sha256: str
    seed: str
    cases: int
    outcomes: dict[str, int]
    disagreements: int
    selector: str = ""
    selector_files: dict[str, str] = {}
    capture_sha256: str | None = None
    scope: str = ""
    violated: dict[str, int] = {}
    violated_promises: dict[str, int] = {}
    faults: tuple[str, ...] = ()
    state: str = "complete"
    endings: tuple[str, ...] = ()
    coverage: tuple[tuple[str, ...], ...] = ()
    visited: int | None = None
    possible: int | None = None
    curve: tuple[tuple[int, int], ...] = ()
    chance_of_new: float | None = None
    chance_of_failure: float | None = None
    seconds: float | None = None
    rate: float | None = None


class MutantsHunted(Event, frozen=True, tag="mutants"):
    """The mutation score of a policy: each planted fault, and what caught it ("" nothing), or why nothing can."""

    policy: str
    policy_sha256: str
    caught: int
    real: int
    rows: tuple[tuple[str, str, str], ...]


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


class LaunchesExamined(Event, frozen=True, tag="launches"):
    """How launches of a capture end under a policy. `picks` is NDJSON, packed: a launch a line, with its answer."""

    source: str
    capture: str
    capture_sha256: str
    policy: str
    policy_sha256: str
    rows: tuple[LaunchRow, ...]
    picks: FileRef | None = None


class HexWindow(msgspec.Struct, frozen=True):
    """The first differing byte of a pair: `offset` bytes into `buffer`, and the same stretch of both sides in hex.

    `at` is the place of that byte within the stretch.
    """

    buffer: str
    offset: int
    at: int
    first: str
    second: str


class BytesRow(msgspec.Struct, frozen=True):
    """A pair of variants at one launch: the word by input domain, and for what differs the first byte in hex."""

    fn: str
    launch: str
    change: str
    first: str
    second: str
    words: dict[str, str]
    basis: str = ""
    detail: str = ""
    window: HexWindow | None = None


class BytesJudged(Event, frozen=True, tag="bytes"):
    """Byte verdicts. `by`: device or symbolic. `date`, `device`, `driver`, `commit` and `dirty` are of that run.

    `counts` are pairs by domain and word; `cubins` the digests of the code that ran; `results` what a kind of run has
    besides (scenarios: whether tokens and bytes agree).
    """

    by: str
    what: str
    capture_sha256: str
    cubins: dict[str, str]
    counts: dict[str, dict[str, int]]
    rows: tuple[BytesRow, ...]
    device: str = ""
    arch: str = ""
    driver: str = ""
    date: str = ""
    seed: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    complete: bool = True
    receipt: FileRef | None = None
    command: str = ""
    results: dict[str, Any] = {}


class Owed(Event, frozen=True, tag="owed"):
    """Something that this run did not show, and what would settle it."""

    what: str
    why: str
    settle: str


class Rendered(Event, frozen=True, tag="rendered"):
    """The report files that were written from the records."""

    files: tuple[FileRef, ...]


AnyEvent = (
    RunStarted
    | RunFinished
    | CaptureSeen
    | PolicySeen
    | SelectorSeen
    | TheoremJudged
    | ObligationDecided
    | CaseFound
    | CampaignRan
    | MutantsHunted
    | LaunchesExamined
    | BytesJudged
    | Owed
    | Rendered
)


class Record(msgspec.Struct, frozen=True):
    """One event on disk. `run` names the run, `sequence` counts its records from 0."""

    schema_version: int
    run: str
    sequence: int
    event: AnyEvent


def files_of(event: AnyEvent) -> tuple[FileRef, ...]:
    """The files that an event speaks of."""
    found: tuple[FileRef | None, ...] = ()
    if isinstance(event, TheoremJudged):
        found = (event.counterexample, event.witness)
    elif isinstance(event, ObligationDecided):
        found = (event.script,)
    elif isinstance(event, CaseFound):
        found = (event.file,)
    elif isinstance(event, LaunchesExamined):
        found = (event.picks,)
    elif isinstance(event, BytesJudged):
        found = (event.receipt,)
    elif isinstance(event, Rendered):
        found = event.files
    return tuple(ref for ref in found if ref is not None)


def schema() -> dict[str, Any]:
    """The JSON Schema of a record."""
    made: dict[str, Any] = msgspec.json.schema(Record)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "foldproof evidence record", **made}
