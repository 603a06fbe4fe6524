"""Bit views: registers are typeless, so a float cut into halves, shifted by 16 or glued together is still its node.

Every rule here is an identity of bit strings and holds for all contents.
"""

from __future__ import annotations

import numpy as np
from foldproof.gpu.symbolic.graph import Bits, Graph, Ids, Mask


def low_mask(width: int) -> np.uint64:
    """`width` ones."""
    return np.uint64((1 << width) - 1)


def const_mask(g: Graph, nodes: Ids) -> Mask:
    """Which nodes are constants."""
    kinds = g.op[nodes]
    return (kinds >= g.consts[1]) & (kinds <= g.consts[64])


def extract(g: Graph, nodes: Ids, low: Bits | int, width: int) -> Ids:
    """Bits [low, low + width) of each node, seen through constants, concatenations and other extractions."""
    nodes = nodes.copy()
    low = np.broadcast_to(np.asarray(low, np.uint64), nodes.shape).copy()
    todo = np.arange(len(nodes))
    while len(todo):
        cur, at = nodes[todo], low[todo]
        kinds = g.op[cur]
        is_cat = (kinds >= g.cats[8]) & (kinds <= g.cats[64])
        half = (g.width[cur] >> 1).astype(np.uint64)
        in_high = is_cat & (at >= half)
        in_low = is_cat & (at + np.uint64(width) <= half)
        is_cut = (kinds >= g.extracts[1]) & (kinds <= g.extracts[64])
        nodes[todo] = np.where(in_high | is_cut, g.a[cur], np.where(in_low, g.b[cur], cur))
        low[todo] = np.where(in_high, at - half, np.where(is_cut, at + g.imm[cur], at))
        todo = todo[in_high | in_low | is_cut]
    out = nodes.copy()
    partial = g.width[nodes] != width
    constant = partial & const_mask(g, nodes)
    if constant.any():
        values = (g.imm[nodes[constant]] >> low[constant]) & low_mask(width)
        out[constant] = g.constant(width, values)
    cut = partial & ~constant
    if cut.any():
        out[cut] = g.apply(g.extracts[width], nodes[cut], imm=low[cut])
    return out


def cat(g: Graph, high: Ids, low: Ids, width: int) -> Ids:
    """`width` bits made of two halves; neighbouring cuts of one node become one cut, two constants one constant."""
    half = width // 2
    out = np.zeros(len(high), np.int32)
    constant = const_mask(g, high) & const_mask(g, low)
    if constant.any():
        out[constant] = g.constant(width, (g.imm[high[constant]] << np.uint64(half)) | g.imm[low[constant]])
    cut = g.extracts[half]
    joined = (g.op[high] == cut) & (g.op[low] == cut) & (g.a[high] == g.a[low])
    joined &= (g.imm[high] == g.imm[low] + np.uint64(half)) & ~constant
    if joined.any():
        out[joined] = extract(g, g.a[low[joined]], g.imm[low[joined]], width)
    rest = ~constant & ~joined
    if rest.any():
        out[rest] = g.apply(g.cats[width], high[rest], low[rest])
    return out


def join(g: Graph, parts: list[Ids], width: int) -> Ids:
    """Equal parts, lowest first, put together to `width` bits; their number is a power of two."""
    while len(parts) > 1:
        each = width // (len(parts) // 2)
        parts = [cat(g, parts[i + 1], parts[i], each) for i in range(0, len(parts), 2)]
    return parts[0]


def zero_extend(g: Graph, nodes: Ids, source: int, width: int) -> Ids:
    """Zeros put above, from `source` bits to `width`."""
    while source < width:
        nodes = cat(g, np.broadcast_to(g.constant(source, 0), nodes.shape), nodes, source * 2)
        source *= 2
    return nodes


def select(g: Graph, condition: Ids, yes: Ids, no: Ids, width: int) -> Ids:
    """`condition ? yes : no`; one branch where both are equal or the condition is known; never on a negation."""
    inverse = g.op[condition] == g.op_id("not.i1", 1, 1)
    if inverse.any():
        condition = np.where(inverse, g.a[condition], condition)
        yes, no = np.where(inverse, no, yes), np.where(inverse, yes, no)
    out = yes.copy()
    differ = yes != no
    known = differ & const_mask(g, condition)
    out[known & (g.imm[condition] == 0)] = no[known & (g.imm[condition] == 0)]
    rest = differ & ~known
    if rest.any():
        out[rest] = g.apply(g.sels[width], condition[rest], yes[rest], no[rest])
    return out
