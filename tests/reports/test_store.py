"""The evidence folder: whatever is changed, cut, removed, linked or pointed outside is found and named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from foldproof.impl.errors import FoldproofError
from foldproof.reports import store
from foldproof.reports.canonical import canonical, sha256
from foldproof.reports.events import (
    AnyEvent,
    CaseFound,
    FileRef,
    ObligationDecided,
    Owed,
    Record,
    RunFinished,
    RunStarted,
)
from foldproof.reports.recorder import Recorder, now, recording
from foldproof.reports.store import Damage, damage, put, put_file, raw, read
from foldproof.reports.write import write_folder
from samples import fill

NO_DIGEST = "is no record: its name is no digest"


def started(verb: str = "check") -> RunStarted:
    return RunStarted(verb=verb, command=f"foldproof {verb}", tool="foldproof", versions={}, started=now())


def case(ref: FileRef) -> CaseFound:
    return CaseFound(stage="fuzz", title="t", policy="p", policy_sha256="d", why="w", command="c", file=ref)


def small(folder: Path) -> None:
    """A run with a case, a script and a rendered file."""
    with recording(folder, started()) as to:
        to.emit(case(to.file("cases/one.json", b"[1]")))
        script = to.file("smt/T01.smt2", b"(check-sat)")
        to.emit(ObligationDecided(name="T01", says="s", script=script, z3="unsat", cvc5="unsat"))
        to.render({"receipt.md": b"# ok"})


def wrong(folder: Path) -> list[Damage]:
    stored, damaged = read(folder)
    return [*damaged, *damage(folder, stored)]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def forged(folder: Path, event: AnyEvent, run: str = "forged", sequence: int = 0) -> str:
    """A record that is right by itself, whatever it says."""
    return put(folder, Record(1, run, sequence, event))


def forge_raw(folder: Path, value: object) -> str:
    content = canonical(value)
    (folder / "records").mkdir(parents=True, exist_ok=True)
    (folder / "records" / f"{sha256(content)}.json").write_bytes(content)
    return f"records/{sha256(content)}.json"


def test_what_was_written_holds(tmp_path: Path) -> None:
    small(tmp_path)
    assert wrong(tmp_path) == []
    stored, _ = read(tmp_path)
    assert [one.record.sequence for one in stored] == [0, 1, 2, 3, 4]
    assert {file.name for file in files(tmp_path) if file.parent.name != "records"} == {
        "one.json",
        "T01.smt2",
        "receipt.md",
    }


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.slow)])
def test_every_changed_byte_of_every_file_is_found_and_the_file_named(tmp_path: Path, step: int) -> None:
    small(tmp_path)
    changed = 0
    for file in files(tmp_path):
        content = file.read_bytes()
        name = file.relative_to(tmp_path).as_posix()
        for place in range(0, len(content), step):
            file.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
            assert name in {one.file for one in wrong(tmp_path)}, f"byte {place} of {name}"
            changed += 1
        file.write_bytes(content)
    assert wrong(tmp_path) == []
    assert changed * step > 1000


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"[]"])
def test_a_file_that_is_cut_or_replaced_is_named(tmp_path: Path, content: bytes) -> None:
    small(tmp_path)
    for file in files(tmp_path):
        kept = file.read_bytes()
        for left in (content, kept[:-1], kept + b"\n"):
            file.write_bytes(left)
            assert file.relative_to(tmp_path).as_posix() in {one.file for one in wrong(tmp_path)}
        file.write_bytes(kept)


def test_a_file_that_is_removed_is_named(tmp_path: Path) -> None:
    small(tmp_path)
    stored, _ = read(tmp_path)
    last = next(one.digest for one in stored if isinstance(one.record.event, RunFinished))
    for file in files(tmp_path):
        kept = file.read_bytes()
        file.unlink()
        named = {one.file for one in wrong(tmp_path)}
        # Without its last record a run is one that was killed: that is shown as its state, not as damage.
        assert named == (set() if file.stem == last else {file.relative_to(tmp_path).as_posix(), *named})
        if file.stem != last:
            assert named
        file.write_bytes(kept)


def test_a_gap_in_a_run_that_was_killed_is_told(tmp_path: Path) -> None:
    small(tmp_path)
    stored, _ = read(tmp_path)
    for one in stored:
        if one.record.sequence in (1, 4):
            (tmp_path / "records" / f"{one.digest}.json").unlink()
    assert [one.file for one in wrong(tmp_path)] == ["records"]


@pytest.mark.parametrize("path", ["../x", "/etc/hostname", "a/../../x", "", ".", "cases/\0x", "..", "x" * 5000])
def test_a_path_that_leaves_the_folder_is_damage_and_nothing_is_read(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "evidence"
    (tmp_path / "x").write_bytes(b"outside")
    small(folder)
    forged(folder, case(FileRef(path, sha256(b"outside"))))
    told = [one for one in wrong(folder) if one.file == path]
    assert len(told) == 1
    assert told[0].why in ("is outside the folder: no record may name it", "cannot be read: File name too long")


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "", "a\0b"])
def test_no_file_is_written_outside_the_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(FoldproofError, match="outside the folder"):
        put_file(tmp_path / "evidence", path, b"x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["cases/one.json", "records", "folder"])
def test_a_link_is_damage_though_its_content_is_right(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "evidence"
    small(folder)
    if what == "folder":
        (folder / "cases").rename(tmp_path / "elsewhere")
        (folder / "cases").symlink_to(tmp_path / "elsewhere")
        assert [one.file for one in wrong(folder)] == ["cases/one.json"]
        return
    file = folder / what if what != "records" else next((folder / "records").iterdir())
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    name = file.relative_to(folder).as_posix()
    assert name in {one.file for one in wrong(folder) if "link" in one.why}


def test_a_folder_that_is_reached_through_a_link_holds(tmp_path: Path) -> None:
    small(tmp_path / "evidence")
    (tmp_path / "link").symlink_to(tmp_path / "evidence")
    assert wrong(tmp_path / "link") == []


def test_no_reader_waits_for_a_pipe(tmp_path: Path) -> None:
    small(tmp_path)
    (tmp_path / "cases" / "one.json").unlink()
    os.mkfifo(tmp_path / "cases" / "one.json")
    os.mkfifo(tmp_path / "records" / f"{'0' * 64}.json")
    pipe = Damage(f"records/{'0' * 64}.json", NO_DIGEST)
    assert wrong(tmp_path) == [pipe, Damage("cases/one.json", "is missing")]


def test_a_record_with_fields_that_none_has_is_damage(tmp_path: Path) -> None:
    small(tmp_path)
    file = next((tmp_path / "records").iterdir())
    value = json.loads(file.read_bytes())
    for more in (
        {**value, "note": 1},
        {**value, "event": {**value["event"], "note": 1}},
        {**value, "schema_version": 2},
        {**value, "schema_version": 0},
    ):
        name = forge_raw(tmp_path, more)
        told = [one for one in wrong(tmp_path) if one.file == name]
        assert len(told) == 1
        (tmp_path / name).unlink()


def test_a_record_that_is_not_canonical_is_damage(tmp_path: Path) -> None:
    small(tmp_path)
    file = next((tmp_path / "records").iterdir())
    content = json.dumps(json.loads(file.read_bytes()), indent=1).encode()
    name = f"records/{sha256(content)}.json"
    (tmp_path / name).write_bytes(content)
    assert "canonical" in next(one.why for one in wrong(tmp_path) if one.file == name)


@pytest.mark.parametrize("name", ["notes.txt", "abc.json", f"{'A' * 64}.json", f"{'0' * 64}.json"])
def test_what_is_no_record_among_the_records_is_named(tmp_path: Path, name: str) -> None:
    small(tmp_path)
    (tmp_path / "records" / name).write_bytes(b"{}")
    why = "was changed: its bytes have another digest than its name says" if "0" in name else NO_DIGEST
    assert wrong(tmp_path) == [Damage(f"records/{name}", why)]


def test_a_deep_record_is_told_and_breaks_no_reader(tmp_path: Path) -> None:
    small(tmp_path)
    content = b'{"event":' + b"[" * 100_000
    (tmp_path / "records" / f"{sha256(content)}.json").write_bytes(content)
    assert "is no record" in wrong(tmp_path)[0].why


def test_what_a_killed_writer_left_is_no_damage(tmp_path: Path) -> None:
    small(tmp_path)
    (tmp_path / "records" / ".writing-abc").write_bytes(b"half")
    assert wrong(tmp_path) == []
    assert len(read(tmp_path)[0]) == 5


def test_a_forged_record_cannot_turn_a_changed_case_into_a_right_one(tmp_path: Path) -> None:
    small(tmp_path)
    (tmp_path / "cases" / "one.json").write_bytes(b"[2]")
    forged(tmp_path, started())
    forged(tmp_path, case(FileRef("cases/one.json", sha256(b"[2]"))), sequence=1)
    assert [one.file for one in wrong(tmp_path)] == ["cases/one.json"]


def test_of_a_rendered_file_the_newest_record_speaks(tmp_path: Path) -> None:
    small(tmp_path)
    with recording(tmp_path, started("report")) as to:
        to.render({"receipt.md": b"# newer"})
    assert wrong(tmp_path) == []
    write_folder(tmp_path, {"receipt.md": b"# ok"})
    assert [one.file for one in wrong(tmp_path)] == ["receipt.md"]


def test_another_file_of_one_name_gets_a_name_of_its_own(tmp_path: Path) -> None:
    first, again = put_file(tmp_path, "cases/a.json", b"1"), put_file(tmp_path, "cases/a.json", b"1")
    second = put_file(tmp_path, "cases/a.json", b"2")
    assert first == again
    assert second.path == f"cases/a-{sha256(b'2')[:12]}.json"
    assert raw(tmp_path / first.path) == b"1"
    (tmp_path / second.path).write_bytes(b"3")
    with pytest.raises(FoldproofError, match="stands where another file must"):
        put_file(tmp_path, "cases/a.json", b"2")


@pytest.mark.parametrize("contents", [(b"1", b"2"), (b"2", b"1")])
def test_a_file_that_holds_something_else_is_never_taken_for_the_file(
    tmp_path: Path, contents: tuple[bytes, bytes]
) -> None:
    refs = [put_file(tmp_path, "cases/a.json", content) for content in contents]
    assert [raw(tmp_path / ref.path) for ref in refs] == list(contents)
    assert [ref.sha256 for ref in refs] == [sha256(content) for content in contents]


def test_two_records_for_one_place_of_a_run_are_damage(tmp_path: Path) -> None:
    forged(tmp_path, started())
    forged(tmp_path, Owed(what="w", why="y", settle="s"), sequence=1)
    assert wrong(tmp_path) == []
    forged(tmp_path, Owed(what="another", why="y", settle="s"), sequence=1)
    assert wrong(tmp_path) == [Damage("records", "run forged has a gap: of its records some are missing")]


@pytest.mark.parametrize("limit", ["MAX_BYTES", "MOST_RECORD"])
def test_a_record_of_as_many_bytes_as_may_be_is_read_and_a_longer_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    digest = forged(tmp_path, started())
    size = (tmp_path / "records" / f"{digest}.json").stat().st_size
    monkeypatch.setattr(store, limit, size)
    assert wrong(tmp_path) == []
    monkeypatch.setattr(store, limit, size - 1)
    assert [(one.file, one.why) for one in wrong(tmp_path)] == [
        (f"records/{digest}.json", f"has more than {size - 1} bytes")
    ]


def test_what_is_longer_than_any_file_of_evidence_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as stream:
        stream.truncate(256 * 2**20 + 1)
    with pytest.raises(FoldproofError, match="has more than 268435456 bytes"):
        raw(tmp_path / "file")
    content = bytes(24 * 2**20 + 1)
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / f"{sha256(content)}.json").write_bytes(content)
    assert [one.why for one in read(tmp_path)[1]] == ["has more than 25165824 bytes"]


def test_why_a_file_cannot_be_read_is_told_in_the_words_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FoldproofError) as told:
        raw(tmp_path / ("x" * 5000))
    assert told.value.why == "cannot be read: File name too long"


def test_hostile_names_stay_in_the_records_as_they_are(tmp_path: Path) -> None:
    fill(tmp_path, "a\0b\n\u202e\x1b[31m")
    assert wrong(tmp_path) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_run_that_breaks_off_says_how(tmp_path: Path, error: type[BaseException]) -> None:
    def run(to: Recorder) -> None:
        to.emit(Owed(what="w", why="y", settle="s"))
        raise error

    with pytest.raises(error), recording(tmp_path, started()) as to:
        run(to)
    last = read(tmp_path)[0][-1].record.event
    assert isinstance(last, RunFinished)
    assert last.state == ("interrupted" if error is KeyboardInterrupt else "failed")
    assert last.exit_code is None
    assert len(last.records) == 2


def test_an_event_is_on_disk_before_emit_returns(tmp_path: Path) -> None:
    with recording(tmp_path, started()) as to:
        to.emit(Owed(what="w", why="y", settle="s"))
        assert [one.digest for one in read(tmp_path)[0]] == to.digests
    assert len(read(tmp_path)[0]) == 3


def test_runs_come_in_the_order_of_their_start_whatever_their_digests(tmp_path: Path) -> None:
    for number in range(5):
        with recording(tmp_path, started(f"verb{number}")):
            pass
    begun = [one.record.event.verb for one in read(tmp_path)[0] if isinstance(one.record.event, RunStarted)]
    assert begun == [f"verb{number}" for number in range(5)]


def test_of_two_runs_the_one_that_began_first_comes_first_whatever_it_is_called(tmp_path: Path) -> None:
    for name, at in (("a", "2"), ("b", "1"), ("c", "3")):
        forged(tmp_path, msgspec.structs.replace(started(), started=at), name)
        forged(tmp_path, Owed(what=name, why="y", settle="s"), name, 1)
    assert [(one.record.run, one.record.sequence) for one in read(tmp_path)[0]] == [
        (name, place) for name in "bac" for place in (0, 1)
    ]


def test_a_folder_without_records_or_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(FoldproofError, match="holds no evidence"):
        read(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FoldproofError, match="cannot be written"):
        put(tmp_path / "file", Record(1, "r", 0, started()))
