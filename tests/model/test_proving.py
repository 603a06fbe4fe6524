"""What a verdict says for each way in which a proof can end, and how the smallest counterexample is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from time import perf_counter
from typing import Any, ClassVar, Self

import msgspec
import pytest
import z3
from foldproof.impl import FoldproofError, Policy, Selection, load_policy
from foldproof.impl.cases import replay
from foldproof.impl.choose import KEYS
from foldproof.impl.policy import Pass
from foldproof.impl.rules import STRICTEST_FIRST, Strictness
from foldproof.model import matrix, minimise, prove
from foldproof.model.abstract import Abstract
from foldproof.model.matrix import (
    MUTANT_SIZES,
    MutantRow,
    Settled,
    _cross_checked,
    _killers,
    mutant_matrix,
    mutant_row,
    settle,
    with_lemmas,
)
from foldproof.model.minimise import fewest_assumptions, smallest_size
from foldproof.model.mutants import mutants
from foldproof.model.prove import Bench, Question, ask, questions, smallest_counterexample, with_witnesses
from foldproof.model.scope import Size, make_scope
from foldproof.model.selection import Answer, _key
from foldproof.model.solvers import Decision, Obligation, by_cvc5_text
from foldproof.model.statements import Setting, Statement, t09
from foldproof.model.theorems import THEOREMS, Theorem, older
from foldproof.model.tie.loops import tie_pass_loop
from foldproof.model.verdict import Status, Verdict

TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)
SMALL = Size(2, 2)
SCOPE = make_scope(SMALL)


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(SMALL)


def question(policy: str | Policy, theorem: str) -> Question:
    rules = load_policy(policy) if isinstance(policy, str) else policy
    return next(q for q in questions(rules, [theorem]) if isinstance(q, Question))


def about(state: Callable[[Setting], Statement], policy: Policy | None = None) -> Question:
    """A question about a theorem of our own, which no policy promises."""
    rules = policy or load_policy("two-pass")
    return Question(Theorem("T05", "ours", "It holds.", state), rules, rules)


# The words of a verdict.


def test_a_promise_is_broken_by_a_refutation_of_it_alone() -> None:
    words = {
        (status, promised): Verdict("T01", "p", status, promised).breaks_a_promise
        for status in Status
        for promised in (False, True)
    }
    assert [key for key, broken in words.items() if broken] == [(Status.REFUTED, True)]
    bare = Verdict("T01", "p", Status.PROVED, promised=False)
    assert bare == Verdict("T01", "p", Status.PROVED, False, "", "", "", None, None, (), (), 0.0)


@pytest.fixture(scope="module")
def broken(bench: Bench) -> Verdict:
    """T01 of single-guard."""
    return ask(bench, question("single-guard", "T01"))


def test_a_refuted_promise_has_its_counterexample_and_no_witness(broken: Verdict) -> None:
    assert (broken.status, broken.promised, broken.breaks_a_promise) == (Status.REFUTED, True, True)
    assert (broken.scope, broken.old, broken.reason) == ("2 variants x 2 params", "", "")
    assert broken.counterexample is not None
    assert broken.witness is None


def test_what_is_refuted_and_not_promised_is_a_finding(bench: Bench) -> None:
    found = ask(bench, question("exact-first", "T11"))
    assert (found.status, found.promised, found.breaks_a_promise) == (Status.REFUTED, False, False)


def test_a_verdict_about_a_pair_names_the_older_policy_that_is_promised(bench: Bench) -> None:
    verdict = ask(bench, question("three-pass", "T09"))
    assert (verdict.status, verdict.old, verdict.promised) == (Status.PROVED, "two-pass", True)
    assert older(load_policy("three-pass"), "T09") == "two-pass"
    assert older(load_policy("recommended"), "T09c") == "three-pass"
    assert older(load_policy("two-pass"), "T09") == "exact-first"
    assert older(load_policy("most-held"), "T09") == ""


def test_an_older_policy_that_is_named_is_the_one_that_is_asked_about() -> None:
    named = load_policy("exact-first")
    (asked,) = questions(load_policy("most-held"), ["T09"], named)
    assert isinstance(asked, Question)
    assert asked.old == named
    (instead,) = questions(load_policy("three-pass"), ["T09"], named)
    assert isinstance(instead, Question)
    assert instead.old == named
    (single,) = questions(load_policy("most-held"), ["T01"], named)
    assert isinstance(single, Question)
    assert single.old is None


def test_without_names_every_theorem_is_asked_and_an_unknown_one_is_bad_input() -> None:
    asked = list(questions(load_policy("two-pass")))
    assert [q.theorem.id for q in asked if isinstance(q, Question)] == list(THEOREMS)
    assert [
        q.theorem if isinstance(q, Verdict) else "" for q in questions(load_policy("most-held"), ["T09", "T10"])
    ] == [
        "T09",
        "",
    ]
    with pytest.raises(FoldproofError, match="no theorem is named 'T99'"):
        list(questions(load_policy("two-pass"), ["T01", "T99"]))


def test_t09_without_an_older_policy_is_refused() -> None:
    policy = load_policy("two-pass")
    with pytest.raises(ValueError, match="give the older one"):
        t09(Setting(make_scope(SMALL), policy, policy))


# Proofs that would say nothing.


def test_a_proof_whose_premises_nothing_meets_is_undecided(bench: Bench) -> None:
    verdict = ask(bench, about(lambda _: Statement(FALSE, TRUE)))
    assert (verdict.status, verdict.reason) == (Status.UNDECIDED, "no case meets the premises")
    assert verdict.witness is None


def test_a_proof_under_whose_premises_no_pass_is_reached_is_undecided(bench: Bench) -> None:
    verdict = ask(bench, about(lambda s: Statement(s.run().missing, TRUE)))
    assert (verdict.status, verdict.reason) == (Status.UNDECIDED, "no pass is reached under the premises")


def test_a_policy_with_a_pass_that_nothing_reaches_is_undecided(bench: Bench) -> None:
    exact = Pass(Strictness.EXACT)
    twice = Policy("twice", "the second pass is never reached", (exact, Pass(Strictness.EXACT, ("last",))))
    verdict = ask(bench, about(lambda _: Statement(TRUE, TRUE), twice))
    assert (verdict.status, verdict.reason) == (Status.UNDECIDED, "no launch reaches the pass exact")
    loose = Policy("loose", "neither stricter pass is reached", tuple(map(Pass, reversed(STRICTEST_FIRST))))
    verdict = ask(bench, about(lambda _: Statement(TRUE, TRUE), loose))
    assert (verdict.status, verdict.reason) == (Status.UNDECIDED, "no launch reaches the pass general")


def test_a_proof_keeps_a_case_that_meets_its_premises_and_what_is_reached(bench: Bench) -> None:
    started = perf_counter()
    verdict = ask(bench, question("two-pass", "T02"))
    assert verdict.status == Status.PROVED
    assert 0 < verdict.seconds <= perf_counter() - started
    assert verdict.reached == (("exact", True, True), ("general", True, False))
    assert verdict.witness is not None
    assert verdict.witness.name == "T02 two-pass premises"


def test_a_witness_that_is_picked_is_preferred_to_one_that_is_not(bench: Bench) -> None:
    asked = about(lambda _: Statement(TRUE, TRUE))
    started = Verdict("T05", "two-pass", Status.PROVED, promised=False)
    case = with_witnesses(bench, asked, started).witness
    assert case is not None
    assert isinstance(replay(case, load_policy("two-pass")), Selection)


def test_a_solver_that_gives_up_is_said_with_its_time() -> None:
    impatient = Bench(Size(3, 3), timeout_ms=1)
    verdict = ask(impatient, question("recommended", "T06"))
    assert (verdict.status, verdict.reason) == (Status.UNDECIDED, "the solver gave up after 0.001 s")
    assert verdict.counterexample is None


def test_a_theorem_that_holds_has_no_counterexample(bench: Bench) -> None:
    assert smallest_counterexample(bench, question("two-pass", "T05")) is None


def test_the_counterexample_of_t15_has_a_second_launch_and_no_other_has_one(
    bench: Bench, broken: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    smallest, beside = prove.smallest_values, []
    monkeypatch.setattr(
        prove, "smallest_values", lambda solver, scope, *more: beside.extend(more) or smallest(solver, scope, *more)
    )
    asked = question("three-pass", "T15")
    mutated = Question(asked.theorem, asked.policy, asked.running, frozenset({"div16-weakened-to-8"}))
    example = smallest_counterexample(bench, mutated)
    assert example is not None
    assert example.other_launch is not None
    (one,), (other,) = example.case.launch.args, example.other_launch.args
    assert [len(launch.args) for launch in beside] == [1]
    assert (one.name, one.kind) == (other.name, other.kind)
    assert one.number % 16 != 0
    assert other.number % 16 != 0
    assert (one.number % 8 == 0) != (other.number % 8 == 0)
    assert broken.counterexample is not None
    assert broken.counterexample.other_launch is None


def test_what_a_proof_is_about_does_not_change() -> None:
    for kind in (Question, Setting, Statement, Answer):
        assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    for struct in (Settled, MutantRow):
        assert struct.__struct_config__.frozen
    assert Bench(SMALL).timeout_ms == 60_000
    setting, twin = (Setting(SCOPE, load_policy("two-pass"), load_policy("two-pass")) for _ in range(2))
    before = repr(setting)
    assert setting.run() is setting.run()
    assert (setting, repr(setting)) == (twin, before)


def test_witnesses_are_two_by_two_at_most() -> None:
    assert Bench(Size(8, 8)).witness_size == Size(2, 2)
    assert Bench(Size(1, 3)).witness_size == Size(1, 2)
    assert Bench(Size(3, 1)).witness_size == Size(2, 1)


# The smallest size.


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ((1, 0, 0, 0), Size(1, 0, 0, 0)),
        ((2, 3, 0, 0), Size(2, 3, 0, 0)),
        ((3, 1, 0, 1), Size(3, 1, 0, 1)),
        ((1, 1, 1, 0), Size(1, 1, 1, 0)),
        ((4, 4, 1, 1), Size(4, 4, 1, 1)),
        ((5, 0, 0, 0), None),
        ((1, 5, 0, 0), None),
    ],
)
def test_the_smallest_size_that_breaks(needs: tuple[int, int, int, int], expected: Size | None) -> None:
    def breaks(size: Size) -> bool:
        has = (size.candidates, size.args, size.named, size.free)
        return all(given >= needed for given, needed in zip(has, needs, strict=True))

    assert smallest_size(Size(4, 4), breaks) == expected


def test_the_least_size_has_a_candidate() -> None:
    assert smallest_size(Size(3, 3), lambda _: True) == Size(1, 0, 0, 0)


def test_no_more_constants_than_the_largest_size_has() -> None:
    assert smallest_size(Size(2, 2, 0, 0), lambda size: size.args > 0) == Size(1, 1, 0, 0)
    asked: list[Size] = []
    smallest_size(Size(2, 2, 1, 0), lambda size: bool(asked.append(size)) or size.named > 0)
    assert all(size.free == 0 for size in asked)


class Unsure:
    """A solver that never knows, and counts what is left pushed."""

    def __init__(self) -> None:
        self.depth = self.asked = 0

    def push(self) -> None:
        self.depth += 1

    def pop(self) -> None:
        self.depth -= 1

    def add(self, *_: object) -> None:
        self.asked += 1

    def check(self, *_: object) -> z3.CheckSatResult:
        return z3.unknown


def test_a_solver_that_never_knows_is_left_as_it_was() -> None:
    solver = Unsure()
    fewest_assumptions(solver, make_scope(Size(1, 0)))  # type: ignore[arg-type]
    assert (solver.depth, solver.asked) == (0, 1024)


def test_a_counterexample_says_no_more_than_it_must(broken: Verdict) -> None:
    """One variant reads R, one has it folded; no option, source, constant or pointer besides."""
    example = broken.counterexample
    assert example is not None
    launch, kernels = example.case.launch, example.case.capture.kernels
    assert [(a.name, a.kind, a.number) for a in launch.args] == [("R", "i32", 1), ("S", "i32", 0)]
    assert (launch.options, launch.source, launch.consts, example.case.before) == ((), None, {}, ())
    assert [v.hash for v in kernels] == ["A", "B"]
    for variant in kernels:
        assert (variant.options, variant.source) == ((4, 0, None, None), None)
        assert not any(p.nospec or p.noalign or p.annotated or p.range32 for p in variant.params)
    assert not any(p.div16 for v in kernels for p in v.params)
    assert sorted(len(v.params) for v in kernels) == [1, 2]
    assert sorted(name for v in kernels for name in v.consts) == ["R"]
    assert (example.missing, example.ambiguous, example.pick is None) == (False, False, False)


def test_the_values_of_a_case_are_the_same_each_time() -> None:
    def values() -> list[str]:
        scope, solver = make_scope(Size(2, 2)), z3.SolverFor("QF_BV")
        solver.add(scope.well_formed, scope.candidates[0].free[0].present)
        model = minimise.smallest_values(solver, scope)
        return sorted(f"{name} = {model[name]}" for name in model.decls())

    assert values() == values()


def test_a_case_is_the_same_whatever_the_solver_was_asked_before() -> None:
    def kept(policy: str, theorem: str) -> object:
        verdict = ask(Bench(Size(2, 2)), question(policy, theorem))
        return verdict.counterexample or verdict.witness

    asked = [("two-pass", "T13"), ("three-pass", "T12"), ("three-pass", "T01")]
    before = [kept(*one) for one in asked]
    assert all(before)
    assert [kept(*one) for one in reversed(asked)] == before[::-1]


def test_a_wish_that_cannot_be_had_is_given_up() -> None:
    scope = make_scope(Size(1, 1))
    solver = z3.SolverFor("QF_BV")
    arg = scope.launch.args[0]
    solver.add(scope.well_formed, arg.kind == 0, arg.number == 5)
    model = minimise.smallest_values(solver, scope)
    assert model.eval(arg.number).as_long() == 5
    assert model.eval(scope.candidates[0].rank, model_completion=True).as_long() == 0


# The matrix.


class Here:
    """A pool of threads or processes whose work is done at once, in this one."""

    workers: ClassVar[list[int]] = []
    submitted: ClassVar[list[tuple[Any, ...]]] = []

    def __init__(self, workers: int, **_: object) -> None:
        self.workers.append(workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, do: Callable[..., Any], *args: Any) -> Future[Any]:
        self.submitted.append(args)
        future: Future[Any] = Future()
        future.set_result(do(*args))
        return future

    def map(self, do: Callable[..., Any], values: Iterable[Any], **_: object) -> list[Any]:
        return [do(value) for value in values]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "ThreadPoolExecutor", Here)
    monkeypatch.setattr(matrix, "ProcessPoolExecutor", Here)
    Here.workers.clear()
    Here.submitted.clear()


LEMMA = Obligation("lemma-x", "x is x", (), z3.Int("x") == z3.Int("x"))


@pytest.mark.usefixtures("here")
def test_the_matrix_is_in_the_order_of_its_policies_with_each_lemma_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def settled(bench: Bench, of: Question, cross: Size | None, effort: int) -> Settled:
        asked.append((of.policy.name, bench, cross, effort))
        return Settled(Verdict(of.theorem.id, of.policy.name, Status.PROVED, promised=False))

    monkeypatch.setattr(matrix, "settle", settled)
    monkeypatch.setattr(matrix, "lemmas", lambda _: iter([LEMMA]))
    policies = [load_policy(name) for name in ("exact-first", "recommended", "two-pass")]
    ticks: list[str] = []
    cells, found = matrix.matrix(policies, ["T11", "T09"], cross=Size(4, 4), tick=ticks.append, effort=5)
    assert [(c.verdict.policy, c.verdict.theorem, c.verdict.status) for c in cells] == [
        ("exact-first", "T11", Status.PROVED),
        ("exact-first", "T09", Status.NOT_APPLICABLE),
        ("recommended", "T11", Status.PROVED),
        ("recommended", "T09", Status.PROVED),
        ("two-pass", "T11", Status.PROVED),
        ("two-pass", "T09", Status.PROVED),
    ]
    assert [(script, d.name, d.holds) for script, d in found] == [(LEMMA.smt2(), "lemma-x", True)]
    assert sorted(ticks[:-1]) == ["exact-first", "recommended", "two-pass"]
    assert ticks[-1] == "lemmas"
    assert {(cross, effort) for *_, cross, effort in asked} == {(Size(4, 4), 5)}
    assert len({id(bench) for _, bench, *_ in asked}) == len({(name, id(bench)) for name, bench, *_ in asked}) == 3
    assert {bench.largest for _, bench, *_ in asked} == {SMALL}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("cores", "workers"), [(None, 1), (3, 3)])
def test_a_matrix_runs_on_all_cores_the_heaviest_policy_first(
    cores: int | None, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr(matrix, "lemmas", lambda _: iter(()))
    monkeypatch.setattr(matrix, "mutants", lambda *_: iter(()))
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(matrix, "_settle_policy", lambda *args: asked.append(args) or [])
    exact = Strictness.EXACT
    light = Policy("light", "one key", (Pass(exact, ("first",)),))
    heavy = Policy("heavy", "one key and two refusals", (Pass(exact, ("first",), ("twins", "free-constants")),))
    matrix.matrix([light, heavy])
    mutant_matrix(light, [])
    alone = 1  # a process for each policy and one for the lemmas: nothing depends on what another was asked
    assert Here.workers == [workers, alone, alone, alone, workers]
    assert [args[0] for args in Here.submitted if isinstance(args[0], Policy)] == [heavy, light]
    assert {args[1:] for args in asked} == {((), None, Size(8, 8), matrix.EFFORT)}


@pytest.mark.usefixtures("here")
def test_a_row_for_each_mutant_in_the_order_of_the_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = load_policy("two-pass")
    chosen = list(mutants(policy, ("general-pass-takes-ones", "log-doubled", "bare-miss")))

    def few(of: Policy, names: tuple[str, ...] = ()) -> Iterator[Any]:
        return iter([m for m in chosen if not names or m.name in names]) if of == policy else iter(())

    monkeypatch.setattr(matrix, "mutants", few)
    ticks: list[str] = []
    rows = mutant_matrix(policy, ["T05", "T10"], ticks.append)
    assert [(row.mutant, row.killed_by) for row in rows] == [
        ("general-pass-takes-ones", ("T05", "T10")),
        ("log-doubled", ()),
        ("bare-miss", ("T05",)),
    ]
    assert [row.says for row in rows] == [m.says for m in chosen]
    assert ticks == ["two-pass"]


def test_a_mutant_is_killed_by_the_theorems_that_it_refutes(bench: Bench) -> None:
    policy = load_policy("two-pass")
    (mutant,) = mutants(policy, ("general-pass-takes-ones",))
    row = mutant_row(bench, mutant, [question("two-pass", t) for t in ("T01", "T04")])
    assert (row.policy, row.mutant, row.killed_by) == ("two-pass", "general-pass-takes-ones", ("T01",))
    assert (row.differs, row.equivalent) == (None, "")


def test_what_is_refuted_is_settled_without_a_proof(bench: Bench) -> None:
    settled = settle(bench, question("exact-first", "T11"), SMALL)
    assert (settled.verdict.status, settled.script, settled.decision) == (Status.REFUTED, "", None)


def test_standing_lemmas_change_nothing_and_a_fallen_one_only_what_rests_on_it() -> None:
    bounded = Settled(Verdict("T01", "p", Status.PROVED, promised=True, scope="2 variants x 2 params"))
    proved = Settled(Verdict("T02", "p", Status.PROVED, promised=True, scope="unbounded"))
    holds, falls = (("", Decision(name, "", "unsat", said)) for name, said in (("a", "unsat"), ("b", "sat")))
    assert with_lemmas([bounded, proved], [holds]) == (bounded, proved)
    kept, fallen = with_lemmas([bounded, proved], [holds, falls])
    assert kept == bounded
    assert (fallen.verdict.status, fallen.verdict.scope) == (Status.UNDECIDED, "unbounded")
    assert fallen.verdict.reason == "a lemma does not hold by both solvers: b"
    (fallen,) = with_lemmas([proved], [falls, ("", Decision("c", "", "sat", "sat"))])
    assert fallen.verdict.reason == "a lemma does not hold by both solvers: b"


def decided(monkeypatch: pytest.MonkeyPatch, z3_says: str, cvc5_says: str) -> None:
    monkeypatch.setattr(matrix, "decide_text", lambda *_: Decision("o", "", z3_says, cvc5_says))


def test_what_does_not_follow_from_the_lemmas_is_proved_in_its_scope_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided(monkeypatch, "sat", "unknown")
    asked: list[Size] = []
    monkeypatch.setattr(matrix, "ask", _kept(asked, matrix.ask))
    verdict = settle(bench, question("exact-first", "T08"), None).verdict
    assert (verdict.status, verdict.scope) == (Status.PROVED, "3 variants x 3 params")
    assert verdict.reason == "unbounded: Z3 says sat, cvc5 says unknown: it does not follow from the lemmas alone"
    assert asked == [SMALL, Size(3, 3)]


def _kept(asked: list[Size], ask_: Callable[[Bench, Question], Verdict]) -> Callable[[Bench, Question], Verdict]:
    def spy(bench: Bench, asked_of: Question) -> Verdict:
        asked.append(bench.largest)
        return ask_(bench, asked_of)

    return spy


def test_a_wider_counterexample_beats_a_proof_that_failed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    decided(monkeypatch, "sat", "sat")
    proved = Verdict("T08", "exact-first", Status.PROVED, promised=True, scope="2 variants x 2 params")
    answers = iter([proved, msgspec.structs.replace(proved, status=Status.REFUTED)])
    monkeypatch.setattr(matrix, "ask", lambda *_: next(answers))
    settled = settle(bench, question("exact-first", "T08"), SMALL)
    assert settled.verdict.status == Status.REFUTED
    assert settled.decision is not None
    assert settled.verdict.killed_by == ()


def test_a_proof_that_no_mutant_refutes_is_undecided(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    decided(monkeypatch, "unsat", "unsat")
    monkeypatch.setattr(matrix, "_killers", lambda *_: iter(()))
    verdict = settle(bench, question("exact-first", "T08"), None).verdict
    assert verdict.status == Status.UNDECIDED
    assert verdict.reason == "no mutant of the policy refutes it, so the proof may be vacuous"


class Says:
    """A solver with its answer given."""

    def __init__(self, answer: str) -> None:
        self.answer = {"sat": z3.sat, "unsat": z3.unsat, "unknown": z3.unknown}[answer]
        self.limits: list[tuple[str, int]] = []

    def set(self, name: str, value: int) -> None:
        self.limits.append((name, value))

    def check(self) -> z3.CheckSatResult:
        return self.answer


PROVED = Verdict("T08", "exact-first", Status.PROVED, promised=True, scope="unbounded")


@pytest.mark.parametrize(
    ("says", "cross", "status", "reason"),
    [
        (["unsat"], Size(4, 4), Status.PROVED, "also 4 variants x 4 params"),
        (["sat"], Size(4, 4), Status.REFUTED, "4 variants x 4 params: Z3 finds a case"),
        (
            ["unknown", "unsat"],
            Size(8, 8),
            Status.PROVED,
            "also 4 variants x 4 params (8 variants x 8 params: beyond the effort of the cross-check)",
        ),
        (["unknown", "unknown", "sat"], Size(4, 4), Status.REFUTED, "2 variants x 2 params: Z3 finds a case"),
        (
            ["unknown"] * 3,
            Size(4, 4),
            Status.PROVED,
            "no cross-check (4 variants x 4 params: beyond the effort of the cross-check)",
        ),
        (
            ["unknown"],
            Size(2, 2),
            Status.PROVED,
            "no cross-check (2 variants x 2 params: beyond the effort of the cross-check)",
        ),
    ],
)
def test_the_cross_check_is_the_largest_that_the_effort_allows(  # noqa: PLR0913, PLR0917 (a table and its fixtures)
    bench: Bench, monkeypatch: pytest.MonkeyPatch, says: list[str], cross: Size, status: Status, reason: str
) -> None:
    solvers = [Says(answer) for answer in says]
    left = iter(solvers)
    sizes: list[Size] = []
    monkeypatch.setattr(matrix, "refuting", lambda *args: sizes.append(args[2]) or next(left))
    verdict = _cross_checked(bench, question("exact-first", "T08"), PROVED, cross, 123)
    assert (verdict.status, verdict.reason) == (status, reason)
    assert next(left, None) is None
    assert all(solver.limits == [("rlimit", 123)] for solver in solvers)
    smaller = [Size(4, 4), Size(3, 3), Size(2, 2)]
    assert sizes == [cross, *smaller[smaller.index(cross) + 1 if cross in smaller else 0 :]][: len(says)]


def test_what_is_proved_and_nothing_else_is_cross_checked_where_a_size_is_given(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided(monkeypatch, "unsat", "unsat")
    asked = question("exact-first", "T08")
    for cross, reason in ((Size(3, 2), "also 3 variants x 2 params"), (None, "also 2 variants x 2 params")):
        verdict = settle(bench, asked, cross).verdict
        assert (verdict.status, verdict.reason) == (Status.PROVED, reason)
        assert verdict.killed_by
    decided(monkeypatch, "unsat", "unknown")
    verdict = settle(bench, asked, Size(3, 2)).verdict
    assert (verdict.status, verdict.killed_by) == (Status.UNDECIDED, ())
    assert verdict.reason == "unbounded: Z3 says unsat, cvc5 says unknown"


@pytest.mark.parametrize(("effort", "has_own"), [(0, False), (123, True)])
def test_a_cross_check_of_bounded_effort_has_a_solver_of_its_own(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, effort: int, has_own: bool
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(matrix, "refuting", lambda *args: given.append(args[3]) or Says("unsat"))
    _cross_checked(bench, question("exact-first", "T08"), PROVED, SMALL, effort)
    assert [solver is not None for solver in given] == [has_own]


def test_a_killer_is_looked_for_among_the_telling_and_then_among_all(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Size, str]] = []
    policy = load_policy("exact-first")
    every = {(m.running, m.flaws): m.name for m in mutants(policy)}

    def refuting(_: Bench, mutated: Question, size: Size) -> Says:
        asked.append((size, every[mutated.running, mutated.flaws]))
        return Says("sat" if len(asked) == stop else "unsat")

    monkeypatch.setattr(matrix, "refuting", refuting)
    assert (Size(2, 2), Size(3, 2)) == MUTANT_SIZES
    stop = -1
    assert list(_killers(bench, question("exact-first", "T08"))) == []
    assert asked[:2] == [(MUTANT_SIZES[0], "second-best"), (MUTANT_SIZES[1], "second-best")]
    assert sorted(name for size, name in asked if size == MUTANT_SIZES[1]) == sorted(every.values())
    assert len(asked) == 1 + len(every)
    stop, found = 2, len(asked)
    asked.clear()
    assert list(_killers(bench, question("exact-first", "T08"))) == ["second-best"]
    assert len(asked) == 2 < found


# Worlds, keys and solvers.


@pytest.mark.parametrize("key", KEYS)
def test_each_key_of_the_policy_language_has_the_formula_of_its_python(key: str) -> None:
    policy = Policy("one-key", "a pass that prefers by one key", (Pass(Strictness.RUNTIME_ONE, (key,)),))
    assert [tied.gap for tied in tie_pass_loop(policy, 2) if tied.gap] == []


def test_a_key_without_a_formula_is_refused() -> None:
    scope = make_scope(Size(1, 1))
    with pytest.raises(NotImplementedError, match="'luckiest' has no formula"):
        _key(scope, "luckiest", 0, scope.order)


def test_the_abstract_world_knows_of_two_ones_and_warnings_no_more_than_their_names() -> None:
    world = Abstract.fresh()
    (any_,) = world.any_candidate()
    solver = z3.Solver()
    for flag in (world.reads_two_ones(any_), world.warned(any_)):
        assert solver.check(flag) == z3.sat
        assert solver.check(z3.Not(flag)) == z3.sat
    assert not world.reads_two_ones(any_).eq(world.warned(any_))


def test_a_script_that_says_something_else_is_unknown() -> None:
    assert by_cvc5_text('(set-logic ALL)(echo "hello")(check-sat)') == "unknown"
