"""The smallest counterexample: fewest candidates, then args, then assumptions, then the smallest values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace

import z3
from foldproof.impl.launch import Kind
from foldproof.model.rules import count
from foldproof.model.scope import Scope, Size
from foldproof.model.terms import KINDS

FEWEST_FIRST = ((0, 0), (0, 1), (1, 0), (1, 1))
"""Numbers of constants that the launch names and leaves free, the fewest first."""


def smallest_size(largest: Size, breaks: Callable[[Size], bool]) -> Size | None:
    """The first size that breaks, fewest candidates first, then args, then constants; None if the largest does not.

    A size that does not break leaves none below it that does: what a smaller scope holds fits into a larger one.
    """
    if not breaks(largest):
        return None
    candidates = next(n for n in range(1, largest.candidates + 1) if breaks(replace(largest, candidates=n)))
    wide = replace(largest, candidates=candidates)
    args = next(m for m in range(largest.args + 1) if breaks(replace(wide, args=m)))
    room = [(named, free) for named, free in FEWEST_FIRST if named <= largest.named and free <= largest.free]
    sizes = (Size(candidates, args, named, free) for named, free in room)
    return next(size for size in sizes if breaks(size))


def assumption_count(scope: Scope) -> z3.BitVecRef:
    """How much the capture and the launch say beyond the bare types: folds, switches, options, sources, sizes."""
    said: list[z3.BoolRef] = []
    for candidate in scope.candidates:
        for place in candidate.places:
            param = place.param
            switches = (param.div16, param.nospec, param.noalign, param.annotated, param.range32)
            said += [z3.Not(place.on_param), *(z3.And(place.on_param, switch) for switch in switches)]
        said += [candidate.extra, candidate.source.given, *(option.given for option in candidate.options[1:])]
        said += [const.present for const in candidate.free]
        said += [candidate.options[0].value != 4]
    launch = scope.launch
    said += [*(option.given for option in launch.options), launch.source.given]
    said += [arg.has_bytes for arg in launch.args] + list(scope.has_warned)
    return count(said, bits=10)


def fewest_assumptions(solver: z3.Solver, scope: Scope) -> None:
    """Narrow a satisfiable solver to the models that say least."""
    total = assumption_count(scope)
    for number in range(1 << 10):
        solver.push()
        solver.add(total == number)
        if solver.check() == z3.sat:
            return
        solver.pop()


def _wishes(scope: Scope) -> Iterator[z3.BoolRef]:
    """Readable values, the most wanted first; each is kept if it can be had together with those before it."""
    for arg in scope.launch.args:
        yield arg.kind == KINDS.index(Kind.I32)
        yield arg.kind == KINDS.index(Kind.PTR)
        yield z3.Implies(arg.kind == KINDS.index(Kind.PTR), arg.number == 0x1000)
        for number in (1, 0, 2, 3, 4, 8, 16):
            yield arg.number == number
    for index, candidate in enumerate(scope.candidates):
        yield candidate.rank == index
    for const in (*scope.launch.consts, *(c for one in scope.candidates for c in (*one.named, *one.free))):
        yield const.kind == 0
        yield from (const.value == number for number in (64, 2, 1, 0))
    for option in (*scope.launch.options, scope.launch.source, *(c.source for c in scope.candidates)):
        yield from (option.value == number for number in (0, 1, 8))


def _variables(part: object) -> Iterator[z3.ExprRef]:
    """The variables of a scope or a part of one, in the order of its fields."""
    if isinstance(part, z3.ExprRef):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from _variables(one)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _variables(getattr(part, field.name))


def _zero(variable: z3.ExprRef) -> z3.BoolRef:
    return variable == 0 if isinstance(variable, z3.BitVecRef) else z3.Not(variable)


def _bits(variable: z3.ExprRef) -> Iterator[z3.BoolRef]:
    """That each bit of a number is 0, the highest first."""
    if isinstance(variable, z3.BitVecRef):
        yield from (z3.Extract(bit, bit, variable) == 0 for bit in reversed(range(variable.size())))


def smallest_values(solver: z3.Solver, scope: Scope, *more: object) -> z3.ModelRef:
    """The model of a satisfiable solver with readable values, and the least where no wish says which.

    Every variable of the scope and of `more` has its value by that, so it is the same model each time, whatever the
    solver's process was asked before.
    """
    solver.check()
    model = solver.model()
    settled: set[int] = set()
    for wish in _wishes(scope):
        model, is_granted = _granted(solver, model, wish)
        if is_granted and z3.is_eq(wish):
            settled.add(wish.arg(0).get_id())
    for variable in (one for one in _variables((scope, more)) if one.get_id() not in settled):
        model, is_zero = _granted(solver, model, _zero(variable))
        for wish in () if is_zero else _bits(variable):
            model, _ = _granted(solver, model, wish)
    return model


def _granted(solver: z3.Solver, model: z3.ModelRef, wish: z3.BoolRef) -> tuple[z3.ModelRef, bool]:
    """Keep a wish if it can be had; a model of what holds then, and whether it could."""
    if z3.is_true(model.eval(wish, model_completion=True)):
        solver.add(wish)
        return model, True
    solver.push()
    solver.add(wish)
    if solver.check() == z3.sat:
        return solver.model(), True
    solver.pop()
    return model, False
