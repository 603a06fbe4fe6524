"""The event stream of one run, each event a record in the evidence folder before the next."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from foldproof.reports.canonical import sha256
from foldproof.reports.events import SCHEMA_VERSION, AnyEvent, FileRef, Record, Rendered, RunFinished, RunStarted
from foldproof.reports.store import put, put_file
from foldproof.reports.write import write_folder


class Recorder:
    """What a stage is given: `emit` an event, `file` a case or a script, `render` report files.

    Every event is a whole record on disk before `emit` returns, so a run that is killed loses nothing it had told.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self.folder, self.run = folder, run
        self.exit_code: int | None = None
        self.digests: list[str] = []

    def emit(self, event: AnyEvent) -> None:
        """Write the event as the next record of the run. Raises `FoldproofError`."""
        record = Record(SCHEMA_VERSION, self.run, len(self.digests), event)
        self.digests.append(put(self.folder, record))

    def file(self, path: str, content: bytes) -> FileRef:
        """Write a file that an event will speak of (see `store.put_file`)."""
        return put_file(self.folder, path, content)

    def render(self, files: dict[str, bytes]) -> None:
        """Write rendered files and the record of them."""
        if files:
            write_folder(self.folder, files)
            refs = tuple(FileRef(path, sha256(content)) for path, content in files.items())
            self.emit(Rendered(files=refs))


@contextmanager
def recording(folder: Path, started: RunStarted) -> Iterator[Recorder]:
    """A run below `folder`, from its first record to its last.

    An error ends it as failed, Ctrl-C as interrupted. Raises `FoldproofError` if the folder cannot be written.
    """
    began = perf_counter()
    recorder = Recorder(folder, f"{started.started}-{os.urandom(4).hex()}")
    recorder.emit(started)
    state = "failed"
    try:
        yield recorder
        state = "complete"
    except KeyboardInterrupt:
        state = "interrupted"
        raise
    finally:
        seconds = round(perf_counter() - began, 3)
        code = recorder.exit_code if state == "complete" else None
        recorder.emit(RunFinished(state=state, exit_code=code, records=tuple(recorder.digests), seconds=seconds))


def now() -> str:
    """The time in UTC, to the microsecond, as `started` has it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
