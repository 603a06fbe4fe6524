"""What each launch selects, as a packed NDJSON file beside the records: what two releases are compared by."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from foldproof.impl.errors import FoldproofError
from foldproof.reports.canonical import canonical


class Pick(NamedTuple):
    """A launch as JSON, how it ends, and the hash of the variant, None where none is selected."""

    launch: dict[str, Any]
    ending: str
    hash: str | None


def pick_bytes(picks: Iterable[Pick]) -> bytes:
    """The file: a launch a line, equal picks giving equal bytes."""
    lines = [canonical({"launch": p.launch, "ending": p.ending, "hash": p.hash}) for p in picks]
    return gzip.compress(b"".join(line + b"\n" for line in lines), compresslevel=6, mtime=0)


def read_picks(content: bytes, where: str) -> Iterator[Pick]:
    """The picks of a file. Raises `FoldproofError` if it is none."""
    try:
        for line in gzip.decompress(content).splitlines():
            value = json.loads(line)
            yield Pick(value["launch"], value["ending"], value["hash"])
    except (OSError, EOFError, ValueError, KeyError, TypeError, msgspec.DecodeError) as problem:
        raise FoldproofError(f"holds no picks: {problem}", where=where, fix="run foldproof check again") from None
