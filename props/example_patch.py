"""A failure as an `@example` above a Hypothesis test, as a patch that `git apply` takes."""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import msgspec
from foldproof.impl.cases import Case, case_from, case_to
from foldproof.impl.errors import FoldproofError
from foldproof.impl.strictjson import parse

WIDTH = 100


def case_of(text: str) -> Case:
    """A case from its JSON text, for `@example(case=case_of(...))`. Raises `InvalidCapture` or `InvalidLaunch`."""
    return case_from(parse(text, "the example"))


def example_lines(case: Case, argument: str = "case") -> list[str]:
    """The decorator, its JSON cut into string literals of a readable width."""
    text = msgspec.json.encode(case_to(case)).decode()
    parts = [text[start : start + WIDTH] for start in range(0, len(text), WIDTH)]
    return ["@example(", f"    {argument}=case_of(", *(f"        {part!r}" for part in parts), "    )", ")"]


def example_patch(target: str, case: Case) -> str:
    """A unified diff that adds the case to the test `FILE.py::NAME`, directly above its function.

    The argument is the one that the test's `@given` names, by default `case`. Raises `FoldproofError` where the file
    is no Python or has no such test under `@given`.
    """
    name, _, test = target.partition("::")
    path = Path(name)
    try:
        source = path.read_text("utf-8")
        tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError) as problem:
        raise FoldproofError(f"is no readable Python: {problem}", where=name, fix="give FILE.py::TEST") from None
    function = _function(tree, test.rpartition("::")[2])
    given = _given(function) if function else None
    if function is None or given is None:
        raise FoldproofError(f"has no test {test!r} under @given", where=name, fix="give FILE.py::TEST")
    argument = next((keyword.arg for keyword in given.keywords if keyword.arg), "case")
    lines = source.splitlines(keepends=True)
    indent = " " * function.col_offset
    added = [f"{indent}{line}\n" for line in example_lines(case, argument)]
    changed = [*lines[: function.lineno - 1], *added, *lines[function.lineno - 1 :]]
    imports = _imports(tree)
    at = next(
        (i for i, line in enumerate(changed) if line.startswith(("import ", "from ")) and "__future__" not in line), 0
    )
    changed = [*changed[:at], *imports, *changed[at:]]
    return "".join(difflib.unified_diff(lines, changed, f"a/{name}", f"b/{name}"))


def _function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    return next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _given(function: ast.FunctionDef) -> ast.Call | None:
    calls = (node for node in function.decorator_list if isinstance(node, ast.Call))
    return next((call for call in calls if ast.unparse(call.func).endswith("given")), None)


def _imports(tree: ast.Module) -> list[str]:
    known = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    wanted = {"case_of": "foldproof.props.example_patch", "example": "hypothesis"}
    return [f"from {module} import {name}\n" for name, module in wanted.items() if name not in known]
