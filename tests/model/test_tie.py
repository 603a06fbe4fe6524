from __future__ import annotations

import ast
import importlib
import inspect
from types import ModuleType

import pytest
import z3
from foldproof.impl import ZOO, load_policy
from foldproof.impl.launch import Arg, Kind
from foldproof.model.tie.args import Gap, Tied, tie_args, tie_counts, tie_parts
from foldproof.model.tie.loops import patched, tie_argument_loop, tie_pass_loop
from foldproof.model.tie.mutate import RULE_FUNCTIONS, operator_mutants
from foldproof.model.tie.symbolic import Flag, Name, Paths, TieError, Whole
from foldproof.model.tie.tie import first_gap

rules = importlib.import_module("foldproof.impl.rules")
select = importlib.import_module("foldproof.impl.select")
choose = importlib.import_module("foldproof.impl.choose")


def gaps(ties: object) -> list[str]:
    return [f"{t.rule} {t.setting}: {t.gap.difference}" for t in ties if t.gap]  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.covering
def test_the_python_rules_equal_the_formulas_for_every_arg() -> None:
    rows = list(tie_args(rules))
    assert gaps(rows) == []
    assert len(rows) > 1000
    assert sum(row.paths for row in rows) > 3000


def test_sources_options_constants_and_counts_equal_the_formulas() -> None:
    rows = [*tie_parts(rules), *tie_counts(rules)]
    assert gaps(rows) == []
    assert {row.rule for row in rows} == {
        "source_refusal", "option_refusal", "named_const_refusal", "is_foldable_one", "is_held", "folds",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.covering
def test_the_loop_over_arguments_is_the_conjunction_of_its_parts() -> None:
    rows = list(tie_argument_loop(rules))
    assert gaps(rows) == []
    assert len(rows) == 640


@pytest.mark.parametrize("policy", ZOO)
def test_the_pass_loop_equals_the_formulas(policy: str) -> None:
    rules_of = load_policy(policy)
    scored = any(len(sweep.choose) > 1 for sweep in rules_of.passes)
    for count in (1, 2) if scored else (1, 2, 3):
        assert gaps(tie_pass_loop(rules_of, count)) == []


@pytest.mark.slow
def test_the_pass_loop_of_recommended_at_three_candidates() -> None:
    assert gaps(tie_pass_loop(load_policy("recommended"), 3)) == []


MUTANTS = list(operator_mutants())
TELLING = [m for m in MUTANTS if m.function in ("is_alignable", "div16_refusal", "refusals", "named_const_refusal")]


def test_every_rule_function_and_every_operator_of_it_is_mutated() -> None:
    source = ast.parse(inspect.getsource(rules))
    functions = {f.name: f for f in source.body if isinstance(f, ast.FunctionDef)}
    with_operators = {
        name for name, f in functions.items() if any(isinstance(n, (ast.Compare, ast.BoolOp)) for n in ast.walk(f))
    }
    assert with_operators <= set(RULE_FUNCTIONS)
    assert len(MUTANTS) == 75
    assert len({m.name for m in MUTANTS}) > 70


@pytest.mark.parametrize("mutant", TELLING[::8], ids=lambda m: m.name)
def test_a_changed_operator_breaks_the_tie(mutant: object) -> None:
    assert first_gap(mutant.module, mutant.function)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_every_changed_operator_breaks_the_tie(mutant: object) -> None:
    assert first_gap(mutant.module, mutant.function)  # type: ignore[attr-defined]


DECIDE_FAULTS = {
    "the last pass never runs": ("for sweep in policy.passes:", "for sweep in policy.passes[:-1]:"),
    "the passes run in reverse": ("for sweep in policy.passes:", "for sweep in policy.passes[::-1]:"),
    "other functions count": ("if v.fn == launch.fn]", "]"),
    "a refusal is ignored": ("if among := ", "if None and "),
    "a refused candidate is admitted": ("is None]\n", "is not None]\n"),
    "the log is written without ones": ("if ones and logs else ()", "if logs else ()"),
    "the log is dropped": ("if ones and logs else ()", "if ones and not logs else ()"),
    "the pass is the loosest": ("policy.strictest_first", "policy.strictest_first[::-1]"),
}


@pytest.mark.parametrize("fault", DECIDE_FAULTS)
def test_a_changed_pass_loop_breaks_the_tie(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = inspect.getsource(select)
    old, new = DECIDE_FAULTS[fault]
    assert source.count(old) == 1
    module = ModuleType("foldproof.impl.select")
    exec(compile(source.replace(old, new), "<mutant>", "exec"), module.__dict__)  # noqa: S102 (our own source)
    monkeypatch.setattr("foldproof.model.tie.loops.select", module)
    broken = []
    for name in ("three-pass", "recommended"):
        try:
            broken += gaps(tie_pass_loop(load_policy(name), 2))
        except TieError as problem:
            broken.append(str(problem))
    assert broken


def test_the_executor_explores_every_path_and_no_infeasible_one() -> None:
    x = z3.BitVec("x", 66)

    def code() -> str:
        value = Whole(x)
        if value > 10:
            return "large" if value % 16 == 0 else "odd"
        return "never" if value > 11 else "small"

    found = [(str(z3.simplify(c)), r) for c, r in Paths((x >= 0, x < 100)).explore(code)]
    assert sorted(result for _, result in found) == ["large", "odd", "small"]


def test_a_symbol_is_never_made_concrete_in_silence() -> None:
    flag, whole = Flag(z3.Bool("b")), Whole(z3.BitVec("x", 66))
    with pytest.raises(TieError, match="outside a run"):
        bool(flag)
    with pytest.raises((TieError, TypeError)):
        hash(whole)
    with pytest.raises(TieError, match="an index"):
        [1, 2][whole]  # type: ignore[call-overload]
    with pytest.raises(TieError, match="no power of two"):
        whole % 3
    with pytest.raises(TieError, match="more than 1 paths"):
        list(Paths((), most=1).explore(lambda: bool(flag)))


def test_a_path_is_followed_only_where_the_solver_knows_that_it_is_feasible(monkeypatch: pytest.MonkeyPatch) -> None:
    flag = Flag(z3.Bool("b"))
    with pytest.raises(TieError, match="contradicts itself"):
        list(Paths((z3.BoolVal(False),)).explore(lambda: bool(flag)))
    monkeypatch.setattr(z3.Solver, "check", lambda *_: z3.unknown)
    with pytest.raises(TieError, match="does not know"):
        list(Paths(()).explore(lambda: bool(flag)))


def test_symbols_are_compared_with_their_own_kind_alone() -> None:
    flag, whole, name = Flag(z3.Bool("b")), Whole(z3.BitVec("x", 66)), Name(z3.BitVec("t", 5), {"i32": 2})
    for odd in (
        lambda: flag == 1,
        lambda: flag != "yes",
        lambda: whole == 2**70,
        lambda: whole < "1",
        lambda: name == 3,
    ):
        with pytest.raises(TieError, match="is compared with"):
            odd()

    def proved(of: Flag, term: z3.BoolRef) -> bool:
        solver = z3.Solver()
        return solver.check(of.term != term) == z3.unsat

    assert proved(flag != True, z3.Not(z3.Bool("b")))  # noqa: E712 (the operator is under test)
    assert proved(flag == Flag(z3.Bool("c")), z3.Bool("b") == z3.Bool("c"))
    assert proved(name != "i32", z3.BitVec("t", 5) != 2)
    assert proved(name == Name(z3.BitVec("u", 5), {}), z3.BitVec("t", 5) == z3.BitVec("u", 5))
    assert proved(whole != 3, z3.BitVec("x", 66) != 3)
    assert proved(-whole == 3, z3.BitVec("x", 66) == -3)


def test_the_limits_of_a_symbolic_int_are_its_width() -> None:
    whole = Whole(z3.BitVec("x", 66))
    for fits in (2**65 - 1, -(2**65)):
        assert isinstance(whole == fits, Flag)
    for wide in (2**65, -(2**65) - 1):
        with pytest.raises(TieError, match="is compared with"):
            _ = whole == wide
    for power in (1, 2, 16):
        assert isinstance(whole % power, Whole)
    for odd in (0, -16, 3, 12):
        with pytest.raises(TieError, match="no power of two"):
            _ = whole % odd


def rules_with(function: str, replacement: object) -> ModuleType:
    """The rules with one function replaced; every other is the original."""
    module = ModuleType(rules.__name__)
    exec(compile(inspect.getsource(rules), "<rules>", "exec"), module.__dict__)  # noqa: S102 (our own source)
    setattr(module, function, replacement)
    return module


PARTS = ("tie_parts", "tie_counts", "tie_args", "tie_argument_loop")


@pytest.mark.parametrize("broken", [None, *PARTS])
def test_a_gap_in_any_part_of_the_tie_is_found(broken: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in PARTS:
        tied = Tied(part, "here", 1, Gap(part, "here", "it differs") if part == broken else None)
        monkeypatch.setattr(f"foldproof.model.tie.tie.{part}", lambda _, tied=tied: iter([tied]))
    assert first_gap(rules, "is_one") == (f"{broken}: here" if broken else "")
    assert first_gap(rules, "_option_refusals") == ("tie_argument_loop: here" if broken == PARTS[3] else "")


def test_what_differs_from_the_formulas_and_code_that_raises_are_gaps() -> None:
    assert first_gap(rules_with("option_refusal", lambda *_: 1 / 0), "option_refusal").startswith("ZeroDivisionError")
    takes_all = rules_with("refusals", lambda *_: iter(()))
    assert first_gap(takes_all, "refusals").startswith("refusal: ")
    ignores_sources = rules_with("source_refusal", lambda *_: None)
    assert first_gap(ignores_sources, "source_refusal") == "source_refusal: said True, asked True"


def test_patching_puts_back_what_it_replaced() -> None:
    before = choose.KEYS
    with patched(choose, {"KEYS": {}}):
        assert choose.KEYS == {}
    assert choose.KEYS is before


def test_symbolic_args_go_through_the_real_arg() -> None:
    whole = Whole(z3.BitVec("x", 66))
    assert Arg("x", Kind.I32, whole).type == "i32"  # type: ignore[arg-type]
