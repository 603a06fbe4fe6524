"""Two executions compared: the verdict ladder, from identical code down to unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from foldproof.gpu.symbolic.execute import Run
from foldproof.gpu.symbolic.forms import Forms
from foldproof.gpu.symbolic.graph import Graph, Ids, Mask
from foldproof.gpu.symbolic.lanes import Stop
from foldproof.gpu.symbolic.memory import Region
from foldproof.gpu.symbolic.normal import RULES, Domain, Normaliser
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


class Traced(Normaliser):
    """A normaliser that keeps beside each node which rules were used on it: a form that is kept uses none again."""

    _marks = np.zeros(0, np.int64)

    def rules(self, *roots: Ids) -> set[str]:
        """The rules that the normal forms of roots rest on; what was used on one of several alike counts for all."""
        marks = int(np.bitwise_or.reduce(self._marks[self.g.cone(np.concatenate(roots))], initial=0))
        return {rule for place, rule in enumerate(RULES) if marks >> place & 1}

    def _group(self, nodes: Ids) -> Ids:
        self.used.clear()
        result = super()._group(nodes)
        if len(self._marks) < len(self.to):
            self._marks = np.concatenate([self._marks, np.zeros(len(self.to) - len(self._marks), np.int64)])
        self._marks[nodes] = sum(1 << place for place, rule in enumerate(RULES) if rule in self.used)
        return result


class Comparer:
    """Compares runs in one graph; normal forms are kept between comparisons.

    `narrowed`: some run is one only for inputs without NaN, since threads of it agree on no others.
    """

    def __init__(self, g: Graph, regions: tuple[Region, ...]) -> None:
        self.g, self.regions = g, regions
        forms = Forms()
        self.every = Traced(g, regions, Domain.EVERY, forms)
        self.no_nan = Traced(g, regions, Domain.NO_NAN, forms)
        self.narrowed = False
        self.agreed_by: dict[Domain, set[str]] = {domain: set() for domain in Domain}
        g.agree = self.agree

    def agree(self, a: Ids, b: Ids) -> Mask:
        """Whether contents that two threads write to one place are the same; narrows the domain where needed."""
        same: Mask = self.every(a) == self.every(b)
        self.agreed_by[Domain.EVERY] |= self.every.rules(a[same], b[same])
        rest = np.flatnonzero(~same)
        same[rest] = self.no_nan(a[rest]) == self.no_nan(b[rest])
        narrow = rest[same[rest]]
        if len(narrow):
            self.narrowed = True
            self.agreed_by[Domain.NO_NAN] |= self.no_nan.rules(a[narrow], b[narrow])
        return same

    def compare(self, first: Run, second: Run, *, narrowed: bool) -> Comparison:
        """Compare final memory and effects. Raises `Stop` where an output depends on something undefined."""
        addresses, ones, others, widths = self._outputs(first, second)
        roots = np.concatenate(
            [ones, others, *(n for run in (first, second) for e in run.effects for n in (e.address, e.value))]
        )
        cone = self.g.cone(roots)
        undefined = np.isin(self.g.op[cone], list(self.g.undefs.values()))
        if undefined.any():
            raise Stop("an output depends on a register or shared memory that nothing was written to")
        contractible = may_contract(self.g, cone)
        domain, normal = (Domain.NO_NAN, self.no_nan) if narrowed else (Domain.EVERY, self.every)
        rules = {"commute"} | self.agreed_by[Domain.EVERY] | self.agreed_by[domain]
        for run in (first, second):
            self._effects_apart(run)
        if _effects(first, normal) != _effects(second, normal):
            none = slice(0)
            return Comparison(
                None, (), contractible, addresses[none], ones[none], others[none], widths[none], "the atomics differ"
            )
        if _effects(first, np.asarray) != _effects(second, np.asarray):
            rules |= normal.rules(*(n for run in (first, second) for e in run.effects for n in (e.address, e.value)))
        rows = np.flatnonzero(ones != others)
        for normal in (self.no_nan,) if narrowed else (self.every, self.no_nan):
            if len(rows):
                domain = normal.domain
                rest = rows[normal(ones[rows]) != normal(others[rows])]
                rules |= normal.rules(ones[rows], others[rows])
                rows = rest
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
        no_address, no_node = np.zeros(0, np.int64), np.zeros(0, np.int32)
        parts = [(no_address, no_node, no_node, no_address)]
        for region in self.regions:
            at = _elements(region, written)
            if len(at):
                ones, others = (run.memory.final(at, region.elem) for run in (first, second))
                parts.append((at, ones, others, np.full(len(at), 8 * region.elem, np.int64)))
        addresses, firsts, seconds, widths = zip(*parts, strict=True)
        return np.concatenate(addresses), np.concatenate(firsts), np.concatenate(seconds), np.concatenate(widths)

    def _effects_apart(self, run: Run) -> None:
        """Stop unless a buffer has atomics of one kind, or plain accesses, judged by the base of each address."""
        kinds: dict[Region, set[str]] = {}
        for effect in run.effects:
            for node in np.unique(self.every(effect.address)).tolist():
                constant = int(self.g.imm[node]) if int(self.g.op[node]) in self.g.consts.values() else None
                if constant is None:
                    form = self.every.forms.sums.get(node)
                    constant = form[2] if form is not None else None
                region = next((r for r in self.regions if constant is not None and r.start <= constant < r.stop), None)
                if region is None:
                    raise Stop("an atomic at an address whose buffer is not known")
                kinds.setdefault(region, set()).add(effect.op)
        touched = [read.address for read in run.memory.reads] + [run.memory.written()]
        for region, several in kinds.items():
            if len(several) > 1:
                raise Stop(f"{region.name} has atomics of several kinds: their order decides the result")
            if any(((at >= region.start) & (at < region.stop)).any() for at in touched):
                raise Stop(f"{region.name} is used by atomics and by plain accesses")


def _effects(run: Run, form: Callable[[Ids], Ids]) -> list[tuple[str, int, int]]:
    """The atomics of a run, sorted: of one kind they commute."""
    return sorted(
        (effect.op, address, value)
        for effect in run.effects
        for address, value in zip(form(effect.address).tolist(), form(effect.value).tolist(), strict=True)
    )


def _elements(region: Region, written: NDArray[np.int64]) -> NDArray[np.int64]:
    """The addresses of the elements of a region that something was written to."""
    inside = written[(written >= region.start) & (written < region.stop)]
    return np.unique(region.start + (inside - region.start) // region.elem * region.elem)


def outputs_of(run: Run, regions: tuple[Region, ...], block: int | None = None) -> Ids:
    """The nodes of every element that a run, or one block of it, wrote."""
    written = run.memory.written()
    if block is not None:
        written = written[run.memory.blocks_at(written) == block]
    parts = [np.zeros(0, np.int32)]
    for region in regions:
        at = _elements(region, written)
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
    passing = passing[np.argsort(g.level[passing], kind="stable")]
    for nodes in np.split(passing, np.flatnonzero(np.diff(g.level[passing])) + 1):
        carries[nodes] |= carries[g.a[nodes]] | carries[g.b[nodes]] | carries[g.c[nodes]]
    sums = cone[total[kinds]]
    return bool((carries[g.a[sums]] | carries[g.b[sums]]).any())
