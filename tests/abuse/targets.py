"""What is fuzzed: a reader of foldproof each, as a function of bytes that may raise `FoldproofError` and nothing else.

A target's bytes are written where its reader looks for them, read, and taken as far as its users do: back to JSON, or
into a report. It asserts that no name in the bytes reaches a file outside the folder that it was given.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import msgspec
from foldproof.cli.digests import policy_seen
from foldproof.cli.evidence import device_verdicts
from foldproof.gpu.bundle import verify_bundle
from foldproof.gpu.replay.progress import Progress
from foldproof.gpu.replay.receipts import read_receipt, rows
from foldproof.gpu.replay.trace import read_trace, record_to, recorded
from foldproof.gpu.symbolic import cases as symbolic
from foldproof.gpu.symbolic.bits import Replay
from foldproof.impl.capture import Capture, capture_from, load_capture
from foldproof.impl.cases import answers, capture_to, case_bytes, case_to, read_cases
from foldproof.impl.errors import FoldproofError
from foldproof.impl.external.talk import Question, Talk
from foldproof.impl.external.wire import hello_from, kernels_text, launch_text
from foldproof.impl.launch import load_launches
from foldproof.impl.policy import load_policy
from foldproof.props.corpus import load_corpus, read_cases_strictly
from foldproof.release.binaries import cubin_findings
from foldproof.release.coverage import coverage
from foldproof.release.launches import read_launches
from foldproof.release.lenient import Entry, Lenient
from foldproof.release.lint import lint, sarif
from foldproof.release.log_lines import lines_of
from foldproof.release.logs import launches_of, read_log
from foldproof.release.needs import needs_json
from foldproof.release.ranges import arg_domain, read_ranges
from foldproof.release.shapes import Family
from foldproof.reports.events import FileRef
from foldproof.reports.evidence import AtHand
from foldproof.reports.obligations import Config, load_config
from foldproof.reports.picks import launch_words, read_picks
from foldproof.reports.render import render
from foldproof.reports.store import damage, raw, read
from foldproof.reports.view import build

INPUT = "input"
THREE_PASS = load_policy("three-pass")
GZIP = b"\x1f\x8b"


class Target(NamedTuple):
    """A reader under test: what reads a folder, and the file in it that holds the bytes. `json`: they are JSON, or
    lines of it, so that a mutation may keep them so.
    """

    read: Callable[[Path], None]
    file: str = INPUT
    json: bool = False

    def run(self, data: bytes, folder: Path) -> None:
        """The reader on these bytes, in a folder that is empty."""
        _put(folder, self.file, data)
        self.read(folder)


def encoded(value: object) -> bytes:
    """The value as a verb prints it with --format json."""
    return msgspec.json.encode(value)


@cache
def sample_capture() -> Capture:
    """Two variants of `k`, which differ in what became of R."""
    switches = {"div16": False, "nospec": False}
    p, r = {"name": "P", "type": "*bf16", "div16": True, "nospec": False}, {"name": "R", "type": "i32", **switches}
    some = {"fn": "k", "num_warps": 4}
    folded = {**some, "hash": "folded", "params": [p], "consts": {"R": {"int": 1}}}
    return capture_from({"kernels": [folded, {**some, "hash": "runtime", "params": [p, r], "consts": {}}]})


def _put(folder: Path, name: str, data: bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def _inside(folder: Path, path: Path) -> None:
    assert path.resolve().is_relative_to(folder.resolve()), f"{path} is outside {folder}"


def _each(*readers: Callable[[], object]) -> None:
    """Every reader has its turn, though one before it refuses; where all refuse, so does the whole."""
    refused: list[FoldproofError] = []
    for reader in readers:
        try:
            reader()
        except FoldproofError as problem:
            refused.append(problem)
    for problem in refused:
        said = str(problem)
        assert "\n" not in said
        assert said.encode()
    if len(refused) == len(readers):
        raise refused[0]


def capture(folder: Path) -> None:
    loaded = load_capture(folder)
    for variant in loaded.kernels:
        _inside(folder, folder / loaded.bin_dir / f"{variant.hash}{loaded.bin_ext}")
    encoded(loaded)
    assert capture_from(json.loads(encoded(capture_to(loaded)))).kernels == loaded.kernels
    _each(lambda: kernels_text(loaded), lambda: Replay.open(folder))


def linted(folder: Path) -> None:
    found = lint(folder, THREE_PASS)
    encoded(found)
    encoded(sarif(found))


def launches(folder: Path) -> None:
    file = folder / "launches.json"

    def plainly() -> None:
        for one in load_launches(file):
            launch_text(one)

    _each(plainly, lambda: encoded(needs_json((one.launch, 1) for one in read_launches(file, sample_capture()))))


def needs(folder: Path) -> None:
    file = folder / "needs.json"
    read = list(read_launches(file, sample_capture()))
    encoded(needs_json((one.launch, one.count) for one in read))
    encoded(coverage(sample_capture(), read, THREE_PASS, strict=True))


def trace(folder: Path) -> None:
    file = folder / "trace.ndjson"
    _each(
        lambda: encoded([record_to(record) for record in read_trace(file)]),
        lambda: encoded([record_to(record) for record in recorded(file).values()]),
        lambda: encoded(symbolic.load_cases(file)),
    )


def log(folder: Path) -> None:
    events = read_log(lines_of(folder / "engine.log"))
    encoded(events)
    encoded(needs_json((one.launch, one.count) for one in launches_of(events, sample_capture())))


def ptx(folder: Path) -> None:
    _put(folder, "aot.json", encoded(sample_capture()))
    Replay.open(folder).kernel("folded")


def cubin(folder: Path) -> None:
    (folder / "cubins/runtime.cubin").symlink_to("folded.cubin")
    entries = tuple(Entry(place, {}, variant) for place, variant in enumerate(sample_capture().kernels))
    encoded(list(cubin_findings(Lenient(folder / "aot.json", {}, entries, ()))))


def policy(folder: Path) -> None:
    loaded = load_policy(str(folder / "policy.toml"))
    encoded(loaded)
    encoded(policy_seen(loaded))


def ranges(folder: Path) -> None:
    family = Family.of("k", sample_capture().kernels)
    for scenario in read_ranges(folder / "ranges.toml"):
        for name, wanted in scenario.args.items():
            arg_domain(family, name, wanted, scenario.where)


def config(folder: Path) -> None:
    encoded(load_config(folder / "foldproof.toml"))


def record(folder: Path) -> None:
    """One record, under the name that its bytes have; and what a report makes of it."""
    data = raw(folder / INPUT)
    _put(folder, f"records/{hashlib.sha256(data).hexdigest()}.json", data)
    stored, damaged = read(folder)
    broken = [*damaged, *damage(folder, stored)]
    spoilt = {one.file for one in broken}
    for path in _paths(msgspec.to_builtins([s.record for s in stored])):
        if path not in spoilt:
            _inside(folder, folder / path)
    report = build(Config(), stored, AtHand(), THREE_PASS.promises, broken)
    # Tables are pandas frames, which would take most of the time; tests of the renderers have hostile names in them.
    formats = ("summary", "json", "junit", "ctrf", "sarif", "intoto", "cases")
    for name, content in render(report, formats, lambda path: raw(folder / path)).items():
        _inside(folder, folder / name)
        assert content


def _paths(value: Any) -> Iterable[str]:
    """The paths of every `FileRef` in a record's JSON."""
    if isinstance(value, dict):
        if set(value) == set(FileRef.__struct_fields__):
            yield value["path"]
        for item in value.values():
            yield from _paths(item)
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item)


