"""Why not this candidate: what refuses it first, and the nearest launch that would reach it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import z3
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.errors import FoldproofError
from foldproof.impl.launch import Arg, Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import refusals
from foldproof.impl.select import Selection, decide
from foldproof.model.selection import answer
from foldproof.release.classes import class_key
from foldproof.release.launch_shape import Shape, with_args
from foldproof.release.shapes import Family
from foldproof.release.solving import is_possible, plainest, solver_for
from foldproof.release.world import ClassWorld

OPTION_NAMES = ("num_warps", "num_stages", "arch", "enable_fp_fusion", "source")


class WhyNot(msgspec.Struct, frozen=True):
    """Why a launch does not get a candidate. `refused` says for each pass what refuses it there ("" where it is
    admissible and another is preferred); `instead` who is picked; `changes` what a launch must change to reach it,
    empty with `reaching` None where no launch does.
    """

    hash: str
    refused: tuple[tuple[str, tuple[str, ...]], ...]
    instead: str
    changes: tuple[str, ...]
    reaching: Launch | None


def why_not(capture: Capture, launch: Launch, mark: str, policy: Policy) -> WhyNot:
    """The answer for the candidate of that hash (or the one whose hash begins so). Raises `FoldproofError`."""
    family = Family.of(launch.fn, capture.kernels)
    variant = _named(family, mark)
    rows = []
    for sweep in policy.passes:
        refused = tuple(str(r) for r in refusals(variant, launch, policy.rules(sweep.rules)))
        rows.append((str(sweep.rules), refused))
    outcome = decide(capture, launch, policy)
    instead = outcome.variant.hash if isinstance(outcome, Selection) else outcome.code
    found = nearest_reaching(family, launch, variant, policy)
    if found is None:
        return WhyNot(variant.hash, tuple(rows), instead, (), None)
    return WhyNot(variant.hash, tuple(rows), instead, tuple(_changes(launch, found)), found)


def _named(family: Family, mark: str) -> Variant:
    exact = [v for v in family.variants if v.hash == mark]
    found = exact or [v for v in family.variants if v.hash.startswith(mark)]
    if len(found) != 1:
        known = ", ".join(v.hash for v in family.variants[:8]) or "none"
        why = f"{len(found)} candidates of {family.fn} are named {mark!r}"
        raise FoldproofError(why, where="--why-not", fix=f"name one of {known}")
    return found[0]


def nearest_reaching(family: Family, launch: Launch, variant: Variant, policy: Policy) -> Launch | None:
    """A launch that the policy answers with the variant, with as few args of another class as there can be.

    Constants, options and source are kept where the variant allows them, and else are the variant's own.
    """
    base = _allowed(launch, variant, family)
    shape = Shape(base, tuple(_classes(family, arg) for arg in base.args))
    world = ClassWorld.of(shape, family.variants)
    index = next(i for i, v in enumerate(family.variants) if v is variant)
    kept = [(choices[0], 1) for choices in world.choices]
    for changed in range(len(base.args) + 1):
        few = z3.PbGe(kept, len(base.args) - changed) if kept else z3.BoolVal(True)
        solver = solver_for(world, answer(world, policy).picks(index), few)
        if is_possible(solver):
            return plainest(world, solver)
    return None


def _classes(family: Family, arg: Arg) -> tuple[Arg, ...]:
    """The arg itself, then one of each other class of its name."""
    own = class_key(Launch(family.fn, (arg,)))
    others = [other for other in family.classes(arg.name) if class_key(Launch(family.fn, (other,))) != own]
    return (arg, *others)


def _allowed(launch: Launch, variant: Variant, family: Family) -> Launch:
    names = family.names(variant)
    given = {arg.name: arg for arg in launch.args}
    args = [given[name] for name in given if name in names]
    args += [family.classes(name)[0] for name in names if name not in given]
    own = {name: const for name, const in variant.consts.items() if name not in names}
    consts = {name: own[name] for name in launch.consts if name in own}
    options = {}
    for name in OPTION_NAMES:
        recorded, pinned = getattr(variant, name), getattr(launch, name)
        unsaid = recorded is None or (name == "num_stages" and recorded == 0)
        options[name] = pinned if pinned is None or unsaid else recorded
    return msgspec.structs.replace(with_args(launch, args), consts=consts, **options)


def _changes(old: Launch, new: Launch) -> list[str]:
    given = {arg.name: arg for arg in old.args}
    wanted = {arg.name: arg for arg in new.args}
    found = [f"no arg {name}" for name in given if name not in wanted]
    for name, arg in wanted.items():
        if given.get(name) != arg:
            found.append(f"{name}: {arg}" + (f" instead of {given[name]}" if name in given else ""))
    for name in old.consts:
        if new.consts.get(name) != old.consts[name]:
            said = new.consts.get(name)
            found.append(f"{name}: {'not named' if said is None else f'const {said}'} instead of {old.consts[name]}")
    options = [(name, getattr(old, name), getattr(new, name)) for name in OPTION_NAMES]
    return found + [f"{name} {after} instead of {before}" for name, before, after in options if before != after]


def matching_functions(names: Sequence[str], text: str) -> list[str]:
    """The functions that a text may mean: the one of that name, else all that contain it."""
    return [text] if text in names else [name for name in names if text and text in name]
