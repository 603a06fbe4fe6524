"""The matrix policy x theorem: counterexamples, unbounded proofs by two solvers, cross-checks, mutants."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from time import perf_counter
from typing import TypeVar

import msgspec
import z3
from foldproof.impl.cases import Case
from foldproof.impl.orphans import end_with_parent
from foldproof.impl.policy import Policy
from foldproof.model.abstract import Abstract
from foldproof.model.lemmas import lemmas
from foldproof.model.mutants import TELLING, Mutant, mutants
from foldproof.model.prove import Bench, Question, ask, questions, refuting, witness_case
from foldproof.model.rules import disj
from foldproof.model.scope import Size
from foldproof.model.selection import answer
from foldproof.model.solvers import Decision, Obligation, decide_text
from foldproof.model.statements import Setting
from foldproof.model.verdict import Status, Verdict

SEARCH = Size(2, 2)
"""Where counterexamples are looked for first: every theorem of the zoo that falls, falls here."""
WIDER = Size(3, 3)
"""Where they are looked for next, if the unbounded proof fails."""
CROSS_CHECK = Size(8, 8)
SMALLER = (Size(4, 4), Size(3, 3), Size(2, 2))
EFFORT = 4_000_000
"""Z3's resource units for one cross-check: about half a second."""
MUTANT_SIZES = (Size(2, 2), Size(3, 2))
Tick = Callable[[str], None]
T = TypeVar("T")


class Settled(msgspec.Struct, frozen=True):
    """A verdict, and the script of its unbounded obligation with both solvers' answers, if one was decided."""

    verdict: Verdict
    script: str = ""
    decision: Decision | None = None


class MutantRow(msgspec.Struct, frozen=True):
    """A mutant of a policy: the theorems that it refutes, else a case where it differs, else a proof that it does not.

    `killed_by` names theorems; `differs` is a case; `equivalent` is the scope in which no case tells it apart.
    """

    policy: str
    mutant: str
    says: str
    killed_by: tuple[str, ...]
    differs: Case | None = None
    equivalent: str = ""


def with_lemmas(cells: Sequence[Settled], lemmas: Sequence[tuple[str, Decision]]) -> tuple[Settled, ...]:
    """A proof stands only if every lemma does."""
    fallen = [decision.name for _, decision in lemmas if not decision.holds]
    if not fallen:
        return tuple(cells)
    why = f"a lemma does not hold by both solvers: {fallen[0]}"
    return tuple(
        msgspec.structs.replace(c, verdict=msgspec.structs.replace(c.verdict, status=Status.UNDECIDED, reason=why))
        if c.verdict.scope == "unbounded"
        else c
        for c in cells
    )


def unbounded(question: Question) -> Obligation:
    """The obligation that proves the question for any number of candidates and args."""
    world = Abstract.fresh()
    statement = question.theorem.state(Setting(world, question.policy, question.running, question.flaws, question.old))
    name = f"theorem-{question.theorem.id}-{question.policy.name}"
    if question.old is not None:
        name += f"-over-{question.old.name}"
    return Obligation(name, question.theorem.sentence, (*world.axioms, statement.premise), statement.conclusion)


def settle(bench: Bench, question: Question, cross: Size | None, effort: int = EFFORT) -> Settled:
    """Refuted by the smallest counterexample; else proved unbounded by both solvers and cross-checked; else less."""
    started = perf_counter()
    verdict = ask(bench, question)
    if verdict.status != Status.PROVED:
        return Settled(verdict)
    obligation = unbounded(question)
    script = obligation.smt2()
    decision = decide_text(obligation.name, obligation.says, script)
    if not decision.holds:
        verdict = ask(replace(bench, largest=WIDER), question)
    if verdict.status == Status.PROVED:
        verdict = _combined(verdict, decision)
    if verdict.status == Status.PROVED and cross is not None:
        verdict = _cross_checked(bench, question, verdict, cross, effort)
    if verdict.status == Status.PROVED:
        killers = tuple(_killers(bench, question))
        verdict = msgspec.structs.replace(verdict, killed_by=killers)
        if not killers:
            why = "no mutant of the policy refutes it, so the proof may be vacuous"
            verdict = msgspec.structs.replace(verdict, status=Status.UNDECIDED, reason=why)
    return Settled(msgspec.structs.replace(verdict, seconds=perf_counter() - started), script, decision)


def _combined(verdict: Verdict, decision: Decision) -> Verdict:
    if decision.holds:
        return msgspec.structs.replace(verdict, scope="unbounded", reason=f"also {verdict.scope}")
    said = f"unbounded: Z3 says {decision.z3}, cvc5 says {decision.cvc5}"
    if decision.z3 == "sat":
        return msgspec.structs.replace(verdict, reason=f"{said}: it does not follow from the lemmas alone")
    return msgspec.structs.replace(verdict, status=Status.UNDECIDED, reason=said)


