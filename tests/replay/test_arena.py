"""The layout of a slot: nothing of it is left out, nothing overlaps, addresses are as aligned as recorded."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.replay.arena import ALIGNMENT, REDZONE, lay_out
from foldproof.gpu.replay.bouts import corpus_bouts
from foldproof.gpu.replay.trace import Record, record_from
from hypothesis import given
from hypothesis import strategies as st


def record(*buffers: tuple[int, int], roles: dict[str, dict[str, Any]] | None = None) -> Record:
    args = [
        {"name": f"B{i}", "kind": "ptr", "type": "*fp32", "addr": hex(address), "bytes": size}
        for i, (address, size) in enumerate(buffers)
    ]
    return record_from({"launch": {"fn": "f", "args": args}, "grid": [1, 1, 1], "buffers": roles or {}})


@given(
    st.lists(st.tuples(st.integers(1, 1 << 16), st.integers(0, 5000)), max_size=5),
    st.tuples(st.integers(0, 3000), st.integers(0, 3000)),
)
def test_regions_cover_a_slot_and_keep_alignment_and_redzones(
    buffers: list[tuple[int, int]], scratch: tuple[int, int]
) -> None:
    arena = lay_out(record(*buffers), scratch)
    assert arena.stride % ALIGNMENT == 0
    ends = [0, *(region.end for region in arena.regions)]
    assert [region.begin for region in arena.regions] == ends[:-1]
    assert ends[-1] == arena.stride
    kinds = [region.kind for region in arena.regions]
    assert all(a != b or a != "redzone" for a, b in pairwise(kinds))
    for region in arena.regions:
        assert region.kind != "redzone" or region.size >= REDZONE
    for i, (address, size) in enumerate(buffers):
        offset = arena.offsets[f"B{i}"]
        assert offset % ALIGNMENT == address % ALIGNMENT
        assert size == 0 or any(
            f"B{i}" in r.names and r.begin <= offset and offset + size <= r.end for r in arena.regions
        )
    for place, size in zip(arena.scratch, scratch, strict=True):
        assert (place == 0) == (size == 0)
        assert size == 0 or any(r.kind == "scratch" and (r.begin, r.size) == (place, size) for r in arena.regions)


def test_overlapping_buffers_keep_their_distance_and_share_a_region() -> None:
    arena = lay_out(record((0x1000, 400), (0x1040, 400), (0x9000, 64)))
    assert arena.offsets["B1"] - arena.offsets["B0"] == 0x40
    shared = [r for r in arena.regions if r.names == ("B0", "B1")]
    assert [r.size for r in shared] == [0x40 + 400]
    assert arena.compared_bytes == 0x40 + 400 + 64


def test_an_output_over_an_input_is_both() -> None:
    arena = lay_out(record((0x1000, 64), (0x1000, 64), roles={"B0": {"role": "in"}, "B1": {"role": "out"}}))
    assert [r.kind for r in arena.regions if r.names] == ["inout"]


@pytest.mark.parametrize("slot", [0, 3])
def test_a_recorded_misalignment_stays_in_every_slot(slot: int) -> None:
    bouts, _ = corpus_bouts(bundled_capture())
    bout = next(b for b in bouts if "X misaligned" in b.record.name)
    arena = lay_out(bout.record)
    x = arena.addresses((1 << 30) + slot * arena.stride)["X"]
    assert x % 16 == next(a.number for a in bout.record.launch.args if a.name == "X") % 16 != 0
