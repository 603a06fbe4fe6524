"""The encoding that one would write first: the loop of a first-match policy, unrolled over the candidates.

What `foldproof bench` holds the proofs against. Launch, candidates and rules are those of a bounded scope; the loop of
`impl.select.decide` becomes one chain of if-then-else over the index of the pick, and nothing is shared or kept.
"""

from __future__ import annotations

import z3
from foldproof.impl.errors import FoldproofError
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Strictness
from foldproof.model import rules as formulas
from foldproof.model.rules import conj, disj
from foldproof.model.scope import Scope, Size, folded, make_scope
from foldproof.model.terms import Bits, Bool

INDEX_BITS = 16


def picked(scope: Scope, policy: Policy) -> Bits:
    """The index of the candidate that the loop ends with, the number of candidates for a miss.

    Raises `FoldproofError` for a policy that does more than take the first match: it has no such loop.
    """
    if any(sweep.choose not in ((), ("first",)) or sweep.refuse for sweep in policy.passes):
        raise FoldproofError("takes more than the first match", where=policy.name, fix="unroll a first-match policy")
    none = z3.BitVecVal(scope.size.candidates, INDEX_BITS)
    pick = none
    for sweep in policy.passes:
        rules = policy.rules(sweep.rules)
        for index, candidate in enumerate(scope.candidates):
            fits = z3.And(pick == none, formulas.admits(candidate, scope.launch, rules))
            pick = z3.If(fits, z3.BitVecVal(index, INDEX_BITS), pick)
    return pick


def decide_t01(policy: Policy, size: Size) -> str:
    """Z3's answer to "some case of the size breaks T01 folded-one-wins": sat, unsat or unknown."""
    scope = make_scope(size)
    general = policy.rules(Strictness.GENERAL)
    pick = picked(scope, policy)
    premise = disj(
        z3.And(formulas.admits(candidate, scope.launch, general), _folds_every_one(scope, index))
        for index, candidate in enumerate(scope.candidates)
    )
    kept = conj(z3.Implies(pick == index, z3.Not(_falls_back(scope, index))) for index in range(size.candidates))
    solver = z3.SolverFor("QF_BV")
    solver.add(scope.well_formed, premise, z3.Not(kept))
    return str(solver.check())


def _folds_every_one(scope: Scope, index: int) -> Bool:
    return conj(z3.Implies(formulas.is_one(a), folded(a, p)) for a, p in scope.placed(index))


def _falls_back(scope: Scope, index: int) -> Bool:
    return disj(z3.And(p.on_param, formulas.is_foldable_one(a, p.param)) for a, p in scope.placed(index))
