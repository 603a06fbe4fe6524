"""The evidence folder: `records/SHA256.json` beside the files that the records speak of. Written once, never again.

A record's name is the digest of its bytes, and its bytes are canonical JSON; a file that changes under a record has
another digest than the record says. `read` trusts nothing of that, `damage` names everything that does not hold. A
folder holds its files itself: a link in it is damage, since what it points at does not travel with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec
from foldproof.impl.errors import FoldproofError, one_line
from foldproof.impl.files import is_below
from foldproof.impl.strictjson import NOT_JSON
from foldproof.reports.canonical import canonical, sha256
from foldproof.reports.events import SCHEMA_VERSION, FileRef, Record, Rendered, RunFinished, RunStarted, files_of
from foldproof.reports.write import TEMPORARY, write_folder

RECORDS = "records"
MAX_BYTES = 256 * 1024 * 1024
"""The most that one file of a folder is read of: a receipt of a whole corpus has 0.03 MB, a million picks 20 MB."""
MOST_RECORD = 24 * 1024 * 1024
"""The most that a record may have: the byte verdicts of 10,000 pairs have 6 MB, the digests of as many cubins 1 MB."""
_NAME = re.compile(r"[0-9a-f]{64}\.json")


@dataclass(frozen=True, slots=True)
class Stored:
    """A record and the digest that names it."""

    digest: str
    record: Record


@dataclass(frozen=True, slots=True)
class Damage:
    """A file below the folder that is not what the records say, and why."""

    file: str
    why: str


def put(folder: Path, record: Record) -> str:
    """Write a record, whole or not at all; its digest.

    Raises `FoldproofError` if the folder cannot be written, or if `read` would refuse the record: an integer of more
    than 53 bits in a field of numbers is text to it.
    """
    content = canonical(record)
    digest = sha256(content)
    why = _parsed(content, digest)
    if isinstance(why, str):
        raise FoldproofError(f"the record {why}", where=str(folder), fix="tell the authors: no event may hold this")
    _write(folder, f"{RECORDS}/{digest}.json", content)
    return digest


def put_file(folder: Path, path: str, content: bytes) -> FileRef:
    """Write a file that records speak of. Where another one has the path, its name gets the digest's first digits.

    Raises `FoldproofError` if the folder cannot be written.
    """
    digest = sha256(content)
    target = PurePosixPath(path)
    if not _is_below(path):
        raise FoldproofError("is outside the folder", where=one_line(path), fix="name a file below it")
    named = target.with_name(f"{target.name.partition('.')[0]}-{digest[:12]}{''.join(target.suffixes)}")
    for name in (path, str(named)):
        there = folder / name
        if not there.exists():
            _write(folder, name, content)
            return FileRef(name, digest)
        if sha256(raw(there)) == digest:
            return FileRef(name, digest)
    raise FoldproofError("stands where another file must", where=str(folder / str(named)), fix="name another --out")


def _write(folder: Path, name: str, content: bytes) -> None:
    """Write one file whole or not at all; an error names the file."""
    try:
        write_folder(folder, {name: content})
    except FoldproofError as problem:
        raise FoldproofError(problem.why, where=str(folder / name), fix=problem.fix) from None


def raw(file: Path) -> bytes:
    """The bytes of a file as they are, packed or not. Raises `FoldproofError` if it is absent, no file or too long."""
    fix = "make the evidence again, or restore the file"
    try:
        if not file.is_file():
            raise FoldproofError("is missing", where=str(file), fix=fix)
        if file.stat().st_size > MAX_BYTES:
            raise FoldproofError(f"has more than {MAX_BYTES} bytes", where=str(file), fix=fix)
        return file.read_bytes()
    except (OSError, ValueError) as problem:
        why = f"cannot be read: {getattr(problem, 'strerror', None) or problem}"
        raise FoldproofError(why, where=str(file), fix=fix) from None


def is_store(folder: Path) -> bool:
    """Whether the folder has records."""
    return (folder / RECORDS).is_dir()


def read(folder: Path) -> tuple[list[Stored], list[Damage]]:
    """Every record that can be read, run by run in the order of their start, and what cannot.

    Raises `FoldproofError` where there is no evidence at all.
    """
    if not is_store(folder):
        raise FoldproofError("holds no evidence", where=str(folder), fix="run foldproof check --out FOLDER first")
    found, damaged = [], []
    for file in sorted((folder / RECORDS).iterdir()):
        if file.name.startswith(TEMPORARY):
            continue  # what a killed writer left; no record names it
        stored = _read_one(file)
        if isinstance(stored, Stored):
            found.append(stored)
        else:
            damaged.append(stored)
    starts = {s.record.run: e.started for s in found if isinstance(e := s.record.event, RunStarted)}
    found.sort(key=lambda s: (starts.get(s.record.run, ""), s.record.run, s.record.sequence))
    return found, damaged


def _read_one(file: Path) -> Stored | Damage:
    name = one_line(f"{RECORDS}/{file.name}")
    if file.is_symlink():
        return Damage(name, "is a link: the folder must hold the record itself")
    if not _NAME.fullmatch(file.name) or not file.is_file():
        return Damage(name, "is no record: its name is no digest")
    try:
        content = raw(file)
    except FoldproofError as problem:
        return Damage(name, problem.why)
    if f"{sha256(content)}.json" != file.name:
        return Damage(name, "was changed: its bytes have another digest than its name says")
    parsed = _parsed(content, file.stem)
    return Damage(name, parsed) if isinstance(parsed, str) else parsed


def _parsed(content: bytes, digest: str) -> Stored | str:
    """The record in `content`, or why it is none."""
    if len(content) > MOST_RECORD:
        return f"has more than {MOST_RECORD} bytes"
    try:
        record = msgspec.json.decode(content, type=Record)
        again = canonical(record)
    except NOT_JSON as problem:
        return f"is no record: {one_line(str(problem))}"
    if record.schema_version != SCHEMA_VERSION:
        return f"has schema version {record.schema_version}; this foldproof reads {SCHEMA_VERSION}"
    if again != content:
        return "is not in canonical form, or holds fields that no record has"
    return Stored(digest, record)


def damage(folder: Path, stored: list[Stored]) -> Iterator[Damage]:
    """Everything below the folder that contradicts the records, beyond what `read` found.

    A missing record of a finished run, a run that nothing began, a file that is absent or has another digest. Of a
    rendered file the newest record speaks.
    """
    yield from _run_damage(stored)
    rendered: dict[str, str] = {}
    fixed: dict[tuple[str, str], None] = {}
    for s in stored:
        for ref in files_of(s.record.event):
            if isinstance(s.record.event, Rendered):
                rendered[ref.path] = ref.sha256
            else:
                fixed[ref.path, ref.sha256] = None
    for path, digest in (*fixed, *rendered.items()):
        why = _file_damage(folder, path, digest)
        if why:
            yield Damage(path, why)


def _run_damage(stored: list[Stored]) -> Iterator[Damage]:
    digests = {s.digest for s in stored}
    runs: dict[str, list[Record]] = {}
    for s in stored:
        runs.setdefault(s.record.run, []).append(s.record)
    for run, records in runs.items():
        if [r.sequence for r in records] != list(range(len(records))):
            yield Damage(RECORDS, f"run {one_line(run)} has a gap: of its records some are missing")
        for record in records:
            if isinstance(record.event, RunFinished):
                gone = [d for d in record.event.records if d not in digests]
                yield from (Damage(f"{RECORDS}/{d}.json", "is missing; its run counts on it") for d in gone)


def _file_damage(folder: Path, path: str, digest: str) -> str:
    if not _is_below(path):
        return "is outside the folder: no record may name it"
    try:
        if any((folder / part).is_symlink() for part in (path, *map(str, PurePosixPath(path).parents))[:-1]):
            return "is a link, or lies behind one: the folder must hold the file itself"
        content = raw(folder / path)
    except FoldproofError as problem:
        return problem.why
    except OSError as problem:
        return f"cannot be read: {problem.strerror}"
    return "" if sha256(content) == digest else "was changed: a record has another digest of it"


def _is_below(path: str) -> bool:
    return bool(PurePosixPath(path).parts) and is_below(path)
