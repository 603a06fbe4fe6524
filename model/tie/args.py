"""The tie, part one: `impl.rules` on one arg equals the formulas, for every value, address, switch and type.

Kinds, strictnesses, dialects and annotated types are enumerated; everything else is a symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import z3
from foldproof.impl import choose
from foldproof.impl.capture import INT_TYPES, Const, Param
from foldproof.impl.launch import INT_KINDS, Arg, Kind
from foldproof.impl.rules import Rules as SoundRules
from foldproof.impl.rules import Strictness as SoundStrictness
from foldproof.model import rules as formulas
from foldproof.model.lemmas import ARG, PLACE
from foldproof.model.scope import folded, held
from foldproof.model.terms import CONST_KINDS, FIRST_POINTER, KINDS, NO_TYPE, TYPES, Bool, ConstTerm, OptionTerm
from foldproof.model.tie.symbolic import WIDTH, Flag, Name, Paths, Whole

CODES = {name: code for code, name in enumerate(TYPES)} | {"": NO_TYPE}
CONCRETE_TYPES = {**{name: code for code, name in enumerate(TYPES)}, "*bf16": FIRST_POINTER, "*fp32": FIRST_POINTER + 1}
SWITCHES = ("div16", "nospec", "noalign", "range32")


@dataclass(frozen=True, slots=True)
class Gap:
    """A place where Python and formula differ: which rule, in which setting, and how they differ there."""

    rule: str
    setting: str
    difference: str


@dataclass(frozen=True, slots=True)
class Tied:
    """One setting in which Python and formula were compared on every path."""

    rule: str
    setting: str
    paths: int
    gap: Gap | None = None


def wide(term: z3.BitVecRef, *, signed: bool) -> z3.BitVecRef:
    """A bit-vector term as a `Whole` is wide."""
    room = WIDTH - term.size()
    return z3.SignExt(room, term) if signed else z3.ZeroExt(room, term)


def compare(rule: str, setting: str, known: tuple[Bool, ...], run: Callable[[], Any], formula: Bool) -> Tied:
    """Run the Python on every path; its answer "no refusal" (or its truth) must equal the formula on each."""
    count = 0
    for condition, result in Paths(known).explore(run):
        count += 1
        admitted = z3.BoolVal(result is None) if not isinstance(result, (bool, Flag)) else _truth(result)
        solver = z3.SolverFor("QF_BV")
        solver.add(*known, condition, admitted != formula)
        answer = solver.check()
        if answer != z3.unsat:
            shown = f"Python says {result!r}; the formula disagrees ({answer})"
            return Tied(rule, setting, count, Gap(rule, setting, shown))
    return Tied(rule, setting, count)


def _truth(value: bool | Flag) -> Bool:
    return value.term if isinstance(value, Flag) else z3.BoolVal(value)


def symbolic_arg(kind: Kind, *, has_bytes: bool, pointee: str | None = None) -> tuple[Arg, tuple[Bool, ...]]:
    """An arg of the kind whose number, pointer type and size are symbols, and what is known of them."""
    number = Whole(wide(ARG.number, signed=kind in (Kind.I32, Kind.I64)))
    name: Any = "" if kind != Kind.PTR else Name(ARG.pointee, CODES) if pointee is None else pointee
    # An allocation is at most 2^64 - 1 bytes.
    size: Any = Whole(wide(ARG.bytes, signed=False)) if has_bytes else None
    known = (
        ARG.well_formed(),
        ARG.kind == KINDS.index(kind),
        ARG.has_bytes == has_bytes,
        *([] if pointee is None else [ARG.pointee == CONCRETE_TYPES[pointee]]),
    )
    return Arg("x", kind, number, name, size), known  # type: ignore[arg-type]


def symbolic_param(annotated: str | None, type_name: str | None = None) -> tuple[Param, tuple[Bool, ...]]:
    """A param whose switches are symbols; its type is a symbol unless it is annotated or named."""
    concrete = annotated or type_name
    shown: Any = concrete or Name(PLACE.param.type, CODES)
    switches: dict[str, Any] = {name: Flag(getattr(PLACE.param, name)) for name in SWITCHES}
    known = (
        PLACE.well_formed(),
        PLACE.on_param,
        PLACE.param.annotated == (annotated is not None),
        *([] if concrete is None else [PLACE.param.type == CONCRETE_TYPES[concrete]]),
    )
    return Param("x", shown, annotated=annotated is not None, **switches), known


def symbolic_const(kind: str, term: ConstTerm) -> tuple[Const, tuple[Bool, ...]]:
    """A constant of the kind; its value is a symbol where it is a number."""
    known = (term.well_formed(), term.present, term.kind == CONST_KINDS.index(kind))
    value = z3.SignExt(WIDTH - term.value.size(), term.value)
    # Made without its check, which would fork on the range that `well_formed` already states.
    if kind in ("int", "f32"):
        return _unchecked(kind, Whole(value)), known
    fixed: dict[str, Any] = {"bool": True, "str": "s", "none": True}
    return _unchecked(kind, fixed[kind]), (*known, term.value == (0 if kind == "str" else 1))


class _Loose:
    """A stand-in for `Const` with the two properties that the rules look at."""

    def __init__(self, kind: str, value: object) -> None:
        self.kind, self.value = kind, value


def _unchecked(kind: str, value: object) -> Const:
    return _Loose(kind, value)  # type: ignore[return-value]


def tie_args(module: ModuleType) -> Iterator[Tied]:
    """Compare the module's `arg_refusal` with `place_admits` in every setting."""
    for strictness in module.Strictness:
        for public in (False, True):
            rules = module.Rules(strictness, public)
            sound = SoundRules(SoundStrictness(strictness.value), public)
            formula = formulas.place_admits(ARG, PLACE, sound)
            for kind in Kind:
                yield from _on_params(module, rules, formula, kind)
                yield from _on_consts(module, rules, formula, kind)


