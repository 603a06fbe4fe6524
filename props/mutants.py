"""The planted faults of `model.mutants`, built into the Python reference: a mutant decides as its formulas say.

A fault in the policy is the mutant's own policy. A fault in the code is stated here, once, as data: functions of
`impl` replaced while the mutant decides, or what it makes of the policy or the capture first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeAlias

import msgspec
from foldproof.impl import rules
from foldproof.impl.capture import Capture, Const
from foldproof.impl.choose import Candidate
from foldproof.impl.launch import INT_KINDS, Arg, Kind, Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Reason, Refusal, Strictness, has_alignment, is_one
from foldproof.impl.select import Outcome, decide
from foldproof.model.mutants import Mutant

_put = msgspec.structs.replace
# The package exports a function of the same name.
select = sys.modules[decide.__module__]
Replacement: TypeAlias = tuple[ModuleType, str, Callable[[Any], Any]]
"""A module, the name of a function in it, and what to put in its place, given the function."""


class Flaw(msgspec.Struct, frozen=True):
    """One fault in the code."""

    replaced: tuple[Replacement, ...] = ()
    policy: Callable[[Policy], Policy] = lambda policy: policy
    capture: Callable[[Capture, Launch], Capture] = lambda capture, _: capture


def _admitting(*reasons: Reason, name: str, when: Callable[..., bool] = lambda *_: True) -> Flaw:
    """A rule that passes where it would refuse for one of these reasons."""

    def put(original: Any) -> Any:
        def rule(*args: Any) -> Any:
            found = original(*args)
            return None if found in reasons and when(*args) else found

        return rule

    return Flaw(((rules, name, put),))


def _rule(name: str, instead: Callable[..., Any]) -> Flaw:
    """A rule with another in its place, which is given the original first."""
    return Flaw(((rules, name, lambda original: lambda *args: instead(original, *args)),))


def _takes_one(strictness: Strictness) -> Flaw:
    def rule(original: Any, arg: Arg, param: Any, of: Any) -> Any:
        found = original(arg, param, of)
        return (
            rules.div16_refusal(arg, param, of) if found == Reason.FOLDABLE and of.strictness == strictness else found
        )

    return _rule("param_refusal", rule)


def _logging(edit: Callable[[tuple[str, ...], tuple[str, ...]], tuple[str, ...]]) -> Flaw:
    """What a selection logs, from its lines and the foldable 1s it reads."""

    def put(original: Any) -> Any:
        def selection(*args: Any) -> Any:
            made = original(*args)
            return _put(made, log=edit(made.log, made.ones))

        return selection

    return Flaw(((select, "_selection", put),))


def _second_best(original: Any, admissible: Sequence[Candidate], *more: Any) -> Any:
    first = original(admissible, *more)
    rest = [candidate for candidate in admissible if candidate is not first]
    return original(rest, *more) if rest else first


def _flipped(original: Any, arg: Arg, param: Any, of: Any) -> Any:
    if of.strictness == Strictness.EXACT or not has_alignment(arg):
        return original(arg, param, of)
    aligned = arg.number % 16 == 0
    holds = aligned and (arg.kind == Kind.PTR or rules.is_alignable(arg, param, of.public))
    return Reason.NOT_DIV16 if holds and not param.div16 else None


def _of_eight(arg: Arg) -> Arg:
    return _put(arg, number=0) if arg.number % 8 == 0 else arg


def _folds(fits: Callable[[Arg, Const], bool]) -> Flaw:
    """A folded constant that takes what `fits` says besides."""
    return _admitting(Reason.FOLDED, name="const_refusal", when=lambda arg, const, _: fits(arg, const))


def _is_int_one(const: Const) -> bool:
    return const.kind == "int" and const.value == 1


def _named(same: Callable[[Const, Const], bool]) -> Flaw:
    def compare(_: Any, wanted: Const, present: Const | None) -> Reason | None:
        if present is None:
            return Reason.CONST_ABSENT
        return None if same(wanted, present) else Reason.CONST_DIFFERS

    return _rule("named_const_refusal", compare)


def _both(one: Flaw, other: Flaw) -> Flaw:
    return Flaw(one.replaced + other.replaced)


def _not_refusing(refused: Callable[[Refusal], bool]) -> Flaw:
    """Refusals of which some are passed over."""
    return _rule("refusals", lambda original, *args: (r for r in original(*args) if not refused(r)))


def _first_alone(capture: Capture, launch: Launch) -> Capture:
    """The capture in which no candidate but the first has the launch's function; places stay."""
    first = next((i for i, v in enumerate(capture.kernels) if v.fn == launch.fn), -1)
    hidden = (
        v if i == first or v.fn != launch.fn else _put(v, fn=f"not {v.fn}") for i, v in enumerate(capture.kernels)
    )
    return Capture(tuple(hidden))


