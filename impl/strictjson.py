"""Strict reading of JSON and NDJSON files: duplicate keys, NaN and lone surrogates are errors with a place.

Python's own parser keeps the last of two equal keys and accepts `NaN`; a capture that says a thing twice
must be refused instead, because either saying may be the assumption that a launch breaks. What nests deeper, or holds
more, than any capture is refused as well: a reader answers within seconds and a GB, whatever it is given.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
from foldproof.impl.errors import FoldproofError
from foldproof.impl.files import ErrorType, opened

MAX_BYTES = 64 * 1024 * 1024  # a shipped capture of 343 variants has 0.3 MB
MOST_VALUES = 2_000_000
"""Values in one JSON value: Python takes some 100 bytes for each, and a shipped capture has 20,000."""
MOST_LINES = 1_000_000
MOST_DEPTH = 100
NOT_JSON = (ValueError, RecursionError)
"""What msgspec's decoder raises: its own errors are `ValueError`, and so are those of text and of long numbers."""
T = TypeVar("T")


class RepeatedKey(dict[str, Any]):
    """A JSON object in which `key` appears more than once; `reject_repeats` turns it into an error."""

    key: str


def read_bytes(path: Path, error: ErrorType = FoldproofError, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a file, unpacked if it is gzip. Raises `error` if it is absent, no plain file, or over `limit`."""
    with opened(path, error) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        why = f"is larger than {limit // 2**20} MiB"
        raise error(why, where=str(path), fix="split it, or check that it is the right file")
    return data


def parse(data: bytes | str, where: str, error: ErrorType = FoldproofError) -> Any:
    """The JSON value in `data`. Objects with a repeated key come back as `RepeatedKey`.

    Raises `error` with line and column for anything that is not JSON (truncated, NaN, too deep, not UTF-8), or is more
    than `MOST_VALUES` values.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        if _values(text) > MOST_VALUES:
            raise error(f"holds more than {MOST_VALUES} values", where=where, fix="write one launch or case a line")
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except UnicodeDecodeError as problem:
        raise error(f"is not UTF-8 at byte {problem.start}", where=where, fix="save it as UTF-8") from None
    except json.JSONDecodeError as problem:
        why, fix = _not_json(problem)
        raise error(f"is not JSON: {why}", where=_place(where, problem), fix=fix) from None
    except RecursionError:
        value = None
        deep = True
    except _ConstantError as problem:
        raise error(f"is not JSON: {problem}", where=where, fix="write numbers as plain integers") from None
    except ValueError:
        # Python's own words for a number that it does not take name a setting of Python.
        most = sys.get_int_max_str_digits()
        found = re.search(rf"[0-9]{{{most + 1}}}", text)
        place = _place(where, json.JSONDecodeError("", text, found.start() if found else 0))
        why = f"is not JSON: a number of more than {most} digits"
        raise error(why, where=place, fix="write numbers that fit 64 bits") from None
    else:
        deep = _is_deep(value)
    if deep:
        raise error("is nested too deeply", where=where, fix="no capture or launch nests this deep")
    return value


class _ConstantError(ValueError):
    """A word such as NaN, which Python's parser takes for a number."""


def _place(where: str, problem: json.JSONDecodeError) -> str:
    return f"{where}: line {problem.lineno} column {problem.colno}"


def _not_json(problem: json.JSONDecodeError) -> tuple[str, str]:
    """What is wrong with a text, and what to do: it goes on after its value, it breaks off, or neither."""
    if problem.msg == "Extra data":
        return "something follows the value", "remove what follows, or write one value a line"
    if problem.pos >= len(problem.doc.rstrip()) or problem.msg.startswith("Unterminated string"):
        return problem.msg, "the file may be cut short"
    return problem.msg, "correct it there"


def _values(data: str) -> int:
    """How many values a JSON text holds at most: a value follows a bracket, a brace or a comma."""
    return sum(map(data.count, ",[{"))


def _is_deep(value: Any) -> bool:
    """Whether a value nests so deep that a walk through it by recursion might not come back."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MOST_DEPTH):
        if not level:
            return False
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, (dict, list))
        ]
    return bool(level)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    first: dict[str, int] = {}
    repeated = RepeatedKey(result)
    repeated.key = next(key for at, (key, _) in enumerate(pairs) if first.setdefault(key, at) != at)
    return repeated


def _no_constant(name: str) -> NoReturn:
    raise _ConstantError(f"{name} is no JSON number")


def reject_repeats(value: Any, error: ErrorType, path: str = "$") -> None:
    """Raise `error` at the JSON path of the first repeated key or lone surrogate inside `value`."""
    if isinstance(value, dict):
        if isinstance(value, RepeatedKey):
            raise error(f"the key {value.key!r} is repeated", where=path, fix="keep one of them")
        for key, item in value.items():
            _reject_surrogates(key, error, path)
            if isinstance(item, (dict, list, str)):
                reject_repeats(item, error, f"{path}.{key}")
    elif isinstance(value, list):
        for position, item in enumerate(value):
            if isinstance(item, (dict, list, str)):
                reject_repeats(item, error, f"{path}[{position}]")
    elif isinstance(value, str):
        _reject_surrogates(value, error, path)


def _reject_surrogates(text: str, error: ErrorType, path: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise error("text holds half of a surrogate pair", where=path, fix="write whole characters") from None


def whole(value: Any) -> Any:
    """The JSON value with halves of surrogate pairs written out by their number, so that it can be encoded.

    They come from JSON escapes, and from names of files that are no UTF-8.
    """
    if isinstance(value, dict):
        return {whole(key): whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [whole(item) for item in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def json_lines(value: object, indent: int = 1) -> bytes:
    """The value as JSON over several lines, whatever text is in it."""
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = msgspec.json.encode(whole(msgspec.to_builtins(value)))
    return msgspec.json.format(text, indent=indent)


def read_document(path: Path, error: ErrorType = FoldproofError) -> Any:
    """The one JSON value of a file, without repeated keys (raises `error` with file and JSON path)."""
    value = parse(read_bytes(path, error), str(path), error)
    located(path, lambda: reject_repeats(value, error))
    return value


def located(place: str | Path, action: Callable[[], T]) -> T:
    """`action()`, with `place` put before the place of any error it raises."""
    try:
        return action()
    except FoldproofError as problem:
        raise problem.at(place) from None


def read_many(path: Path, error: ErrorType = FoldproofError, most: int = MOST_VALUES * 8) -> Iterator[tuple[str, Any]]:
    """The values of a JSON list, of one JSON object, or of NDJSON, each with its place in the file.

    Plain or gzip. Repeated keys stay in as `RepeatedKey`, so that the caller can answer for one value. Raises `error`
    for more than `most` JSON values in all, or more than `MOST_LINES` lines, too.
    """
    data = read_bytes(path, error, 2 * MAX_BYTES)
    head = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if not head:
        raise error("is empty", where=str(path), fix="write one JSON value a line, or a JSON list")
    if head == b"[":
        for position, value in enumerate(parse(data, str(path), error)):
            yield f"$[{position}]", value
        return
    if sum(map(data.count, (b",", b"[", b"{"))) > most:
        raise error(f"holds more than {most} values", where=str(path), fix="split it")
    if data.count(b"\n") > MOST_LINES:
        raise error(f"has more than {MOST_LINES} lines", where=str(path), fix="split it")
    lines = data.splitlines()
    if not _is_object(lines):
        yield "$", parse(data, str(path), error)
        return
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"line {number}", parse(line, f"{path}: line {number}", error)


def _is_object(lines: list[bytes]) -> bool:
    """Whether the first line that is not blank is a whole JSON value, so that the file is NDJSON."""
    first = next((line for line in lines if line.strip()), b"")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True
