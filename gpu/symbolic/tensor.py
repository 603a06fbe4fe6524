"""Tensor core instructions: one uninterpreted operation a result element, over its accumulator, its row and its column.

What is assumed: an element depends on nothing else, and equally at every place of the tile. How the products along K
are summed is the hardware's secret and stays inside the operation's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from foldproof.gpu.symbolic.access import registers
from foldproof.gpu.symbolic.algebra import op_of
from foldproof.gpu.symbolic.bitview import cat
from foldproof.gpu.symbolic.graph import Graph, Ids
from foldproof.gpu.symbolic.handlers import Factory
from foldproof.gpu.symbolic.integer_primitives import Primitive
from foldproof.gpu.symbolic.lanes import Lanes, Parted, Stop, nodes_of
from foldproof.gpu.symbolic.machine import Handler, Machine
from foldproof.gpu.symbolic.program import Imm, Instr, Reg, Vec
from foldproof.gpu.symbolic.units import PENDING
from foldproof.gpu.symbolic.warp import whole_warps
from numpy.typing import NDArray

SHAPES = {
    "m16n8k16": {"bf16": 4, "f16": 4, "s8": 2, "u8": 2},
    "m16n8k8": {"bf16": 2, "f16": 2, "tf32": 4},
    "m16n8k32": {"e4m3": 4, "e5m2": 4, "s8": 4, "u8": 4},
    "m16n8k4": {"tf32": 2},
}
"""Registers of A a lane, by shape and type: 32-bit words, four lanes a row, words along K in the order of the lanes."""
SWIZZLES = {1: 128, 2: 64, 3: 32}
"""Row pitch in bytes by the swizzle mode of an sm_90 matrix descriptor."""
BYTES = {"bf16": 2, "f16": 2, "e4m3": 1, "e5m2": 1, "tf32": 4, "s8": 1, "u8": 1}


def sequence(g: Graph, items: list[Ids]) -> Ids:
    """One node a row for a sequence of nodes: a tree of triples."""
    while len(items) > 1:
        blank = np.zeros(len(items[0]), np.int32)
        grouped = [items[i : i + 3] for i in range(0, len(items), 3)]
        items = [
            g.apply(g.pair, part[0], part[1] if len(part) > 1 else blank, part[2] if len(part) > 2 else blank)
            for part in grouped
        ]
    return items[0]


def multiply(instr: Instr) -> Handler:
    """mma.sync with 32-bit accumulators (PTX ISA, fragments of m16n8)."""
    parts = instr.parts
    if parts[:3] != ("mma", "sync", "aligned") or len(parts) != 10 or parts[4:6] != ("row", "col"):
        raise Stop(f"{instr.opcode} is not modelled", instr.line)
    shape, types = parts[3], parts[6:]
    words = SHAPES.get(shape, {}).get(types[1], 0)
    if not words or types[0] not in ("f32", "s32") or types[3] != types[0]:
        raise Stop(f"{instr.opcode} is not modelled", instr.line)
    prim = Primitive(".".join(["mma", shape, *types]), 32, 3)
    outs, a_regs, b_regs, c_regs = (registers(o) for o in instr.operands)
    if len(a_regs) != words or len(b_regs) != words // 2 or len(outs) != 4 or len(c_regs) != 4:
        raise Stop(f"{instr.opcode} with other fragments than its shape has", instr.line)

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        lanes = whole_warps(m, idx, i.line, "mma")
        a, b, c = ([nodes_of(m.g, m.get(r, 32, idx, i.line), 32) for r in regs] for regs in (a_regs, b_regs, c_regs))
        op = op_of(m.g, prim)
        rows = fragment_rows(m.g, a, len(lanes))
        columns = sequence(m.g, [w.reshape(-1, 8, 4)[:, :, t].ravel() for w in b for t in range(4)]).reshape(-1, 8)
        group, member = np.arange(32) // 4, np.arange(32) % 4
        for number, out in enumerate(outs):
            row, column = group + 8 * (number // 2), 2 * member + number % 2
            nodes = m.g.apply(op, c[number], rows[:, row].ravel(), columns[:, column].ravel())
            m.put_nodes(out, nodes, idx)

    return run


def fragment_rows(g: Graph, a: list[Ids], count: int) -> NDArray[np.int32]:
    """The sixteen rows of each warp's A fragment, a node each: register 0 and 2 hold rows 0-7, 1 and 3 rows 8-15."""
    half = []
    for first in (0, 1):
        words = [a[r].reshape(-1, 8, 4)[:, :, t].ravel() for r in range(first, len(a), 2) for t in range(4)]
        half.append(sequence(g, words).reshape(-1, 8))
    assert half[0].shape[0] * 32 == count
    return np.concatenate(half, axis=1)


