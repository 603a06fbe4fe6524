"""Canonical JSON (RFC 8785) and the digests over it: equal records have equal bytes, so a name can be a digest.

RFC 8785 writes numbers as IEEE doubles. An integer that a double cannot hold is written as text, so that every reader
of JSON reads the same value; a float that is no number is null, which means not measured.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import msgspec
import rfc8785

EXACT = 2**53 - 1
"""The largest integer that every JSON reader keeps."""


def plain(value: Any) -> Any:
    """`value` as JSON builtins: integers beyond `EXACT` are text, infinities and NaN null, lone surrogates `?`."""
    if isinstance(value, dict):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    if isinstance(value, int):
        return value if abs(value) <= EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return plain(msgspec.to_builtins(value))


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a value that msgspec can turn into builtins."""
    return bytes(rfc8785.dumps(plain(value)))


def sha256(content: bytes) -> str:
    """The digest of bytes, as 64 hex digits."""
    return hashlib.sha256(content).hexdigest()
