"""What is fuzzed: a reader of foldproof each, as a function of bytes that may raise `FoldproofError` and nothing else.

A target writes the bytes where its reader looks for them, reads, and takes what was read as far as its users do: back
to JSON, or into a report. It asserts that no name in the bytes reaches a file outside the folder that it was given.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache
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
from foldproof.release.logs import launches_of, lines_of, read_log
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

Run = Callable[[bytes, Path], None]
THREE_PASS = load_policy("three-pass")
GZIP = b"\x1f\x8b"


class Target(NamedTuple):
    """A reader under test. `json`: its bytes are JSON, or lines of it, so that a mutation may keep them so."""

    run: Run
    json: bool = False


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
    """Every reader has its turn, though one before it refuses."""
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


def capture(data: bytes, folder: Path) -> None:
    _put(folder, "aot.json", data)
    loaded = load_capture(folder)
    for variant in loaded.kernels:
        _inside(folder, folder / loaded.bin_dir / f"{variant.hash}{loaded.bin_ext}")
    encoded(loaded)
    assert capture_from(json.loads(encoded(capture_to(loaded)))).kernels == loaded.kernels
    _each(lambda: kernels_text(loaded), lambda: Replay.open(folder))


def linted(data: bytes, folder: Path) -> None:
    _put(folder, "aot.json", data)
    found = lint(folder, THREE_PASS)
    encoded(found)
    encoded(sarif(found))


def launches(data: bytes, folder: Path) -> None:
    file = _put(folder, "launches.json", data)

    def plainly() -> None:
        for one in load_launches(file):
            launch_text(one)

    _each(plainly, lambda: encoded(needs_json((one.launch, 1) for one in read_launches(file, sample_capture()))))


def needs(data: bytes, folder: Path) -> None:
    file = _put(folder, "needs.json", data)
    read = list(read_launches(file, sample_capture()))
    encoded(needs_json((one.launch, one.count) for one in read))
    encoded(coverage(sample_capture(), read, THREE_PASS, strict=True))


def trace(data: bytes, folder: Path) -> None:
    file = _put(folder, "trace.ndjson", data)
    _each(
        lambda: encoded([record_to(record) for record in read_trace(file)]),
        lambda: encoded([record_to(record) for record in recorded(file).values()]),
        lambda: encoded(symbolic.load_cases(file)),
    )


def log(data: bytes, folder: Path) -> None:
    events = read_log(lines_of(_put(folder, "engine.log", data)))
    encoded(events)
    encoded(needs_json((one.launch, one.count) for one in launches_of(events, sample_capture())))


def ptx(data: bytes, folder: Path) -> None:
    _put(folder, "aot.json", encoded(sample_capture()))
    _put(folder, "ptx/folded.ptx", data)
    Replay.open(folder).kernel("folded")


def cubin(data: bytes, folder: Path) -> None:
    _put(folder, "cubins/folded.cubin", data)
    _put(folder, "cubins/runtime.cubin", data)
    entries = tuple(Entry(place, {}, variant) for place, variant in enumerate(sample_capture().kernels))
    encoded(list(cubin_findings(Lenient(folder / "aot.json", {}, entries, ()))))


def policy(data: bytes, folder: Path) -> None:
    loaded = load_policy(str(_put(folder, "policy.toml", data)))
    encoded(loaded)
    encoded(policy_seen(loaded))


def ranges(data: bytes, folder: Path) -> None:
    family = Family.of("k", sample_capture().kernels)
    for scenario in read_ranges(_put(folder, "ranges.toml", data)):
        for name, wanted in scenario.args.items():
            arg_domain(family, name, wanted, scenario.where)


def config(data: bytes, folder: Path) -> None:
    encoded(load_config(_put(folder, "foldproof.toml", data)))


def record(data: bytes, folder: Path) -> None:
    """One record, under the name that its bytes have; and what a report makes of it."""
    _put(folder, f"records/{hashlib.sha256(data).hexdigest()}.json", data)
    stored, damaged = read(folder)
    broken = [*damaged, *damage(folder, stored)]
    spoilt = {one.file for one in broken}
    for path in _paths(msgspec.to_builtins([s.record for s in stored])):
        if path not in spoilt:
            _inside(folder, folder / path)
    report = build(Config(), stored, AtHand(), THREE_PASS.promises, broken)
    formats = ("receipt", "summary", "json", "junit", "ctrf", "sarif", "intoto", "cases", "csv")
    for name, content in render(report, formats, lambda path: raw(folder / path)).items():
        _inside(folder, folder / name)
        assert content or name.endswith(".csv")


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


def picks(data: bytes, folder: Path) -> None:  # noqa: ARG001 (one shape for all)
    content = data if data[:2] == GZIP else gzip.compress(data, 1)
    for pick in read_picks(content, "picks.ndjson.gz"):
        launch_words(pick.launch).encode("utf-8", "replace")


def answer(data: bytes, folder: Path) -> None:  # noqa: ARG001 (one shape for all)
    """What a selector writes: its greeting, and after it the answers to two launches."""
    line, _, rest = data.partition(b"\n")
    _each(lambda: hello_from(line))
    child = MagicMock(stderr_tail="")
    talk = Talk(child, 1.0)
    talk._sent = 2  # noqa: SLF001 (two launches are on their way)
    question = Question(0, 2, [0, 1], [None, None], lambda _: [], lambda stop, _: stop)  # type: ignore[arg-type,return-value]
    stop = talk._take(rest, question)  # noqa: SLF001 (what a read from the pipe leads to)
    encoded(question.answers)
    assert stop is None or encoded(stop.detail)


def case(data: bytes, folder: Path) -> None:
    file = _put(folder, "case.json", data)

    def strictly() -> None:
        for one in read_cases_strictly(file):
            case_bytes(case_to(one))

    _each(lambda: encoded(list(answers(read_cases(file), THREE_PASS))), strictly)


def receipt(data: bytes, folder: Path) -> None:
    found = read_receipt(_put(folder, "x.receipt.json", data))
    encoded(rows(found))
    found.title.encode("utf-8", "replace")
    _put(folder, "aot.json", encoded(sample_capture()))
    encoded([sorted(pair) for pair in device_verdicts(folder, [found])])


def manifest(data: bytes, folder: Path) -> None:
    _put(folder, "manifest.json", data)
    encoded(verify_bundle(folder))


def campaign(data: bytes, folder: Path) -> None:
    """What campaigns remember: a failure, the cells, the state."""
    for name in ("failures/x.json", "cells.ndjson", "corpus.json"):
        _put(folder, name, data)
        _each(lambda: load_corpus(folder))
        (folder / name).unlink()
    file = _put(folder, "progress.ndjson", data)
    _each(lambda: Progress(file, {}, resume=True).counts())


TARGETS: dict[str, Target] = {
    "answer": Target(answer, json=True),
    "campaign": Target(campaign, json=True),
    "capture": Target(capture, json=True),
    "case": Target(case, json=True),
    "config": Target(config),
    "cubin": Target(cubin),
    "launches": Target(launches, json=True),
    "lint": Target(linted, json=True),
    "log": Target(log),
    "manifest": Target(manifest, json=True),
    "needs": Target(needs, json=True),
    "picks": Target(picks, json=True),
    "policy": Target(policy),
    "ptx": Target(ptx),
    "ranges": Target(ranges),
    "receipt": Target(receipt, json=True),
    "record": Target(record, json=True),
    "trace": Target(trace, json=True),
}
