from __future__ import annotations

from itertools import product

import msgspec
import pytest
import z3
from foldproof.impl import ZOO, load_policy
from foldproof.impl.rules import Strictness
from foldproof.model.abstract import Abstract
from foldproof.model.lemmas import lemmas
from foldproof.model.matrix import mutant_row, settle, unbounded, with_lemmas
from foldproof.model.mutants import IN_THE_CODE, IN_THE_POLICY, TELLING, mutants
from foldproof.model.prove import Bench, Question, questions, refuting
from foldproof.model.scope import Size
from foldproof.model.solvers import Decision, Obligation, by_cvc5_text, by_z3_text, decide_text
from foldproof.model.theorems import THEOREMS
from foldproof.model.verdict import Status


def question(policy: str, theorem: str) -> Question:
    return next(q for q in questions(load_policy(policy), [theorem]) if isinstance(q, Question))


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(Size(2, 2))


def test_every_lemma_holds_by_both_solvers() -> None:
    decided = [decide_text(o.name, o.says, o.smt2()) for o in lemmas([load_policy(name) for name in ZOO])]
    assert [d.name for d in decided if not d.holds] == []
    assert len(decided) == len({d.name for d in decided}) > 50


SLOW = (pytest.mark.slow, pytest.mark.covering)


@pytest.mark.parametrize(
    "theorem", ["T01", *(pytest.param(t, marks=SLOW) for t in THEOREMS if t not in ("T01", "T09"))]
)
def test_recommended_is_proved_unbounded_by_both_solvers(theorem: str) -> None:
    obligation = unbounded(question("recommended", theorem))
    assert decide_text(obligation.name, obligation.says, obligation.smt2()).holds


@pytest.mark.parametrize("policy", ["two-pass", "three-pass", "recommended"])
def test_t01_is_proved_unbounded_and_some_mutant_refutes_it(policy: str, bench: Bench) -> None:
    settled = settle(bench, question(policy, "T01"), Size(2, 2))
    assert (settled.verdict.status, settled.verdict.scope) == (Status.PROVED, "unbounded")
    assert settled.verdict.killed_by
    assert settled.verdict.witness is not None
    assert settled.decision is not None
    assert settled.script.startswith(f"; theorem-T01-{policy}: If some candidate")


@pytest.mark.parametrize("policy", ["single-guard", "most-held", "linker-order"])
def test_what_is_refuted_does_not_follow_from_the_lemmas(policy: str) -> None:
    assert by_z3_text(unbounded(question(policy, "T01")).smt2()) == "sat"


def test_the_axioms_of_the_abstract_world_do_not_contradict_each_other() -> None:
    """A proof from contradictory premises would prove everything. T05 has no premise, T10 that something is picked."""
    for policy, theorem in product(ZOO, ("T05", "T10")):
        obligation = unbounded(question(policy, theorem))
        solver = z3.Solver()
        solver.set("timeout", 20_000)
        solver.add(*obligation.assumed)
        assert solver.check() == z3.sat, (policy, theorem)


def test_the_abstract_world_refuses_a_planted_fault() -> None:
    world = Abstract.fresh()
    rules = load_policy("three-pass").rules(Strictness.EXACT)
    with pytest.raises(NotImplementedError, match="no lemmas"):
        world.admits(z3.Const("c", z3.DeclareSort("Candidate")), rules, frozenset({"div16-ignored"}))


def test_two_solvers_disagree_or_give_up_loudly() -> None:
    holds = Obligation("o", "x is x", (), z3.Int("x") == z3.Int("x")).smt2()
    falls = Obligation("o", "x is y", (), z3.Int("x") == z3.Int("y")).smt2()
    assert (by_z3_text(holds), by_cvc5_text(holds)) == ("unsat", "unsat")
    assert (by_z3_text(falls), by_cvc5_text(falls)) == ("sat", "sat")
    assert (by_z3_text("(nonsense"), by_cvc5_text("(nonsense")) == ("unknown", "unknown")
    assert not Decision("o", "", "unsat", "unknown").holds


def test_a_fallen_lemma_takes_the_unbounded_proofs_with_it(bench: Bench) -> None:
    settled = settle(bench, question("three-pass", "T05"), None)
    assert settled.verdict.status == Status.PROVED
    fallen = [("", Decision("lemma-x", "", "unsat", "sat"))]
    (after,) = with_lemmas([settled], fallen)
    assert after.verdict.status == Status.UNDECIDED
    assert "lemma-x" in after.verdict.reason


def test_a_solver_that_gives_up_makes_a_theorem_undecided(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = Decision("o", "", "unsat", "unknown")
    monkeypatch.setattr("foldproof.model.matrix.decide_text", lambda *_: unknown)
    settled = settle(bench, question("three-pass", "T02"), None)
    assert settled.verdict.status == Status.UNDECIDED
    assert "cvc5 says unknown" in settled.verdict.reason


def test_mutants_are_forty_or_more_and_each_telling_one_exists() -> None:
    assert len(IN_THE_POLICY) + len(IN_THE_CODE) >= 40
    assert set(TELLING) == set(THEOREMS)
    for names in TELLING.values():
        assert set(names) <= set(IN_THE_POLICY) | set(IN_THE_CODE)
    for policy in ZOO:
        for mutant in mutants(load_policy(policy)):
            assert mutant.flaws or mutant.running != load_policy(policy)


@pytest.mark.parametrize(
    ("name", "killed"),
    [
        ("general-pass-takes-ones", {"T01", "T03", "T07", "T09", "T09c"}),
        ("log-doubled", {"T10"}),
        ("source-ignored", {"T02", "T05", "T07", "T11"}),
        ("div16-weakened-to-8", {"T02", "T04", "T05", "T07", "T09", "T09c", "T15"}),
        ("second-best", {"T08", "T09"}),
    ],
)
def test_a_mutant_of_three_pass_refutes(name: str, killed: set[str]) -> None:
    bench = Bench(Size(3, 2))
    policy = load_policy("three-pass")
    (mutant,) = mutants(policy, (name,))
    promised = [
        q
        for q in questions(policy)
        if isinstance(q, Question) and q.theorem.id not in ("T06", "T06v", "T12", "T13", "T14")
    ]
    found = set()
    for q in promised:
        mutated = Question(q.theorem, q.policy, mutant.running, mutant.flaws, q.old)
        if refuting(bench, mutated, Size(3, 2)).check() == z3.sat:
            found.add(q.theorem.id)
    assert found == killed


def test_a_mutant_that_no_theorem_sees_has_a_case_where_it_differs() -> None:
    policy = load_policy("recommended")
    (mutant,) = mutants(policy, ("twins-allowed",))
    proved = [q for q in questions(policy, ["T01", "T10", "T11"]) if isinstance(q, Question)]
    row = mutant_row(Bench(Size(2, 2)), mutant, proved)
    assert row.killed_by == ()
    assert row.differs is not None
    assert row.equivalent == ""


def test_a_mutant_that_changes_nothing_is_proved_equivalent() -> None:
    policy = load_policy("two-pass")
    doubled = msgspec.structs.replace(policy, passes=(*policy.passes, policy.passes[1]))
    proved = [q for q in questions(policy, ["T01", "T10"]) if isinstance(q, Question)]
    mutant = msgspec.structs.replace(next(mutants(policy)), name="general twice", running=doubled, flaws=frozenset())
    row = mutant_row(Bench(Size(2, 2)), mutant, proved)
    assert (row.killed_by, row.differs, row.equivalent) == ((), None, "3 variants x 2 params")
