"""Building nodes: constants folded, and identities of bits applied that hold for every content.

Floating point: only the order of commutative operands (`Graph.apply`) and folding of constants by exact arithmetic;
nothing is reassociated, and `x * 1` stays, because it makes a NaN canonical. Integers: identities of the ring and of
bit strings.
"""

from __future__ import annotations

import numpy as np
from foldproof.gpu.symbolic.bitview import cat, const_mask, extract, low_mask, select, zero_extend
from foldproof.gpu.symbolic.graph import Bits, Graph, Ids, Mask
from foldproof.gpu.symbolic.integer_primitives import Primitive
from foldproof.gpu.symbolic.lanes import Value, nodes_of, value_of
from foldproof.gpu.symbolic.primitives import primitive


def op_of(g: Graph, prim: Primitive) -> int:
    """The graph's number of a primitive."""
    return g.op_id(prim.name, prim.width, prim.arity, commutative=prim.commutative)


def compute(g: Graph, prim: Primitive, args: list[Value], widths: list[int], *, fold: bool = True) -> Value:
    """The value of an operation over lanes: concrete lanes by its function, others as nodes."""
    folds = fold and prim.function is not None and prim.exact
    if folds and all(arg.node is None for arg in args):
        return Value(prim.function(*(arg.bits for arg in args)))  # type: ignore[misc]
    nodes = [nodes_of(g, arg, width) for arg, width in zip(args, widths, strict=True)]
    return value_of(g, build(g, prim, nodes, folds=folds))


def build(g: Graph, prim: Primitive, nodes: list[Ids], *, folds: bool = True) -> Ids:
    """Nodes of an operation over nodes."""
    out = np.zeros(len(nodes[0]), np.int32)
    if folds and prim.function is not None and prim.exact:
        constant = np.logical_and.reduce([const_mask(g, n) for n in nodes])
        if constant.any():
            values = prim.function(*(g.imm[n[constant]] for n in nodes))
            out[constant] = g.constant(prim.width, values)
    if prim.arity == 2 and prim.name[-1].isdigit() and prim.name.rpartition(".")[2][0] in "isu":
        identities(g, prim, nodes[0], nodes[1], out)
    if prim.name == "not.i1":
        twice = g.op[nodes[0]] == op_of(g, prim)
        out[twice] = g.a[nodes[0][twice]]
    rest = out == 0
    if rest.any():
        a, b, c = ([n[rest] for n in nodes] + [None, None])[:3]
        assert a is not None
        out[rest] = g.apply(op_of(g, prim), a, b, c)
    return out


def identities(g: Graph, prim: Primitive, a: Ids, b: Ids, out: Ids) -> None:  # noqa: C901, PLR0912  # a table of rules
    """Fill `out`, where still 0, by identities of integer operations; `a` and `b` are the operands."""
    op = prim.name.partition(".")[0]
    width = prim.width if op not in ("lt", "le", "eq", "ne") else int(g.width[a[0]])
    for x, y in ((a, b), (b, a)) if prim.commutative else ((a, b),):
        constant = const_mask(g, y) & (out == 0)
        value = np.where(constant, g.imm[y], np.uint64(0))
        zero, ones = constant & (value == 0), constant & (value == low_mask(width))
        if op in ("add", "sub", "or", "xor", "shl", "shr"):
            _put(out, zero, x)
        if op == "and":
            _put(out, ones, x)
            _zero(g, out, zero, width)
            _masks(g, x, value, constant, width, out)
        if op == "or":
            _put(out, ones, y)
        if op in ("mul", "div"):
            _put(out, constant & (value == 1), x)
        if op == "mul":
            _zero(g, out, zero, width)
        if op == "rem":
            _zero(g, out, constant & (value == 1), width)
        if op in ("shl", "shr") and width > 8:
            _shifts(g, prim, x, value, constant, width, out)
        if op in ("add", "and", "or", "xor", "mul"):
            _into_choice(g, prim, x, y, constant, out)
    same = (a == b) & (out == 0)
    if same.any():
        if op in ("and", "or", "min", "max"):
            _put(out, same, a)
        if op in ("xor", "sub"):
            _zero(g, out, same, width)
        if op in ("lt", "ne", "eq", "le"):
            out[same] = g.constant(1, 0 if op in ("lt", "ne") else 1)[0]
    if op == "or" and width > 8:
        _disjoint(g, a, b, width, out)


