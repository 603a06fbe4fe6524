"""Canonical JSON: what is written is read back, equal values have equal bytes, integers of 64 bits are text."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import pytest
from foldproof.impl.errors import FoldproofError
from foldproof.reports.canonical import EXACT, canonical, plain, sha256
from foldproof.reports.events import BytesJudged, CampaignRan, Owed, PolicySeen, Record
from foldproof.reports.store import put, read
from hypothesis import given, settings
from hypothesis import strategies as st

INTEGERS = st.integers(-(2**80), 2**80)
TEXTS = st.text(st.characters(exclude_categories=[]), max_size=8)
LEAVES = st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=True) | TEXTS
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
FINITE = st.none() | st.floats(-1e12, 1e12)


@settings(max_examples=50)
@given(VALUES)
def test_canonical_bytes_are_json_that_every_reader_reads_alike(value: object) -> None:
    written = canonical(value)
    # A reader that keeps all numbers as doubles, as JavaScript does, has the same value.
    assert canonical(json.loads(written, parse_int=float)) == written


@settings(max_examples=30)
@given(st.dictionaries(TEXTS, INTEGERS, max_size=5))
def test_the_order_of_keys_changes_no_byte(value: dict[str, int]) -> None:
    assert canonical(dict(reversed(value.items()))) == canonical(value)


@pytest.mark.parametrize("number", [EXACT, -EXACT, 0])
def test_an_integer_that_a_double_holds_is_a_number(number: int) -> None:
    assert canonical([number]) == f"[{number}]".encode()


@pytest.mark.parametrize("number", [EXACT + 1, -EXACT - 1, 2**63, 2**64 - 1, -(2**63)])
def test_an_integer_that_no_double_holds_is_text(number: int) -> None:
    assert canonical({"n": number}) == f'{{"n":"{number}"}}'.encode()


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_is_null_which_means_not_measured(number: float) -> None:
    assert canonical([number]) == b"[null]"


def test_the_largest_number_is_that_of_every_reader() -> None:
    """JavaScript's Number.MAX_SAFE_INTEGER: from 2^53 on two integers are one double."""
    assert canonical([2**53 - 1, 2**53]) == b'[9007199254740991,"9007199254740992"]'


def test_a_lone_surrogate_is_replaced_in_keys_and_values() -> None:
    assert plain({"\ud800k": "\udfffv"}) == {"?k": "?v"}


def test_a_digest_is_that_of_the_bytes() -> None:
    assert sha256(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def kept(record: Record, folders: pytest.TempPathFactory) -> Record:
    folder = folders.mktemp("evidence")
    digest = put(folder, record)
    stored, damaged = read(folder)
    assert not damaged
    assert [one.digest for one in stored] == [digest]
    return stored[0].record


@settings(max_examples=25)
@given(
    st.builds(
        CampaignRan,
        stage=TEXTS,
        policy=TEXTS,
        policy_sha256=TEXTS,
        seed=INTEGERS.map(str),
        cases=st.integers(0, EXACT),
        outcomes=st.dictionaries(st.text(max_size=5), st.integers(0, EXACT), max_size=3),
        disagreements=st.integers(0, 9),
        curve=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=3).map(tuple),
        seconds=st.none() | st.floats(0, 1e9),
        rate=st.none() | st.floats(),
    )
    | st.builds(Owed, what=TEXTS, why=TEXTS, settle=TEXTS)
    | st.builds(
        PolicySeen,
        name=TEXTS,
        sha256=TEXTS,
        promises=st.tuples(TEXTS),
        data=st.dictionaries(TEXTS, INTEGERS | TEXTS | FINITE, max_size=3),
    ),
    st.integers(0, EXACT),
)
def test_a_record_that_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, event: object, n: int) -> None:
    record = Record(1, "run", n, event)  # type: ignore[arg-type]
    back = kept(record, tmp_path_factory)
    assert canonical(back) == canonical(record)
    assert type(back.event) is type(event)


@settings(max_examples=30)
@given(st.dictionaries(st.text(max_size=3), INTEGERS | st.text(max_size=3), max_size=3))
def test_a_64_bit_integer_comes_back_as_its_text(
    tmp_path_factory: pytest.TempPathFactory, results: dict[str, int | str]
) -> None:
    event = BytesJudged(by="x", what="x", capture_sha256="", cubins={}, counts={}, rows=(), results=results)
    back = kept(Record(1, "run", 0, event), tmp_path_factory)
    wanted = {key: str(item) if isinstance(item, int) and abs(item) > EXACT else item for key, item in results.items()}
    assert isinstance(back.event, BytesJudged)
    assert back.event.results == wanted


def test_a_record_that_no_reader_would_take_is_not_written(tmp_path: Path) -> None:
    event = CampaignRan(stage="x", policy="x", policy_sha256="", seed="1", cases=2**60, outcomes={}, disagreements=0)
    with pytest.raises(FoldproofError, match="is no record"):
        put(tmp_path, Record(1, "run", 0, event))
    untyped = PolicySeen(name="p", sha256="", promises=(), data={"of doubles alone": 1e16})
    with pytest.raises(FoldproofError, match="canonical"):
        put(tmp_path, Record(1, "run", 0, untyped))
    assert not list(tmp_path.iterdir())
    put(tmp_path, Record(1, "run", 0, msgspec.structs.replace(event, cases=5)))
    assert len(list((tmp_path / "records").iterdir())) == 1