def picks(folder: Path) -> None:
    data = raw(folder / INPUT)
    content = data if data[:2] == GZIP else gzip.compress(data, 1)
    for pick in read_picks(content, "picks.ndjson.gz"):
        launch_words(pick.launch).encode("utf-8", "replace")


def answer(folder: Path) -> None:
    """What a selector writes: its greeting, and after it the answers to two launches."""
    line, _, rest = raw(folder / INPUT).partition(b"\n")
    _each(lambda: hello_from(line))
    child = MagicMock(stderr_tail="")
    talk = Talk(child, 1.0)
    talk._sent = 2  # noqa: SLF001 (two launches are on their way)
    question = Question(0, 2, [0, 1], [None, None], lambda _: [], lambda stop, _: stop)  # type: ignore[arg-type,return-value]
    stop = talk._take(rest, question)  # noqa: SLF001 (what a read from the pipe leads to)
    encoded(question.answers)
    assert stop is None or encoded(stop.detail)


def case(folder: Path) -> None:
    file = folder / "case.json"

    def strictly() -> None:
        for one in read_cases_strictly(file):
            case_bytes(case_to(one))

    _each(lambda: encoded(list(answers(read_cases(file), THREE_PASS))), strictly)


def receipt(folder: Path) -> None:
    found = read_receipt(folder / "x.receipt.json")
    encoded(rows(found))
    found.title.encode("utf-8", "replace")
    _put(folder, "aot.json", encoded(sample_capture()))
    encoded([sorted(pair) for pair in device_verdicts(folder, [found])])


def manifest(folder: Path) -> None:
    encoded(verify_bundle(folder))


def campaign(folder: Path) -> None:
    """What campaigns and device runs remember: a failure, the cells, the state; finished pieces."""

    def remembered(name: str) -> None:
        file = folder / "memory" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to((folder / INPUT).absolute())
        try:
            load_corpus(folder / "memory")
        finally:
            file.unlink()

    names = ("failures/x.json", "cells.ndjson", "corpus.json")
    pieces = partial(Progress, folder / INPUT, {}, resume=True)
    _each(*(partial(remembered, name) for name in names), lambda: pieces().counts())


TARGETS: dict[str, Target] = {
    "answer": Target(answer, json=True),
    "campaign": Target(campaign, json=True),
    "capture": Target(capture, "aot.json", json=True),
    "case": Target(case, "case.json", json=True),
    "config": Target(config, "foldproof.toml"),
    "cubin": Target(cubin, "cubins/folded.cubin"),
    "launches": Target(launches, "launches.json", json=True),
    "lint": Target(linted, "aot.json", json=True),
    "log": Target(log, "engine.log"),
    "manifest": Target(manifest, "manifest.json", json=True),
    "needs": Target(needs, "needs.json", json=True),
    "picks": Target(picks, json=True),
    "policy": Target(policy, "policy.toml"),
    "ptx": Target(ptx, "ptx/folded.ptx"),
    "ranges": Target(ranges, "ranges.toml"),
    "receipt": Target(receipt, "x.receipt.json", json=True),
    "record": Target(record, json=True),
    "trace": Target(trace, "trace.ndjson", json=True),
}
