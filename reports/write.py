"""Writing a report folder: everything is rendered first, then each file appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from foldproof.impl.errors import FoldproofError
from foldproof.impl.files import is_below

TEMPORARY = ".writing-"
"""How the name of a file begins that is being written; one whose writer was killed stays, and nobody reads it."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write `files` (relative path to content) below `folder`: all of them beside their places, then each to its own.

    Raises `FoldproofError` if the folder cannot be written. On a full disk that is before the first file changes.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            target = folder / name
            if not is_below(name) or leads_out(folder, name):
                raise FoldproofError("lies outside the folder", where=str(target), fix="remove the link")
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=TEMPORARY)
            staged.append((Path(temporary), target))
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(temporary).chmod(0o644)
        for temporary_file, target in staged:
            temporary_file.replace(target)
    except (OSError, ValueError) as problem:
        raise unwritable(problem, folder) from None
    finally:
        for temporary_file, _ in staged:
            with contextlib.suppress(OSError):
                temporary_file.unlink(missing_ok=True)


def leads_out(folder: Path, name: str) -> bool:
    """Whether a link stands in the way from the folder to the file, so that the file would be written elsewhere."""
    return any((folder / part).is_symlink() for part in list(PurePosixPath(name).parents)[:-1])


def unwritable(problem: OSError | ValueError, where: Path) -> FoldproofError:
    """The error that says why a place cannot be written."""
    why = f"cannot be written: {getattr(problem, 'strerror', None) or problem}"
    full = getattr(problem, "errno", None) in _FULL
    fix = "free some space, or name another folder" if full else "name a writable folder"
    return FoldproofError(why, where=str(where), fix=fix)
