"""One variant of a launch, executed: from PTX, arguments and grid to the symbolic content of memory afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foldproof.gpu.symbolic.access import ACCESS
from foldproof.gpu.symbolic.graph import Graph
from foldproof.gpu.symbolic.handlers import Factory
from foldproof.gpu.symbolic.lanes import Parted, Stop
from foldproof.gpu.symbolic.machine import Effect, Handler, Launched, Machine
from foldproof.gpu.symbolic.memory import Global, Region
from foldproof.gpu.symbolic.program import Instr, Kernel
from foldproof.gpu.symbolic.regions import fork
from foldproof.gpu.symbolic.scalar import SCALAR
from foldproof.gpu.symbolic.schedule import run
from foldproof.gpu.symbolic.tensor import TENSOR
from foldproof.gpu.symbolic.warp import WARP

FAMILIES: Mapping[str, Factory] = {**SCALAR, **ACCESS, **WARP, **TENSOR}
CONTROL = ("bra", "ret", "exit")
LANES = 2048
"""Threads that run together at most, in whole blocks."""

Block = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Run:
    """What an execution leaves: memory, and atomics whose order does not matter."""

    kernel: Kernel
    memory: Global
    effects: tuple[Effect, ...]


def handlers(kernel: Kernel) -> dict[int, Handler]:
    """A handler for each instruction that computes. Raises `Stop` naming the first that is not known."""
    made: dict[int, Handler] = {}
    for at, instr in enumerate(kernel.code):
        family = instr.parts[0]
        if family in CONTROL or (family in ("bar", "barrier") and "warp" not in instr.parts):
            _check_barrier(instr)
            continue
        factory = FAMILIES.get(family)
        if factory is None:
            raise Stop(f"unknown instruction {instr.opcode}", instr.line)
        made[at] = factory(instr)
    return made


def _check_barrier(instr: Instr) -> None:
    if instr.parts[0] not in CONTROL:
        names = [getattr(o, "value", None) for o in instr.operands]
        if "sync" not in instr.parts or names not in ([0], []):
            raise Stop(f"{instr.opcode}: only barrier 0 of the whole block is modelled", instr.line)


def granule(kernel: Kernel, elems: Sequence[int]) -> int:
    """The unit of memory in bytes: the smallest access or element."""
    smallest = min([4, *elems])
    for instr in kernel.code:
        if instr.parts[0] in ("ld", "st") and "param" not in instr.parts:
            smallest = min(smallest, int(instr.parts[-1][1:]) // 8)
        elif (
            instr.parts[0] == "stmatrix"
            or (instr.parts[0] == "ldmatrix" and "trans" in instr.parts)
            or instr.parts[0] == "wgmma"
        ):
            smallest = min(smallest, 2)
    return max(smallest, 1)


def launched(kernel: Kernel, params: Mapping[str, int], grid: Block, shared_bytes: int) -> Launched:
    """A kernel with its arguments. Raises `Stop` naming the first instruction that is not known."""
    return Launched(kernel, params, grid, shared_bytes, handlers(kernel), fork)


def execute(g: Graph, launch: Launched, regions: tuple[Region, ...], blocks: Sequence[Block]) -> Run:
    """Run blocks of a launch. Raises `Stop` with the reason when that is not possible soundly."""
    threads = launch.kernel.reqntid[0] * launch.kernel.reqntid[1] * launch.kernel.reqntid[2]
    together = max(1, LANES // threads)
    try:
        return _execute(g, launch, regions, blocks, together)
    except Parted:
        if together == 1:
            raise
        return _execute(g, launch, regions, blocks, 1)


def _execute(g: Graph, launch: Launched, regions: tuple[Region, ...], blocks: Sequence[Block], together: int) -> Run:
    memory = Global(g, regions, granule(launch.kernel, [r.elem for r in regions]))
    effects: list[Effect] = []
    for first in range(0, len(blocks), together):
        machine = Machine(launch, memory, blocks[first : first + together])
        run(machine)
        effects += machine.effects
    return Run(launch.kernel, memory, tuple(effects))
