"""Questions to Z3 about a `ClassWorld`: is there a launch, which is the plainest, who serves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import z3
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.choose import REFUSALS
from foldproof.impl.errors import FoldproofError
from foldproof.impl.launch import Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Strictness
from foldproof.impl.select import Outcome, decide
from foldproof.model.rules import disj
from foldproof.model.selection import Answer
from foldproof.model.terms import Bool
from foldproof.release.launch_shape import Shape
from foldproof.release.shapes import held_alike
from foldproof.release.world import ClassWorld

TIMEOUT_MS = 60_000


class Undecided(FoldproofError):
    """The solver gave up; nothing is claimed."""

    code = "Undecided"


def solver_for(world: ClassWorld, *wanted: Bool) -> z3.Solver:
    """A solver for the launches of the world in which all of `wanted` holds."""
    solver = z3.SolverFor("QF_FD")
    solver.set("timeout", TIMEOUT_MS)
    solver.add(world.well_formed, *wanted)
    return solver


def is_possible(solver: z3.Solver, *more: Bool) -> bool:
    """Whether some launch meets the solver's formulas and `more`. Raises `Undecided` where the solver gives up."""
    found = solver.check(*more)
    if found == z3.unknown:
        raise Undecided(f"the solver gave up after {TIMEOUT_MS // 1000} s", fix="ask about fewer args or candidates")
    return bool(found == z3.sat)


def plainest(world: ClassWorld, solver: z3.Solver) -> Launch | None:
    """The first launch that meets the solver's formulas, args in order, each class tried in its order."""
    if not is_possible(solver):
        return None
    model, fixed = solver.model(), []
    for choices in world.choices:
        for choice in choices:
            if z3.is_true(model.eval(choice)):
                fixed.append(choice)
                break
            if is_possible(solver, *fixed, choice):
                model = solver.model()
                fixed.append(choice)
                break
    return world.launch(model)


def falls_back(world: ClassWorld, run: Answer) -> Bool:
    """The policy selects a variant that reads a foldable 1."""
    reading = [(i, reads) for i in world.any_candidate() if not z3.is_false(reads := world.falls_back(i))]
    return disj(z3.And(run.picks(i), reads) for i, reads in reading)


def confirmed(variants: Sequence[Variant], launch: Launch, policy: Policy) -> Outcome:
    """What the reference answers to a launch that the solver found; indices and the text of a miss may be others."""
    left, settled = holding(variants, launch, policy)
    return decide(Capture(left), without_consts(launch) if settled else launch, policy)


def holding(variants: Sequence[Variant], launch: Launch, policy: Policy) -> tuple[tuple[Variant, ...], bool]:
    """The candidates that hold the launch's constants: every rule refuses the others, and there are many.

    Also whether the launch may then leave its constants unsaid, which only saves comparing them once a rule. All
    variants where none holds them.
    """
    own = tuple(v for v in variants if v.fn == launch.fn)
    wanted = launch.consts.items()
    fitting = tuple(v for v in own if all(v.consts.get(name) == const for name, const in wanted))
    looks_at_names = any("free-constants" in sweep.refuse for sweep in policy.passes)
    return fitting or own or tuple(variants), bool(fitting) and not looks_at_names


def without_consts(launch: Launch) -> Launch:
    """The launch, naming no constant."""
    return msgspec.structs.replace(launch, consts={})


def rivals(shape: Shape, variants: Sequence[Variant], policy: Policy) -> list[Variant]:
    """The variants that some launch of the shape could be served by, in candidate order."""
    world = ClassWorld.of(shape, variants)
    rules = [policy.rules(s) for s in dict.fromkeys((*(p.rules for p in policy.passes), Strictness.RUNTIME_ONE))]
    return [v for i, v in enumerate(variants) if any(world.is_placeable(i, r) for r in rules)]


def representatives(shape: Shape, variants: Sequence[Variant], policy: Policy) -> list[Variant]:
    """Rivals enough to say how each launch of a shape ends (selected, missing, ambiguous) and which 1s it reads.

    Variants that hold the args alike are admissible for the same launches and score alike. Of such, a tie-break can
    only pick the first, the last or the one of the smallest hash, and all read the same; a refusal of the policy needs
    one besides that differs from the first in what it compares, or two that are equal. The shape names its constants.
    """
    open_ = (*shape.consts, *shape.options)
    assert not open_, "what a launch may leave out tells more variants apart"
    names = {arg.name for arg in shape.base.args}
    groups: dict[object, list[Variant]] = {}
    for variant in rivals(shape, variants, policy):
        groups.setdefault(held_alike(variant, names), []).append(variant)
    kept = {id(v) for group in groups.values() for v in _telling(group, shape.base, policy)}
    return [v for v in variants if id(v) in kept]


def _telling(group: Sequence[Variant], launch: Launch, policy: Policy) -> Iterator[Variant]:
    yield from (group[0], group[-1], min(group, key=lambda v: v.hash))
    for name in dict.fromkeys(name for sweep in policy.passes for name in sweep.refuse):
        _, trait, refuses_difference = REFUSALS[name]
        traits = [trait(v, launch) for v in group]
        if refuses_difference:
            yield from [v for v, t in zip(group, traits, strict=True) if t != traits[0]][:1]
        else:
            equal = next((t for t in traits if traits.count(t) > 1), None)
            yield from [v for v, t in zip(group, traits, strict=True) if t == equal][:2]


def pickers(world: ClassWorld, run: Answer, wanted: Bool) -> Iterator[tuple[int | None, Launch]]:
    """Who serves the launches in which `wanted` holds: each candidate once (None: no selection), with a launch."""
    solver = solver_for(world, wanted)
    while is_possible(solver):
        model = solver.model()
        served = (i for i in range(len(world.variants)) if z3.is_true(model.eval(run.picks(i), model_completion=True)))
        index = next(served, None)
        yield index, world.launch(model)
        solver.add(z3.Not(run.picks(index)) if index is not None else _selected(world, run))


def _selected(world: ClassWorld, run: Answer) -> Bool:
    return disj(run.picks(i) for i in range(len(world.variants)))


def admitted(world: ClassWorld, index: int, policy: Policy) -> Bool:
    """Some pass of the policy admits the candidate."""
    return disj(world.admits(index, policy.rules(sweep.rules)) for sweep in policy.passes)
