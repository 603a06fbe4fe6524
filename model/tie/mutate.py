"""Mutants of the Python: every comparison and boolean operator of the rule functions, changed one at a time."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from foldproof.impl import rules

RULE_FUNCTIONS = (
    "is_one",
    "is_foldable_one",
    "is_alignable",
    "holds",
    "has_alignment",
    "param_refusal",
    "type_refusal",
    "div16_refusal",
    "const_refusal",
    "c_type",
    "guard_refusal",
    "source_refusal",
    "option_refusal",
    "named_const_refusal",
    "refusals",
    "arg_refusal",
    "_option_refusals",
)
_SWAPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True, slots=True)
class OperatorMutant:
    """One changed operator: the function, the line within it, what it was and is, and the module that has it."""

    function: str
    line: int
    change: str
    module: ModuleType

    @property
    def name(self) -> str:
        """A name that says where and what."""
        return f"{self.function}:{self.line} {self.change}"


def _sites(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, ast.AST, int]]:
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in RULE_FUNCTIONS:
            for node in ast.walk(function):
                if isinstance(node, ast.Compare):
                    yield from ((function, node, i) for i in range(len(node.ops)))
                elif isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
                    yield function, node, 0


def _change(node: ast.AST, position: int) -> str:
    """Change the operator in place, and say how."""
    if isinstance(node, ast.Compare):
        old = type(node.ops[position])
        node.ops[position] = _SWAPS[old]()
        return f"{old.__name__} to {_SWAPS[old].__name__} in {ast.unparse(node)}"
    if isinstance(node, ast.BoolOp):
        new: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        node.op = new
        return f"to {type(new).__name__} in {ast.unparse(node)}"
    assert isinstance(node, ast.UnaryOp)
    said = ast.unparse(node)
    # "not not x" is x as a truth value, which is all that the rules ask of it.
    node.operand = ast.UnaryOp(ast.Not(), node.operand)
    return f"not dropped in {said}"


def operator_mutants() -> Iterator[OperatorMutant]:
    """Every operator mutant of the rule functions, in source order, each as a module of its own."""
    source = inspect.getsource(rules)
    for number in range(len(list(_sites(ast.parse(source))))):
        tree = ast.parse(source)
        function, node, position = list(_sites(tree))[number]
        line = getattr(node, "lineno", function.lineno) - function.lineno
        change = _change(node, position)
        yield OperatorMutant(function.name, line, change, _module(tree, number))


def _module(tree: ast.Module, number: int) -> ModuleType:
    module = ModuleType(f"foldproof.impl.rules_mutant_{number}")
    # msgspec resolves annotations through sys.modules by the class's module name, so the module keeps the real one.
    module.__dict__["__name__"] = rules.__name__
    exec(compile(ast.fix_missing_locations(tree), "<mutant of impl/rules.py>", "exec"), module.__dict__)  # noqa: S102 (our own source, one operator changed)
    return module
