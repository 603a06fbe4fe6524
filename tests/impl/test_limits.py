"""What a reader takes at most, and what it opens: plain files, and a pipe where one is allowed."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest
from foldproof.impl import FoldproofError, InvalidPolicy
from foldproof.impl.files import digest_of, opened
from foldproof.impl.strictjson import parse, read_many
from foldproof.impl.tomlfile import MOST_DOTS, toml_text


def test_a_pipe_is_read_where_one_is_allowed_and_refused_at_once_elsewhere(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FoldproofError, match="is no plain file"), opened(pipe):
        pass
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    os.write(writer, b"\x1f\x8bhello")
    closer = threading.Timer(0.1, os.close, [writer])
    closer.start()
    with opened(pipe, pipe=True) as stream:
        # What comes through a pipe is read as it is, packed or not.
        assert stream.read() == b"\x1f\x8bhello"
    closer.join()
    os.close(reader)


def test_a_digest_is_that_of_the_bytes_as_they_lie_there(tmp_path: Path) -> None:
    file = tmp_path / "a.cubin"
    file.write_bytes(b"\x1f\x8b" * 1000)
    assert digest_of(file) == hashlib.sha256(b"\x1f\x8b" * 1000).hexdigest()
    with pytest.raises(FoldproofError, match="cannot be read: No such file"):
        digest_of(tmp_path / "absent")


def test_dots_of_one_line_are_bounded(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text("# " + "." * MOST_DOTS + "\n")
    assert toml_text(file).startswith("# .")
    file.write_text("\n# " + "." * (MOST_DOTS + 1) + "\n")
    with pytest.raises(InvalidPolicy, match=f"more than {MOST_DOTS} dots") as problem:
        toml_text(file, InvalidPolicy)
    assert problem.value.where == f"{file}: line 2"


def test_values_and_lines_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldproof.impl.strictjson.MOST_VALUES", 4)
    monkeypatch.setattr("foldproof.impl.strictjson.MOST_LINES", 3)
    assert parse("[1, 2, 3, 4]", "f") == [1, 2, 3, 4]
    with pytest.raises(FoldproofError, match="more than 4 values"):
        parse("[1, 2, 3, 4, 5]", "f")
    file = tmp_path / "f"
    file.write_text('{"a": 1}\n' * 3)
    assert len(list(read_many(file, most=3))) == 3
    with pytest.raises(FoldproofError, match="more than 2 values"):
        list(read_many(file, most=2))
    file.write_text('{"a": 1}\n' * 4)
    with pytest.raises(FoldproofError, match="more than 3 lines"):
        list(read_many(file))


def test_the_limits_are_those_that_the_errors_name(tmp_path: Path) -> None:
    """Two million values in one JSON value, sixteen in a file of lines, a million lines: each at and over its limit."""
    with pytest.raises(FoldproofError, match="is not JSON"):
        parse("," * 2_000_000, "f")
    with pytest.raises(FoldproofError, match="more than 2000000 values"):
        parse("," * 2_000_001, "f")
    file = tmp_path / "f"
    for commas, most in ((16_000_000, 2_000_000), (16_000_001, 16_000_000)):
        file.write_bytes(b"7" + b"," * commas)
        with pytest.raises(FoldproofError, match=f"more than {most} values"):
            next(read_many(file))
    file.write_bytes(b"7\n" * 1_000_000)
    assert next(read_many(file)) == ("line 1", 7)
    file.write_bytes(b"7\n" * 1_000_001)
    with pytest.raises(FoldproofError, match="more than 1000000 lines"):
        next(read_many(file))


@pytest.mark.parametrize(("depth", "good"), [(100, True), (101, False), (5000, False)])
def test_depth_is_bounded(depth: int, good: bool) -> None:
    text = "[" * depth + "]" * depth
    if good:
        assert isinstance(parse(text, "f"), list)
        return
    with pytest.raises(FoldproofError, match="nested too deeply"):
        parse(text, "f")
