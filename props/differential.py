"""The differential test: on a concrete case the formulas of `model` must answer what `impl` answers."""

from __future__ import annotations

from collections.abc import Sequence

import z3
from foldproof.impl.cases import Case, replay
from foldproof.impl.errors import MissingTritonVariant
from foldproof.impl.policy import Policy
from foldproof.impl.rules import STRICTEST_FIRST
from foldproof.impl.select import Outcome, Selection
from foldproof.model.encode import Encoder
from foldproof.model.scope import Size, make_scope
from foldproof.model.selection import answer, pass_is

DEFAULT_SIZE = Size(4, 4, named=1, free=1)
Summary = tuple[str, int | None, str | None, tuple[int, ...], int]
"""Status, picked candidate, pass, positions of the ones read, number of log lines."""


class Oracle:
    """The formulas of several policies over one scope, ready to be evaluated together on many cases."""

    def __init__(self, policies: Sequence[Policy], size: Size = DEFAULT_SIZE) -> None:
        self.policies = tuple(policies)
        self._scope = make_scope(size)
        terms = [term for policy in policies for term in self._outputs(policy)]
        self._width = len(terms) // len(policies)
        self._tuple = z3.Function("outputs", *(z3.BoolSort() for _ in terms), z3.BoolSort())(*terms)

    def _outputs(self, policy: Policy) -> list[z3.BoolRef]:
        run = answer(self._scope, policy)
        terms = [run.missing, run.ambiguous]
        for i in range(self._scope.size.candidates):
            reads = self._scope.reads_one(i)
            terms += [run.picks(i), run.silent(i), run.once(i), *pass_is(self._scope, policy, i), *reads]
        return terms

    def summaries(self, case: Case) -> list[Summary]:
        """What the formulas of each policy answer. Raises `model.encode.OutOfScopeError` for a case too large."""
        pairs = Encoder(self._scope, case).assignment()
        values = [z3.is_true(v) for v in z3.simplify(z3.substitute(self._tuple, *pairs)).children()]
        parts = [values[i : i + self._width] for i in range(0, len(values), self._width)]
        return [self._summary(part) for part in parts]

    def _summary(self, values: list[bool]) -> Summary:
        missing, ambiguous, *rest = values
        if missing or ambiguous:
            return ("missing" if missing else "ambiguous"), None, None, (), 0
        width = len(rest) // self._scope.size.candidates
        rows = [rest[i : i + width] for i in range(0, len(rest), width)]
        picked = [i for i, row in enumerate(rows) if row[0]]
        if len(picked) != 1:
            return f"{len(picked)} picks", None, None, (), 0
        _, silent, once, *more = rows[picked[0]]
        passes = [str(s) for s, met in zip(STRICTEST_FIRST, more[:3], strict=True) if met]
        ones = tuple(j for j, read in enumerate(more[4:]) if read)
        return "selection", picked[0], passes[0] if passes else None, ones, 0 if silent else 1 if once else 2


def summary_of(outcome: Outcome, case: Case) -> Summary:
    """What `impl` answers, in the same words; candidates are numbered within the launch's function."""
    if not isinstance(outcome, Selection):
        missing = outcome.code == MissingTritonVariant.code
        return ("missing" if missing else "ambiguous"), None, None, (), 0
    own = case.capture.candidates(case.launch.fn)
    names = [arg.name for arg in case.launch.args]
    ones = tuple(names.index(name) for name in outcome.ones)
    strictness = None if outcome.strictness is None else str(outcome.strictness)
    return "selection", own.index(outcome.index), strictness, ones, len(outcome.log)


def disagreements(oracle: Oracle, case: Case) -> list[tuple[Policy, str]]:
    """The policies on which model and reference differ for the case, and how."""
    found = []
    for policy, modelled in zip(oracle.policies, oracle.summaries(case), strict=True):
        said = summary_of(replay(case, policy), case)
        if said != modelled:
            found.append((policy, f"the reference answers {said}, the model {modelled}"))
    return found
