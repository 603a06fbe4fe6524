"""Bounded proofs: decide a theorem for a policy in a scope, and find the smallest counterexample if it falls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import msgspec
import z3
from foldproof.impl.cases import Case
from foldproof.impl.errors import FoldproofError
from foldproof.impl.policy import Policy, load_policy
from foldproof.model.decode import Reader
from foldproof.model.minimise import fewest_assumptions, smallest_size, smallest_values
from foldproof.model.scope import Scope, Size, make_scope
from foldproof.model.selection import picked
from foldproof.model.statements import Setting
from foldproof.model.theorems import THEOREMS, Theorem, older
from foldproof.model.verdict import Counterexample, Status, Verdict
from foldproof.model.world import SOUND, Flaws

TIMEOUT_MS = 60_000
"""How long one question to the solver may take before it counts as undecided."""


@dataclass(frozen=True, slots=True)
class Question:
    """A theorem of a declared policy, asked of what runs: the policy itself, or a mutant of it."""

    theorem: Theorem
    policy: Policy
    running: Policy
    flaws: Flaws = SOUND
    old: Policy | None = None


@dataclass(slots=True)
class Bench:
    """Scopes and answers that several questions share: building the terms costs more than solving them."""

    largest: Size
    timeout_ms: int = TIMEOUT_MS
    _scopes: dict[Size, Scope] = field(default_factory=dict)
    _settings: dict[object, Setting] = field(default_factory=dict)

    @property
    def witness_size(self) -> Size:
        """The size of witnesses: two candidates of two args reach every pass of every policy of the zoo."""
        return replace(self.largest, candidates=min(2, self.largest.candidates), args=min(2, self.largest.args))

    def scope(self, size: Size) -> Scope:
        """The scope of a size."""
        if size not in self._scopes:
            self._scopes[size] = make_scope(size)
        return self._scopes[size]

    def setting(self, question: Question, size: Size) -> Setting:
        """The question's setting in the scope of a size."""
        key = (question.policy.name, question.running, question.flaws, question.old, size)
        if key not in self._settings:
            scope = self.scope(size)
            self._settings[key] = Setting(scope, question.policy, question.running, question.flaws, question.old)
        return self._settings[key]

    def solver(self) -> z3.Solver:
        """A fresh solver for quantifier-free bit-vectors."""
        solver = z3.SolverFor("QF_BV")
        solver.set("timeout", self.timeout_ms)
        return solver


def ask(bench: Bench, question: Question) -> Verdict:
    """Proved within the bench's largest size, refuted by the smallest counterexample, or undecided."""
    started = perf_counter()
    largest = bench.largest
    answer = refuting(bench, question, largest).check()
    status = {"unsat": Status.PROVED, "sat": Status.REFUTED}.get(str(answer), Status.UNDECIDED)
    found = smallest_counterexample(bench, question) if status == Status.REFUTED else None
    verdict = Verdict(
        question.theorem.id,
        question.policy.name,
        status,
        question.policy.promised(question.theorem.id, question.old.name if question.old else ""),
        scope=str(largest),
        old=question.old.name if question.old else "",
        counterexample=found,
        reason="" if status != Status.UNDECIDED else f"the solver gave up after {bench.timeout_ms / 1000:g} s",
    )
    if status == Status.PROVED:
        verdict = with_witnesses(bench, question, verdict)
    return msgspec.structs.replace(verdict, seconds=perf_counter() - started)


def smallest_counterexample(bench: Bench, question: Question) -> Counterexample | None:
    """The smallest case within the bench's largest size that breaks the theorem; None if there is none."""
    size = smallest_size(bench.largest, lambda size: refuting(bench, question, size).check() == z3.sat)
    if size is None:
        return None
    scope, solver = bench.scope(size), refuting(bench, question, size)
    fewest_assumptions(solver, scope)
    other = scope.same_class_launch()[0].launch if question.theorem.id == "T15" else None
    reader = Reader(smallest_values(solver, scope, other), scope)
    return _counterexample(reader, question, bench.setting(question, size), scope)


def refuting(bench: Bench, question: Question, size: Size, solver: z3.Solver | None = None) -> z3.Solver:
    """A solver for the cases of the size that break the theorem: the one given, or the bench's."""
    statement = question.theorem.state(bench.setting(question, size))
    solver = solver or bench.solver()
    solver.add(bench.scope(size).well_formed, statement.premise, z3.Not(statement.conclusion))
    return solver


def _counterexample(reader: Reader, question: Question, setting: Setting, scope: Scope) -> Counterexample:
    run = setting.run()
    picks = [i for i in range(scope.size.candidates) if reader.flag(run.picks(i))]
    other = scope.same_class_launch()[0].launch if question.theorem.id == "T15" else None
    return Counterexample(
        reader.case(f"{question.theorem.id} {question.running.name}"),
        picks[0] if picks else None,
        reader.flag(run.missing),
        reader.flag(run.ambiguous),
        None if other is None else reader.launch(other),
    )


def with_witnesses(bench: Bench, question: Question, verdict: Verdict) -> Verdict:
    """The proof with a case that meets its premises; undecided, with the reason, if it would be vacuous."""
    size = bench.witness_size
    setting = bench.setting(question, size)
    scope, run, statement = bench.scope(size), setting.run(), question.theorem.state(setting)
    solver = bench.solver()
    solver.add(scope.well_formed)
    reached = []
    for won, sweep in zip(run.won, question.running.passes, strict=True):
        under = solver.check(won, statement.premise) == z3.sat
        reached.append((str(sweep.rules), under or solver.check(won) == z3.sat, under))
    name = f"{verdict.theorem} {verdict.policy} premises"
    witness = witness_case(bench, [statement.premise, picked(scope, run)], size, name)
    witness = witness or witness_case(bench, [statement.premise], size, name)
    if witness is None:
        return msgspec.structs.replace(verdict, status=Status.UNDECIDED, reason="no case meets the premises")
    unreached = [sweep for sweep, at_all, _ in reached if not at_all]
    if unreached or not any(under for *_, under in reached):
        why = f"no launch reaches the pass {unreached[0]}" if unreached else "no pass is reached under the premises"
        return msgspec.structs.replace(verdict, status=Status.UNDECIDED, reason=why)
    return msgspec.structs.replace(verdict, witness=witness, reached=tuple(reached))


def witness_case(bench: Bench, wanted: Sequence[z3.BoolRef], size: Size, name: str) -> Case | None:
    """A case of the size in which all of `wanted` holds, None if there is none."""
    scope, solver = bench.scope(size), bench.solver()
    solver.add(scope.well_formed, *wanted)
    return Reader(smallest_values(solver, scope), scope).case(name) if solver.check() == z3.sat else None


def questions(policy: Policy, theorems: Sequence[str] = (), old: Policy | None = None) -> Iterator[Question | Verdict]:
    """A question for each theorem of the policy, or the verdict "not applicable" where a pair is missing.

    Raises `FoldproofError` for a theorem that does not exist.
    """
    for name in theorems:
        if name not in THEOREMS:
            raise FoldproofError(f"no theorem is named {name!r}", fix=f"one of {', '.join(THEOREMS)}")
    for theorem in (THEOREMS[name] for name in theorems or THEOREMS):
        before = old
        if theorem.pairwise and before is None and (name := older(policy, theorem.id)):
            before = load_policy(name)
        if theorem.pairwise and before is None:
            why = "it is about a pair of policies: name the older one with --old"
            yield Verdict(theorem.id, policy.name, Status.NOT_APPLICABLE, promised=False, reason=why)
            continue
        yield Question(theorem, policy, policy, old=before if theorem.pairwise else None)
