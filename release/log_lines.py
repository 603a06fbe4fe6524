"""The lines of an engine's log: a file, gzip or a pipe, that may still grow, and that must be a text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from foldproof.impl.errors import FoldproofError
from foldproof.impl.files import opened

MOST_LINE = 1 << 20
CONTROLS = bytes(c for c in (*range(32), 127) if c not in b"\b\t\n\v\f\r\x1b")
"""Control characters but those of colours and progress bars."""
SHORT_LINE = 64
"""Bytes below which a line of control characters is a slip, and no binary file."""
AS_TEXT = "give the engine's log as text, in UTF-8; to read on past stray NULs, remove them with tr -d '\\000'"


def lines_of(path: Path, follow: float = 0.0) -> Iterator[str]:
    """The lines of a log, plain, gzip or a pipe, cut at a MiB; with `follow`, those added in that many seconds too.

    Raises `FoldproofError` where the file cannot be read, or is no text.
    """
    until, number = time.monotonic() + follow, 0
    with opened(path, pipe=True) as stream:
        while True:
            line = stream.readline(MOST_LINE)
            if line:
                number += 1
                if why := _binary(line):
                    raise FoldproofError(f"is no text: {why}", where=f"{path}: line {number}", fix=AS_TEXT)
                yield line.decode("utf-8", "replace")
            elif time.monotonic() >= until:
                return
            else:
                time.sleep(min(0.2, follow))


def _binary(line: bytes) -> str:
    """Why a line is none of a text: a NUL, or more other control characters than any log's. "" if it may be one.

    What is no UTF-8 passes: an engine may log in another encoding, and the patterns are ASCII.
    """
    if b"\0" in line:
        return f"a NUL at byte {line.index(0)} of the line"
    controls = len(line) - len(line.translate(None, CONTROLS)) if len(line) >= SHORT_LINE else 0
    return f"{controls} control characters in {len(line)} bytes" if controls * 10 > len(line) else ""