def _cross_checked(bench: Bench, question: Question, verdict: Verdict, cross: Size, effort: int) -> Verdict:
    """The proof, cross-checked against the bounded formulas in the largest size that Z3's effort allows.

    Effort is counted by the solver, not by a clock, so that two runs say the same.
    """
    gave_up = ""
    for size in dict.fromkeys((cross, *(s for s in SMALLER if s.candidates < cross.candidates))):
        # The tactics of QF_BV turn a whole formula into clauses at once. A check of little effort is over before that
        # with Z3's core; at 64 x 24 only the clauses get there.
        solver = refuting(bench, question, size, z3.SimpleSolver() if effort else None)
        solver.set("rlimit", effort)
        found = str(solver.check())
        if found == "unsat":
            return msgspec.structs.replace(verdict, reason=f"also {size}{gave_up}")
        if found == "sat":
            return msgspec.structs.replace(verdict, status=Status.REFUTED, reason=f"{size}: Z3 finds a case")
        gave_up = f" ({cross}: beyond the effort of the cross-check)"
    return msgspec.structs.replace(verdict, reason=f"no cross-check{gave_up}")


def _mutated(question: Question, mutant: Mutant) -> Question:
    return Question(question.theorem, question.policy, mutant.running, mutant.flaws, question.old)


def _killers(bench: Bench, question: Question) -> Iterator[str]:
    """The first mutant that refutes the theorem: the telling ones are tried first, then all."""
    telling = tuple(mutants(question.policy, TELLING[question.theorem.id]))
    rest = tuple(m for m in mutants(question.policy) if m not in telling)
    for size in MUTANT_SIZES:
        for mutant in (*telling, *rest) if size == MUTANT_SIZES[-1] else telling:
            if refuting(bench, _mutated(question, mutant), size).check() == z3.sat:
                yield mutant.name
                return


def mutant_row(bench: Bench, mutant: Mutant, proved: Sequence[Question]) -> MutantRow:
    """Which proved theorems the mutant refutes; if none, whether it differs from the policy at all."""
    policy = proved[0].policy
    for size in MUTANT_SIZES:
        killed = tuple(
            question.theorem.id
            for question in proved
            if refuting(bench, _mutated(question, mutant), size).check() == z3.sat
        )
        if killed:
            return MutantRow(policy.name, mutant.name, mutant.says, killed)
    size = MUTANT_SIZES[-1]
    scope = bench.scope(size)
    ours, theirs = answer(scope, policy), answer(scope, mutant.running, flaws=mutant.flaws)
    differs = disj(
        [ours.missing != theirs.missing, ours.ambiguous != theirs.ambiguous]
        + [ours.picks(i) != theirs.picks(i) for i in range(size.candidates)]
    )
    case = witness_case(bench, [differs], size, f"{mutant.name} differs from {policy.name}")
    return MutantRow(policy.name, mutant.name, mutant.says, (), case, "" if case else str(size))


def _settle_policy(
    policy: Policy, theorems: Sequence[str], old: Policy | None, cross: Size | None, effort: int
) -> list[Settled]:
    bench = Bench(SEARCH)
    asked = questions(policy, theorems, old)
    return [settle(bench, q, cross, effort) if isinstance(q, Question) else Settled(q) for q in asked]


def _mutants_of(policy: Policy, names: tuple[str, ...], theorems: Sequence[str]) -> list[MutantRow]:
    bench = Bench(SEARCH)
    asked = [q for q in questions(policy, theorems) if isinstance(q, Question)]
    return [mutant_row(bench, mutant, asked) for mutant in mutants(policy, names)]


def _decide_all(obligations: Sequence[tuple[str, str, str]]) -> list[Decision]:
    return [decide_text(*one) for one in obligations]


def _alone(do: Callable[..., T], *args: object) -> T:
    """Do it in a process that does nothing else.

    Z3 numbers terms as they are made: a script's names, and how far an effort gets, depend on all that came before.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        return pool.submit(do, *args).result()


def matrix(  # noqa: PLR0913, PLR0917 (the whole of what is asked)
    policies: Sequence[Policy],
    theorems: Sequence[str] = (),
    old: Policy | None = None,
    cross: Size | None = CROSS_CHECK,
    tick: Tick = lambda _: None,
    effort: int = EFFORT,
) -> tuple[list[Settled], list[tuple[str, Decision]]]:
    """Every cell of the matrix, and each lemma's script with both solvers' answers. Runs on all cores.

    `tick` is told the name of each policy, and "lemmas", as it is done. `effort` bounds each cross-check, 0 does not.
    """
    scripts = [(o.name, o.says, o.smt2()) for o in lemmas(policies)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        # The policies with most to choose take longest, so they start first.
        heaviest = sorted(policies, key=lambda p: -sum(len(s.choose) + len(s.refuse) for s in p.passes))
        jobs = {threads.submit(_alone, _settle_policy, p, theorems, old, cross, effort): p.name for p in heaviest}
        decided = threads.submit(_alone, _decide_all, scripts)
        for job in as_completed(jobs):
            tick(jobs[job])
        cells = {jobs[job]: job.result() for job in jobs}
        found = [(script, decision) for (_, _, script), decision in zip(scripts, decided.result(), strict=True)]
        tick("lemmas")
    return [cell for policy in policies for cell in cells[policy.name]], found


def mutant_matrix(policy: Policy, proved: Sequence[str], tick: Tick = lambda _: None) -> list[MutantRow]:
    """A row for each mutant of the policy against the theorems that are proved of it. Runs on all cores."""
    names = [m.name for m in mutants(policy)]
    workers = os.cpu_count() or 1
    parts = [tuple(names[i::workers]) for i in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        jobs = [pool.submit(_mutants_of, policy, part, proved) for part in parts if part]
        rows = {row.mutant: row for job in as_completed(jobs) for row in job.result()}
    tick(policy.name)
    return [rows[name] for name in names]
