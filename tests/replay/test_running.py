"""Bouts on the fake device: batches, searches, comparisons, witnesses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from foldproof.gpu.replay import Supervisor, plan_replay
from foldproof.gpu.replay.arena import Arena, Region
from foldproof.gpu.replay.backend import DeviceMemoryError
from foldproof.gpu.replay.batch import Loaded, slots_for
from foldproof.gpu.replay.bouts import Bout
from foldproof.gpu.replay.comparing import DIFFERING, UNTOUCHED, compare_on_host, first_offset
from foldproof.gpu.replay.inputs import SEARCH_FROM, SetClass, payload
from foldproof.gpu.replay.running import Terms, run_bout
from foldproof.gpu.replay.tally import BoutCount, PairCount
from foldproof.gpu.replay.verdicts import pair_verdicts
from foldproof.gpu.replay.witnessing import Element, Predicted, Witness, confirm, read_witnesses
from foldproof.gpu.replay.worker import Bench
from foldproof.impl import FoldproofError
from replay.fake_device import TOYS, FakeBackend

SETS: dict[SetClass, int] = {"finite": 4, "infinite": 2, "nan": 2}
Make = Callable[..., Path]


def run(capture: Path, *, expected: str = "", search: int = 0, memory: int = 1 << 28) -> tuple[Bout, BoutCount]:
    bout = plan_replay(capture).bouts[0]
    bout = msgspec.structs.replace(
        bout, matchups=tuple(msgspec.structs.replace(m, expected=expected, domain="finite") for m in bout.matchups)
    )
    backend, bench = FakeBackend(capture, TOYS), Bench(capture, 7)
    found = {name: bench.load(backend, name) for name in bout.variants}
    loaded = {name: item for name, item in found.items() if isinstance(item, Loaded)}
    return bout, run_bout(backend, bout, loaded, Terms(SETS, bench.inputs, lambda _: None, memory, search))


def finite(count: BoutCount) -> PairCount:
    return next(pair for pair in count.pairs if pair.set_class == "finite")


def test_bits_that_should_differ_and_do_not_are_searched_for(toy_capture: Make) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "rare"})
    _, short = run(capture, expected="differs")
    assert (finite(short).sets, finite(short).differing) == (4, 0)
    bout, long = run(capture, expected="differs", search=600)
    counted = finite(long)
    assert counted.sets == 604
    assert 0 < counted.differing < 60
    assert counted.difference is not None
    assert counted.difference.index >= SEARCH_FROM
    assert counted.difference.kind in {"moderate", "small"}
    verdict = pair_verdicts(bout, long, {})[0]
    assert verdict.verdicts["finite"].word == "differs"
    assert verdict.confirmed is True


@pytest.mark.parametrize(("behaviour", "expected"), [("rare", "equal"), ("rare", ""), ("last_bit", "differs")])
def test_nothing_is_searched_where_no_expected_difference_is_missing(
    toy_capture: Make, behaviour: str, expected: str
) -> None:
    _, count = run(toy_capture({"folded": "copy", "runtime": behaviour}), expected=expected, search=600)
    assert finite(count).sets == 4


def test_a_first_difference_can_be_drawn_again_from_its_index_alone(toy_capture: Make) -> None:
    bout, count = run(toy_capture({"folded": "copy", "runtime": "rare"}), expected="differs", search=600)
    where = finite(count).difference
    assert where is not None
    region = Region(1024, 1424, "in", ("X",), "*fp32")
    x = payload(7, bout.record.launch.fn, region, where.set_class, where.index)
    assert x[0] < 8
    assert bytes.fromhex(where.first)[: where.at] == x[where.offset - where.at : where.offset].tobytes()
    assert int(where.values[0], 16) == x[where.offset]
    assert int(where.values[1], 16) == x[where.offset] ^ 1


def test_counts_do_not_depend_on_the_size_of_the_batches(toy_capture: Make) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "quiet"})
    _, large = run(capture)
    _, small = run(capture, memory=80_000)
    drop = {"seconds": {}}
    assert msgspec.structs.replace(large, **drop) == msgspec.structs.replace(small, **drop)
    with pytest.raises(DeviceMemoryError, match="one input set takes"):
        run(capture, memory=20_000)


def test_slots_are_bounded_by_sets_and_memory() -> None:
    arena = Arena(1024, (Region(0, 1024, "in", ("X",), "*u8"),), {"X": 0}, (0, 0))
    assert slots_for(arena, 2, 1, 5, 1 << 40) == 5
    assert slots_for(arena, 2, 1, 1000, 1 << 40) == 256
    # Two images, three results a variant, eight comparisons of 24 bytes.
    assert slots_for(arena, 2, 1, 1000, 3 * (8 * 1024 + 8 * 24)) == 3
    with pytest.raises(DeviceMemoryError):
        slots_for(arena, 2, 1, 1000, 8 * 1024 + 8 * 24 - 1)


def test_the_host_comparison_counts_bytes_and_knows_what_was_left_alone() -> None:
    regions = (Region(0, 10, "redzone"), Region(10, 1020, "out", ("OUT",), "*u8"), Region(1020, 1024, "redzone"))
    arena = Arena(1024, regions, {"OUT": 10}, (0, 0))
    left = np.zeros(2048, np.uint8)
    right = left.copy()
    right[1024 + 10] = right[1024 + 500] = 1
    left[1024 + 700], right[1024 + 700] = 0xA5, 0x5A
    plain, filled = compare_on_host(left, right, arena), compare_on_host(left, right, arena, (0xA5, 0x5A))
    assert plain[:, :, DIFFERING].tolist() == [[0, 0, 0], [0, 3, 0]]
    assert filled[:, :, DIFFERING].tolist() == [[0, 0, 0], [0, 2, 0]]
    assert filled[:, :, UNTOUCHED].tolist() == [[0, 0, 0], [0, 1, 0]]
    assert first_offset(plain, 1, 1) == 10


def predicted(**more: Any) -> Predicted:
    inputs = (Element("X", 0, 0x3F800000), Element("X", 99, 0x40000000))
    witness = Witness(inputs, Element("OUT", 99, 0x40000000), 0xC0000000, exact=True)
    return msgspec.structs.replace(Predicted("folded", "runtime", "toy launch", witness), **more)


@pytest.mark.parametrize(
    ("behaviour", "other_bits", "word"),
    [
        ("last_bit", 0xC0000000, "confirmed"),
        ("last_bit", 0xC0000001, "differs"),
        ("half", 0xC0000000, "differs"),
        ("copy", 0xC0000000, "refuted"),
        ("unstable", 0xC0000000, "not decided"),
        ("fault", 0xC0000000, "not decided"),
    ],
)
def test_a_witness_is_confirmed_or_refuted_by_the_device(
    toy_capture: Make, supervise: Callable[..., Supervisor], behaviour: str, other_bits: int, word: str
) -> None:
    # last_bit flips the top bit of the last byte of OUT: element 99 becomes its negative.
    capture = toy_capture({"folded": "copy", "runtime": behaviour})
    case = predicted(witness=msgspec.structs.replace(predicted().witness, other_bits=other_bits))
    record = plan_replay(capture).bouts[0].record
    with supervise(capture) as supervisor:
        (found,) = confirm([case], {"toy launch": record}, supervisor)
    assert (found.word, found.exact) == (word, True)
    assert found.reason


def test_a_witness_of_an_unknown_launch_is_not_decided(toy_capture: Make, supervise: Callable[..., Supervisor]) -> None:
    capture = toy_capture({"folded": "copy", "runtime": "copy"})
    with supervise(capture) as supervisor:
        (found,) = confirm([predicted()], {}, supervisor)
    assert (found.word, found.reason) == ("not decided", "the capture records no launch 'toy launch'")


def test_witnesses_are_read_from_byte_verdicts(tmp_path: Path) -> None:
    file = tmp_path / "bits.json"
    whole = {**msgspec.to_builtins(predicted()), "fn": "toy", "level": "differs", "rules": []}
    file.write_bytes(msgspec.json.encode([whole, {**whole, "witness": None}]))
    assert read_witnesses(file) == (predicted(),)
    file.write_bytes(msgspec.json.encode([whole, {**whole, "first": 3}]))
    with pytest.raises(FoldproofError, match=r"is no verdict with a witness: .*first") as caught:
        read_witnesses(file)
    assert "bits.json" in str(caught.value)