def _settings(kind: Kind, *, linker: bool) -> Iterator[tuple[bool, str | None, str | None, str | None]]:
    """has_bytes, annotated type, concrete param type, concrete pointee: names only where the code looks inside."""
    for has_bytes in (False, True) if kind == Kind.PTR else (False,):
        for annotated in INT_TYPES:
            yield has_bytes, annotated, None, "*bf16" if linker and kind == Kind.PTR else None
        if not linker:
            yield has_bytes, None, None, None
            continue
        for type_name in CONCRETE_TYPES:
            yield has_bytes, None, type_name, "*bf16" if kind == Kind.PTR else None


def _on_params(module: ModuleType, rules: Any, formula: Bool, kind: Kind) -> Iterator[Tied]:
    for has_bytes, annotated, type_name, pointee in _settings(kind, linker=rules.strictness.value == "linker"):
        arg, of_arg = symbolic_arg(kind, has_bytes=has_bytes, pointee=pointee)
        param, of_param = symbolic_param(annotated, type_name)
        dialect = "public" if rules.public else "full"
        setting = f"{rules.strictness} {dialect} {kind} on {annotated or type_name or 'any type'}"

        def run(arg: Arg = arg, param: Param = param) -> Any:
            return module.arg_refusal(arg, param, None, rules)

        yield compare("arg_refusal", setting, (*of_arg, *of_param), run, formula)


