"""Mutated PTX is never proved equal to its original unless every output agrees on concrete inputs."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from foldproof.gpu.symbolic.bits import Replay
from foldproof.gpu.symbolic.cases import LaunchCase, allocations, blocks_of, parameters
from foldproof.gpu.symbolic.compare import Comparer
from foldproof.gpu.symbolic.execute import execute, launched
from foldproof.gpu.symbolic.graph import Graph
from foldproof.gpu.symbolic.lanes import Stop
from foldproof.gpu.symbolic.memory import Region
from foldproof.gpu.symbolic.normal import Domain
from foldproof.gpu.symbolic.reader import read_ptx
from foldproof.gpu.symbolic.witness import PATTERNS, inputs_of
from helpers_symbolic import bundled, has_bundle, values

pytestmark = pytest.mark.skipif(not has_bundle(), reason="the bundled capture is not built")
KERNELS = (
    "_fma_scale", "_scale", "_cast_scale", "_copy_stride", "_int_mix", "_select_every", "_silu_mul", "_residual_add",
    "_trip_sum", "_trip_decay", "_row_sum", "_row_dot", "_row_max", "_row_isum", "_row_xor", "_row_cumsum", "_rms_norm",
    "_layer_norm", "_softmax", "_rotary", "_merge", "_transpose",
)  # fmt: skip
EACH = 12
"""Mutants of each kernel at most."""


def line_mutants(line: str) -> Iterator[tuple[str, str]]:
    """Every mutation of one PTX line, with its kind."""
    binary = re.match(r"(\s*)((?:sub|div|shl|shr|add|mul|max|min)\.\S+)(\s+)(\S+), (\S+), ([^;]+);", line)
    if binary and binary[2].startswith(("sub", "div", "shl", "shr")):
        yield "swap operands", f"{binary[1]}{binary[2]}{binary[3]}{binary[4]}, {binary[6]}, {binary[5]};"
    if binary and binary[2] in ("add.f32", "add.rn.f32", "max.f32"):
        yield "other operation", line.replace(binary[2].split(".")[0], {"add": "sub", "max": "min"}[binary[2][:3]], 1)
    if ".ftz" in line:
        yield "drop ftz", line.replace(".ftz", "")
    address = re.match(r"(.*\b(?:ld|st)\.(?:global|shared)\S*\s.*\[[^\]+]+)(?:\s*\+\s*(\d+))?\s*(\].*)", line)
    if address:
        yield "move address", f"{address[1].rstrip()}+{int(address[2] or 0) + 4}{address[3]}"
    fma = re.match(r"(\s*)fma\.rn\.f32(\s+)(\S+), (\S+), (\S+), (\S+);", line)
    if fma:
        product = f"{fma[1]}mul.rn.f32 %mutant1, {fma[4]}, {fma[5]};"
        yield "split fma", f"{product}\n{fma[1]}add.rn.f32 {fma[3]}, %mutant1, {fma[6]};"
    constant = re.match(r"(\s*(?:mov|and|or|xor|add|shl|bfe)\.\S+\s+.*, )(\d+)(;.*)", line)
    if constant:
        yield "other constant", f"{constant[1]}{int(constant[2]) + 1}{constant[3]}"
    shuffle = re.match(r"(\s*shfl\.sync\.bfly\.b32\s+\S+ \S+ )(\d+)(,.*)", line)
    if shuffle:
        yield "other lane", f"{shuffle[1]}{int(shuffle[2]) ^ 3}{shuffle[3]}"
    compare = re.match(r"(\s*setp\.)(lt|ge|gt|le)(\..*)", line)
    if compare:
        yield (
            "other comparison",
            f"{compare[1]}{ {'lt': 'le', 'ge': 'gt', 'gt': 'ge', 'le': 'lt'}[compare[2]] }{compare[3]}",
        )


def reordered(text: str) -> Iterator[tuple[str, str]]:
    """Two additions of a chain in another order: (a + b) + c becomes a + (b + c)."""
    pattern = (
        r"(\s*add(?:\.rn)?\.f32\s+)(\S+), (\S+), (\S+);((?:\s*\.loc[^\n]*)*)\s*add(?:\.rn)?\.f32\s+(\S+), \2, (\S+);"
    )
    for found in re.finditer(pattern, text):
        head, middle, a, b, locs, out, c = found.groups()
        changed = f"{head}{middle}, {b}, {c};{locs}{head}{out}, {a}, {middle};"
        yield "reorder additions", text[: found.start()] + changed + text[found.end() :]


def mutants(text: str, rng: random.Random, count: int) -> list[tuple[str, str]]:
    """A sample of mutants over all kinds."""
    body = text.index("{\n")
    lines = text[body:].split("\n")
    declared = text[:body] + "{\n\t.reg .b32 %mutant<2>;\n"
    found: dict[str, list[str]] = {}
    for at, line in enumerate(lines):
        if line.lstrip().startswith("."):
            continue
        for kind, changed in line_mutants(line):
            found.setdefault(kind, []).append(declared + "\n".join([*lines[1:at], changed, *lines[at + 1 :]]))
    for kind, changed in reordered(text):
        found.setdefault(kind, []).append(changed)
    picked: list[tuple[str, str]] = []
    while found and len(picked) < count:
        for kind in sorted(found):
            if found[kind] and len(picked) < count:
                picked.append((kind, found[kind].pop(rng.randrange(len(found[kind])))))
        found = {k: v for k, v in found.items() if v}
    return picked


def launch_of(replay: Replay, cases: tuple[LaunchCase, ...], fn: str) -> tuple[LaunchCase, str]:
    """The first launch of a kernel that some variant serves, and that variant."""
    for case in cases:
        if case.launch.fn == fn:
            for pair in replay.pairs([case]):
                return case, pair.first
    raise AssertionError(fn)


def agree(first: object, second: object, comparer: Comparer, domain: Domain) -> bool:
    """Whether all written elements have the same bits on two trials of each pattern (and on NaNs, where claimed)."""
    regions: tuple[Region, ...] = comparer.regions
    for trial in range(2 * len(PATTERNS)):
        inputs = {r.name: inputs_of(r, place, trial) for place, r in enumerate(regions)}
        if domain is Domain.EVERY and trial == 0:
            inputs = {r.name: random_bits(r) for r in regions}
        for region in regions:
            at = np.arange(region.start, region.stop, region.elem)
            written = [run.memory.written() for run in (first, second)]  # type: ignore[attr-defined]
            at = at[np.isin(at, np.union1d(*written))]
            if len(at):
                one, other = (values(comparer.g, run, at, inputs, regions, region.elem) for run in (first, second))  # type: ignore[arg-type]
                if (one != other).any():
                    return False
    return True


def random_bits(region: Region) -> np.ndarray:
    """Any bits, NaNs of every payload included."""
    count = (region.stop - region.start) // region.elem
    return np.random.default_rng(3).integers(0, 1 << (8 * region.elem), count).astype(np.uint64)


@pytest.mark.parametrize("fn", KERNELS)
def test_no_mutant_is_proved_equal_that_computes_otherwise(fn: str, record_property: pytest.RecordProperty) -> None:
    replay, cases = bundled()
    case, name = launch_of(replay, cases, fn)
    variant = next(v for v in replay.capture.kernels if v.hash == name)
    text = Path(replay.ptx_path(name)).read_text()
    assert case.grid is not None
    block = blocks_of(case.grid)[0][:1]
    regions = allocations(case)
    verdicts: Counter[str] = Counter()
    for kind, changed in mutants(text, random.Random(fn), EACH):  # noqa: S311  # a seeded sample
        comparer = Comparer(Graph(), regions)
        original, mutant = read_ptx(text), read_ptx(changed)
        values_ = parameters(original, variant, case.launch)
        first = execute(comparer.g, launched(original, values_, case.grid, variant.shared), regions, block)
        try:
            second = execute(comparer.g, launched(mutant, values_, case.grid, variant.shared), regions, block)
            result = comparer.compare(first, second, narrowed=comparer.narrowed)
        except Stop:
            verdicts["stopped"] += 1
            continue
        if result.domain is None:
            verdicts["not equal"] += 1
            continue
        verdicts["proved equal"] += 1
        assert agree(first, second, comparer, result.domain), f"{kind} is proved equal and computes otherwise"
    record_property("verdicts", dict(verdicts))
    assert sum(verdicts.values()) >= 8
    assert verdicts["not equal"] + verdicts["stopped"] >= 3, verdicts


def test_there_are_two_hundred_mutants_of_every_kind() -> None:
    replay, cases = bundled()
    kinds: Counter[str] = Counter()
    for fn in KERNELS:
        text = Path(replay.ptx_path(launch_of(replay, cases, fn)[1])).read_text()
        kinds.update(kind for kind, _ in mutants(text, random.Random(fn), EACH))  # noqa: S311  # a seeded sample
    assert kinds.total() >= 200
    wanted = {"swap operands", "drop ftz", "move address", "reorder additions", "split fma", "other lane"}
    assert wanted <= set(kinds), kinds
