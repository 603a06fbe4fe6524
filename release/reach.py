"""What no launch reaches, and which twin is missing: questions about every launch, decided by the model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from foldproof.impl.launch import Arg, Kind
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.select import Selection
from foldproof.model.selection import Answer, answer
from foldproof.release.findings import Finding, finding
from foldproof.release.launch_shape import Shape, with_args
from foldproof.release.lenient import Entry
from foldproof.release.shapes import Family, held_alike, own_class
from foldproof.release.solving import admitted, confirmed, is_possible, pickers, representatives, solver_for
from foldproof.release.world import ClassWorld

LOOSEST = load_policy("three-pass")


def unreached(entries: Sequence[Entry], policy: Policy) -> Iterator[Finding]:
    """Variants that no launch meets (L302), or that others always displace under the policy (L301), with those named.

    Asked of launches that name all that the variant holds: who names less leaves the variant no fewer rivals.
    """
    for family, own in functions(entries):
        contests: dict[object, Contest] = {}
        for entry in own:
            shape = family.own_shape(entry.variant)
            base = shape.base
            said = (*base.options, base.source, frozenset(base.consts.items()))
            key = (tuple(arg.name for arg in base.args), said)
            if key not in contests:
                contests[key] = Contest.of(shape, family, policy)
            yield from _unreached(entry, contests[key])


@dataclass(frozen=True, slots=True)
class Contest:
    """Who competes for the launches of a shape: of the variants that hold the args alike, those that tell."""

    shape: Shape
    policy: Policy
    world: ClassWorld
    run: Answer
    names: Collection[str]
    alike: Mapping[object, int]
    """How a variant holds the args -> the first candidate of the world that holds them so."""
    _shadows: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, shape: Shape, family: Family, policy: Policy) -> Contest:
        """The contest among the variants of a function."""
        world = ClassWorld.of(shape, representatives(shape, family.holding(shape.base.consts), policy))
        names = {arg.name for arg in shape.base.args}
        alike = {held_alike(v, names): i for i, v in reversed(tuple(enumerate(world.variants)))}
        return cls(shape, policy, world, answer(world, policy), names, alike)

    def shadows(self, index: int) -> str:
        """Who serves the launches that admit a candidate."""
        if index not in self._shadows:
            served = pickers(self.world, self.run, admitted(self.world, index, self.policy))
            hashes = ("an ambiguity" if i is None else self.world.variants[i].hash for i, _ in served)
            self._shadows[index] = ", ".join(hashes)
        return self._shadows[index]


def functions(entries: Sequence[Entry]) -> Iterator[tuple[Family, list[Entry]]]:
    """The entries of each function, with the family of their variants; of one hash, which L105 tells, the first."""
    groups: dict[str, list[Entry]] = {}
    first: dict[str, int] = {}
    for entry in entries:
        if first.setdefault(entry.variant.hash, entry.index) != entry.index:
            continue
        groups.setdefault(entry.variant.fn, []).append(entry)
    for fn, own in groups.items():
        yield Family.of(fn, [entry.variant for entry in own]), own


def _unreached(entry: Entry, contest: Contest) -> Iterator[Finding]:
    variant, shape, policy, world = entry.variant, contest.shape, contest.policy, contest.world
    own = [own_class(variant, classes, policy.strictest_first) for classes in shape.classes]
    outcome = confirmed(world.variants, with_args(shape.base, own), policy) if world.variants else None
    if isinstance(outcome, Selection) and outcome.variant is variant:
        return
    index = next((i for i, v in enumerate(world.variants) if v is variant), None)
    like = contest.alike.get(held_alike(variant, contest.names))
    if like is None or not is_possible(solver_for(world, admitted(world, like, policy))):
        yield finding("L302", entry.path, f"no launch meets the rules of {policy.name} for {variant.hash}")
        return
    if index is not None and is_possible(solver_for(world, contest.run.picks(index))):
        return
    others = contest.shadows(like)
    yield finding("L301", entry.path, f"{policy.name} never selects {variant.hash}: {others} always stands before")


def missing_twins(entries: Sequence[Entry]) -> Iterator[Finding]:
    """A 1 that is read at run time though other variants fold it (L311), and folds without a run-time twin (L312)."""
    for family, own in functions(entries):
        folded = {n for v in family.variants for n, c in v.consts.items() if (c.kind, c.value) == ("int", 1)}
        for entry in own:
            for name in sorted(folded & family.read):
                yield from _missing_twin(entry, family, name)


def _missing_twin(entry: Entry, family: Family, name: str) -> Iterator[Finding]:
    """One launch decides: the variant's own, with the arg at 1 (or, for a fold, at another value)."""
    variant, policy = entry.variant, LOOSEST
    shape = family.own_shape(variant)
    own = [own_class(variant, classes) for classes in shape.classes]
    place = next((j for j, arg in enumerate(shape.base.args) if arg.name == name), None)
    if place is None:
        return
    param = variant.param(name)
    value = 1 if param is not None else 7
    launch = with_args(shape.base, [*own[:place], Arg(name, Kind.I32, value), *own[place + 1 :]])
    outcome = confirmed(family.holding(launch.consts), launch, policy)
    if param is None and not isinstance(outcome, Selection):
        yield finding(
            "L312", f"{entry.path}.consts.{name}", f"{variant.hash} folds {name}; any other value of it misses"
        )
    if param is None or param.nospec or param.annotated or not isinstance(outcome, Selection):
        return
    if name in outcome.ones and outcome.variant is variant:
        position = variant.params.index(param)
        what = f"{variant.hash} serves {name} = 1 and reads it at run time; nothing that folds {name} fits this launch"
        yield finding("L311", f"{entry.path}.params[{position}]", what)
