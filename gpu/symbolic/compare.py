"""Two executions compared: the verdict ladder, from identical code down to unknown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from foldproof.gpu.symbolic.execute import Run
from foldproof.gpu.symbolic.forms import Forms
from foldproof.gpu.symbolic.graph import Graph, Ids, Mask
from foldproof.gpu.symbolic.lanes import Stop
from foldproof.gpu.symbolic.memory import Region
from foldproof.gpu.symbolic.normal import Domain, Normaliser
from numpy.typing import NDArray


class Level(StrEnum):
    """How much a verdict says, strongest first; `UNSTABLE`: a variant may differ from itself."""

    IDENTICAL = "identical code"
    PROVED = "proved for every bit pattern"
    PROVED_NO_NAN = "proved for inputs without NaN"
    PROVED_MODULO = "proved modulo contraction"
    DIFFERS = "differs"
    DIFFERS_STRUCTURE = "differs in structure, no witness"
    UNSTABLE = "unstable"
    UNKNOWN = "unknown"

    @property
    def is_equal(self) -> bool:
        """Whether the verdict claims equal bytes."""
        return self in (Level.IDENTICAL, Level.PROVED, Level.PROVED_NO_NAN, Level.PROVED_MODULO)

    @property
    def is_decided(self) -> bool:
        """Whether the verdict settles the pair."""
        return self not in (Level.UNKNOWN, Level.DIFFERS_STRUCTURE)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the graphs say: the domain on which outputs are the same node (None: they are not), and where not.

    `address`, `first`, `second` are the outputs that differ and their nodes; `rules` what was used beyond identity;
    `contractible` whether ptxas may fuse something in either.
    """

    domain: Domain | None
    rules: tuple[str, ...]
    contractible: bool
    address: NDArray[np.int64]
    first: Ids
    second: Ids
    width: NDArray[np.int64]
    why: str = ""


