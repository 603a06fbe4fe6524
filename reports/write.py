"""Writing a report folder: everything is rendered first, then each file appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from foldproof.impl.errors import FoldproofError


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write `files` (relative path to content) below `folder`, each by a rename of a finished temporary file.

    Raises `FoldproofError` if the folder cannot be written; files already replaced stay whole.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".writing-")
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(content)
                Path(temporary).chmod(0o644)
                Path(temporary).replace(target)
            except OSError:
                Path(temporary).unlink(missing_ok=True)
                raise
    except OSError as problem:
        why = f"cannot be written: {problem.strerror or problem}"
        raise FoldproofError(why, where=str(folder), fix="name a writable folder with --out") from None
