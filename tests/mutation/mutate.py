"""Mutation of our own code: cosmic-ray's operators on the modules of `plan.toml`, killed by the tests named there.

    python tests/mutation/mutate.py [MODULE ...] [--sample N] [--seed S] [--out FILE]

The tree is copied to a temporary folder and only the copy is ever changed. A mutant that its tests let through is a
survivor; one that `explained.toml` does not name makes the exit code 1. Needs the extra `mutation`.

Each mutant gets a process forked from one that has imported pytest and the solvers, but nothing of ours, so a mutant
costs the time of its tests and not that of the imports. Subprocesses of a test see the mutant too: it is on disk.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COPIED = (
    "conftest.py",
    "tests",
    "typings",
    "impl",
    "model",
    "props",
    "gpu",
    "release",
    "reports",
    "cli",
    "docs",
    "selectors",
)
COMPARISONS = {
    # Of the six replacements of a comparison these three subsume the others; identity is CPython's business.
    "Eq": ("NotEq", "LtE", "GtE"),
    "NotEq": ("Eq", "Lt", "Gt"),
    "Lt": ("LtE", "GtE", "NotEq"),
    "LtE": ("Lt", "Gt", "Eq"),
    "Gt": ("GtE", "LtE", "NotEq"),
    "GtE": ("Gt", "Lt", "Eq"),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
}
BINARY = {
    "Add": "Sub",
    "Sub": "Add",
    "Mul": "Div",
    "Div": "Mul",
    "FloorDiv": "Mul",
    "Mod": "Mul",
    "Pow": "Mul",
    "LShift": "RShift",
    "RShift": "LShift",
    "BitOr": "BitAnd",
    "BitAnd": "BitOr",
    "BitXor": "BitOr",
}
OPERATORS = (
    *(f"ReplaceComparisonOperator_{old}_{new}" for old, several in COMPARISONS.items() for new in several),
    *(f"ReplaceBinaryOperator_{old}_{new}" for old, new in BINARY.items()),
    *("ReplaceUnaryOperator_USub_UAdd", "ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_Invert"),
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer"),
    *("RemoveDecorator", "ZeroIterationForLoop"),
)
"""The operators of cosmic-ray that are used, without the provider's `core/`."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed place: the module, the function it is in, the line as it was and as it is, and the whole text."""

    module: str
    inside: str
    was: str
    becomes: str
    operator: str
    line: int
    text: str


class Explained:
    """The survivors that are told: one by one, or by a change that is without effect wherever it is made.

    None is named by its line number, which every edit above it would change.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._single = {(e["module"], e["inside"], e["was"], e["becomes"]) for e in told.get("explained", ())}
        self._everywhere = [(e["was"], e["becomes"]) for e in told.get("everywhere", ())]

    def names(self, mutant: Mutant) -> bool:
        """Whether an explanation names the mutant."""
        if (mutant.module, mutant.inside, mutant.was, mutant.becomes) in self._single:
            return True
        return any(_is_one_change(mutant, was, becomes) for was, becomes in self._everywhere)


def _is_one_change(mutant: Mutant, was: str, becomes: str) -> bool:
    """Whether the mutant is `was` turned into `becomes` at one place of its line, and nothing else."""
    parts = mutant.was.split(was)
    turned = (was.join(parts[:i]) + becomes + was.join(parts[i:]) for i in range(1, len(parts)))
    return mutant.becomes in turned


def mutants(module: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a module, each once, in the order of the operators and then of the places."""
    meaning, seen = _meaning(source), set()
    nodes = list(ast_nodes(get_ast(source)))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        for occurrence in range(sum(len(list(operator.mutation_positions(node))) for node in nodes)):
            try:
                text = mutate_code(source, operator, occurrence)
                changed = _meaning(text)
            except (AttributeError, SyntaxError):
                continue  # cosmic-ray's ExceptionReplacer fails on a dotted name; and what does not parse is no mutant
            if changed in seen or changed == meaning:
                continue
            seen.add(changed)
            yield _described(module, source, text, name)


