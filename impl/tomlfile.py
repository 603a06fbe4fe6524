"""The text of a TOML file, refused where Python's parser would take more than seconds for it."""

from __future__ import annotations

from pathlib import Path

from foldproof.impl.errors import FoldproofError
from foldproof.impl.files import ErrorType
from foldproof.impl.strictjson import read_bytes

MOST_BYTES = 1 << 20
"""A policy has 1 KB; ranges of every function of a large engine have 100."""
MOST_DOTS = 256
"""In one line. The parser takes time in the square of the parts of a dotted key."""


def toml_text(path: Path, error: ErrorType = FoldproofError) -> str:
    """The text of a TOML file. Raises `error` if it cannot be read, is no UTF-8, or is more than a person wrote."""
    data = read_bytes(path, error, MOST_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error(f"is not TOML: no UTF-8 at byte {problem.start}", where=str(path), fix="save it as UTF-8") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MOST_DOTS:
            why = f"has more than {MOST_DOTS} dots in one line"
            raise error(why, where=f"{path}: line {number}", fix="write a list over several lines")
    return text
