"""What no launch reaches, and which twin is missing: questions about every launch, decided by the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foldproof.impl.launch import Arg, Kind
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.select import Selection
from foldproof.model.selection import answer
from foldproof.release.findings import Finding, finding
from foldproof.release.launch_shape import with_args
from foldproof.release.lenient import Entry
from foldproof.release.shapes import Family, own_class
from foldproof.release.solving import admitted, confirmed, is_possible, pickers, rivals, solver_for
from foldproof.release.world import ClassWorld

LOOSEST = load_policy("three-pass")


def unreached(entries: Sequence[Entry], policy: Policy) -> Iterator[Finding]:
    """Variants that no launch meets (L302), or that others always displace under the policy (L301), with those named.

    Asked of launches that name all that the variant holds: who names less leaves the variant no fewer rivals.
    """
    for family, own in functions(entries):
        for entry in own:
            yield from _unreached(entry, family, policy)


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


def _unreached(entry: Entry, family: Family, policy: Policy) -> Iterator[Finding]:
    shape = family.own_shape(entry.variant)
    candidates = rivals(shape, family.variants, policy)
    own = [own_class(entry.variant, classes, policy.strictest_first) for classes in shape.classes]
    outcome = confirmed(candidates, with_args(shape.base, own), policy) if candidates else None
    if isinstance(outcome, Selection) and outcome.variant is entry.variant:
        return
    world = ClassWorld.of(shape, candidates)
    index = next((i for i, v in enumerate(world.variants) if v is entry.variant), None)
    mark = entry.variant.hash
    if index is None or not is_possible(solver_for(world, admitted(world, index, policy))):
        yield finding("L302", entry.path, f"no launch meets the rules of {policy.name} for {mark}")
        return
    run = answer(world, policy)
    if is_possible(solver_for(world, run.picks(index))):
        return
    shadowing = []
    for other, _ in pickers(world, run, admitted(world, index, policy)):
        shadowing.append("an ambiguity" if other is None else world.variants[other].hash)
    yield finding(
        "L301", entry.path, f"{policy.name} never selects {mark}: {', '.join(shadowing)} always stands before"
    )


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
    outcome = confirmed(family.variants, launch, policy)
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
