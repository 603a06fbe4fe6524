"""What each launch selects, as a packed NDJSON file beside the records: what two releases are compared by."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from foldproof.impl.errors import FoldproofError, one_line
from foldproof.reports.canonical import canonical

MAX_BYTES = 1024**3
"""Unpacked; a million launches have some 300 MB."""


MOST_LINE = 1 << 20


class _Line(msgspec.Struct, frozen=True):
    launch: dict[str, Any]
    ending: str
    hash: str | None


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
    """The picks of a file. Raises `FoldproofError` if it is none, or holds more than `MAX_BYTES` unpacked."""
    try:
        for line in _lines(content):
            value = msgspec.json.decode(line, type=_Line)
            yield Pick(_launch(value.launch), value.ending, value.hash)
    except (OSError, EOFError, ValueError, zlib.error, RecursionError, msgspec.DecodeError) as problem:
        why = f"holds no picks: {one_line(str(problem))}"
        raise FoldproofError(why, where=where, fix="run foldproof check again") from None


def _lines(content: bytes) -> Iterator[bytes]:
    if not content:
        raise EOFError("the file is empty")
    left = MAX_BYTES
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        while line := stream.readline(MOST_LINE + 1):
            left -= len(line)
            if left < 0 or len(line) > MOST_LINE:
                raise ValueError(f"more than {MAX_BYTES} bytes, or {MOST_LINE} in one line")
            yield line


def _launch(value: dict[str, Any]) -> dict[str, Any]:
    """The value itself, whose parts are what `launch_words` takes them for."""
    args, consts = value.get("args", []), value.get("consts", {})
    if isinstance(args, list) and all(isinstance(arg, dict) for arg in args) and isinstance(consts, dict):
        return value
    raise ValueError("a line without a launch")


def launch_words(launch: dict[str, Any]) -> str:
    """A launch on one line, `k(P=ptr 0x1000, R=1; BLOCK=512; num_warps=4)`: its args, constants and options."""
    args = [f"{arg.get('name')}={_arg(arg)}" for arg in launch.get("args", ())]
    consts = [f"{name}={_const(value)}" for name, value in launch.get("consts", {}).items()]
    options = [f"{key}={value}" for key, value in launch.items() if key not in ("fn", "args", "consts")]
    parts = [", ".join(part) for part in (args, consts, options) if part]
    return f"{launch.get('fn')}({'; '.join(parts)})"


def _arg(arg: dict[str, Any]) -> str:
    if arg.get("kind") == "ptr":
        return f"ptr {arg.get('addr')}"
    return str(arg.get("value", arg.get("bits", arg.get("kind"))))


def _const(value: Any) -> str:
    return str(next(iter(value.values()), "")) if isinstance(value, dict) else str(value)