def _into_choice(g: Graph, prim: Primitive, x: Ids, y: Ids, constant: Mask, out: Ids) -> None:  # noqa: PLR0913, PLR0917  # as _masks
    """An operation of a constant with a choice between constants is a choice between constants."""
    chosen = constant & (g.op[x] == g.sels[prim.width]) & (out == 0)
    rows = np.array([row for row in np.flatnonzero(chosen).tolist() if _is_choice(g, int(x[row]))], np.int64)
    if len(rows):
        condition, yes, no = (column[x[rows]] for column in (g.a, g.b, g.c))
        out[rows] = select(g, condition, build(g, prim, [yes, y[rows]]), build(g, prim, [no, y[rows]]), prim.width)


def _is_choice(g: Graph, node: int, depth: int = 8) -> bool:
    kind = int(g.op[node])
    if kind in g.consts.values():
        return True
    return depth > 0 and kind in g.sels.values() and all(_is_choice(g, int(c[node]), depth - 1) for c in (g.b, g.c))


def _put(out: Ids, where: Mask, nodes: Ids) -> None:
    where = where & (out == 0)
    out[where] = nodes[where]


def _zero(g: Graph, out: Ids, where: Mask, width: int) -> None:
    out[where & (out == 0)] = g.constant(width, 0)[0]


def _masks(g: Graph, x: Ids, value: Bits, constant: Mask, width: int, out: Ids) -> None:  # noqa: PLR0913, PLR0917  # columns
    """Masks: x & 0xff..00 and x & 0x00..ff are a half of x beside zeros."""
    if width < 16:
        return
    half = width // 2
    for low, wanted in ((0, low_mask(half)), (half, low_mask(width) ^ low_mask(half))):
        hit = constant & (value == wanted) & (out == 0)
        if hit.any():
            part = extract(g, x[hit], low, half)
            zeros = np.broadcast_to(g.constant(half, 0), part.shape)
            out[hit] = cat(g, part, zeros, width) if low else cat(g, zeros, part, width)
    hit = constant & (value == low_mask(8)) & (out == 0)
    if hit.any():
        out[hit] = zero_extend(g, extract(g, x[hit], 0, 8), 8, width)


def _shifts(  # noqa: PLR0913, PLR0917  # as _masks
    g: Graph, prim: Primitive, x: Ids, value: Bits, constant: Mask, width: int, out: Ids
) -> None:
    """A shift by half the width moves a half beside zeros; one by the width or more leaves zeros."""
    half = width // 2
    if prim.name.startswith("shr.s"):
        return
    _zero(g, out, constant & (value >= width), width)
    hit = constant & (value == half) & (out == 0)
    if hit.any():
        zeros = np.broadcast_to(g.constant(half, 0), int(hit.sum()))
        if prim.name.startswith("shl"):
            out[hit] = cat(g, extract(g, x[hit], 0, half), zeros, width)
        else:
            out[hit] = cat(g, zeros, extract(g, x[hit], half, half), width)


def _disjoint(g: Graph, a: Ids, b: Ids, width: int, out: Ids) -> None:
    """A sum of bits: x | y where, half by half, one of them is zero, is the other halves put together."""
    half = width // 2
    both = (g.op[a] == g.cats[width]) | const_mask(g, a)
    both &= ((g.op[b] == g.cats[width]) | const_mask(g, b)) & (out == 0)
    if not both.any():
        return
    rows = np.flatnonzero(both)
    zero = g.constant(half, 0)[0]
    picked: list[Ids] = []
    fits = np.ones(len(rows), np.bool_)
    for low in (0, half):
        one, other = (extract(g, n[rows], low, half) for n in (a, b))
        fits &= (one == zero) | (other == zero)
        picked.append(np.where(one == zero, other, one))
    out[rows[fits]] = cat(g, picked[1][fits], picked[0][fits], width)


def named(name: str) -> Primitive:
    """The primitive of a name that is known to exist."""
    found = primitive(name)
    assert found is not None, name
    return found
