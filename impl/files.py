"""Opening a file that was named from outside: at once, only if it is a file, and packed or plain alike."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, cast

from foldproof.impl.errors import FoldproofError

ErrorType = type[FoldproofError]
PACKED = b"\x1f\x8b"
MOST_NAME, MOST_PATH = 255, 1024
"""Bytes of a name and of a relative path: what Linux takes of the one, and well within what it takes of the other."""


@contextmanager
def opened(path: Path, error: ErrorType = FoldproofError, *, pipe: bool = False) -> Iterator[IO[bytes]]:
    """A file open for reading, unpacked if it is gzip; a pipe is read as it is, where `pipe` allows one.

    Raises `error` if it is absent, or no file: a FIFO may have no writer and a device no end, and neither is waited
    for. Raises it too for what goes wrong while the caller reads.
    """
    try:
        if path.is_dir():
            raise error("is a directory, not a file", where=str(path), fix="name the file itself")
        with open(path, "rb", opener=_at_once) as stream:
            kind = os.fstat(stream.fileno()).st_mode
            if stat.S_ISFIFO(kind) and pipe:
                os.set_blocking(stream.fileno(), True)
                yield stream
                return
            if not stat.S_ISREG(kind):
                raise error("is no plain file", where=str(path), fix="write it to a file first")
            packed = stream.read(len(PACKED)) == PACKED
            stream.seek(0)
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if packed else stream
    except EOFError:
        raise error("breaks off inside its gzip data", where=str(path), fix="copy it again, whole") from None
    except (gzip.BadGzipFile, zlib.error) as problem:
        raise error(f"is damaged gzip: {problem}", where=str(path), fix="copy or pack it again") from None
    except (OSError, ValueError) as problem:
        why = f"cannot be read: {getattr(problem, 'strerror', None) or problem}"
        raise error(why, where=str(path), fix="check the path") from None


def digest_of(file: Path, error: ErrorType = FoldproofError) -> str:
    """The sha256 of a file's bytes as they lie there, in hex; read in pieces, since a cubin may be of any size."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as problem:
        raise error(f"cannot be read: {problem.strerror}", where=str(file), fix="check the path") from None


def is_below(name: str) -> bool:
    """Whether a relative path, taken from a file that may be hostile, stays below the folder that it starts in.

    It is none either if no file system holds such names: of more than 255 bytes, or of 1,024 in all.
    """
    path = PurePosixPath(name)
    fits = _size(name) <= MOST_PATH and all(_size(part) <= MOST_NAME for part in path.parts)
    return fits and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def _size(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))


def _at_once(path: str, flags: int) -> int:
    """Opens without waiting for a writer of a FIFO."""
    return os.open(path, flags | os.O_NONBLOCK)
