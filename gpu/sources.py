"""The source text of the kernels and its digests, read without importing Triton."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

KERNELS = Path(__file__).resolve().parent / "kernels"


def kernel_source(module: str, name: str) -> str:
    """The text that decides the code of a kernel: its function and the functions of its module that it calls.

    Raises KeyError when the module has no such function.
    """
    functions = _functions(module)
    wanted, todo = [], [name]
    while todo:
        current = todo.pop()
        if current in wanted:
            continue
        wanted.append(current)
        todo += [n.id for n in ast.walk(functions[current][1]) if isinstance(n, ast.Name) and n.id in functions]
    return "\n".join(functions[n][0] for n in sorted(wanted))


def source_digest(module: str, name: str) -> str:
    """sha256 of `kernel_source`, in hex."""
    return hashlib.sha256(kernel_source(module, name).encode()).hexdigest()


@cache
def _functions(module: str) -> dict[str, tuple[str, ast.FunctionDef]]:
    text = (KERNELS / f"{module}.py").read_text(encoding="utf-8")
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[node.name] = ("\n".join(lines[first - 1 : node.end_lineno]), node)
    return found