def _meaning(source: str) -> str:
    """The code less what Python never evaluates: the annotations of functions and inside them."""
    tree = ast.parse(source)
    for function in (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
        function.returns = None
        for node in ast.walk(function):
            if isinstance(node, ast.arg):
                node.annotation = None
            elif isinstance(node, ast.AnnAssign):
                node.annotation = ast.Constant(None)
    return ast.dump(tree)


def _described(module: str, source: str, text: str, operator: str) -> Mutant:
    before, after = source.splitlines(), text.splitlines()
    edits = [e for e in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if e[0] != "equal"]
    first, last = edits[0], edits[-1]
    was, becomes = before[first[1] : last[2]], after[first[3] : last[4]]
    said = (" ".join(line.strip() for line in lines) for lines in (was, becomes))
    return Mutant(module, _inside(source, first[1] + 1), *said, operator, first[1] + 1, text)


def _inside(source: str, line: int) -> str:
    """The dotted name of the innermost function or class around a line, decorators counted in."""

    def search(body: Iterable[ast.AST], outer: str) -> str:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                if start <= line <= (node.end_lineno or start):
                    return search(ast.iter_child_nodes(node), f"{outer}.{node.name}".lstrip("."))
            elif found := search(ast.iter_child_nodes(node), ""):
                return f"{outer}.{found}".lstrip(".")
        return outer

    return search(ast.parse(source).body, "")


def copied(target: Path) -> Path:
    """A copy of the tree below `target`, importable as `foldproof` through its `typings`."""
    tree = target / "tree"
    tree.mkdir()
    for name in (*COPIED, "pyproject.toml", "__init__.py", "py.typed", "README.md"):
        source = ROOT / name
        if source.is_dir():
            skipped = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(source, tree / name, symlinks=True, ignore=skipped)
        elif source.exists():
            shutil.copy2(source, tree / name)
    return tree


def tested(tree: Path, tests: Sequence[str], seconds: float, *, keep_bytecode: bool) -> str:
    """Run tests of the copy in a forked process: "passed", "failed" or "timed out".

    Bytecode is kept of unchanged files alone: a mutant's would be taken for the file's own.
    """
    if (child := os.fork()) == 0:
        sys.dont_write_bytecode = not keep_bytecode
        _child(tree, tests, tree.parent / "log")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out"


def _child(tree: Path, tests: Sequence[str], log: Path) -> None:
    """Become a process of its own that sees the copy as `foldproof`, and end with pytest's exit code."""
    os.setsid()
    os.chdir(tree)
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for standard in (0, 1, 2):
        os.dup2(stream if standard else os.open(os.devnull, os.O_RDONLY), standard)
    # Hypothesis draws the same examples each time where CI is set, so a kill repeats.
    os.environ |= {"CI": "true", "PYTHONPATH": str(tree / "typings"), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(tree / "typings"))
    code = 70
    try:
        import pytest  # noqa: PLC0415 (imported before the fork, by name here)

        # Hypothesis, a pytest plugin too, is imported before the fork on purpose.
        quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "", *quiet, *tests]))
    except BaseException:  # noqa: BLE001 (a mutant may raise anything; the parent's stack must not go on here)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def warm() -> None:
    """Import what is not ours and slow to import, so that no mutant pays for it."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a forked process has no threads of its parent
    for name in ("pytest", "_pytest.assertion.rewrite", "hypothesis.strategies", "msgspec", "numpy", "z3", "cvc5"):
        __import__(name)


def judged(mutant: Mutant, tree: Path, stages: Sequence[Sequence[str]], seconds: float) -> str:
    """How one mutant ended, its file put back: "killed", "timed out" or "survived"."""
    file = tree / mutant.module
    original = file.read_bytes()
    try:
        file.write_text(mutant.text)
        for tests in stages:
            if (ending := tested(tree, tests, seconds, keep_bytecode=False)) != "passed":
                return "killed" if ending == "failed" else ending
        return "survived"
    finally:
        file.write_bytes(original)


def stages_of(entry: Mapping[str, Any]) -> list[list[str]]:
    """The stages of a module of the plan: the tests that kill fast, then those for what they let through."""
    return [tests for tests in (entry["tests"], entry.get("then", [])) if tests]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the plan, or the modules named; 1 if a survivor is not explained, 2 if the tests fail without a mutant."""
    plan = tomllib.loads((HERE / "plan.toml").read_text("utf-8"))
    known = tomllib.loads((HERE / "explained.toml").read_text("utf-8"))
    explained = Explained(known)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="modules of plan.toml; all by default")
    parser.add_argument("--sample", type=int, default=0, help="at most so many mutants of each module, drawn")
    parser.add_argument("--seed", type=int, default=1, help="what the sample is drawn by")
    parser.add_argument("--seconds", type=float, default=120, help="how long one stage of a mutant may take")
    parser.add_argument("--out", type=Path, help="write a JSON line for each mutant here")
    asked = parser.parse_args(argv)
    if unknown := set(asked.modules) - set(plan):
        parser.error(f"plan.toml has no {', '.join(sorted(unknown))}")
    warm()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="foldproof-mutation-") as folder:
        tree = copied(Path(folder))
        for module in asked.modules or plan:
            stages = stages_of(plan[module])
            for tests in stages:
                if tested(tree, tests, asked.seconds, keep_bytecode=True) != "passed":
                    _say((tree.parent / "log").read_text()[-4000:], f"{module}: {tests} fail without a mutant")
                    return 2
            found = list(mutants(module, (tree / module).read_text()))
            picked = found
            if asked.sample and asked.sample < len(found):
                picked = random.Random(f"{asked.seed} {module}").sample(found, asked.sample)  # noqa: S311 (repeatable)
            total += _run(module, picked, len(found), tree, stages, explained, asked)
    _say("all:", _figures(total))
    return 1 if total["survived"] else 0


def _run(  # noqa: PLR0913, PLR0917 (what one module needs)
    module: str,
    picked: Sequence[Mutant],
    found: int,
    tree: Path,
    stages: Sequence[Sequence[str]],
    explained: Explained,
    asked: argparse.Namespace,
) -> Counter[str]:
    started, ended = time.monotonic(), Counter(mutants=found, unrun=found - len(picked))
    for mutant in picked:
        ending = judged(mutant, tree, stages, asked.seconds)
        if ending == "survived" and explained.names(mutant):
            ending = "explained"
        ended[ending] += 1
        if ending == "survived":
            _say(f"{module}:{mutant.line} {mutant.inside}\n  - {mutant.was}\n  + {mutant.becomes}")
        if asked.out:
            with asked.out.open("a") as stream:
                row = {name: value for name, value in asdict(mutant).items() if name != "text"}
                stream.write(json.dumps(row | {"ending": ending}) + "\n")
    _say(f"{module}: {_figures(ended)}, {time.monotonic() - started:.0f} s")
    return ended


def _say(*words: str) -> None:
    sys.stdout.write(f"{' '.join(words)}\n")
    sys.stdout.flush()


def _figures(ended: Counter[str]) -> str:
    names = ("mutants", "killed", "timed out", "survived", "explained", "unrun")
    return ", ".join(f"{ended[name]} {name}" for name in names)


if __name__ == "__main__":
    sys.exit(main())
