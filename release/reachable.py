"""Completeness: that a capture serves every launch of a stated range, as a proof, or the first class that misses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import z3
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.launch import Launch, launch_from, launch_to
from foldproof.impl.policy import Policy
from foldproof.impl.strictjson import located
from foldproof.model.selection import answer
from foldproof.release.launch_shape import Shape
from foldproof.release.needs import compiled_for
from foldproof.release.ranges import FIX, InvalidRanges, Scenario, arg_domain
from foldproof.release.shapes import Family
from foldproof.release.solving import admitted, falls_back, plainest, representatives, solver_for
from foldproof.release.world import ClassWorld

MOST_COMBINATIONS = 1 << 14
MOST_NEEDS = 64


class Reach(msgspec.Struct, frozen=True):
    """What was shown of one scenario: how many launch classes it holds, and the first that is missing, ambiguous,
    or (where asked for) served by a fallback; None: proved that there is none. `needs` would make it complete.
    """

    fn: str
    where: str
    launch_classes: int
    complete: bool
    missing: dict[str, Any] | None
    ambiguous: dict[str, Any] | None
    fallback: dict[str, Any] | None
    needs: tuple[dict[str, Any], ...]
    more_needs: bool

    def needed(self) -> list[Launch]:
        """The launches to compile for."""
        return [launch_from(need) for need in self.needs]


def reach(capture: Capture, scenarios: Sequence[Scenario], policy: Policy, strict: bool) -> list[Reach]:
    """What is shown of each scenario. Raises `InvalidRanges` for a function, arg or constant that is unknown."""
    return [_reach(capture, scenario, policy, strict) for scenario in scenarios]


def _reach(capture: Capture, scenario: Scenario, policy: Policy, strict: bool) -> Reach:
    family = Family.of(scenario.fn, capture.kernels)
    if not family.variants:
        known = ", ".join(capture.functions[:12])
        raise InvalidRanges(f"the capture has no {scenario.fn!r}; it has {known}", where=scenario.where, fix=FIX)
    shapes = list(scenario_shapes(family, scenario))
    first: dict[str, Launch] = {}
    for shape in shapes:
        for word, launch in _gaps(shape, family.variants, policy):
            first.setdefault(word, launch)
    bad = {"missing", "ambiguous"} | ({"fallback"} if strict else set())
    needs, more = _needs(shapes, family, policy, strict) if set(first) & (bad - {"ambiguous"}) else ([], False)
    said = {word: launch_to(launch) for word, launch in first.items()}
    return Reach(
        scenario.fn,
        scenario.where,
        sum(shape.size for shape in shapes),
        not set(first) & bad,
        said.get("missing"),
        said.get("ambiguous"),
        said.get("fallback"),
        tuple(launch_to(launch) for launch in needs),
        more,
    )


def scenario_shapes(family: Family, scenario: Scenario) -> Iterator[Shape]:
    """A shape for each combination of constants. Raises `InvalidRanges` for names that the function does not have."""
    names = _signature(family, scenario)
    domains = {name: arg_domain(family, name, scenario.args.get(name, ("any",)), scenario.where) for name in names}
    held = {name for v in family.variants for name in v.consts}
    for name in sorted(set(scenario.consts) - held):
        raise InvalidRanges(f"no variant of {family.fn} has a constant {name!r}", where=scenario.where, fix=FIX)
    if math.prod(map(len, scenario.consts.values())) > MOST_COMBINATIONS:
        why = f"names more than {MOST_COMBINATIONS} combinations of constants"
        raise InvalidRanges(why, where=scenario.where, fix="split it into several tables")
    for values in itertools.product(*scenario.consts.values()):
        consts = dict(zip(scenario.consts, values, strict=True))
        value = {"fn": family.fn, "args": [], "consts": msgspec.to_builtins(consts), **scenario.options}
        base = located(scenario.where, lambda value=value: launch_from(value))  # type: ignore[misc]
        base = msgspec.structs.replace(base, args=tuple(domains[name][0] for name in names))
        yield Shape(base, tuple(domains[name] for name in names))


def _signature(family: Family, scenario: Scenario) -> tuple[str, ...]:
    mentioned = set(scenario.args)
    fitting = [family.names(v) for v in family.variants if mentioned <= set(family.names(v))]
    if not fitting:
        known = ", ".join(dict.fromkeys(name for v in family.variants for name in family.names(v)))
        odd = ", ".join(sorted(mentioned - {name for v in family.variants for name in family.names(v)}))
        why = f"{family.fn} is not launched with {odd or 'these args together'}; it has {known}"
        raise InvalidRanges(why, where=f"{scenario.where}.args", fix=FIX)
    sets = {frozenset(names) for names in fitting}
    if len(sets) > 1:
        odd = ", ".join(sorted(frozenset.union(*sets) - frozenset.intersection(*sets)))
        why = f"variants of {family.fn} take different sets of args: some have {odd}"
        raise InvalidRanges(why, where=f"{scenario.where}.args", fix="name one arg that only one set has")
    return fitting[0]


def _gaps(shape: Shape, variants: Sequence[Variant], policy: Policy) -> Iterator[tuple[str, Launch]]:
    """For each way to be no plain selection the plainest launch that ends so."""
    world = ClassWorld.of(shape, representatives(shape, variants, policy))
    run = answer(world, policy)
    for word, formula in (("missing", run.missing), ("ambiguous", run.ambiguous), ("fallback", falls_back(world, run))):
        launch = plainest(world, solver_for(world, formula))
        if launch is not None:
            yield word, launch


def _needs(shapes: Sequence[Shape], family: Family, policy: Policy, strict: bool) -> tuple[list[Launch], bool]:
    """Launches to compile for until no class is a gap, the least assuming first; and whether there would be more."""
    added: list[Variant] = []
    needs: list[Launch] = []
    for shape in shapes:
        for launch in _each_gap(shape, family, added, policy, strict):
            # A launch that its own variant does not serve (a kind that the policy does not know) would come for ever.
            if len(needs) >= MOST_NEEDS or launch in needs:
                return needs, True
            added.append(compiled_for(launch, family, f"new-{len(needs)}"))
            needs.append(launch)
    return needs, False


def _each_gap(shape: Shape, family: Family, added: Sequence[Variant], policy: Policy, strict: bool) -> Iterator[Launch]:
    """The plainest gap, again and again; the caller adds a variant to `added` after each.

    A miss stays asked of one solver: a variant more only rules launches out. Fallbacks are asked anew each time.
    """
    world = ClassWorld.of(shape, representatives(shape, (*family.variants, *added), policy))
    solver = solver_for(world, *(z3.Not(admitted(world, i, policy)) for i in range(len(world.variants))))
    while (launch := plainest(world, solver)) is not None:
        yield launch
        solver.add(z3.Not(admitted(world.with_variants(added[-1:]), 0, policy)))
    while strict and (launch := _first_fallback(shape, (*family.variants, *added), policy)) is not None:
        yield launch


def _first_fallback(shape: Shape, variants: Sequence[Variant], policy: Policy) -> Launch | None:
    world = ClassWorld.of(shape, representatives(shape, variants, policy))
    return plainest(world, solver_for(world, falls_back(world, answer(world, policy))))