FLAWS: Mapping[str, Flaw] = {
    "log-every-launch": _logging(lambda *_: ("logged",)),
    "log-dropped": _logging(lambda *_: ()),
    "log-doubled": _logging(lambda lines, _: lines * 2),
    "log-only-two-ones": _logging(lambda lines, ones: lines if len(ones) > 1 else ()),
    "bare-miss": Flaw(((select, "miss_text", lambda _: lambda _: "no variant"),)),
    "loop-stops-before-the-last-pass": Flaw(policy=lambda p: _put(p, passes=p.passes[:-1] or p.passes)),
    "only-the-first-candidate": Flaw(capture=_first_alone),
    "second-best": Flaw(((select, "best", lambda original: lambda *args: _second_best(original, *args)),)),
    "exact-takes-one": _takes_one(Strictness.EXACT),
    "general-takes-one": _takes_one(Strictness.GENERAL),
    "exact-takes-lost-div16": _rule(
        "div16_refusal", lambda original, arg, param, of: original(arg, param, _put(of, strictness=Strictness.GENERAL))
    ),
    "div16-ignored": _rule("div16_refusal", lambda *_: None),
    "div16-ignored-on-ints": _rule("div16_refusal", lambda o, arg, *at: None if arg.kind in INT_KINDS else o(arg, *at)),
    "div16-ignored-on-pointers": _rule(
        "div16_refusal", lambda o, arg, *at: None if arg.kind == Kind.PTR else o(arg, *at)
    ),
    "div16-flipped": _rule("div16_refusal", _flipped),
    "div16-weakened-to-8": _both(
        _rule("div16_refusal", lambda original, arg, *more: original(_of_eight(arg), *more)),
        _admitting(Reason.NOT_DIV16, name="guard_refusal", when=lambda arg, _: arg.number % 8 == 0),
    ),
    "nospec-ignored-by-div16": _rule("is_alignable", lambda *at: not at[2].noalign),
    "noalign-ignored": _rule("is_alignable", lambda o, arg, param, public: o(arg, _put(param, noalign=False), public)),
    "nospec-one-is-foldable": _rule("is_foldable_one", lambda _, arg, param: is_one(arg) and not param.annotated),
    "annotated-range-unchecked": _admitting(Reason.RANGE, name="type_refusal"),
    "i64-one-admitted": _admitting(Reason.ONE_I64, name="type_refusal"),
    "pointer-types-alike": _admitting(
        Reason.TYPE, name="type_refusal", when=lambda arg, param: arg.kind == Kind.PTR and param.type.startswith("*")
    ),
    "range32-ignored": _rule("param_refusal", lambda o, arg, param, of: o(arg, _put(param, range32=False), of)),
    "range32-unsaid-admitted": _rule(
        "param_refusal", lambda o, arg, *more: o(_put(arg, bytes=0) if arg.bytes is None else arg, *more)
    ),
    "folded-without-the-value": _folds(lambda arg, const: arg.kind == Kind.I32 and _is_int_one(const)),
    "folded-takes-any-int-kind": _folds(
        lambda arg, const: arg.kind in INT_KINDS and arg.number == 1 and _is_int_one(const)
    ),
    "const-kinds-alike": _both(
        _named(lambda wanted, present: bool(wanted.value == present.value)),
        _folds(lambda arg, const: is_one(arg) and bool(const.value == 1)),
    ),
    "const-value-ignored": _named(lambda wanted, present: wanted.kind == present.kind),
    "absent-const-admitted": _admitting(Reason.CONST_ABSENT, name="named_const_refusal"),
    "named-consts-ignored": _rule("named_const_refusal", lambda *_: None),
    "none-matches-any-const": _admitting(Reason.NOT_NONE, name="const_refusal"),
    "unplaced-arg-admitted": _admitting(Reason.UNPLACED, name="arg_refusal"),
    "count-unchecked": _not_refusing(lambda r: r.reason == Reason.UNNAMED),
    "num-warps-unchecked": _not_refusing(lambda r: r.reason == Reason.OPTION and r.subject == "num_warps"),
}
"""Each fault in the code by its name in `model.mutants.IN_THE_CODE`."""


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The reference with the mutant's faults in its code. Not for threads: the functions are those of all callers."""
    kept: list[tuple[ModuleType, str, Any]] = []
    try:
        for name in mutant.flaws:
            for module, function, put in FLAWS[name].replaced:
                original = getattr(module, function)
                kept.append((module, function, original))
                setattr(module, function, put(original))
        yield
    finally:
        for module, function, original in reversed(kept):
            setattr(module, function, original)


def decide_as(mutant: Mutant, capture: Capture, launch: Launch, warned: frozenset[str] = frozenset()) -> Outcome:
    """What the mutant answers."""
    policy = mutant.running
    for name in mutant.flaws:
        policy, capture = FLAWS[name].policy(policy), FLAWS[name].capture(capture, launch)
    with planted(mutant):
        return decide(capture, launch, policy, warned)
