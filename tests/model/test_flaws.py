"""Each planted fault of the rules and the pass loop is what its words say: it admits what one rule refuses."""

from __future__ import annotations

from itertools import permutations, product

import pytest
import z3
from foldproof.impl import Selection, load_policy
from foldproof.impl.cases import Case
from foldproof.impl.rules import Reason, Rules, Strictness, refusals
from foldproof.model import rules as formulas
from foldproof.model.decode import Reader
from foldproof.model.encode import Encoder
from foldproof.model.mutants import IN_THE_CODE, Mutant
from foldproof.model.prove import Bench, Question, questions, refuting
from foldproof.model.scope import Size, make_scope
from foldproof.model.selection import answer as formula_answer
from foldproof.props.mutants import decide_as
from helpers import capture, i32, launch, param, variant

EXACT, GENERAL = Strictness.EXACT, Strictness.GENERAL
BOUND = {Reason.NOT_DIV16, Reason.DIV16_INEXACT}
WRONG_CONST = {Reason.CONST_DIFFERS, Reason.FOLDED}
ADMITS = {
    "exact-takes-one": (EXACT, {Reason.FOLDABLE}),
    "general-takes-one": (GENERAL, {Reason.FOLDABLE}),
    "exact-takes-lost-div16": (EXACT, {Reason.DIV16_UNUSED, Reason.DIV16_INEXACT}),
    "div16-ignored": (GENERAL, BOUND),
    "div16-ignored-on-ints": (GENERAL, BOUND),
    "div16-ignored-on-pointers": (GENERAL, {Reason.NOT_DIV16}),
    "div16-flipped": (GENERAL, BOUND),
    "div16-weakened-to-8": (GENERAL, {Reason.NOT_DIV16}),
    "nospec-ignored-by-div16": (GENERAL, {Reason.DIV16_INEXACT}),
    "noalign-ignored": (GENERAL, {Reason.DIV16_INEXACT}),
    "annotated-range-unchecked": (EXACT, {Reason.RANGE}),
    "i64-one-admitted": (EXACT, {Reason.ONE_I64}),
    "pointer-types-alike": (EXACT, {Reason.TYPE}),
    "range32-ignored": (EXACT, {Reason.RANGE32}),
    "range32-unsaid-admitted": (EXACT, {Reason.RANGE32}),
    "folded-without-the-value": (EXACT, {Reason.FOLDED}),
    "folded-takes-any-int-kind": (EXACT, {Reason.FOLDED}),
    "const-kinds-alike": (EXACT, WRONG_CONST),
    "const-value-ignored": (EXACT, {Reason.CONST_DIFFERS}),
    "absent-const-admitted": (EXACT, {Reason.CONST_ABSENT}),
    "named-consts-ignored": (EXACT, {Reason.CONST_ABSENT, Reason.CONST_DIFFERS}),
    "none-matches-any-const": (EXACT, {Reason.NOT_NONE}),
    "unplaced-arg-admitted": (EXACT, {Reason.UNPLACED}),
    "count-unchecked": (EXACT, {Reason.UNNAMED}),
    "num-warps-unchecked": (EXACT, {Reason.OPTION}),
}
"""By fault of a rule: a strictness under which it shows, and the reasons for refusal that it does away with."""
STRICTER = {
    "nospec-one-is-foldable": GENERAL,
    "div16-flipped": GENERAL,
    "nospec-ignored-by-div16": EXACT,
    "noalign-ignored": EXACT,
}
"""Faults that refuse what the rules admit, and a strictness under which they do."""
IN_THE_LOOP = {
    "log-every-launch": "T10",
    "log-dropped": "T10",
    "log-doubled": "T10",
    "log-only-two-ones": "T10",
    "bare-miss": "T05",
    "loop-stops-before-the-last-pass": "T05",
    "only-the-first-candidate": "T05",
    "second-best": "T09",
}
"""Faults of the pass loop, and a theorem of three-pass that each refutes."""
SCOPE = make_scope(Size(1, 1))


def admitted(strictness: Strictness, *flaws: str) -> z3.BoolRef:
    return formulas.admits(SCOPE.candidates[0], SCOPE.launch, Rules(strictness), frozenset(flaws))


def test_every_fault_in_the_code_is_tried_here() -> None:
    assert set(ADMITS) | set(STRICTER) | set(IN_THE_LOOP) == set(IN_THE_CODE)


@pytest.mark.parametrize("flaw", ADMITS)
def test_a_fault_admits_what_its_rule_alone_refuses(flaw: str) -> None:
    strictness, reasons = ADMITS[flaw]
    solver = z3.SolverFor("QF_BV")
    solver.add(SCOPE.well_formed, admitted(strictness, flaw), z3.Not(admitted(strictness)))
    found = set()
    for _ in range(12):
        if solver.check() != z3.sat:
            break
        model = solver.model()
        case = Reader(model, SCOPE).case(flaw)
        told = {r.reason for r in refusals(case.capture.kernels[0], case.launch, Rules(strictness))}
        assert told
        assert told <= reasons, case
        found |= told
        # Another kind or another place of the arg, for the next case.
        arg, place = SCOPE.launch.args[0], SCOPE.candidates[0].places[0]
        solver.add(z3.Or([t != model.eval(t, model_completion=True) for t in (arg.kind, place.on_param)]))
    assert found


