"""Why two variants differ, for the author of the kernel: the smallest output that differs and where it parts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from foldproof.gpu.symbolic.compare import Comparer, Comparison
from foldproof.gpu.symbolic.graph import Graph
from foldproof.gpu.symbolic.memory import Region
from foldproof.impl.capture import Variant

DEPTH = 4
"""Levels of an expression that are written out."""
TREE = 9
"""Inputs from which a tree of one commutative operation is shown by its order instead."""


class Explanation(msgspec.Struct, frozen=True):
    """Where two graphs part.

    `output` names the element; `first` and `second` are the expressions at the first place that differs, from above;
    `lines` the source lines (`file:line`) of both; `sizes` how many nodes each output takes; `cause` says which
    specialisation.
    """

    output: str
    first: str
    second: str
    lines: tuple[str, str]
    sizes: tuple[int, int]
    cause: str


def specialisations(first: Variant, second: Variant) -> tuple[str, ...]:
    """What two variants were compiled for differently: folds, div16, constants, warps and other options."""
    found = []
    one, other = ({p.name: p for p in v.params} for v in (first, second))
    for name in dict.fromkeys([*one, *other]):
        if (name in one) != (name in other):
            found.append(f"fold of {name}")
        elif one[name].div16 != other[name].div16:
            found.append(f"div16 of {name}")
    shared = set(first.consts) & set(second.consts)
    found += [f"constant {n}" for n in sorted(shared) if first.consts[n] != second.consts[n]]
    if first.num_warps != second.num_warps:
        found.append(f"{first.num_warps} against {second.num_warps} warps")
    if first.num_stages != second.num_stages:
        found.append(f"{first.num_stages} against {second.num_stages} stages")
    if first.enable_fp_fusion != second.enable_fp_fusion:
        found.append("FP fusion")
    return tuple(found)


def explain(comparer: Comparer, result: Comparison, cause: tuple[str, ...]) -> Explanation:
    """The explanation of the output with the fewest operations; `cause` is what the variants were specialised for."""
    g = comparer.g
    depth = np.maximum(g.level[result.first], g.level[result.second])
    at = int(np.argmin(depth))
    roots = int(result.first[at]), int(result.second[at])
    sizes = [len(g.cone(np.array([root], np.int32))) for root in roots]
    pair = _part(comparer, *roots)
    lines = [_source(g, node) or _source(g, root) for node, root in zip(pair, roots, strict=True)]
    name = namer(g, comparer.regions)
    shown = [_shown(g, node, name) for node in pair]
    said = " and ".join(cause) if cause else "no specialisation differs: the sources or the compiler do"
    place = _place(comparer.regions, int(result.address[at]))
    return Explanation(place, shown[0], shown[1], (lines[0], lines[1]), (sizes[0], sizes[1]), said)


def _part(comparer: Comparer, one: int, other: int) -> tuple[int, int]:
    """Follow operations that are alike down to the first place where they are not."""
    g, normal = comparer.g, comparer.no_nan
    while g.op[one] == g.op[other] and g.imm[one] == g.imm[other]:
        sides = [[int(column[node]) for column in (g.a, g.b, g.c)] for node in (one, other)]
        (a, b, _), (x, y, _) = ([_normal(normal, n) if n else 0 for n in side] for side in sides)
        if g.ops[int(g.op[one])].commutative and (a == y or b == x):
            sides[1][0], sides[1][1] = sides[1][1], sides[1][0]
        apart = [(u, v) for u, v in zip(*sides, strict=True) if u and v and _normal(normal, u) != _normal(normal, v)]
        if len(apart) != 1:
            break
        one, other = apart[0]
    return one, other


def _shown(g: Graph, node: int, name: Callable[[int], str]) -> str:
    """A node as an expression, or a tree of one operation by the order in which its first input meets the rest."""
    op = int(g.op[node])
    inputs = _leaves(g, node)
    if not g.ops[op].commutative or len(inputs) < TREE:
        return render(g, node, name)
    first, met = inputs[0], []
    while int(g.op[node]) == op:
        a, b = int(g.a[node]), int(g.b[node])
        mine, partner = (a, b) if first in _leaves(g, a) else (b, a)
        met.append(partner)
        node = mine
    steps = [render(g, node, name, 2) if len(_leaves(g, node)) < TREE else f"({len(_leaves(g, node))} inputs)"]
    for partner in reversed(met):
        below = _leaves(g, partner)
        few = len(below) <= 2 and g.level[partner] < 4
        steps.append(render(g, partner, name, 2) if few else f"({len(below)} inputs from {name(below[0])})")
    return f"tree of {g.ops[op].name}: " + " + ".join(steps)


def _leaves(g: Graph, node: int) -> list[int]:
    """The inputs below a node, by address; what it takes through an extremum (a softmax its maximum) is left out."""
    extrema = [number for number, op in enumerate(g.ops) if op.name.startswith(("max.", "min."))]
    hidden = np.isin(g.op[: g.count], [number for number in extrema if number != int(g.op[node])])
    cone = g.cone(np.array([node], np.int32), hidden)
    found = cone[np.isin(g.op[cone], list(g.leaves.values()))]
    return [int(n) for n in found[np.argsort(g.imm[found])]]


def _normal(normal: Callable[[np.ndarray], np.ndarray], node: int) -> int:
    return int(normal(np.array([node], np.int32))[0])


def _source(g: Graph, node: int) -> str:
    """The source line that made a node, or else the nearest one below it that has one; empty where none has."""
    cone = g.cone(np.array([node], np.int32))[::-1]
    return next((g.places[int(g.place[n])] for n in cone if g.place[n]), "")


def _place(regions: tuple[Region, ...], address: int) -> str:
    for region in regions:
        if region.start <= address < region.stop:
            return f"{region.name}[{(address - region.start) // region.elem}]"
    return hex(address)


def namer(g: Graph, regions: tuple[Region, ...]) -> Callable[[int], str]:
    """Names of leaves: inputs as `X[3]`, constants as hex."""

    def name(node: int) -> str:
        op = g.name(node)
        if op.startswith("input"):
            return _place(regions, int(g.imm[node]))
        return f"{int(g.imm[node]):#x}" if op.startswith("const") else op

    return name


def render(g: Graph, node: int, name: Callable[[int], str], depth: int = DEPTH) -> str:
    """A node as an expression; below `depth` operations it is cut to its number of inputs."""
    op = g.ops[int(g.op[node])]
    if op.arity == 0:
        return name(node)
    if depth == 0:
        cone = g.cone(np.array([node], np.int32))
        inputs = int(np.isin(g.op[cone], list(g.leaves.values())).sum())
        return f"({inputs} inputs)"
    children = [int(column[node]) for column in (g.a, g.b, g.c)[: op.arity]]
    inner = ", ".join(render(g, child, name, depth - 1) for child in children if child)
    low = f", bit {int(g.imm[node])}" if op.name.startswith("extract") else ""
    return f"{op.name}({inner}{low})"
