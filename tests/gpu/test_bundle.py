from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest
from foldproof.gpu.bundle import bundled_capture, read_manifest, stale_kernels, verify_bundle
from foldproof.gpu.corpus import CORPUS
from foldproof.gpu.pairs import pairs
from foldproof.gpu.plan import plans, variant_hash
from foldproof.impl import InvalidCapture, Variant, load_capture

ROOT = Path(__file__).resolve().parents[2]
"""Where this checkout lies: no file of the bundle may say so."""

BUNDLE = bundled_capture()
CAPTURE = load_capture(BUNDLE)
MANIFEST = read_manifest(BUNDLE)
EM_CUDA = 190
VARIANTS = pytest.mark.parametrize("variant", CAPTURE.kernels, ids=lambda v: f"{v.fn}-{v.hash}")


def sections(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Offset and size of each section of a little-endian ELF64 file, by name."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", cubin, table + i * entry_size) for i in range(count)]
    names_at = rows[names_index][4]
    named = {}
    for name, _, _, _, offset, size in rows:
        start = names_at + name
        named[cubin[start : cubin.index(b"\0", start)].decode()] = (offset, size)
    return named


def entry_params(ptx: str) -> list[str]:
    """The types of the entry's params."""
    head = re.search(r"\.visible \.entry \w+\(([^)]*)\)", ptx)
    assert head is not None
    return re.findall(r"\.param \.(\w+)", head[1])


def test_the_bundle_is_whole() -> None:
    assert verify_bundle(BUNDLE) == []


def test_the_bundle_is_of_the_kernels_at_hand() -> None:
    assert stale_kernels(BUNDLE) == []


def test_the_bundle_holds_the_whole_corpus_in_candidate_order() -> None:
    wanted = {
        variant_hash(plan, MANIFEST.triton)
        for plan in plans(CORPUS)
        if plan.kernel.no_reference.get(plan.twin.name) != "compile"
    }
    hashes = [variant.hash for variant in CAPTURE.kernels]
    assert set(hashes) == wanted
    assert hashes == sorted(hashes)
    assert len(hashes) >= 20


def test_what_cannot_be_compared_is_listed_with_its_reason() -> None:
    found = {(row.fn, row.twin): row for row in MANIFEST.no_reference}
    wanted = {(k.name, twin): how for k in CORPUS for twin, how in k.no_reference.items()}
    assert {key: row.fails_to for key, row in found.items()} == wanted
    assert "has no attribute 'to'" in found["_fold_breaks", "folded"].reason
    assert "232448" in found["_deep_pipeline", "folded"].reason
    assert all("\n" not in row.reason for row in MANIFEST.no_reference)


@pytest.mark.parametrize("place", [str(ROOT).encode(), b"/root/", b"/tmp/", b"/home/", b"site-packages"])
def test_no_file_names_a_place_of_the_building_machine(place: bytes) -> None:
    named = [file.name for file in BUNDLE.rglob("*") if file.is_file() and place in file.read_bytes()]
    assert named == []


@VARIANTS
def test_a_cubin_is_for_the_target_and_holds_the_entry(variant: Variant) -> None:
    cubin = (BUNDLE / "cubins" / f"{variant.hash}.cubin").read_bytes()
    assert cubin[:6] == b"\x7fELF\x02\x01"
    (machine,) = struct.unpack_from("<H", cubin, 0x12)
    (flags,) = struct.unpack_from("<I", cubin, 0x30)
    assert machine == EM_CUDA
    # ABI version 8 of the format moved the SM from the low byte of the flags to the byte above it.
    assert (flags >> 8 if cubin[8] >= 8 else flags) & 0xFF == 90
    assert sections(cubin)[f".text.{variant.name}"][1] > 0


@VARIANTS
def test_the_params_are_those_of_the_compiled_entry_and_two_scratch_pointers(variant: Variant) -> None:
    types = entry_params((BUNDLE / "ptx" / f"{variant.hash}.ptx").read_text())
    sizes = {"u64": 64, "b64": 64, "u32": 32, "b32": 32, "f32": 32}
    wanted = [64 if param.type.startswith("*") else 32 for param in variant.params]
    assert [sizes[kind] for kind in types] == [*wanted, 64, 64]


@VARIANTS
def test_the_code_leads_back_to_a_line_of_the_kernel(variant: Variant) -> None:
    ptx = (BUNDLE / "ptx" / f"{variant.hash}.ptx").read_text()
    module = next(kernel.module for kernel in CORPUS if kernel.name == variant.fn)
    assert f'"foldproof/gpu/kernels/{module}.py"' in ptx
    assert re.search(r"^\t\.loc\t\d+ \d+ \d+", ptx, re.MULTILINE)


def test_the_recorded_fusion_is_the_compiled_one() -> None:
    for variant in CAPTURE.kernels:
        ptx = (BUNDLE / "ptx" / f"{variant.hash}.ptx").read_text()
        if variant.enable_fp_fusion is False:
            # A rounding mode keeps the assembler from contracting; without one it may.
            assert not re.search(r"\b(mul|add|sub)\.f32", ptx), variant.hash
            assert "fma." not in ptx, variant.hash
    assert {variant.enable_fp_fusion for variant in CAPTURE.kernels} == {True, False}


def test_a_pair_that_should_differ_is_not_the_same_code() -> None:
    cubins = {row.hash: row.cubin.sha256 for row in MANIFEST.variants}
    for pair in pairs(CORPUS):
        if pair.expected == "differs":
            first, second = (cubins[variant_hash(plan, MANIFEST.triton)] for plan in (pair.first, pair.second))
            assert first != second, (pair.first.title, pair.second.title)


def test_verification_finds_a_changed_a_missing_and_a_stray_file(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(BUNDLE, copy)
    first, second = (variant.hash for variant in CAPTURE.kernels[:2])
    data = bytearray((copy / "cubins" / f"{first}.cubin").read_bytes())
    data[-1] ^= 1
    (copy / "cubins" / f"{first}.cubin").write_bytes(data)
    (copy / "ptx" / f"{second}.ptx").unlink()
    (copy / "ptx" / "stray.ptx").write_text("")
    faults = verify_bundle(copy)
    assert len(faults) == 3
    assert faults[0].startswith(f"cubins/{first}.cubin: sha256")
    assert faults[1].startswith(f"ptx/{second}.ptx: cannot be read")
    assert faults[2] == "ptx/stray.ptx: not listed in manifest.json"


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 1}', "[]"])
def test_a_folder_without_a_manifest_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    if text:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(InvalidCapture) as caught:
        verify_bundle(tmp_path)
    assert "manifest.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_schema_is_refused(tmp_path: Path) -> None:
    text = (BUNDLE / "manifest.json").read_text().replace('"schema_version": 1', '"schema_version": 2')
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(InvalidCapture, match="schema version 2"):
        read_manifest(tmp_path)
