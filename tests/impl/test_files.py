"""What is opened, and what is refused before it costs seconds or a GB."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest
from foldproof.impl import strictjson
from foldproof.impl.errors import FoldproofError, InvalidLaunch, InvalidPolicy
from foldproof.impl.files import digest_of, is_below, opened
from foldproof.impl.strictjson import json_lines, parse, read_many, whole
from foldproof.impl.tomlfile import MOST_BYTES, MOST_DOTS, toml_text


def test_a_file_is_read_plain_or_packed(tmp_path: Path) -> None:
    file = tmp_path / "f"
    for content, text in ((b"plain", b"plain"), (gzip.compress(b"packed"), b"packed"), (b"", b""), (b"\x1f", b"\x1f")):
        file.write_bytes(content)
        with opened(file) as stream:
            assert stream.read() == text


def test_what_is_no_file_is_refused_and_a_pipe_read_where_it_may_be(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InvalidLaunch, match="is no plain file"), opened(pipe, InvalidLaunch):
        pass
    with pytest.raises(FoldproofError, match="is no plain file"), opened(Path("/dev/null"), pipe=True):
        pass
    with pytest.raises(FoldproofError, match="is a directory"), opened(tmp_path):
        pass
    keeper = os.open(pipe, os.O_RDWR)
    os.write(keeper, b"a line\n")
    with opened(pipe, pipe=True) as stream:
        assert stream.readline() == b"a line\n"
        writer = threading.Timer(0.05, lambda: os.write(keeper, b"later\n"))
        writer.start()
        assert stream.readline() == b"later\n"
        writer.join()
    os.close(keeper)


def test_what_breaks_while_it_is_read_is_an_error_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "f.gz"
    packed = gzip.compress(b"x" * 1000)
    for content, why, fix in (
        (packed[:-10], "breaks off inside its gzip data", "copy it again, whole"),
        (packed[:-6] + b"\0\1" + packed[-4:], "is damaged gzip: CRC check failed", "copy or pack it again"),
        (packed[:10] + b"\xff" + packed[11:], "is damaged gzip: Error -3", "copy or pack it again"),
    ):
        file.write_bytes(content)
        with pytest.raises(InvalidLaunch) as problem, opened(file, InvalidLaunch) as stream:
            stream.read()
        assert problem.value.why.startswith(why)
        assert (problem.value.where, problem.value.fix) == (str(file), fix)


def test_a_digest_is_of_the_bytes_as_they_lie_there(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"")
    assert digest_of(file) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    with pytest.raises(InvalidLaunch, match="cannot be read: No such file"):
        digest_of(tmp_path / "absent", InvalidLaunch)


@pytest.mark.parametrize(
    ("name", "below"),
    [
        ("a/b", True),
        ("a", True),
        ("", True),
        ("a..b", True),
        ("..", False),
        ("a/../b", False),
        ("/a", False),
        ("\0", False),
        (f"a/{'x' * 255}", True),
        (f"a/{'x' * 256}", False),
        (f"a/{'é' * 128}", False),
        ("/".join(["x" * 204] * 5), True),
        ("/".join(["x" * 205] * 5), False),
    ],
)
def test_a_name_stays_below_or_does_not(name: str, below: bool) -> None:
    assert is_below(name) is below


def test_values_lines_and_depth_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MOST_VALUES", 6), ("MOST_LINES", 3), ("MOST_DEPTH", 2)):
        monkeypatch.setattr(strictjson, name, value)
    assert parse("[1,2,3,4,5,6]", "f") == [1, 2, 3, 4, 5, 6]
    with pytest.raises(InvalidLaunch, match="holds more than 6 values"):
        parse("[1,2,3,4,5,6,7]", "f", InvalidLaunch)
    assert parse('{"a":[]}', "f") == {"a": []}
    with pytest.raises(InvalidLaunch, match="is nested too deeply"):
        parse('[{"a":[]}]', "f", InvalidLaunch)
    file = tmp_path / "f"
    file.write_text("{}\n{}\n{}\n")
    assert len(list(read_many(file, most=3))) == 3
    with pytest.raises(FoldproofError, match="holds more than 2 values"):
        list(read_many(file, most=2))
    file.write_text("{}\n\n\n\n")
    with pytest.raises(FoldproofError, match="has more than 3 lines"):
        list(read_many(file))


def test_a_toml_file_is_as_a_person_wrote_it(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_bytes(b"\xef\xbb\xbfa = 1\n" + b"." * MOST_DOTS)
    assert toml_text(file) == "a = 1\n" + "." * MOST_DOTS
    file.write_bytes(b"a = 1\n" + b"." * (MOST_DOTS + 1))
    with pytest.raises(InvalidPolicy, match="dots in one line") as problem:
        toml_text(file, InvalidPolicy)
    assert problem.value.where == f"{file}: line 2"
    file.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(FoldproofError, match="is larger than 1 MiB"):
        toml_text(file)
    file.write_bytes(b"\xff")
    with pytest.raises(FoldproofError, match="no UTF-8 at byte 0"):
        toml_text(file)


def test_halves_of_surrogate_pairs_are_written_by_their_number() -> None:
    assert whole({"\udcff": ("é", [1, "\ud800"])}) == {"\\udcff": ["é", [1, "\\ud800"]]}
    assert json_lines(["\udcff"]) == b'[\n "\\\\udcff"\n]'
    assert json_lines(["é"], 2) == '[\n  "é"\n]'.encode()
