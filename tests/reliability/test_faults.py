"""Killed, on a full disk, without a folder to write: nothing is half written, and the error says what is wrong."""

from __future__ import annotations

import gzip
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foldproof.cli.recording import started
from foldproof.impl import load_policy
from foldproof.props.corpus import load_corpus
from foldproof.reports.events import PolicySeen
from foldproof.reports.evidence import AtHand
from foldproof.reports.evidence import evidence as evidence_of
from foldproof.reports.recorder import recording
from foldproof.reports.store import read
from reliability import kill

FOLDPROOF = (sys.executable, "-m", "foldproof.cli.main")
SERVE = f"{sys.executable} -m foldproof.impl.external.serve --policy two-pass"
BIG = 3000
"""Bytes that a file may have under the limit of the tests: a record of a policy has fewer, a report more."""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return kill.selectors(tmp_path_factory.mktemp("selectors"))


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evidence folder with an exhaustive run of four captures."""
    out = tmp_path_factory.mktemp("evidence") / "report"
    words = ("exhaust", "--selector", SERVE, "--variants", "1", "--ints", "1", "--ptrs", "0", "--workers", "1")
    done = subprocess.run([*FOLDPROOF, *words, "--out", out], capture_output=True, check=False)
    assert done.returncode == 1
    return out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "times"), [("check", 1), ("fuzz", 3), ("exhaust", 3), ("dask", 1), ("worker", 1), ("report", 3)]
)
def test_a_killed_run_leaves_what_is_whole_and_goes_on(
    verb: str, times: int, libraries: tuple[str, str], tmp_path: Path
) -> None:
    scene = kill.Scene(tmp_path, *libraries, random.Random(f"test {verb}"))  # noqa: S311 (dice)
    kill.VERBS[verb](scene, times)
    assert scene.kills >= times or verb == "dask"


def written(folder: Path) -> Path:
    with recording(folder, started("policies", "foldproof policies")) as to:
        to.emit(PolicySeen(name="x", sha256="0" * 64, promises=(), data={}))
        to.render({"a.json": b"{}", "a.html": b"<html></html>", "a.ndjson.gz": gzip.compress(b"{}\n"), "a.md": b"a\n"})
    return folder


@pytest.mark.parametrize("file", ["a.json", "a.html", "a.ndjson.gz", "a.md", "records"])
def test_what_was_cut_is_not_whole(file: str, tmp_path: Path) -> None:
    folder = written(tmp_path)
    kill.whole(folder)
    victim = next((folder / file).iterdir()) if file == "records" else folder / file
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(kill.Broken):
        kill.whole(folder)


@pytest.mark.parametrize("sequence", [0, 1, 2])
def test_a_record_that_is_gone_is_noticed_and_what_a_killed_writer_left_is_not(sequence: int, tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / ".writing-abc").write_bytes(b"{")
    (folder / "records/.writing-abc").write_bytes(b"{")
    kill.whole(folder)
    remove(folder, sequence)
    with pytest.raises(kill.Broken, match="contradicts its records"):
        kill.whole(folder)


def test_without_its_last_record_a_run_counts_as_killed(tmp_path: Path) -> None:
    folder = written(tmp_path)
    remove(folder, 3)
    kill.whole(folder)
    (run,) = evidence_of(read(folder)[0], AtHand()).runs
    assert run.state == "killed"


def remove(folder: Path, sequence: int) -> None:
    """Remove the record at a place of the only run of a folder."""
    (gone,) = [s.digest for s in read(folder)[0] if s.record.sequence == sequence]
    (folder / f"records/{gone}.json").unlink()


def verbs(folder: Path, evidence: Path) -> dict[str, tuple[str, ...]]:
    """Each verb with a folder of its own to write into."""
    small = ("--variants", "2", "--ints", "1", "--ptrs", "0", "--workers", "1")
    fuzz = ("fuzz", "--selector", SERVE, "--against", "two-pass", "--rounds", "2")
    return {
        "check": ("check", "--policy", "exact-first", "--seconds", "0", "--out", str(folder)),
        "fuzz": (*fuzz, "--out", str(folder)),
        "corpus": (*fuzz, "--out", str(folder.parent / "fuzz"), "--corpus", str(folder)),
        "exhaust": ("exhaust", "--selector", SERVE, *small, "--out", str(folder)),
        "report": ("report", str(evidence), "--out", str(folder)),
    }


def refused(words: tuple[str, ...], why: str, folder: Path, **more: object) -> None:
    """Exit 2, one line that says why and what to do, and below the folder nothing that breaks off."""
    done = subprocess.run([*FOLDPROOF, *words], capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("foldproof: BadInput: ")
    assert why in line
    assert "name a" in line
    if folder.is_dir():
        kill.whole(folder)
        assert not list(folder.rglob(".writing-*"))


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["check", "fuzz", "corpus", "exhaust", "report"])
def test_a_file_where_the_folder_should_be(verb: str, evidence: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine\n")
    why = "is no folder" if verb == "corpus" else "cannot be written: "
    refused(verbs(tmp_path / "file", evidence)[verb], why, tmp_path)
    assert (tmp_path / "file").read_text() == "mine\n"


def most_bytes() -> None:
    """In the child: what a quota does to a file, without a disk of its own."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (BIG, BIG))


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["check", "fuzz", "corpus", "report"])
def test_a_file_that_may_not_grow(verb: str, evidence: Path, tmp_path: Path) -> None:
    refused(verbs(tmp_path / "out", evidence)[verb], "free some space", tmp_path, preexec_fn=most_bytes)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """`disk("size=64k")`: a file system of that size, which needs root; else the test is skipped."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        folder = tmp_path / "disk"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("needs the right to mount a file system")
        mounted.append(folder)
        return folder

    if not os.access("/usr/bin/mount", os.X_OK) and not os.access("/bin/mount", os.X_OK):
        pytest.skip("needs mount")
    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["check", "fuzz", "corpus", "exhaust", "report"])
def test_a_full_disk(verb: str, evidence: Path, disk: Callable[[str], Path]) -> None:
    folder = disk("size=8k")
    refused(verbs(folder / "out", evidence)[verb], "No space left on device", folder)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["check", "fuzz", "corpus", "exhaust", "report"])
def test_a_read_only_disk(verb: str, evidence: Path, disk: Callable[[str], Path]) -> None:
    folder = disk("ro")
    refused(verbs(folder / "out", evidence)[verb], "Read-only file system", folder)


@pytest.mark.slow
def test_a_report_that_does_not_fit_changes_no_file_of_the_one_before(
    evidence: Path, disk: Callable[[str], Path]
) -> None:
    folder = disk("size=4m")
    words = ("report", str(evidence), "--formats", "receipt,summary,html", "--out", str(folder))
    assert subprocess.run([*FOLDPROOF, *words], capture_output=True, check=False).returncode == 3
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert {"receipt.md", "report.html"} <= before.keys()
    free = os.statvfs(folder)
    (folder / "filler").write_bytes(bytes(free.f_bavail * free.f_frsize - 8193) + b"\n")
    refused(words, "free some space", folder)
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir() if file.name != "filler"} == before


def test_a_full_standard_output() -> None:
    with Path("/dev/full").open("w") as full:
        for words in (["policies"], ["policies", "--help"]):
            done = subprocess.run([*FOLDPROOF, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            assert (done.returncode, done.stderr) == (
                2,
                "foldproof: BadInput: standard output: No space left on device\n",
            )


def test_a_campaign_writes_how_far_it_came_only_while_it_is_clean(tmp_path: Path) -> None:
    """Else a campaign that is killed before it has shrunk what it found would never meet it again."""
    from foldproof.cli.remembering import keeper  # noqa: PLC0415
    from foldproof.props import drive, fuzz_run, rounds, selector_campaign  # noqa: PLC0415

    plan = fuzz_run.Plan(drive.SelectorSpec("x"), load_policy("three-pass"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("foldproof.cli.remembering.KEEP_S", 0.0)
        keep = keeper(tmp_path, load_corpus(tmp_path), "key", plan, rounds.Source())
        clean = selector_campaign.Part(rounds=3, launches=9, coverage=fuzz_run.Part().coverage)
        keep(clean)
        assert load_corpus(tmp_path).reached("key").launches == 9
        keep(selector_campaign.Part(rounds=6, launches=18, kinds={"another variant": 1}))
        assert load_corpus(tmp_path).reached("key").launches == 9
