"""A campaign as data: `fuzz.json`, and the rows that a report or a terminal shows of it.

Times stand in fields named `seconds` or `rate` alone, so that two runs can be compared without them.
"""

from __future__ import annotations

import msgspec
from foldproof.impl.strictjson import json_lines

SCHEMA_VERSION = 1


class FindingRecord(msgspec.Struct, frozen=True):
    """A kind of difference or fault: how often, the file of the smallest case, and one line that shows it again."""

    kind: str
    launches: int
    expected: str
    got: str
    file: str
    variants: int
    args: int
    reproduced: bool
    command: str
    round: int | None = None
    stderr: str = ""
    example: str = ""
    known: bool = False
    """Whether it was in the corpus already."""
    seconds: float | None = None


class CoverageRecord(msgspec.Struct, frozen=True):
    """What was visited: a row a class of arg, its cells "visited/possible" places by ending; and what remains."""

    endings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    visited: int
    possible: int
    remaining: tuple[tuple[str, str, str], ...]


class FuzzRecord(msgspec.Struct, frozen=True):
    """One campaign. `rounds` and `launches` are of this run, the `_in_all` ones with the corpus's earlier runs.

    `chance_of_new` estimates the chance that one more round visits a new cell (Good and Turing); `chance_of_failure`,
    of one more round, is what 19 of 20 campaigns without a failure stay below: 3 / rounds, null where there was one.
    """

    schema_version: int
    tool: str
    command: str
    selector: str
    name: str
    policy: str
    seed: int
    capture: str | None
    first_round: int
    rounds: int
    launches: int
    rounds_in_all: int
    launches_in_all: int
    unasked: int
    replayed: int
    outcomes: dict[str, int]
    coverage: CoverageRecord
    chance_of_new: float | None
    chance_of_failure: float | None
    findings: tuple[FindingRecord, ...]
    stray_faults: tuple[str, ...]
    run_state: str
    exit_code: int
    workers: int
    seconds: float
    rate: float

    def as_json(self) -> bytes:
        """The bytes of `fuzz.json`."""
        return json_lines(self, 2) + b"\n"


def verdict_line(record: FuzzRecord) -> str:
    """The result in one sentence."""
    what = f"{record.name or record.selector} against {record.policy}"
    if record.findings or record.stray_faults:
        kinds = len(record.findings) + len(record.stray_faults)
        return f"{what}: {kinds} kind{'s' if kinds > 1 else ''} of finding in {record.launches:,} launches"
    return f"{what}: no difference in {record.launches:,} launches of {record.rounds:,} rounds"