LOOSER = [(flaw, ADMITS[flaw][0]) for flaw in ADMITS if flaw not in STRICTER]
LOOSER += [("div16-weakened-to-8", Strictness.LINKER)]


@pytest.mark.parametrize(("flaw", "strictness"), LOOSER)
def test_a_fault_that_admits_more_refuses_nothing_else(flaw: str, strictness: Strictness) -> None:
    solver = z3.SolverFor("QF_BV")
    solver.add(SCOPE.well_formed, admitted(strictness), z3.Not(admitted(strictness, flaw)))
    assert solver.check() == z3.unsat
    differ = z3.SolverFor("QF_BV")
    differ.add(SCOPE.well_formed, admitted(strictness, flaw), z3.Not(admitted(strictness)))
    assert differ.check() == z3.sat


@pytest.mark.parametrize(
    ("flaw", "strictness"),
    [
        ("exact-takes-one", GENERAL),
        ("general-takes-one", EXACT),
        ("exact-takes-lost-div16", GENERAL),
        ("exact-takes-lost-div16", Strictness.RUNTIME_ONE),
    ],
)
def test_a_fault_of_one_strictness_leaves_another_as_it_is(flaw: str, strictness: Strictness) -> None:
    solver = z3.SolverFor("QF_BV")
    solver.add(SCOPE.well_formed, admitted(strictness, flaw) != admitted(strictness))
    assert solver.check() == z3.unsat


@pytest.mark.parametrize("strictness", [GENERAL, Strictness.LINKER])
def test_what_is_weakened_to_8_takes_multiples_of_8_alone(strictness: Strictness) -> None:
    flaw, number = "div16-weakened-to-8", SCOPE.launch.args[0].number
    solver = z3.SolverFor("QF_BV")
    solver.add(SCOPE.well_formed, admitted(strictness, flaw), z3.Not(admitted(strictness)), z3.URem(number, 8) != 0)
    assert solver.check() == z3.unsat


@pytest.mark.parametrize("flaw", STRICTER)
def test_a_fault_refuses_what_the_rules_admit(flaw: str) -> None:
    solver = z3.SolverFor("QF_BV")
    solver.add(SCOPE.well_formed, admitted(STRICTER[flaw]), z3.Not(admitted(STRICTER[flaw], flaw)))
    assert solver.check() == z3.sat
    case = Reader(solver.model(), SCOPE).case(flaw)
    assert not list(refusals(case.capture.kernels[0], case.launch, Rules(STRICTER[flaw])))


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(Size(2, 2))


@pytest.mark.parametrize("flaw", IN_THE_LOOP)
def test_a_fault_of_the_loop_refutes_its_theorem(flaw: str, bench: Bench) -> None:
    policy = load_policy("three-pass")
    sound = next(q for q in questions(policy, [IN_THE_LOOP[flaw]]) if isinstance(q, Question))
    mutated = Question(sound.theorem, policy, policy, frozenset({flaw}), sound.old)
    assert refuting(bench, sound, Size(2, 2)).check() == z3.unsat
    assert refuting(bench, mutated, Size(2, 2)).check() == z3.sat


PAIR = make_scope(Size(2, 1))
READS = [
    {"params": [param("R")]},
    {"params": [param("R", div16=True)]},
    {"consts": {"R": {"int": 1}}},
    {"params": [param("R", nospec=True)]},
    {"params": [param("R"), param("S")]},
]


@pytest.mark.parametrize("policy", ["exact-first", "two-pass", "three-pass", "most-held"])
@pytest.mark.parametrize("flaw", IN_THE_LOOP)
def test_a_fault_of_the_loop_is_the_same_in_the_formulas_and_in_python(flaw: str, policy: str) -> None:
    running = load_policy(policy)
    run = formula_answer(PAIR, running, flaws=frozenset({flaw}))
    terms = [run.missing, run.ambiguous, *(of(i) for i in (0, 1) for of in (run.picks, run.silent, run.once))]
    together = z3.Function("answer", *(term.sort() for term in terms), z3.BoolSort())(*terms)
    for (one, other), value in product(permutations(READS, 2), (1, 7, 16)):
        case = Case("", capture(variant("A", **one), variant("B", **other)), launch(i32("R", value)))
        values = z3.simplify(z3.substitute(together, *Encoder(PAIR, case).assignment())).children()
        missing, ambiguous, *rows = map(z3.is_true, values)
        said: tuple[object, ...] = ("missing" if missing else "ambiguous" if ambiguous else "none",)
        for index, (picks, silent, once) in enumerate((rows[:3], rows[3:])):
            if picks:
                said = (index, 0 if silent else 1 if once else 2)
        told = decide_as(Mutant(flaw, "", running, frozenset({flaw})), case.capture, case.launch)
        if isinstance(told, Selection):
            assert said == (told.index, len(told.log)), case
        else:
            assert said == ("missing" if told.code == "MissingTritonVariant" else "ambiguous",), case
            listed = f" {case.launch.args[0].name}: " in told.detail
            assert run.dumps == listed or said == ("ambiguous",)


def test_a_theorem_about_passes_can_be_asked_where_the_last_one_never_runs(bench: Bench) -> None:
    asked = next(q for q in questions(load_policy("three-pass"), ["T02"]) if isinstance(q, Question))
    flaws = frozenset({"loop-stops-before-the-last-pass"})
    mutated = Question(asked.theorem, asked.policy, asked.running, flaws)
    assert refuting(bench, mutated, Size(2, 2)).check() == z3.unsat
