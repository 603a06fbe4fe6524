from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from foldproof.gpu.corpus import BY_NAME, CORPUS, Buffer, Int, Kernel, Twin
from foldproof.gpu.pairs import Pair, admits, common_launch, pairs
from foldproof.gpu.plan import plans, variant_hash
from foldproof.gpu.sources import kernel_source
from foldproof.gpu.specialise import specialise

NAMED = ["_merge", "_row_sum", "_rms_norm", "_softmax", "_fma_scale", "_copy_stride", "_dot"]
KERNELS = pytest.mark.parametrize("kernel", CORPUS, ids=lambda kernel: kernel.name)


def verdicts(name: str, **options: object) -> dict[frozenset[str], str]:
    """The expected verdict of each pair of twins of a kernel, under the options that are named."""
    found = {}
    for pair in pairs([BY_NAME[name]]):
        if all(getattr(plan, key) == value for key, value in options.items() for plan in (pair.first, pair.second)):
            found[frozenset({pair.first.twin.name, pair.second.twin.name})] = pair.expected
    return found


def test_the_corpus_has_every_theme_and_enough_kernels_and_pairs() -> None:
    assert len(CORPUS) >= 25
    assert {kernel.label.theme for kernel in CORPUS} == {"positive", "negative control", "unstable", "no reference"}
    counts = Counter(pair.expected for pair in pairs(CORPUS))
    assert sum(counts.values()) >= 60
    assert set(counts) == {"equal", "differs", "unstable", "no reference"}


@pytest.mark.parametrize("name", NAMED)
def test_a_named_kernel_has_folded_and_runtime_twins_aligned_and_not(name: str) -> None:
    kernel = BY_NAME[name]
    specs = {twin.name: specialise(kernel, twin) for twin in kernel.twins}
    fold = next(iter(kernel.twin("folded").values))
    for aligned in ("folded", "runtime"):
        lost = specs[aligned].div16 - specs[f"{aligned}-x4"].div16
        assert len(lost) == 1
        assert isinstance(next(p for p in kernel.params if p.name in lost), Buffer)
    assert specs["folded"].constants[fold] == specs["folded-x4"].constants[fold] == 1
    assert fold not in specs["runtime"].constants
    assert fold not in specs["runtime"].div16


@KERNELS
def test_no_two_variants_of_a_kernel_are_one(kernel: Kernel) -> None:
    hashes = [variant_hash(plan, "3.9.0") for plan in plans([kernel])]
    assert len(set(hashes)) == len(hashes) == len(kernel.twins) * len(kernel.num_warps) * len(kernel.fusion)


@KERNELS
def test_a_label_names_twins_that_exist_and_says_why(kernel: Kernel) -> None:
    twins = {twin.name for twin in kernel.twins}
    for classes in (kernel.label.classes, kernel.label.unfused or ()):
        named = [name for names in classes for name in names]
        assert len(set(named)) == len(named)
        assert set(named) <= twins
    assert set(kernel.no_reference) <= twins
    assert kernel.label.why
    assert kernel.label.by
    assert bool(kernel.no_reference) == (kernel.label.theme == "no reference")
    if kernel.label.theme == "negative control":
        assert "differs" in {pair.expected for pair in pairs([kernel])}
    if kernel.label.theme == "positive":
        assert {pair.expected for pair in pairs([kernel])} == {"equal"}


@KERNELS
def test_the_launch_of_a_pair_is_admissible_for_both(kernel: Kernel) -> None:
    found: list[Pair] = list(pairs([kernel]))
    assert found
    for pair in found:
        assert pair.change
        for plan in (pair.first, pair.second):
            assert admits(kernel, plan.spec, pair.launch) is not None


def test_a_fold_and_a_multiple_of_16_are_no_pair() -> None:
    kernel = BY_NAME["_merge"]
    assert common_launch(kernel, kernel.twin("folded"), kernel.twin("runtime-16")) is None
    assert common_launch(kernel, kernel.twin("runtime"), kernel.twin("runtime-16")) == Twin("common", {"R": 16})


def test_admission_follows_the_strictest_rules() -> None:
    kernel = BY_NAME["_scale"]
    runtime = specialise(kernel, kernel.twin("runtime"))
    folded = specialise(kernel, kernel.twin("folded"))
    assert admits(kernel, folded, Twin("", {"R": 1})) == "exact"
    assert admits(kernel, folded, Twin("", {"R": 2})) is None
    assert admits(kernel, runtime, Twin("", {"R": 2})) == "exact"
    assert admits(kernel, runtime, Twin("", {"R": 32})) == "general"
    assert admits(kernel, runtime, Twin("", {"R": 1})) == "runtime-one"
    assert admits(kernel, runtime, Twin("", {"R": 2}, ("X",))) is None
    nospec = BY_NAME["_copy_nospec"]
    assert admits(nospec, specialise(nospec, nospec.twin("runtime")), Twin("", {"S": 1})) == "exact"


def test_fusion_decides_the_fma_and_nothing_else() -> None:
    assert [kernel.name for kernel in CORPUS if kernel.label.fusion_matters] == ["_fma_scale"]
    pair = frozenset({"folded", "runtime"})
    assert verdicts("_fma_scale", fused=True)[pair] == "differs"
    assert verdicts("_fma_scale", fused=False)[pair] == "equal"


def test_the_row_sum_loses_its_bits_with_the_fold_with_either_alignment_and_with_the_warps() -> None:
    found = verdicts("_row_sum", num_warps=4)
    for other in ("runtime", "folded-x4", "folded-rs"):
        assert found[frozenset({"folded", other})] == "differs"
    assert found[frozenset({"runtime", "runtime-x4"})] == "equal"
    by_warps = [pair for pair in pairs([BY_NAME["_row_sum"]]) if pair.first.num_warps != pair.second.num_warps]
    assert {pair.expected for pair in by_warps} == {"differs"}
    assert {pair.change for pair in by_warps} == {("4 against 8 warps",)}


def test_a_kernel_source_is_its_function_and_what_it_calls() -> None:
    text = kernel_source("matmul", "_dot")
    assert "def _dot(" in text
    assert "def _tile(" in text
    assert "def _linear(" not in text
    with pytest.raises(KeyError):
        kernel_source("matmul", "_absent")


@KERNELS
def test_every_named_extent_of_a_grid_is_an_int_param(kernel: Kernel) -> None:
    ints = {p.name for p in kernel.params if isinstance(p, Int)}
    assert {extent for extent in kernel.grid if isinstance(extent, str)} <= ints


def test_importing_the_room_imports_no_compiler_and_no_driver() -> None:
    rooms = "foldproof.gpu, foldproof.gpu.bundle, foldproof.gpu.build, foldproof.gpu.pairs"
    code = f"import {rooms}, sys; sys.exit(any(m.split('.')[0] in ('triton', 'torch', 'cuda') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
