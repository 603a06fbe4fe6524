"""Evaluating a graph on concrete inputs, operation by operation, with the rounding that each one has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from foldproof.gpu.symbolic import softfloat as sf
from foldproof.gpu.symbolic.bitview import low_mask
from foldproof.gpu.symbolic.graph import Bits, Graph, Ids, Mask
from foldproof.gpu.symbolic.primitives import primitive

INPUTS = {"bf16": ("bf16", 2), "f16": ("f16", 2), "tf32": ("f32", 1)}
"""Format and elements per 32-bit word of the operands of a tensor core operation that is modelled."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Bits of each node; `known` where they could be computed, `exact` where no model was used."""

    bits: Bits
    known: Mask
    exact: Mask


def evaluate(g: Graph, cone: Ids, leaves: Ids, values: Bits, *, fuse: bool = False) -> Evaluation:
    """Evaluate the nodes of `cone` (closed under operands) with `values` for `leaves`.

    `fuse`: every sum that ptxas may contract with a product is contracted, as far as this model knows.
    """
    bits = np.zeros(g.count, np.uint64)
    known, exact = np.zeros(g.count, np.bool_), np.zeros(g.count, np.bool_)
    bits[leaves] = values
    known[leaves] = exact[leaves] = True
    known[0] = exact[0] = True
    order = np.lexsort((g.op[cone], g.level[cone]))
    nodes = cone[order]
    key = g.level[nodes].astype(np.int64) << 16 | g.op[nodes]
    for group in np.split(nodes, np.flatnonzero(np.diff(key)) + 1) if len(nodes) else []:
        op = g.ops[int(g.op[group[0]])]
        a, b, c = g.a[group], g.b[group], g.c[group]
        if op.name.startswith("const"):
            bits[group], known[group], exact[group] = g.imm[group], True, True
            continue
        if op.name.startswith("input"):
            continue
        ready = known[a] & known[b] & known[c]
        known[group] = ready
        exact[group] = exact[a] & exact[b] & exact[c]
        if op.name.startswith("pair"):
            continue
        result = _one(g, op.name, op.width, bits, group, fuse=fuse)
        if result is None:
            known[group] = False
            continue
        bits[group], sure = result
        exact[group] &= sure
    return Evaluation(bits, known, exact)


def _one(g: Graph, name: str, width: int, bits: Bits, group: Ids, *, fuse: bool) -> tuple[Bits, bool] | None:
    a, b, c = bits[g.a[group]], bits[g.b[group]], bits[g.c[group]]
    if name.startswith("extract"):
        return (a >> g.imm[group]) & low_mask(width), True
    if name.startswith("cat"):
        return (a << np.uint64(width // 2)) | b, True
    if name.startswith("sel"):
        return np.where(a != 0, b, c), True
    if name.startswith(("mma.", "wgmma.")):
        return _tensor(g, name, bits, group)
    prim = primitive(name)
    if prim is None or prim.function is None:
        return None
    if fuse and name in ("add.f32", "sub.f32"):
        return _fused(g, name, bits, group), True
    return prim.function(*(a, b, c)[: prim.arity]), prim.exact


def _fused(g: Graph, name: str, bits: Bits, group: Ids) -> Bits:
    """Sums of fp32, contracted with a product that is one of their operands (the first that is)."""
    fmt = sf.FORMATS["f32"]
    product = g.op_id("mul.f32", 32, 2, commutative=True)
    left, right = g.a[group], g.b[group]
    minus = -1.0 if name.startswith("sub") else 1.0
    x, y = sf.decode(fmt, bits[left]), sf.decode(fmt, bits[right])
    out = sf.encode(fmt, sf.add(x, minus * y))
    for node, rest, factor, sign in ((left, y, 1.0, minus), (right, x, minus, 1.0)):
        hit = g.op[node] == product
        if hit.any():
            u, v = (sf.decode(fmt, bits[column[node[hit]]]) for column in (g.a, g.b))
            out[hit] = sf.encode(fmt, sf.fma(u * factor, v, rest[hit] * sign))
            break
    return out


def _tensor(g: Graph, name: str, bits: Bits, group: Ids) -> tuple[Bits, bool] | None:
    """A model of a tensor core: products and sum in float64, rounded once. The hardware rounds otherwise."""
    words = name.split(".")
    known = INPUTS.get(words[3])
    if known is None or words[2] != "f32":
        return None
    fmt, per = sf.FORMATS[known[0]], known[1]
    total = sf.decode(sf.FORMATS["f32"], bits[g.a[group]])
    cache: dict[int, Bits] = {}
    with np.errstate(all="ignore"):
        rows, columns = (_sequence(g, bits, column[group], cache) for column in (g.b, g.c))
        for low in range(0, 32, 32 // per):
            u, v = ((w >> np.uint64(low)) & low_mask(32 // per) for w in (rows, columns))
            total = total + (sf.decode(fmt, u.ravel()) * sf.decode(fmt, v.ravel())).reshape(u.shape).sum(axis=1)
    return sf.encode(sf.FORMATS["f32"], total), False


def _sequence(g: Graph, bits: Bits, nodes: Ids, cache: dict[int, Bits]) -> Bits:
    """The words of a sequence of nodes, a row each."""

    def words(node: int) -> list[int]:
        if int(g.op[node]) != g.pair:
            return [node]
        return [w for child in (int(g.a[node]), int(g.b[node]), int(g.c[node])) if child for w in words(child)]

    for node in np.unique(nodes).tolist():
        if node not in cache:
            cache[node] = bits[np.array(words(node), np.int32)]
    return np.stack([cache[n] for n in nodes.tolist()])
