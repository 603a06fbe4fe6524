"""The parameters of a kernel: the capture's, the PTX's own list, and what a launch packs."""

from __future__ import annotations

import ctypes
import re

import pytest
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.replay.abi import AbiMismatchError, expected_places, packed, scratch_pointers
from foldproof.gpu.replay.bouts import corpus_bouts
from foldproof.impl import Kind, Variant, capture_from, launch_from, load_capture

PARAM = re.compile(r"^\s*\.param \.([a-z])(\d+)[^\n]*?_param_(\d+)", re.MULTILINE)
TYPES = {"u1": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u64": 64, "fp32": 32}


def ptx_places(variant: Variant) -> tuple[tuple[int, int], ...]:
    """Offsets and sizes as PTX lays its parameters out, read from the text alone."""
    text = (bundled_capture() / "ptx" / f"{variant.hash}.ptx").read_text()
    head = text[text.index(".entry") : text.index(".reqntid")]
    found, cursor = [], 0
    for _, bits, place in PARAM.findall(head):
        size = int(bits) // 8
        assert int(place) == len(found)
        cursor = -(-cursor // size) * size
        found.append((cursor, size))
        cursor += size
    return tuple(found)


def test_every_bundled_variant_takes_what_its_ptx_takes() -> None:
    variants = load_capture(bundled_capture()).kernels
    assert len(variants) > 200
    for variant in variants:
        places = ptx_places(variant)
        assert scratch_pointers(variant, places) == 2
        assert len(places) == len(variant.params) + 2


def test_every_bout_packs_what_its_variants_take() -> None:
    variants = {v.hash: v for v in load_capture(bundled_capture()).kernels}
    bouts, _ = corpus_bouts(bundled_capture())
    for bout in bouts:
        addresses = {a.name: a.number for a in bout.record.launch.args if a.kind == Kind.PTR}
        for name in bout.variants:
            values = packed(variants[name], bout.record.launch, addresses, (0, 0))
            sizes = [8 if isinstance(value, int) else ctypes.sizeof(value) for value in values]
            assert sizes == [size for _, size in ptx_places(variants[name])]


def variant(*types: str) -> Variant:
    params = [{"name": f"P{i}", "type": type_, "div16": False, "nospec": False} for i, type_ in enumerate(types)]
    return capture_from(
        {"kernels": [{"fn": "f", "hash": "h", "num_warps": 4, "params": params, "consts": {}}]}
    ).kernels[0]


def test_narrow_parameters_are_aligned_to_their_size() -> None:
    wanted = variant("u1", "i64", "i16", "fp32", "*bf16")
    assert expected_places(wanted, 1) == ((0, 1), (8, 8), (16, 2), (20, 4), (24, 8), (32, 8))


@pytest.mark.parametrize(
    "places",
    [
        ((0, 8), (8, 4)),
        ((0, 8), (8, 4), (16, 8), (24, 8), (32, 8), (40, 8)),
        ((0, 8), (8, 4), (12, 4), (16, 8)),
        ((0, 4), (8, 4), (16, 8)),
        (),
    ],
)
def test_other_parameters_than_the_captures_are_refused(places: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(AbiMismatchError, match="the code takes parameters of bytes"):
        scratch_pointers(variant("*fp32", "i32", "*fp32"), places)


def test_a_type_that_cannot_be_passed_is_named() -> None:
    with pytest.raises(AbiMismatchError, match="param P0 is of type fp64"):
        expected_places(variant("fp64"), 0)


def test_negative_ints_and_nan_payloads_arrive_bit_by_bit() -> None:
    launch = launch_from(
        {
            "fn": "f",
            "args": [
                {"name": "P1", "kind": "fp32", "bits": 0x7F800123},
                {"name": "P0", "kind": "i32", "value": -5},
                {"name": "P2", "kind": "ptr", "type": "*i8", "addr": "0x10", "bytes": 4},
            ],
        }
    )
    number, bits, address, scratch = packed(variant("i32", "fp32", "*i8"), launch, {"P2": 4096}, (8192,))
    assert bytes(number) == (-5).to_bytes(4, "little", signed=True)
    assert bytes(bits) == (0x7F800123).to_bytes(4, "little")
    assert (address, scratch) == (4096, 8192)
