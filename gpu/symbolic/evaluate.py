"""Evaluating a graph on concrete inputs, many trials side by side, with the rounding that each operation has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from foldproof.gpu.symbolic import softfloat as sf
from foldproof.gpu.symbolic.bitview import low_mask
from foldproof.gpu.symbolic.graph import Bits, Graph, Ids, Mask
from foldproof.gpu.symbolic.primitives import primitive
from numpy.typing import NDArray

INPUTS = {"bf16": ("bf16", 2), "f16": ("f16", 2), "tf32": ("f32", 1)}
"""Format and elements per 32-bit word of the operands of a tensor core operation that is modelled."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Bits of each node of a cone, a column a trial; `known` where they could be computed, `exact` without a model."""

    cone: Ids
    bits: Bits
    known: Mask
    exact: Mask

    def rows(self, nodes: Ids) -> NDArray[np.int64]:
        """The rows of nodes of the cone."""
        return np.searchsorted(self.cone, nodes)


def evaluate(g: Graph, cone: Ids, leaves: Ids, values: Bits, *, fuse: bool = False) -> Evaluation:
    """Evaluate the nodes of `cone` (ascending, closed under operands) with `values` for `leaves`, a column a trial.

    `fuse`: every fp32 sum that ptxas may contract with a product is contracted.
    """
    n = len(cone)
    bits = np.zeros((n + 1, values.shape[1]), np.uint64)
    known, exact = np.zeros(n + 1, np.bool_), np.zeros(n + 1, np.bool_)
    known[n] = exact[n] = True
    result = Evaluation(cone, bits, known, exact)
    at = result.rows(leaves)
    bits[at] = values
    known[at] = exact[at] = True
    operands = [np.where(c[cone] == 0, n, np.searchsorted(cone, c[cone])) for c in (g.a, g.b, g.c)]
    order = np.lexsort((g.op[cone], g.level[cone]))
    key = g.level[cone[order]].astype(np.int64) << 16 | g.op[cone[order]]
    for group in np.split(order, np.flatnonzero(np.diff(key)) + 1) if n else []:
        op = g.ops[int(g.op[cone[group[0]]])]
        if op.name.startswith("const"):
            bits[group], known[group], exact[group] = g.imm[cone[group]][:, None], True, True
            continue
        if op.name.startswith("input"):
            continue
        a, b, c = (column[group] for column in operands)
        known[group] = known[a] & known[b] & known[c]
        exact[group] = exact[a] & exact[b] & exact[c]
        if op.name.startswith("pair"):
            continue
        found = _one(g, result, op.name, op.width, cone[group], (a, b, c), fuse=fuse)
        if found is None:
            known[group] = False
        else:
            bits[group] = found[0]
            exact[group] &= found[1]
    return result


Rows = NDArray[np.int64]


def _one(  # noqa: PLR0913, PLR0917  # one group of nodes
    g: Graph, run: Evaluation, name: str, width: int, nodes: Ids, operands: tuple[Rows, Rows, Rows], *, fuse: bool
) -> tuple[Bits, bool] | None:
    a, b, c = (run.bits[rows] for rows in operands)
    if name.startswith("extract"):
        return (a >> g.imm[nodes][:, None]) & low_mask(width), True
    if name.startswith("cat"):
        return (a << np.uint64(width // 2)) | b, True
    if name.startswith("sel"):
        return np.where(a != 0, b, c), True
    if name.startswith(("mma.", "wgmma.")):
        return _tensor(g, run, name, a, nodes)
    prim = primitive(name)
    if prim is None or prim.function is None:
        return None
    if fuse and name in ("add.f32", "sub.f32"):
        return _fused(g, run, name, nodes), True
    return prim.function(*(a, b, c)[: prim.arity]), prim.exact


def may_fuse(g: Graph, cone: Ids) -> bool:
    """Whether contracting changes anything below some roots."""
    product = g.op_id("mul.f32", 32, 2, commutative=True)
    sums = cone[np.isin(g.op[cone], [g.op_id("add.f32", 32, 2, commutative=True), g.op_id("sub.f32", 32, 2)])]
    return bool((g.op[g.a[sums]] == product).any() or (g.op[g.b[sums]] == product).any())


def _fused(g: Graph, run: Evaluation, name: str, nodes: Ids) -> Bits:
    """Sums of fp32, each contracted with an operand that is a product without suffix, the first if both are."""
    fmt = sf.FORMATS["f32"]
    product = g.op_id("mul.f32", 32, 2, commutative=True)
    left, right = g.a[nodes], g.b[nodes]
    sign = -1.0 if name.startswith("sub") else 1.0
    x, y = (sf.decode(fmt, run.bits[run.rows(side)]) for side in (left, right))
    out = sf.encode(fmt, sf.add(x, sign * y))
    first = g.op[left] == product
    for hit, node, rest, factor, outer in (
        (first, left, y, 1.0, sign),
        (~first & (g.op[right] == product), right, x, sign, 1.0),
    ):
        if hit.any():
            u, v = (sf.decode(fmt, run.bits[run.rows(column[node[hit]])]) for column in (g.a, g.b))
            out[hit] = sf.encode(fmt, sf.fma(u * factor, v, rest[hit] * outer))
    return out


def _tensor(g: Graph, run: Evaluation, name: str, total: Bits, nodes: Ids) -> tuple[Bits, bool] | None:
    """A model of a tensor core: products and sum in float64, rounded once. The hardware rounds otherwise."""
    words = name.split(".")
    known = INPUTS.get(words[3])
    if known is None or words[2] != "f32":
        return None
    fmt, per = sf.FORMATS[known[0]], known[1]
    out = sf.decode(sf.FORMATS["f32"], total)
    rows, columns = (_sequences(g, run, column[nodes]) for column in (g.b, g.c))
    with np.errstate(all="ignore"):
        for k in range(rows.shape[1]):
            one, other = run.bits[rows[:, k]], run.bits[columns[:, k]]
            for low in range(0, 32, 32 // per):
                u, v = ((w >> np.uint64(low)) & low_mask(32 // per) for w in (one, other))
                out = out + sf.decode(fmt, u) * sf.decode(fmt, v)
    return sf.encode(sf.FORMATS["f32"], out), False


def _sequences(g: Graph, run: Evaluation, nodes: Ids) -> Rows:
    """The rows of the words of sequences, a row a sequence."""

    def words(node: int) -> list[int]:
        if int(g.op[node]) != g.pair:
            return [node]
        return [w for child in (int(g.a[node]), int(g.b[node]), int(g.c[node])) if child for w in words(child)]

    unique, where = np.unique(nodes, return_inverse=True)
    return run.rows(np.array([words(n) for n in unique.tolist()], np.int32))[where]
