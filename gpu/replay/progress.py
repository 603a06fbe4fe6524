"""What of a device run is done, on disk as soon as it is there, so that a run that was cut short can go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from foldproof.gpu.replay.tally import BoutCount
from foldproof.impl.errors import FoldproofError
from foldproof.impl.strictjson import NOT_JSON

T = TypeVar("T")


class Kept(msgspec.Struct, frozen=True):
    """One line of the progress file: what the run is of (the first line), or a finished piece of it."""

    key: str
    value: Any


class Progress:
    """Finished pieces by key, on disk as soon as they are there."""

    def __init__(self, file: Path, run: Mapping[str, Any], *, resume: bool) -> None:
        self._file = file
        self.pieces: dict[str, Any] = {}
        if resume and file.is_file():
            lines = _located(file, lambda: [msgspec.json.decode(line, type=Kept) for line in _whole_lines(file)])
            self.pieces = {line.key: line.value for line in lines}
            if self.pieces.pop("run", None) != dict(run):
                why = "is of a run with another capture, seed or number of sets"
                raise FoldproofError(why, where=str(file), fix="name another folder, or leave out --resume")
        elif file.exists() and not file.is_file():
            raise FoldproofError("is no plain file", where=str(file), fix="name another folder")
        else:
            _located(file, lambda: file.write_bytes(b""))
            self._write("run", dict(run))

    def keep(self, key: str, value: Any) -> None:
        """Write a finished piece."""
        self.pieces[key] = value
        self._write(key, value)

    def _write(self, key: str, value: Any) -> None:
        with self._file.open("ab") as stream:
            stream.write(msgspec.json.encode(Kept(key, value)) + b"\n")

    def counts(self) -> dict[str, BoutCount]:
        """The bouts that are done, by launch name."""
        bouts = {key[5:]: value for key, value in self.pieces.items() if key.startswith("bout ")}
        return _located(self._file, lambda: {name: msgspec.convert(value, BoutCount) for name, value in bouts.items()})


def _located(file: Path, action: Callable[[], T]) -> T:
    """`action()`; what it finds wrong in the file is an error of one line."""
    try:
        return action()
    except (OSError, *NOT_JSON) as problem:
        why = f"is no progress of a run: {problem}"
        raise FoldproofError(why, where=str(file), fix="leave out --resume") from None


def _whole_lines(file: Path) -> list[bytes]:
    """The lines of a file; a last line that was cut short by a kill is dropped, from the file too."""
    data = file.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        file.write_bytes(whole)
    return whole.splitlines()
