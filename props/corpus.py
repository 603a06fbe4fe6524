"""The folder that a campaign remembers by: failures to replay first, a case for each cell visited, how far it came.

failures/NAME.json   every failure ever found, shrunk; asked first in each run
cells.ndjson         a case that visited each cell first; asked next
corpus.json          by campaign (policy, seed, kinds, capture): the next round and what was visited so far
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from foldproof.impl.capture import Capture
from foldproof.impl.cases import Case, case_from, case_to
from foldproof.impl.errors import FoldproofError
from foldproof.impl.launch import Kind
from foldproof.impl.policy import Policy
from foldproof.impl.strictjson import located, read_document, read_many
from foldproof.props.coverage import Cell, Coverage

SCHEMA_VERSION = 1
FAILURES, CELLS, STATE = "failures", "cells.ndjson", "corpus.json"


class Reached(msgspec.Struct, frozen=True):
    """How far a campaign came: its next round, launches so far, and rounds by cell."""

    next_round: int = 0
    launches: int = 0
    cells: tuple[tuple[str, str, str, int], ...] = ()

    @property
    def coverage(self) -> Coverage:
        """What was visited so far."""
        return Coverage(self.next_round, {Cell(arg, place, end): n for arg, place, end, n in self.cells})


class _State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema_version: int
    campaigns: dict[str, Reached]


class Corpus(msgspec.Struct, frozen=True):
    """A corpus as read: failures by file name, a case by cell, and how far each campaign came."""

    failures: dict[str, Case] = {}
    cells: dict[Cell, Case] = {}
    campaigns: dict[str, Reached] = {}

    def reached(self, key: str) -> Reached:
        """How far the campaign of that key came."""
        return self.campaigns.get(key, Reached())


def campaign_key(policy: Policy, seed: int, kinds: frozenset[Kind], capture: Capture | None) -> str:
    """What tells campaigns of one corpus apart: everything that their rounds are made of."""
    told = [policy, sorted(kinds), capture]
    return f"{policy.name}, seed {seed}, {hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:12]}"


def load_corpus(folder: Path) -> Corpus:
    """The corpus of a folder; empty if there is none yet. Raises `FoldproofError` with file and place."""
    if not folder.exists():
        return Corpus()
    if not folder.is_dir():
        raise FoldproofError("is no folder", where=str(folder), fix="name a folder for the corpus")
    failures = {file.name: _case(file) for file in sorted((folder / FAILURES).glob("*.json"))}
    cells = dict(_cells(folder / CELLS)) if (folder / CELLS).exists() else {}
    return Corpus(failures, cells, _campaigns(folder / STATE) if (folder / STATE).exists() else {})


def _case(file: Path) -> Case:
    cases = read_cases_strictly(file)
    if len(cases) != 1:
        raise FoldproofError(f"holds {len(cases)} cases", where=str(file), fix="keep one case a file")
    return cases[0]


def read_cases_strictly(file: Path) -> list[Case]:
    """The cases of a file. Raises `FoldproofError` with the place of the first that is none."""
    return [located(f"{file}: {place}", lambda v=value: case_from(v)) for place, value in read_many(file)]  # type: ignore[misc]


def _cells(file: Path) -> Iterator[tuple[Cell, Case]]:
    for place, value in read_many(file):
        where = f"{file}: {place}"
        cell = value.get("cell") if isinstance(value, dict) else None
        if not (isinstance(cell, list) and len(cell) == 3 and all(isinstance(word, str) for word in cell)):
            raise FoldproofError("has no cell of three words", where=where, fix="delete the file to start afresh")
        yield Cell(*cell), located(where, lambda v=value: case_from(v))  # type: ignore[misc]


def _campaigns(file: Path) -> dict[str, Reached]:
    fix = "delete the file to start afresh"
    try:
        state = msgspec.convert(read_document(file), _State)
    except msgspec.ValidationError as problem:
        raise FoldproofError(str(problem), where=str(file), fix=fix) from None
    if state.schema_version != SCHEMA_VERSION:
        raise FoldproofError(f"has schema_version {state.schema_version}", where=str(file), fix=fix)
    return state.campaigns


def corpus_files(
    old: Corpus, key: str, reached: Reached, cells: Mapping[Cell, Case], failures: Iterable[tuple[str, bytes]]
) -> dict[str, bytes]:
    """The files that a run changes: new failures by slug, new cells, and how far it came.

    How far it came is the last of them: a writer that is killed before it leaves rounds to run again, and no round
    counted whose failures and cells are not there.
    """
    every = {**{cell: case for cell, case in cells.items() if cell not in old.cells}, **old.cells}
    lines = [msgspec.json.encode(_line(cell, every[cell])) for cell in sorted(every)]
    state = _State(SCHEMA_VERSION, dict(sorted((old.campaigns | {key: reached}).items())))
    files = {f"{FAILURES}/{slug}-{hashlib.sha256(content).hexdigest()[:8]}.json": content for slug, content in failures}
    if lines:
        files[CELLS] = b"\n".join(lines) + b"\n"
    return files | {STATE: msgspec.json.format(msgspec.json.encode(state), indent=1) + b"\n"}


def _line(cell: Cell, case: Case) -> dict[str, Any]:
    return case_to(case, cell=list(cell))


def further(reached: Reached, coverage: Coverage, launches: int) -> Reached:
    """How far it came after more rounds."""
    total = reached.coverage + coverage
    cells = tuple((*cell, count) for cell, count in sorted(total.seen.items()))
    return Reached(reached.next_round + coverage.rounds, reached.launches + launches, cells)
