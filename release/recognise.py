"""Which fact names a difference of two selectors on one case: the facts of `policy_diff`, with both picks given."""

from __future__ import annotations

from dataclasses import dataclass, field

import z3
from foldproof.impl.cases import Case
from foldproof.impl.external.answers import Answer, Reply
from foldproof.model.encode import Encoder, OutOfScopeError
from foldproof.model.scope import Size, make_scope
from foldproof.model.terms import Bool
from foldproof.release.features import Feature, Picks, features

NO_FACT = Feature("other", "none of the facts known here", z3.BoolVal(True))


@dataclass(slots=True)
class Recogniser:
    """Says which fact names a difference: the features of `policy_diff` with both picks given."""

    _made: dict[Size, tuple[tuple[Feature, ...], list[list[Bool]], z3.FuncDeclRef, object]] = field(
        default_factory=dict
    )

    def fact(self, case: Case, old: Answer, new: Answer) -> Feature:
        """The first fact that holds, `NO_FACT` where none does or the case is too large for the formulas."""
        own = case.capture.candidates(case.launch.fn)
        variants = [case.capture.kernels[i] for i in own]
        named = {a.name for a in case.launch.args} | set(case.launch.consts)
        free = {n for v in variants for n in v.consts} - named
        size = Size(max(1, len(own)), max(1, len(case.launch.args)), max(1, len(case.launch.consts)), max(1, len(free)))
        try:
            known, sides, terms, scope = self._terms(size)
            pairs = Encoder(scope, case).assignment()  # type: ignore[arg-type]
        except OutOfScopeError:
            return NO_FACT
        for flags, answer in zip(sides, (old, new), strict=True):
            pick = answer.pick if isinstance(answer, Reply) else None
            error = answer.error if isinstance(answer, Reply) else None
            values = [own[i] == pick if i < len(own) else False for i in range(size.candidates)]
            values += [error == "MissingTritonVariant", error == "AmbiguousTritonVariant"]
            pairs += [(flag, z3.BoolVal(value)) for flag, value in zip(flags, values, strict=True)]
        held = z3.simplify(z3.substitute(terms, *pairs)).children()
        return next((fact for fact, value in zip(known, held, strict=True) if z3.is_true(value)), NO_FACT)

    def _terms(self, size: Size) -> tuple[tuple[Feature, ...], list[list[Bool]], z3.FuncDeclRef, object]:
        if size not in self._made:
            scope = make_scope(size)
            sides = [
                [z3.Bool(f"{side}.{n}") for n in (*range(size.candidates), "missing", "ambiguous")]
                for side in ("old", "new")
            ]
            picks = [Picks(lambda i, flags=flags: flags[i], flags[-2], flags[-1]) for flags in sides]  # type: ignore[misc]
            known = features(scope, *picks)
            formulas = [fact.formula for fact in known]
            tupled = z3.Function("facts", *(z3.BoolSort() for _ in formulas), z3.BoolSort())(*formulas)
            self._made[size] = known, sides, tupled, scope
        return self._made[size]
