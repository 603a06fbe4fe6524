"""Instructions of a whole warp: shuffles, reductions, matrix fragments moved between registers and shared memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from foldproof.gpu.symbolic.access import address_of, registers
from foldproof.gpu.symbolic.algebra import build, named
from foldproof.gpu.symbolic.bitview import cat, extract
from foldproof.gpu.symbolic.handlers import Factory
from foldproof.gpu.symbolic.lanes import Lanes, Stop, Value, nodes_of
from foldproof.gpu.symbolic.machine import Handler, Machine
from foldproof.gpu.symbolic.program import Instr, Split

ALL = 0xFFFFFFFF


def whole_warps(m: Machine, idx: Lanes | None, line: int, what: str) -> Lanes:
    """The lanes, which must be whole warps of 32."""
    lanes = m.lane_ids(idx)
    if m.depth:
        raise Stop(f"{what} where threads may part by data", line)
    if m.threads % 32 or len(lanes) % 32 or (np.bincount(m.warp[lanes]) % 32).any():
        raise Stop(f"{what} by some threads of a warp only", line)
    return lanes


def shuffle(instr: Instr) -> Handler:
    """shfl.sync.{bfly,up,down,idx}: a register of another lane (PTX ISA, shfl.sync, pseudocode)."""
    mode = instr.parts[2]
    if instr.parts[:2] != ("shfl", "sync") or mode not in ("bfly", "up", "down", "idx"):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    dst, a, b, c, members = instr.operands

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        lanes = whole_warps(m, idx, i.line, "a shuffle")
        if (m.concrete(members, 32, idx, "a member mask", i.line) != ALL).any():
            raise Stop("a shuffle of some threads of a warp only", i.line)
        by = (m.concrete(b, 32, idx, "a lane distance", i.line) & np.uint64(31)).astype(np.int64)
        control = m.concrete(c, 32, idx, "a shuffle control", i.line).astype(np.int64)
        clamp, segment = control & 31, (control >> 8) & 31
        lane = m.lane_in_warp[lanes]
        top = (lane & segment) | (clamp & ~segment)
        if mode == "up":
            source, valid = lane - by, lane - by >= top
        elif mode == "down":
            source, valid = lane + by, lane + by <= top
        elif mode == "bfly":
            source, valid = lane ^ by, (lane ^ by) <= top
        else:
            source = (lane & segment) | (by & ~segment)
            valid = source <= top
        source = np.where(valid, source, lane)
        position = np.empty(m.lanes, np.int64)
        position[lanes] = np.arange(len(lanes))
        where = position[lanes - lane + source]
        value = m.get(a, 32, idx, i.line)
        moved = Value(value.bits[where], None if value.node is None else value.node[where])
        if isinstance(dst, Split):
            m.put(dst.first, moved, idx)
            m.put(dst.second, Value(valid.astype(np.uint64)), idx)
        else:
            m.put(dst, moved, idx)

    return run


def reduce(instr: Instr) -> Handler:
    """redux.sync over whole warps: associative operations only, so its own order does not matter."""
    kind, op = instr.parts[-1], instr.parts[2]
    if op not in ("add", "min", "max", "and", "or", "xor"):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    if kind == "f32":
        name = ".".join([op, *sorted(instr.parts[3:-1]), "f32"])
    else:
        name = f"{op}.{kind[0] if op in ('min', 'max') else 'i'}32"
    prim = named(name)
    dst, a, members = instr.operands

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        lanes = whole_warps(m, idx, i.line, "a reduction")
        if (m.concrete(members, 32, idx, "a member mask", i.line) != ALL).any():
            raise Stop("a reduction of some threads of a warp only", i.line)
        rows = nodes_of(m.g, m.get(a, 32, idx, i.line), 32).reshape(-1, 32)
        while rows.shape[1] > 1:
            half = rows.shape[1] // 2
            pair = [np.ascontiguousarray(rows[:, :half]).ravel(), np.ascontiguousarray(rows[:, half:]).ravel()]
            rows = build(m.g, prim, pair).reshape(-1, half)
        m.put_nodes(dst, np.repeat(rows[:, 0], 32), idx)
        assert len(lanes) == rows.shape[0] * 32

    return run


def vote(instr: Instr) -> Handler:
    """vote.sync over whole warps, of predicates that do not depend on data."""
    mode = instr.parts[2]
    dst, p, members = instr.operands
    if mode not in ("any", "all", "ballot"):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        whole_warps(m, idx, i.line, "a vote")
        if (m.concrete(members, 32, idx, "a member mask", i.line) != ALL).any():
            raise Stop("a vote of some threads of a warp only", i.line)
        rows = m.concrete(p, 1, idx, "a vote", i.line).reshape(-1, 32)
        if mode == "ballot":
            result = (rows << np.arange(32, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        else:
            result = (rows.any(axis=1) if mode == "any" else rows.all(axis=1)).astype(np.uint64)
        m.put(dst, Value(np.repeat(result, 32)), idx)

    return run


def matrix_shape(instr: Instr) -> tuple[int, bool]:
    """How many 8x8 matrices of 16-bit elements, and whether they are transposed."""
    if "m8n8" not in instr.parts or instr.parts[-1] != "b16":
        raise Stop(f"{instr.opcode}: only 8x8 matrices of 16-bit elements are modelled", instr.line)
    count = next((int(p[1]) for p in instr.parts if p in ("x1", "x2", "x4")), 0)
    if not count:
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    return count, "trans" in instr.parts


def load_matrix(instr: Instr) -> Handler:
    """ldmatrix: lane 8q + r gives the address of row r of matrix q; lane l gets elements 2(l % 4), +1 of row l // 4."""
    count, transposed = matrix_shape(instr)
    outs, place = registers(instr.operands[0]), instr.operands[1]

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        lanes = whole_warps(m, idx, i.line, "ldmatrix")
        rows = address_of(m, place, "shared", idx, i.line).reshape(-1, 32)
        if (rows[:, : 8 * count] % 16).any():
            raise Stop("ldmatrix at a misaligned address", i.line)
        block, by = m.block[lanes], m.by_lane(idx, i.line)
        lane = np.arange(32)
        for q, out in enumerate(outs):
            parts = []
            for half in range(1 if not transposed else 2):
                if transposed:
                    row, byte = 8 * q + 2 * (lane % 4) + half, 2 * (lane // 4)
                else:
                    row, byte = 8 * q + lane // 4, 4 * (lane % 4)
                at = (rows[:, row] + byte).ravel()
                size = 2 if transposed else 4
                index = m.shared.index(at, block, size // m.shared.unit, i.line)
                parts.append(m.shared.load(index, by))
            m.put_nodes(out, cat(m.g, parts[1], parts[0], 32) if transposed else parts[0], idx)

    return run


def store_matrix(instr: Instr) -> Handler:
    """stmatrix: the converse of ldmatrix."""
    count, transposed = matrix_shape(instr)
    place, sources = instr.operands[0], registers(instr.operands[1])
    if len(sources) != count:
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        m.side_effects += 1
        lanes = whole_warps(m, idx, i.line, "stmatrix")
        rows = address_of(m, place, "shared", idx, i.line).reshape(-1, 32)
        if (rows[:, : 8 * count] % 16).any():
            raise Stop("stmatrix at a misaligned address", i.line)
        block, by = m.block[lanes], m.by_lane(idx, i.line)
        lane = np.arange(32)
        for q, source in enumerate(sources):
            nodes = nodes_of(m.g, m.get(source, 32, idx, i.line), 32)
            for half in range(2):
                if transposed:
                    row, byte = 8 * q + 2 * (lane % 4) + half, 2 * (lane // 4)
                else:
                    row, byte = 8 * q + lane // 4, 4 * (lane % 4) + 2 * half
                at = (rows[:, row] + byte).ravel()
                index = m.shared.index(at, block, 2 // m.shared.unit, i.line)
                m.shared.store(index, extract(m.g, nodes, 16 * half, 16), by)

    return run


WARP: Mapping[str, Factory] = {
    "shfl": shuffle,
    "redux": reduce,
    "vote": vote,
    "ldmatrix": load_matrix,
    "stmatrix": store_matrix,
}
"""Instruction families by their first word."""