class Comparer:
    """Compares runs in one graph; normal forms are kept between comparisons."""

    def __init__(self, g: Graph, regions: tuple[Region, ...]) -> None:
        self.g, self.regions = g, regions
        forms = Forms()
        self.every = Normaliser(g, regions, Domain.EVERY, forms)
        self.no_nan = Normaliser(g, regions, Domain.NO_NAN, forms)
        self.narrowed = False
        self.narrowed_by: set[str] = set()
        g.agree = self.agree

    def agree(self, a: Ids, b: Ids) -> Mask:
        """Whether contents that two threads write to one place are the same; narrows the domain where needed."""
        same: Mask = self.every(a) == self.every(b)
        if not same.all():
            rest = ~same
            same[rest] = self.no_nan(a[rest]) == self.no_nan(b[rest])
            if same[rest].any():
                self.narrowed = True
                self.narrowed_by |= self.no_nan.used
        return same

    def compare(self, first: Run, second: Run, *, narrowed: bool) -> Comparison:
        """Compare final memory and effects. Raises `Stop` where an output depends on something undefined."""
        self.every.used.clear()
        self.no_nan.used.clear()
        addresses, ones, others, widths = self._outputs(first, second)
        roots = np.concatenate(
            [ones, others, *(n for run in (first, second) for e in run.effects for n in (e.address, e.value))]
        )
        cone = self.g.cone(roots)
        undefined = np.isin(self.g.op[cone], list(self.g.undefs.values()))
        if undefined.any():
            raise Stop("an output depends on a register or shared memory that nothing was written to")
        contractible = may_contract(self.g, cone)
        rules: set[str] = {"commute"} | (self.narrowed_by if narrowed else set())
        domain = Domain.NO_NAN if narrowed else Domain.EVERY
        differs = ones != others
        if not self._effects(first, second, self.every if not narrowed else self.no_nan):
            return Comparison(
                None, (), contractible, addresses[:0], ones[:0], others[:0], widths[:0], "the atomics differ"
            )
        if differs.any() and not narrowed:
            rows = np.flatnonzero(differs)
            differs[rows] = self.every(ones[rows]) != self.every(others[rows])
            rules |= self.every.used
        if differs.any():
            rows = np.flatnonzero(differs)
            differs[rows] = self.no_nan(ones[rows]) != self.no_nan(others[rows])
            domain = Domain.NO_NAN
            rules |= self.no_nan.used
        rows = np.flatnonzero(differs)
        return Comparison(
            None if len(rows) else domain,
            tuple(sorted(rules)),
            contractible,
            addresses[rows],
            ones[rows],
            others[rows],
            widths[rows],
        )

    def _outputs(self, first: Run, second: Run) -> tuple[NDArray[np.int64], Ids, Ids, NDArray[np.int64]]:
        """Every element that either wrote: its address, its node in both, its width in bits."""
        written = np.union1d(first.memory.written(), second.memory.written())
        parts: list[tuple[NDArray[np.int64], Ids, Ids, NDArray[np.int64]]] = []
        for region in self.regions:
            inside = written[(written >= region.start) & (written < region.stop)]
            at = np.unique(region.start + (inside - region.start) // region.elem * region.elem)
            if len(at):
                nodes = [run.memory.final(at, region.elem) for run in (first, second)]
                parts.append((at, nodes[0], nodes[1], np.full(len(at), 8 * region.elem, np.int64)))
        if not parts:
            empty, none = np.zeros(0, np.int64), np.zeros(0, np.int32)
            return empty, none, none, empty
        columns = list(zip(*parts, strict=True))
        return (
            np.concatenate(columns[0]),
            np.concatenate(columns[1]),
            np.concatenate(columns[2]),
            np.concatenate(columns[3]),
        )

    def _effects(self, first: Run, second: Run, normal: Normaliser) -> bool:
        if not first.effects and not second.effects:
            return True
        tables = []
        for run in (first, second):
            rows: list[tuple[str, int, int]] = []
            for effect in run.effects:
                pairs = zip(normal(effect.address).tolist(), normal(effect.value).tolist(), strict=True)
                rows += [(effect.op, a, v) for a, v in pairs]
            tables.append(sorted(rows))
        self._effects_apart(first)
        self._effects_apart(second)
        return tables[0] == tables[1]

    def _effects_apart(self, run: Run) -> None:
        """Stop unless atomics and plain accesses use different buffers, judged by the base of each address."""
        bases = set()
        for effect in run.effects:
            for node in np.unique(self.every(effect.address)).tolist():
                constant = int(self.g.imm[node]) if int(self.g.op[node]) in self.g.consts.values() else None
                if constant is None:
                    form = self.every.forms.sums.get(node)
                    constant = form[2] if form is not None else None
                region = next((r for r in self.regions if constant is not None and r.start <= constant < r.stop), None)
                if region is None:
                    raise Stop("an atomic at an address whose buffer is not known")
                bases.add(region)
        touched = [read.address for read in run.memory.reads] + [run.memory.written()]
        for region in bases:
            if any(((at >= region.start) & (at < region.stop)).any() for at in touched):
                raise Stop(f"{region.name} is used by atomics and by plain accesses")


def outputs_of(run: Run, regions: tuple[Region, ...], block: int | None = None) -> Ids:
    """The nodes of every element that a run, or one block of it, wrote."""
    written = run.memory.written()
    if block is not None:
        written = written[run.memory.blocks_at(written) == block]
    parts = [np.zeros(0, np.int32)]
    for region in regions:
        inside = written[(written >= region.start) & (written < region.stop)]
        at = np.unique(region.start + (inside - region.start) // region.elem * region.elem)
        if len(at):
            parts.append(run.memory.final(at, region.elem))
    return np.concatenate(parts)


PRODUCTS = ("mul", "div", "ex2", "rsqrt", "rcp", "sqrt", "lg2", "sin", "cos", "tanh")


def may_contract(g: Graph, cone: Ids) -> bool:
    """Whether some `add` or `sub` without rounding suffix takes, perhaps negated or chosen, a product without one.

    Approximate operations count as products: ptxas expands them, and an expansion may end in a multiplication.
    """
    names = [op.name.split(".") for op in g.ops]
    loose = np.array([not {"rn", "rz", "rm", "rp"} & set(w) and w[-1] in ("f32", "bf16", "f16", "f64") for w in names])
    product = np.array([w[0] in PRODUCTS for w in names]) & loose
    total = np.array([w[0] in ("add", "sub") for w in names]) & loose
    through = np.array([w[0] in ("neg", "abs") or w[0].startswith("sel") for w in names])
    kinds = g.op[cone]
    carries = np.zeros(g.count, np.bool_)
    carries[cone[product[kinds]]] = True
    passing = cone[through[kinds]]
    while len(passing):
        more = passing[~carries[passing]]
        more = more[carries[g.a[more]] | carries[g.b[more]] | carries[g.c[more]]]
        if not len(more):
            break
        carries[more] = True
    sums = cone[total[kinds]]
    return bool((carries[g.a[sums]] | carries[g.b[sums]]).any())
