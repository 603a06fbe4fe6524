"""Launch traces: the launches of a real engine, recorded so that a device can run them again.

A trace is NDJSON (or a JSON list, plain or gzip), one record a launch: the launch as `foldproof select` reads it, and
what a run of it needs besides: the grid, and what each buffer is for. docs/reference/replay.md has the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self, TypeAlias

import msgspec
from foldproof.impl.capture import converted
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.launch import Kind, Launch, launch_from, launch_to
from foldproof.impl.strictjson import located, read_many, reject_repeats
from msgspec import Meta

Role: TypeAlias = Literal["in", "out", "inout"]
Extent = Annotated[int, Meta(ge=1, le=2**31 - 1)]
MAX_ALLOCATION = 1 << 36
"""Bytes of one allocation above which a record is taken for a slip (64 GiB)."""


class BufferNote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a buffer is for. Where nothing is said it is read and written, with any bytes in it.

    `below` bounds integers that reach an address: they are drawn from [0, below). 0: any bit pattern.
    """

    role: Role = "inout"
    below: Annotated[int, Meta(ge=0)] = 0


class Record(msgspec.Struct, frozen=True):
    """One launch of a trace: the request, the grid in programs, and a note a pointer argument."""

    name: str
    launch: Launch
    grid: tuple[int, int, int]
    buffers: Mapping[str, BufferNote]


class _Beside(msgspec.Struct, frozen=True):
    """What stands beside the launch in a record; other fields (`expect`, `why`, times) are the recorder's own."""

    grid: tuple[Extent, Extent, Extent]
    name: str = ""
    buffers: dict[str, BufferNote] = {}


def record_from(value: Any, name: str = "") -> Record:
    """A record from a decoded JSON value; `name` is used where it has none. Raises `InvalidLaunch` with the place.

    Notes of arguments that the launch does not have are left out: a recorded miss may lack one.
    """
    if not isinstance(value, dict) or "launch" not in value:
        why = "a trace record is an object with a launch and a grid"
        raise InvalidLaunch(why, where="$", fix="see docs/reference/replay.md")
    reject_repeats(value, InvalidLaunch)
    launch = located("$.launch", lambda: launch_from(value["launch"]))
    beside = converted(value, _Beside, InvalidLaunch)
    pointers = {arg.name: arg for arg in launch.args if arg.kind == Kind.PTR}
    for arg in pointers.values():
        if arg.bytes is None or arg.bytes > MAX_ALLOCATION:
            why = (
                f"the pointer {arg.name!r} says no size" if arg.bytes is None else f"{arg.name!r} is {arg.bytes} bytes"
            )
            raise InvalidLaunch(why, where="$.launch.args", fix="record the bytes of the allocation that is used")
    notes = {buffer: note for buffer, note in beside.buffers.items() if buffer in pointers}
    return Record(beside.name or name, launch, beside.grid, notes)


def record_to(record: Record) -> dict[str, Any]:
    """The JSON value of a record: `record_from(record_to(x)) == x`."""
    notes = {name: {"role": note.role, "below": note.below} for name, note in record.buffers.items()}
    return {"name": record.name, "launch": launch_to(record.launch), "grid": list(record.grid), "buffers": notes}


def read_trace(path: Path) -> tuple[Record, ...]:
    """The records of a trace file. Raises `InvalidLaunch` with file, line or position, and reason."""
    records: list[Record] = []
    for place, value in read_many(path, InvalidLaunch):
        name = f"launch {len(records)}"
        records.append(located(f"{path}: {place}", lambda value=value, name=name: record_from(value, name)))  # type: ignore[misc]
    return tuple(records)


def recorded(path: Path) -> dict[str, Record]:
    """The records of a trace file by name; of several with one name, the first that can be run. Raises `InvalidLaunch`.

    Records that cannot be run, such as those of misses that a capture keeps beside its launches, are passed over.
    """
    found: dict[str, Record] = {}
    for _, value in read_many(path, InvalidLaunch):
        try:
            record = record_from(value)
        except InvalidLaunch:
            continue
        found.setdefault(record.name, record)
    return found


class TraceWriter:
    """Writes a trace while an engine runs: a line a launch, flushed, so that a crash loses nothing before it.

    Use as a context manager. A record is checked before it is written; raises `InvalidLaunch` for one that could not
    be replayed and OSError where the file cannot be written.
    """

    __slots__ = ("_stream", "count")

    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8")
        self.count = 0

    def add(
        self, launch: Mapping[str, Any], grid: tuple[int, int, int], buffers: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Append one launch: its JSON value, its grid, and the notes of its buffers."""
        name = f"{launch.get('fn', '')}#{self.count}"
        value = {"name": name, "launch": dict(launch), "grid": list(grid), "buffers": dict(buffers)}
        record = record_from(json.loads(json.dumps(value)))
        for buffer in set(buffers) - set(record.buffers):
            why = f"{buffer!r} is no pointer argument of {record.launch.fn}"
            raise InvalidLaunch(why, where=f"$.buffers.{buffer}", fix="name pointer arguments only")
        self._stream.write(json.dumps(value) + "\n")
        self._stream.flush()
        self.count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
