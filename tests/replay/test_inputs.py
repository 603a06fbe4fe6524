"""The generator of inputs: the same bytes everywhere, one set at a time or many, and every class what it says."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from foldproof.gpu.replay.arena import Region, lay_out
from foldproof.gpu.replay.drawing import Inputs
from foldproof.gpu.replay.formats import FLOATS, INTS, extremes, item_bytes
from foldproof.gpu.replay.inputs import CLASSES, KINDS, SEARCH_FROM, SEARCH_KINDS, SetClass, block, kind_of, payload
from foldproof.gpu.replay.trace import record_from
from foldproof.impl.errors import InvalidLaunch

COUNT = 1500


def region(type_: str, below: int = 0, count: int = COUNT) -> Region:
    return Region(1024, 1024 + count * item_bytes(f"*{type_}"), "in", ("X",), f"*{type_}", below)


def words(type_: str, cls: SetClass, index: int) -> np.ndarray:
    data = payload(5, "f", region(type_), cls, index)
    return data.view(f"u{item_bytes(type_)}").astype(np.uint64)


def test_the_bytes_are_those_of_every_other_machine() -> None:
    digest = hashlib.sha256()
    for type_ in (*FLOATS, *INTS):
        for cls in CLASSES:
            for index in (0, 1, 2, 3, 4, 9):
                digest.update(payload(20, "f", region(type_, count=99), cls, index).tobytes())
    assert digest.hexdigest() == "4d2746e26d7935c5c0c5bfbe9a595f3038bbe5feb29c8079037ab3a8636d6000"


def test_the_stream_is_the_raw_output_of_philox() -> None:
    raw = payload(5, "f", region("u64"), "nan", 1).view(np.uint64)
    key = int.from_bytes(hashlib.sha256(b"5/f/X/nan/bits/raw").digest()[:16], "little")
    assert np.array_equal(raw, np.random.Philox(key=key).random_raw(COUNT))


@pytest.mark.parametrize("type_", [*FLOATS, *INTS])
def test_a_set_alone_is_the_set_among_many(type_: str) -> None:
    # 700 sets of 1,500 elements are several chunks of the generator.
    for cls in CLASSES:
        step = len(KINDS[cls])
        for first in range(step):
            many = block(5, "f", region(type_), cls, range(first, first + 40 * step, step))
            for place in (0, 1, 39):
                assert np.array_equal(many[place], payload(5, "f", region(type_), cls, first + place * step))


@pytest.mark.parametrize("type_", [*FLOATS, *INTS])
def test_large_buffers_can_be_drawn_in_every_kind(type_: str) -> None:
    large = region(type_, count=70_001)
    for cls in CLASSES:
        for index in range(len(KINDS[cls])):
            assert payload(5, "f", large, cls, index).size == large.size


def test_sets_of_two_kinds_are_not_drawn_as_one() -> None:
    with pytest.raises(ValueError, match="not of one kind"):
        block(5, "f", region("fp32"), "finite", range(4))


@pytest.mark.parametrize("type_", FLOATS)
def test_classes_hold_what_their_domain_says(type_: str) -> None:
    form = FLOATS[type_]
    magnitude = form.sign - 1
    for cls in CLASSES:
        for index in range(2 * len(KINDS[cls])):
            drawn = words(type_, cls, index) & np.uint64(magnitude)
            nans = drawn > form.top if form.infinite else drawn == magnitude
            infinite = drawn == form.top if form.infinite else np.zeros(COUNT, bool)
            if cls == "finite":
                assert not nans.any()
                assert not infinite.any()
            elif cls == "infinite":
                assert not nans.any()
                assert infinite.any() or not form.infinite
            elif kind_of(cls, index) == "payloads":
                assert nans.any()


@pytest.mark.parametrize("type_", ["fp64", "fp32", "fp16", "bf16", "fp8e5"])
def test_nan_payloads_are_of_both_signs_quiet_and_signalling(type_: str) -> None:
    form = FLOATS[type_]
    data = np.concatenate([words(type_, "nan", index) for index in range(0, 20, 2)])
    mantissa = data & np.uint64((1 << form.mantissa) - 1)
    nans = data[((data & np.uint64(form.top)) == form.top) & (mantissa > 0)]
    quiet = (nans >> np.uint64(form.mantissa - 1)) & np.uint64(1)
    assert set(quiet.tolist()) == {0, 1}
    assert {int(n) & form.sign for n in nans} == {0, form.sign}
    assert len({int(n) for n in nans}) >= min(6, 2 * ((1 << form.mantissa) - 1))


def test_extremes_hold_zeros_denormals_and_the_largest_of_both_signs() -> None:
    data = set(np.concatenate([words("fp32", "finite", index) for index in range(4, 50, 5)]).tolist())
    assert kind_of("finite", 4) == "extremes"
    assert set(extremes(FLOATS["fp32"], infinities=False)) <= data
    assert {0x80000000, 1, 0x007FFFFF, 0x7F7FFFFF, 0xFF7FFFFF} <= data


def test_cancelling_pairs_cancel_to_the_last_bit() -> None:
    data = payload(5, "f", region("fp32"), "finite", 2).view(np.float32)
    assert kind_of("finite", 2) == "cancelling"
    left = np.abs(data[::2] + data[1::2])
    assert (left <= np.spacing(np.abs(data[::2]))).all()
    assert (left == 0).any()
    assert (left > 0).any()


def test_moderate_and_small_numbers_are_moderate_and_small() -> None:
    moderate, small = (np.abs(payload(5, "f", region("fp32"), "finite", i).view(np.float32)) for i in (0, 1))
    assert 2**-4 <= moderate.min() < 0.1
    assert 7 < moderate.max() < 8
    assert 2**-8 <= small.min() < 0.01
    assert 0.2 < small.max() < 0.25


def test_indices_stay_below_their_bound_and_reach_it() -> None:
    for cls in CLASSES:
        data = payload(5, "f", region("i32", below=7), cls, 0).view(np.int32)
        assert set(data.tolist()) == set(range(7))


def test_buffers_functions_seeds_and_searches_have_streams_of_their_own() -> None:
    other = Region(1024, 1024 + 4 * COUNT, "in", ("Y",), "*fp32")
    drawn = [
        payload(5, "f", region("fp32"), "finite", 0),
        payload(5, "f", region("fp32"), "finite", 5),
        payload(5, "f", other, "finite", 0),
        payload(5, "g", region("fp32"), "finite", 0),
        payload(6, "f", region("fp32"), "finite", 0),
        payload(5, "f", region("fp32"), "finite", SEARCH_FROM),
    ]
    assert len({data.tobytes() for data in drawn}) == len(drawn)
    assert [kind_of("finite", SEARCH_FROM + i) for i in (0, 1, 2)] == [*SEARCH_KINDS, SEARCH_KINDS[0]]


def test_an_unknown_element_type_is_named() -> None:
    with pytest.raises(InvalidLaunch, match=r"\*fp4 cannot be drawn"):
        item_bytes("*fp4")


@pytest.mark.parametrize("indices", [range(13), range(7, 20), range(SEARCH_FROM, SEARCH_FROM + 5)])
def test_an_image_is_its_sets(indices: range) -> None:
    a = {"name": "A", "kind": "ptr", "type": "*bf16", "addr": "0x1002", "bytes": 200}
    b = {"name": "B", "kind": "ptr", "type": "*i32", "addr": "0x9000", "bytes": 120}
    arena = lay_out(record_from({"launch": {"fn": "f", "args": [a, b]}, "grid": [1, 1, 1]}))
    out = np.full((len(indices), arena.stride), 0xEE, np.uint8)
    inputs = Inputs(5, 2)
    inputs.ahead("f", arena, "finite", indices)
    inputs.image("f", arena, "finite", indices, out)
    for row, index in enumerate(indices):
        for part in arena.regions:
            held = out[row, part.begin : part.end]
            wanted = payload(5, "f", part, "finite", index) if part.names else np.uint8(0xEE)
            assert (held == wanted).all()
