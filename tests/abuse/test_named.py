"""The named cases of abuse, put to every reader: what stands in place of a file, and what no file should hold."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from abuse.limits import within
from abuse.targets import INPUT, TARGETS
from foldproof.impl.errors import FoldproofError, InvalidCapture
from foldproof.impl.strictjson import MOST_DEPTH, parse, reject_repeats

CORPUS = Path(__file__).with_name("corpus")
ANSWERS_ANYWAY = {"cubin", "lint", "campaign", "answer"}
"""What a cubin or an entry has wrong is a finding; a campaign tries several readers; a selector's answer is no file."""
NO_FILE = {"log"}
"""A log may be a pipe."""


def seed(name: str) -> bytes:
    """A valid input of a target: the first that it reads through."""
    return max((CORPUS / name).iterdir()).read_bytes()


def refused(name: str, folder: Path) -> bool:
    """Whether the reader of a folder answers with an error, and within the time."""
    try:
        with within():
            TARGETS[name].read(folder)
    except FoldproofError as problem:
        said = str(problem)
        assert "\n" not in said
        assert said.encode()
        return True
    return False


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


PLACED: dict[str, Callable[[Path], None]] = {
    "a directory": Path.mkdir,
    "a FIFO without a writer": _fifo,
    "a link to itself": _loop,
    "a link to /dev/zero": _zero,
    "a link to nothing": _dangling,
}


@pytest.mark.parametrize("what", PLACED)
@pytest.mark.parametrize("name", TARGETS)
def test_what_stands_in_place_of_a_file_is_refused_at_once(name: str, what: str, tmp_path: Path) -> None:
    place = tmp_path / TARGETS[name].file
    place.parent.mkdir(parents=True, exist_ok=True)
    PLACED[what](place)
    is_pipe = what.startswith("a FIFO") and name in NO_FILE
    assert refused(name, tmp_path) or name in ANSWERS_ANYWAY - {"answer"} or is_pipe


def _in_strings(data: bytes, text: bytes) -> bytes:
    """The data with `text` put before each string that JSON or TOML quotes."""
    return data.replace(b'":"', b'":"' + text).replace(b'": "', b'": "' + text).replace(b'= "', b'= "' + text)


LONG = b"1" * 10_000
CONTENTS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "blanks": lambda _: b" \n\t" * 1000,
    "NUL bytes": lambda _: b"\0" * 1000,
    "NUL bytes after it": lambda data: data + b"\0",
    "NUL in its text": lambda data: _in_strings(data, b"\0"),
    "escaped NUL in its text": lambda data: _in_strings(data, b"\\u0000"),
    "a byte order mark before it": lambda data: b"\xef\xbb\xbf" + data,
    "UTF-16": lambda data: data.decode("utf-8", "replace").encode("utf-16"),
    "bytes that are no UTF-8": lambda data: _in_strings(data, b"\xff\xfe"),
    "halves of surrogate pairs": lambda data: _in_strings(data, b"\\ud800"),
    "an integer of 10,000 digits": lambda _: LONG,
    "integers of 10,000 digits": lambda data: data.replace(b"1", LONG).replace(b"4", LONG),
    "integers of 4,000 digits": lambda data: data.replace(b"1", LONG[:4000]).replace(b"4", LONG[:4000]),
    "lists nested deep": lambda _: b"[" * 100_000,
    "objects nested deep": lambda _: b'{"a":' * 100_000,
    "closed lists nested deep": lambda _: b"[" * 5000 + b"]" * 5000,
    "tables nested deep": lambda _: b"a = " + b"{a=" * 5000 + b"1" + b"}" * 5000,
    "keys nested deep": lambda _: b"a." * 5000 + b"a = 1",
    "blocks nested deep": lambda data: data.replace(b"ret;", b"{" * 5000 + b"ret;" + b"}" * 5000),
    "every key twice": lambda data: b"{" + data.strip(b"[]{}\n") + b"," + data.strip(b"[]{}\n") + b"}",
    "the whole twice": lambda data: data + data,
    "gzip": gzip.compress,
    "gzip of gzip": lambda data: gzip.compress(gzip.compress(data)),
    "half of a gzip": lambda data: gzip.compress(data)[:-20],
    "a gzip of garbage": lambda _: b"\x1f\x8b\x08\x00" + b"garbage" * 9,
    "the first half": lambda data: data[: len(data) // 2],
}


@pytest.mark.parametrize("what", CONTENTS)
def test_what_no_file_should_hold_is_at_most_an_error(what: str, tmp_path: Path) -> None:
    for name, target in TARGETS.items():
        folder = tmp_path / name
        (folder / target.file).parent.mkdir(parents=True)
        (folder / target.file).write_bytes(CONTENTS[what](seed(name)))
        refused(name, folder)


@pytest.mark.parametrize("name", sorted(set(TARGETS) - ANSWERS_ANYWAY - {"log", "picks", "record"}))
def test_garbage_is_refused(name: str, tmp_path: Path) -> None:
    for what in ("NUL bytes", "an integer of 10,000 digits", "lists nested deep", "a gzip of garbage"):
        folder = tmp_path / what
        (folder / TARGETS[name].file).parent.mkdir(parents=True)
        (folder / TARGETS[name].file).write_bytes(CONTENTS[what](seed(name)))
        assert refused(name, folder), what


def test_no_depth_is_parsed_that_cannot_be_walked() -> None:
    for depth in (*range(1, 1100, 7), *range(MOST_DEPTH - 2, MOST_DEPTH + 3), 5000):
        text = b'{"a":[' * depth + b"]}" * depth
        if depth * 2 > MOST_DEPTH:
            with pytest.raises(InvalidCapture, match="is nested too deeply"):
                parse(text, "f", InvalidCapture)
        else:
            value = parse(text, "f", InvalidCapture)
            reject_repeats(value, InvalidCapture)
            assert json.dumps(value)


@pytest.mark.parametrize("name", sorted(n for n, t in TARGETS.items() if t.file != INPUT and n != "cubin"))
def test_a_name_that_is_no_utf_8_is_told_in_one_line(name: str, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff\xfe")
    (folder / TARGETS[name].file).parent.mkdir(parents=True)
    (folder / TARGETS[name].file).write_bytes(b"\xff")
    assert refused(name, folder) or name == "log"