def warpgroup(instr: Instr) -> Handler:  # noqa: C901  # one instruction, its checks in PTX order
    """Warpgroup products (wgmma) and their groups; operands in shared memory are read until they are waited for."""
    parts = instr.parts
    if parts[1] == "fence":
        return lambda _m, _i, _idx: None
    if parts[1] == "commit_group":
        return _commit
    if parts[1] == "wait_group":
        return _wait(instr)
    if (
        parts[1] != "mma_async"
        or len(parts) != 8
        or parts[5] != "f32"
        or parts[6] not in ("bf16", "f16", "e4m3", "e5m2")
    ):
        raise Stop(f"{instr.opcode} is not modelled", instr.line)
    shape, types = parts[4], parts[5:]
    columns, depth = (int(n) for n in shape.removeprefix("m64n").split("k"))
    outs, a, b, scale, *flags = instr.operands
    values = [f.value for f in flags if isinstance(f, Imm)]
    from_registers = isinstance(a, Vec)
    size = BYTES[types[1]]
    majors = (0, 0) if size != 2 else (0, values[2]) if from_registers else (values[2], values[3])
    regs = registers(outs)
    if values[:2] != [1, 1] or len(regs) != columns // 2 or not isinstance(scale, Reg):
        raise Stop(f"{instr.opcode} with negated operands or other fragments than its shape has", instr.line)
    prims = [Primitive(".".join(["wgmma", shape, *types, tail]), 32, 3) for tail in ("fresh", "sum")]

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        lanes = whole_warps(m, idx, i.line, "wgmma")
        if m.threads % 128 or len(lanes) % 128:
            raise Stop("wgmma by some warps of a warpgroup only", i.line)
        m.side_effects += 1
        keeps = m.concrete(scale, 1, idx, "an accumulator switch", i.line)
        if len(np.unique(keeps)) != 1:
            raise Stop("wgmma that keeps the accumulator in some threads only", i.line)
        op = op_of(m.g, prims[int(keeps[0])])
        if isinstance(a, Vec):
            words = [nodes_of(m.g, m.get(r, 32, idx, i.line), 32) for r in a.items]
            rows = fragment_rows(m.g, words, len(lanes)).reshape(-1, 64)
        else:
            rows = tile(m, i, lanes, _descriptor(m, a, idx, i.line), Tile(64, depth * size, majors[0] != 0, size))
        cols = tile(m, i, lanes, _descriptor(m, b, idx, i.line), Tile(columns, depth * size, majors[1] != 0, size))
        warp, group, member = np.arange(128) // 32, np.arange(128) % 32 // 4, np.arange(128) % 4
        zero = np.broadcast_to(m.g.constant(32, 0), (len(lanes),))
        for number, out in enumerate(regs):
            row = 16 * warp + group + 8 * (number % 4 // 2)
            column = 8 * (number // 4) + 2 * member + number % 2
            before = nodes_of(m.g, m.get(out, 32, idx, i.line), 32) if keeps[0] else zero
            m.put_nodes(out, m.g.apply(op, before, rows[:, row].ravel(), cols[:, column].ravel()), idx)

    return run


def _descriptor(m: Machine, operand: object, idx: Lanes | None, line: int) -> NDArray[np.int64]:
    assert isinstance(operand, Reg)
    bits = m.concrete(operand, 64, idx, "a matrix descriptor", line).reshape(-1, 128)
    if (bits != bits[:, :1]).any():
        raise Stop("a matrix descriptor that differs within a warpgroup", line)
    return bits[:, 0].view(np.int64)


@dataclass(frozen=True, slots=True)
class Tile:
    """An operand of wgmma: rows along M or N, `depth` bytes along K, whether K is not the contiguous dimension."""

    rows: int
    depth: int
    transposed: bool
    size: int


def tile(m: Machine, instr: Instr, lanes: Lanes, descriptor: NDArray[np.int64], shape: Tile) -> NDArray[np.int32]:
    """A node per warpgroup and row: the bytes along K of each row of an operand in shared memory.

    Canonical layouts of sm_90: rows of 32, 64 or 128 bytes along the contiguous dimension in groups of eight,
    `stride` bytes apart, and 16-byte chunks permuted by the address bits above them (PTX ISA, matrix descriptor).
    """
    pitch = SWIZZLES.get(int(descriptor[0] >> 62) & 3)
    modes = descriptor >> 49
    if pitch is None or (modes != modes[0]).any() or int(descriptor[0] >> 49) & 7:
        raise Stop("a matrix descriptor without swizzle or with a base offset", instr.line)
    start, leading, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    rows, size = shape.rows, shape.size
    row = np.arange(rows)
    first = lanes.reshape(-1, 128)[:, 0]
    words: list[Ids] = []
    for byte in range(0, shape.depth, 4):
        halves = []
        for part in (0, 2) if shape.transposed else (0,):
            k = (byte + part) // size
            if shape.transposed:
                per = pitch // size
                inside = (row % per) * size + (k % 8) * pitch
                at = start[:, None] + inside + (row // per) * leading[:, None] + (k // 8) * stride[:, None]
            else:
                at = start[:, None] + (row % 8) * pitch + (row // 8) * stride[:, None] + byte
            at = _swizzled(at, pitch)
            width = 2 if shape.transposed else 4
            lane = np.repeat(first, rows)
            index = m.shared.index(at.ravel(), m.block[lane], width // m.shared.unit, instr.line)
            by = m.by_lane(lane, instr.line)
            halves.append(m.shared.load(index, by))
            m.shared.note_read(index, by, pending=True)
            m.open_reads.append((index, lane))
        words.append(cat(m.g, halves[1], halves[0], 32) if shape.transposed else halves[0])
    return sequence(m.g, words).reshape(-1, rows)


def _swizzled(address: NDArray[np.int64], pitch: int) -> NDArray[np.int64]:
    """The 16-byte chunk number xor the bits from 7 on: as many as tell chunks of a row apart."""
    return address ^ ((address >> 3) & (pitch - 16))


def _commit(m: Machine, i: Instr, idx: Lanes | None) -> None:
    if idx is not None:
        raise Parted("a commit of wgmma by some threads only", i.line)
    m.pending_reads.append(m.open_reads)
    m.open_reads = []


def _wait(instr: Instr) -> Handler:
    pending = instr.operands[0]
    if not isinstance(pending, Imm):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    keep = pending.value

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        if idx is not None:
            raise Parted("a wait for wgmma by some threads only", i.line)
        clock = m.clock(None)
        while len(m.pending_reads) > keep:
            for index, lane in m.pending_reads.pop(0):
                m.shared.settle(index, clock[lane], reads=True)
        still = [entry for group in (*m.pending_reads, m.open_reads) for entry in group]
        for index, _ in still:
            m.shared.read_at[index] = PENDING

    return run


TENSOR: Mapping[str, Factory] = {"mma": multiply, "wgmma": warpgroup}
"""Instruction families by their first word."""
