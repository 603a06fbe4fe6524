"""Instructions that touch memory: loads, stores, asynchronous copies, barriers of a warp, fences."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from foldproof.gpu.symbolic.algebra import compute, named
from foldproof.gpu.symbolic.atomics import atomic
from foldproof.gpu.symbolic.bitview import low_mask, zero_extend
from foldproof.gpu.symbolic.graph import Ids
from foldproof.gpu.symbolic.handlers import Factory, nothing, refuse, width_of_type
from foldproof.gpu.symbolic.lanes import Lanes, Parted, Stop, Value, nodes_of, signed, value_of
from foldproof.gpu.symbolic.machine import Handler, Machine
from foldproof.gpu.symbolic.program import Imm, Instr, Mem, Operand, Reg, Sym, Vec
from numpy.typing import NDArray

HINTS = ("L1::", "L2::", "level::", "cache_hint")
SPACES = {"param", "global", "shared", "shared::cta"}
PLAIN = {"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "weak"}


def shape_of(instr: Instr) -> tuple[str, int, str]:
    """Space, number of registers and type of a load or store. Stops on an ordering that is not modelled."""
    space, count = "", 1
    for part in instr.parts[1:-1]:
        if part in SPACES:
            space = part.partition("::")[0]
        elif part in ("v2", "v4", "v8"):
            count = int(part[1])
        elif part not in PLAIN and not part.startswith(HINTS):
            raise Stop(f"{instr.opcode}: .{part} is not modelled", instr.line)
    if not space:
        raise Stop(f"{instr.opcode}: generic addresses are not modelled", instr.line)
    return space, count, instr.parts[-1]


def address_of(m: Machine, place: Operand, space: str, idx: Lanes | None, line: int) -> NDArray[np.int64]:
    """Byte addresses of a memory operand, which must not depend on data."""
    if not isinstance(place, Mem) or place.extra:
        raise Stop("a memory operand of a form that is not supported here", line)
    width = 32 if space == "shared" else 64
    if isinstance(place.base, Sym):
        bits = m.get(place.base, width, idx, line).bits
    elif isinstance(place.base, Imm):
        bits = np.full(m.lanes if idx is None else len(idx), place.base.value, np.uint64)
    else:
        if space == "shared" and m.kernel.width_of(place.base.name) == 64:
            width = 64
        bits = m.concrete(place.base, width, idx, f"a {space} address", line)
    return signed(bits, width) + place.offset


def registers(operand: Operand) -> tuple[Operand, ...]:
    """The registers of `{a, b}` or of `a`."""
    return operand.items if isinstance(operand, Vec) else (operand,)


def load(instr: Instr) -> Handler:
    """Loads of parameters, global and shared memory."""
    space, count, kind = shape_of(instr)
    width = width_of_type(kind)
    place, outs = instr.operands[1], registers(instr.operands[0])
    if space == "param":
        return _parameter(instr, width)
    if len(outs) != count:
        raise Stop(f"{instr.opcode} with {len(outs)} registers", instr.line)

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        base = address_of(m, place, space, idx, i.line)
        if (base % (count * width // 8)).any():
            raise Stop(f"{i.opcode} at a misaligned address", i.line)
        for number, out in enumerate(outs):
            nodes = fetch(m, space, base + number * width // 8, width, idx, i.line)
            m.put(out, widened(m, nodes, width, kind, out), idx)

    return run


def fetch(m: Machine, space: str, address: NDArray[np.int64], width: int, idx: Lanes | None, line: int) -> Ids:  # noqa: PLR0913, PLR0917  # what an access is
    """Nodes of `width` bits read by the lanes."""
    if space == "global":
        return m.memory.load(address, width, m.by_thread(idx, line))
    index = m.shared.index(address, m.block[m.lane_ids(idx)], width // 8 // m.shared.unit, line)
    return m.shared.load(index, m.by_lane(idx, line))


def widened(m: Machine, nodes: Ids, width: int, kind: str, out: Operand) -> Value:
    """A loaded value as its register holds it: narrower loads are extended by their type."""
    own = m.kernel.width_of(out.name) if isinstance(out, Reg | Sym) and out.name != "_" else width
    value = value_of(m.g, nodes)
    if own == width:
        return value
    if kind[0] == "s":
        return compute(m.g, named(f"sext{own}.s{width}"), [value], [width])
    return value_of(m.g, zero_extend(m.g, nodes, width, own))


def _parameter(instr: Instr, width: int) -> Handler:
    dst, place = instr.operands

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        if not isinstance(place, Mem) or not isinstance(place.base, Sym) or place.base.name not in m.params:
            raise Stop(f"{i.opcode}: not a parameter of this kernel", i.line)
        if place.offset:
            raise Stop(f"{i.opcode}: a part of a parameter is not modelled", i.line)
        bits = m.params[place.base.name] & int(low_mask(width))
        m.put(dst, Value(np.full(m.lanes if idx is None else len(idx), bits, np.uint64)), idx)

    return run


def store(instr: Instr) -> Handler:
    """Stores to global and shared memory."""
    space, count, kind = shape_of(instr)
    width = width_of_type(kind)
    place, sources = instr.operands[0], registers(instr.operands[1])
    if len(sources) != count or space == "param":
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        base = address_of(m, place, space, idx, i.line)
        if (base % (count * width // 8)).any():
            raise Stop(f"{i.opcode} at a misaligned address", i.line)
        m.side_effects += 1
        for number, source in enumerate(sources):
            nodes = nodes_of(m.g, m.get(source, width, idx, i.line), width)
            write(m, space, base + number * width // 8, nodes, width, idx, i.line)

    return run


def write(  # noqa: PLR0913, PLR0917  # what an access is
    m: Machine, space: str, address: NDArray[np.int64], nodes: Ids, width: int, idx: Lanes | None, line: int
) -> None:
    """Store nodes of `width` bits for the lanes."""
    if space == "global":
        m.memory.store(address, nodes, width, m.by_thread(idx, line))
        return
    index = m.shared.index(address, m.block[m.lane_ids(idx)], width // 8 // m.shared.unit, line)
    m.shared.store(index, nodes, m.by_lane(idx, line))


def async_copy(instr: Instr) -> Handler:  # noqa: C901  # one instruction, its checks in PTX order
    """cp.async and its groups: the bytes arrive at once, but nobody may look before the group was waited for."""
    if "commit_group" in instr.parts:
        return _commit
    if "wait_group" in instr.parts or "wait_all" in instr.parts:
        return _wait(instr)
    if instr.parts[1] != "async" or "bulk" in instr.parts or "mbarrier" in instr.parts:
        raise Stop(f"{instr.opcode}: bulk copies (TMA) and memory barriers are not modelled", instr.line)
    target, source, size, *rest = instr.operands
    if not isinstance(size, Imm) or len(rest) > 1:
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    bytes_ = size.value

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        m.side_effects += 1
        lane = m.lane_ids(idx)
        to = address_of(m, target, "shared", idx, i.line)
        taken = np.full(len(lane), bytes_, np.int64)
        if rest:
            taken = m.concrete(rest[0], 32, idx, "a copy size", i.line).astype(np.int64)
        if ((taken != 0) & (taken != bytes_)).any() or (to % bytes_).any():
            raise Stop("a partial or misaligned asynchronous copy", i.line)
        whole = np.flatnonzero(taken == bytes_)
        base = np.zeros(len(lane), np.int64)
        if len(whole):
            base[whole] = address_of(m, source, "global", lane[whole], i.line)
            if (base[whole] % bytes_).any():
                raise Stop("an asynchronous copy from a misaligned address", i.line)
        for offset in range(0, bytes_, 4):
            nodes = np.broadcast_to(m.g.constant(32, 0), lane.shape).copy()
            if len(whole):
                nodes[whole] = fetch(m, "global", base[whole] + offset, 32, lane[whole], i.line)
            index = m.shared.index(to + offset, m.block[lane], 4 // m.shared.unit, i.line)
            m.shared.store(index, nodes, m.by_lane(idx, i.line), pending=True)
            m.open_copies.append((index, lane))

    return run


def _commit(m: Machine, i: Instr, idx: Lanes | None) -> None:
    if idx is not None:
        raise Parted("a commit of asynchronous copies by some threads only", i.line)
    m.groups.append(m.open_copies)
    m.open_copies = []


def _wait(instr: Instr) -> Handler:
    pending = instr.operands[0] if instr.operands else Imm(0)
    if not isinstance(pending, Imm):
        raise Stop(f"unknown instruction {instr.opcode}", instr.line)
    keep = pending.value

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        if idx is not None:
            raise Parted("a wait for asynchronous copies by some threads only", i.line)
        if "wait_all" in i.parts:
            _commit(m, i, idx)
        clock = m.clock(None)
        while len(m.groups) > keep:
            for index, lane in m.groups.pop(0):
                m.shared.settle(index, clock[lane])

    return run


def warp_barrier(_: Instr) -> Handler:
    """bar.warp.sync of whole warps (block barriers are the machine's)."""

    def run(m: Machine, i: Instr, idx: Lanes | None) -> None:
        if m.depth:
            raise Stop("a warp barrier where threads may part by data", i.line)
        warps, counts = np.unique(m.warp[m.lane_ids(idx)], return_counts=True)
        if (counts != min(32, m.threads)).any():
            raise Stop("a warp barrier of some threads of a warp only", i.line)
        m.warp_clock[warps] += 1

    return run


def fence(instr: Instr) -> Handler:
    """Fences order what barriers order already; those for clusters and the system are refused."""
    if {"cluster", "sys", "mbarrier_init"} & set(instr.parts):
        raise Stop(f"{instr.opcode} is not modelled", instr.line)
    return nothing(instr)


ACCESS: Mapping[str, Factory] = {
    "ld": load,
    "st": store,
    "cp": async_copy,
    "atom": atomic,
    "red": atomic,
    "bar": warp_barrier,
    "barrier": warp_barrier,
    "fence": fence,
    "membar": fence,
    "prefetch": nothing,
    "mbarrier": refuse("memory barriers (TMA pipelines) are not modelled"),
    "clusterlaunchcontrol": refuse("clusters are not modelled"),
    "tcgen05": refuse("the tensor memory of sm_100 is not modelled"),
    "griddepcontrol": refuse("dependent launches are not modelled"),
    "trap": refuse("a trap ends the launch"),
    "call": refuse("function calls are not modelled"),
}
"""Instruction families by their first word."""
