"""What each writer writes, its reader reads back as it was."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from foldproof.gpu.replay.receipts import Receipt, read_receipt, read_receipts, write_receipt
from foldproof.gpu.replay.trace import BufferNote, Record, TraceWriter, read_trace, record_from, record_to
from foldproof.impl import Const, Launch
from foldproof.impl.capture import capture_from, load_capture
from foldproof.impl.cases import Case, capture_to, case_bytes, case_from, case_to, read_cases
from foldproof.impl.external.wire import kernels_text, launch_text
from foldproof.impl.launch import INT_TYPES, Arg, Kind, launch_from, launch_to, load_launches
from foldproof.props.corpus import Corpus, Reached, corpus_files, load_corpus
from foldproof.props.strategies import cases, launches
from foldproof.release.classes import class_key
from foldproof.release.launches import read_launches
from foldproof.release.needs import needs_json
from foldproof.reports.picks import Pick, pick_bytes, read_picks
from foldproof.reports.write import write_folder
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow  # hundreds of files are written and read

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
CONSTS = st.one_of(
    st.integers(-(2**63), 2**64 - 1).map(lambda n: Const(int_=n)),
    st.integers(0, 2**32 - 1).map(lambda n: Const(f32=n)),
    st.booleans().map(lambda b: Const(bool_=b)),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(lambda s: Const(str_=s)),
    st.just(Const(none=True)),
)
SEED = Path(__file__).with_name("corpus") / "receipt" / "replay"


@st.composite
def args(draw: st.DrawFn, name: str) -> Arg:
    """An arg of any kind at any value that its kind has."""
    kind = draw(st.sampled_from(list(Kind)))
    if kind == Kind.PTR:
        size = draw(st.none() | st.integers(0, 2**36))
        return Arg(name, kind, draw(st.integers(0, 2**64 - 1)), "*" + draw(TEXT), size)
    if kind == Kind.FP32:
        return Arg(name, kind, draw(st.integers(0, 2**32 - 1)))
    if kind == Kind.NONE:
        return Arg(name, kind)
    low, high = (0, 1) if kind == Kind.U1 else INT_TYPES[kind]
    return Arg(name, kind, draw(st.integers(low, high)))


@st.composite
def wild(draw: st.DrawFn) -> Launch:
    """A launch with names, values and options of any kind."""
    names = draw(st.lists(TEXT, max_size=4, unique=True))
    return Launch(
        draw(TEXT),
        tuple(draw(args(name)) for name in names),
        draw(st.dictionaries(TEXT, CONSTS, max_size=3)),
        draw(st.none() | st.integers(1, 64)),
        draw(st.none() | st.integers(0, 8)),
        draw(st.none() | TEXT),
        draw(st.none() | st.booleans()),
        draw(st.none() | TEXT),
    )


def written(name: str, content: bytes, folder: str) -> Path:
    write_folder(Path(folder), {name: content})
    return Path(folder) / name


@settings(deadline=None)
@given(wild())
def test_a_launch(launch: Launch) -> None:
    value = launch_to(launch)
    assert launch_from(json.loads(json.dumps(value))) == launch
    assert launch_from(json.loads(launch_text(launch))) == launch


@settings(max_examples=20, deadline=None)
@given(st.lists(wild(), min_size=1, max_size=4), st.sampled_from(["list", "lines", "packed"]))
def test_a_file_of_launches(many: list[Launch], form: str) -> None:
    values = [launch_to(launch) for launch in many]
    content = json.dumps(values) if form == "list" else "".join(f"{json.dumps(value)}\n" for value in values)
    with tempfile.TemporaryDirectory() as folder:
        packed = gzip.compress(content.encode()) if form == "packed" else content.encode()
        file = written("launches", packed, folder)
        assert load_launches(file) == tuple(many)
        assert [one.launch for one in read_launches(file, None)] == many  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(cases(), wild())
def test_a_capture_and_a_case(case: Case, before: Launch) -> None:
    case = msgspec.structs.replace(case, before=(before,))
    with tempfile.TemporaryDirectory() as folder:
        (value,) = read_cases(written("case.json", case_bytes(case_to(case, why="é")), folder))
        assert case_from(value) == case
        assert value["why"] == "é"
        written("aot.json", json.dumps(capture_to(case.capture)).encode(), folder)
        assert load_capture(Path(folder)).kernels == case.capture.kernels
    assert capture_from({"kernels": json.loads(kernels_text(case.capture))}).kernels == case.capture.kernels


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(launches(), st.integers(0, 10**6)), min_size=1, max_size=4))
def test_needs_hold_the_class_of_each_launch(pairs: list[tuple[Launch, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = written("needs.json", json.dumps(needs_json(pairs)).encode(), folder)
        read = list(read_launches(file, None))  # type: ignore[arg-type]
    # A need says no size of a pointer, and stages of 0 are none.
    bare = [
        msgspec.structs.replace(
            launch,
            args=tuple(msgspec.structs.replace(arg, bytes=None) for arg in launch.args),
            num_stages=launch.num_stages or None,
        )
        for launch, _ in pairs
    ]
    assert [class_key(one.launch) for one in read] == [class_key(launch) for launch in bare]
    assert [one.count for one in read] == [count for _, count in pairs]


@settings(max_examples=30, deadline=None)
@given(wild(), st.tuples(*[st.integers(1, 2**31 - 1)] * 3), st.data())
def test_a_trace(launch: Launch, grid: tuple[int, int, int], data: st.DataObject) -> None:
    sized = tuple(msgspec.structs.replace(a, bytes=a.bytes or 64) if a.kind == Kind.PTR else a for a in launch.args)
    launch = msgspec.structs.replace(launch, args=sized)
    pointers = [arg.name for arg in sized if arg.kind == Kind.PTR]
    notes = {
        name: BufferNote(data.draw(st.sampled_from(["in", "out", "inout"])), data.draw(st.integers(0, 2**40)))
        for name in pointers
    }
    record = Record(f"{launch.fn}#0", launch, grid, notes)
    assert record_from(json.loads(json.dumps(record_to(record)))) == record
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.ndjson"
        with TraceWriter(file) as to:
            to.add(launch_to(launch), grid, msgspec.to_builtins(notes))
        assert read_trace(file) == (record,)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(["replay", "scenarios"]),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(0, 2**63 - 1),
    st.dictionaries(TEXT, JSON, max_size=3),
)
def test_a_receipt(kind: Any, started: str, seed: int, results: dict[str, Any]) -> None:
    receipt = msgspec.structs.replace(
        msgspec.json.decode(SEED.read_bytes(), type=Receipt), kind=kind, started=started, seed=seed, results=results
    )
    with tempfile.TemporaryDirectory() as folder:
        file = write_receipt(receipt, Path(folder) / "receipts")
        assert file.parent == Path(folder) / "receipts"
        assert read_receipt(file) == receipt
        assert read_receipts(file.parent) == [receipt]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(wild(), TEXT, st.none() | TEXT), min_size=1, max_size=5))
def test_picks(rows: list[tuple[Launch, str, str | None]]) -> None:
    small = [
        Pick({"fn": launch.fn, "args": [{"name": arg.name} for arg in launch.args]}, *rest) for launch, *rest in rows
    ]
    assert list(read_picks(pick_bytes(small), "picks")) == small


@settings(max_examples=10, deadline=None)
@given(st.lists(cases(), min_size=1, max_size=3), st.integers(0, 1000), TEXT)
def test_what_a_campaign_remembers(found: list[Case], rounds: int, key: str) -> None:
    reached = Reached(rounds, rounds * 10, (("a", "b", "c", rounds),))
    failures = [(f"slug{n}", case_bytes(case_to(case))) for n, case in enumerate(found)]
    with tempfile.TemporaryDirectory() as folder:
        write_folder(Path(folder), corpus_files(Corpus(), key, reached, {}, failures))
        again = load_corpus(Path(folder))
    assert list(again.failures.values()) == found
    assert again.reached(key) == reached
