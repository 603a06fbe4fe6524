"""What `foldproof bench` measures of symbolic replay: an instruction, and growth with the columns of a row."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import z3
from foldproof.gpu.bundle import LAUNCHES, bundled_capture
from foldproof.gpu.compiler import BuildError, Compiled, compile_variant, workshop
from foldproof.gpu.corpus import BY_NAME
from foldproof.gpu.corpus.model import Buffer, Int, Param
from foldproof.gpu.launches import launch_json
from foldproof.gpu.plan import Plan, entry
from foldproof.gpu.symbolic.bits import Replay
from foldproof.gpu.symbolic.cases import LaunchCase, allocations, blocks_of, case_from, load_cases, parameters
from foldproof.gpu.symbolic.compare import Comparer
from foldproof.gpu.symbolic.execute import Run, execute, launched
from foldproof.gpu.symbolic.graph import Graph
from foldproof.gpu.symbolic.program import Kernel
from foldproof.gpu.symbolic.reader import read_ptx
from foldproof.impl.capture import Variant, capture_from
from foldproof.impl.errors import FoldproofError
from foldproof.props.measure import Curve, Item, Measure, NotMeasured, Side

COLUMNS = (128, 256, 512, 1024, 2048, 4096, 8192)
STRAIGHT = ("_row_sum", "_row_dot", "_softmax", "_rms_norm", "_fma_scale")
"""Bundled kernels to execute; of their variants those without a branch, so that each thread runs each instruction."""
OF_EACH = 2
"""How many variants of a kernel are executed."""
TERMS = 4_000
"""Z3 terms that the other side makes in one call."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A variant that can be executed: its parsed PTX, its entry, and a launch that it was compiled for."""

    kernel: Kernel
    variant: Variant
    case: LaunchCase

    @property
    def steps(self) -> int:
        """Instructions times threads, of a kernel without branches."""
        x, y, z = self.kernel.reqntid
        return len(self.kernel.code) * x * y * z * len(blocks_of(self.case.grid or (1, 1, 1))[0])

    def run(self, comparer: Comparer) -> Run:
        """Execute it from the first instruction to memory at the end."""
        grid = self.case.grid or (1, 1, 1)
        start = launched(
            self.kernel, parameters(self.kernel, self.variant, self.case.launch), grid, self.variant.shared
        )
        return execute(comparer.g, start, comparer.regions, blocks_of(grid)[0])


def replaying(repeats: int, *, quick: bool) -> Iterator[Item]:
    """Symbolic execution for each instruction of each thread, beside one Z3 term for each; and the curve of columns."""
    ready = list(straight())
    ours = Side("symbolic replay", partial(_execute_each, ready), sum(one.steps for one in ready))
    theirs = Side("one Z3 term each", partial(_terms, TERMS), TERMS)
    what = f"{len(ready)} bundled variants without branches"
    yield Measure("instruction", what, "instruction and thread", ours, theirs, repeats)
    columns = COLUMNS[::2] if quick else COLUMNS
    try:
        pairs = [row_sums(size) for size in columns]
    except BuildError as problem:
        yield NotMeasured("columns", str(problem))
        return
    sides = [Side(f"{size} columns", partial(compare, pair)) for size, pair in zip(columns, pairs, strict=True)]
    what = "folded and runtime row sum executed and compared, one row, 4 warps"
    yield Curve("columns", what, "columns", "pair", columns, sides, repeats)


def straight() -> Iterator[Ready]:
    """The first variants of each of `STRAIGHT` without branches, each at the first bundled launch that admits it."""
    replay, seen, count = Replay.open(bundled_capture()), set[str](), Counter[str]()
    variants = {variant.hash: variant for variant in replay.capture.kernels}
    for pair in replay.pairs(load_cases(bundled_capture() / LAUNCHES)):
        for name in (pair.first, pair.second):
            if pair.fn in STRAIGHT and name not in seen and count[pair.fn] < OF_EACH:
                seen.add(name)
                kernel = replay.kernel(name)
                if all(instr.parts[0] != "bra" for instr in kernel.code):
                    count[pair.fn] += 1
                    yield Ready(kernel, variants[name], pair.case)


def row_sums(columns: int) -> tuple[Ready, Ready]:
    """The row sum of that many columns, its stride folded and read at run time, compiled here; the launch fits both.

    Raises `BuildError` where Triton is missing or an environment variable changes what it compiles.
    """
    kernel = BY_NAME["_row_sum"]
    sized = replace(kernel, params=tuple(_sized(p, columns) for p in kernel.params), consts={"BLOCK": columns})
    folded, runtime = (Plan(sized, sized.twin(name), 4, fused=True) for name in ("folded", "runtime"))
    case = case_from({"launch": launch_json(folded, folded.twin), "grid": [1, 1, 1]})
    with tempfile.TemporaryDirectory() as scratch, workshop(Path(scratch)):
        first, second = (_ready(plan, case) for plan in (folded, runtime))
    return first, second


def _ready(plan: Plan, case: LaunchCase) -> Ready:
    made = compile_variant(plan)
    if not isinstance(made, Compiled):
        raise BuildError(made.reason, where=plan.title, fix="run foldproof capture build")
    variant = capture_from({"kernels": [entry(plan, plan.twin.name, made.metadata)]}).kernels[0]
    return Ready(read_ptx(made.ptx, where=plan.title), variant, case)


def _sized(param: Param, columns: int) -> Param:
    if isinstance(param, Int) and param.name in ("RS", "N"):
        return replace(param, value=columns)
    return replace(param, elems=columns) if isinstance(param, Buffer) and param.name == "X" else param


def compare(pair: Sequence[Ready]) -> None:
    """Execute both variants in one graph and compare what they leave."""
    comparer = Comparer(Graph(), allocations(pair[0].case))
    first, second = (one.run(comparer) for one in pair)
    comparer.compare(first, second, narrowed=False)


def _execute_each(ready: Sequence[Ready]) -> None:
    for one in ready:
        one.run(Comparer(Graph(), allocations(one.case)))


def _terms(count: int) -> None:
    """What a replay that makes a term a thread would do at the least: one new addition for each."""
    total = z3.BitVec("x", 32)
    for number in range(count):
        total += z3.BitVecVal(number, 32)
    if total.num_args() != 2:
        raise FoldproofError("simplifies what it was given", where="z3", fix="compare with another side")