def _on_consts(module: ModuleType, rules: Any, formula: Bool, kind: Kind) -> Iterator[Tied]:
    arg, of_arg = symbolic_arg(kind, has_bytes=False)
    place = f"{rules.strictness} {'public' if rules.public else 'full'} {kind} on"
    for const_kind in CONST_KINDS:
        const, of_const = symbolic_const(const_kind, PLACE.const)

        def run(const: Const = const) -> Any:
            return module.arg_refusal(arg, None, const, rules)

        known = (*of_arg, *of_const, z3.Not(PLACE.on_param), PLACE.well_formed())
        yield compare("arg_refusal", f"{place} const {const_kind}", known, run, formula)
    nowhere = (*of_arg, z3.Not(PLACE.on_param), z3.Not(PLACE.const.present), PLACE.well_formed())
    yield compare(
        "arg_refusal", f"{place} nothing", nowhere, lambda: module.arg_refusal(arg, None, None, rules), formula
    )


def tie_parts(module: ModuleType) -> Iterator[Tied]:
    """Compare what does not depend on an arg's place: sources, options, named constants."""
    variant, launch = OptionTerm.fresh("variant"), OptionTerm.fresh("launch")
    for said, asked in ((a, b) for a in (False, True) for b in (False, True)):
        pair = [_option(term) if given else None for term, given in ((variant, said), (launch, asked))]
        known = (variant.given == said, launch.given == asked)
        yield compare(
            "source_refusal",
            f"said {said}, asked {asked}",
            known,
            lambda pair=pair: module.source_refusal(*pair),  # type: ignore[misc]
            formulas.source_admits(variant, launch),
        )
        if asked:
            yield compare(
                "option_refusal",
                f"recorded {said}",
                known,
                lambda pair=pair: module.option_refusal(*pair),  # type: ignore[misc]
                formulas.options_admit([variant], [launch]),
            )
    wanted_term, present_term = ConstTerm.fresh("wanted"), ConstTerm.fresh("present")
    formula = formulas.named_const_admits(wanted_term, present_term)
    for wanted_kind in CONST_KINDS:
        wanted, of_wanted = symbolic_const(wanted_kind, wanted_term)
        for present_kind in CONST_KINDS:
            present, of_present = symbolic_const(present_kind, present_term)

            def run(wanted: Const = wanted, present: Const = present) -> Any:
                return module.named_const_refusal(wanted, present)

            yield compare(
                "named_const_refusal", f"{wanted_kind} against {present_kind}", (*of_wanted, *of_present), run, formula
            )
        absent = (*of_wanted, z3.Not(present_term.present))

        def run_absent(wanted: Const = wanted) -> Any:
            return module.named_const_refusal(wanted, None)

        yield compare("named_const_refusal", f"{wanted_kind} against nothing", absent, run_absent, formula)


def _option(term: OptionTerm) -> Any:
    return Whole(z3.ZeroExt(WIDTH - term.value.size(), term.value))


def tie_counts(module: ModuleType) -> Iterator[Tied]:
    """Compare what is counted of one arg: foldable 1s, folded 1s, held args."""
    for kind in Kind:
        arg, of_arg = symbolic_arg(kind, has_bytes=False)
        for annotated in (*([*INT_TYPES] if kind in INT_KINDS else []), None):
            param, of_param = symbolic_param(annotated)
            known = (*of_arg, *of_param)
            setting = f"{kind} on {annotated or 'any type'}"

            def foldable(arg: Arg = arg, param: Param = param) -> bool:
                return bool(module.is_foldable_one(arg, param))

            def is_held(arg: Arg = arg, param: Param = param) -> bool:
                return bool(choose.is_held(arg, param, None))

            yield compare("is_foldable_one", setting, known, foldable, formulas.is_foldable_one(ARG, PLACE.param))
            yield compare("is_held", setting, known, is_held, held(ARG, PLACE))
        for const_kind in CONST_KINDS:
            const, of_const = symbolic_const(const_kind, PLACE.const)

            def folds(arg: Arg = arg, const: Const = const) -> bool:
                return bool(choose.folds(arg, const))

            known = (*of_arg, *of_const, z3.Not(PLACE.on_param), PLACE.well_formed())
            yield compare("folds", f"{kind} on const {const_kind}", known, folds, folded(ARG, PLACE))
