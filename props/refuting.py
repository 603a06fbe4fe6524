"""Three ways to refute T01 of `single-guard`: the model, CrossHair on an equivalent contract, plain Hypothesis.

`foldproof bench --only proofs` measures them. CrossHair is looked for beside the interpreter and on the path.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import hypothesis
import hypothesis.errors
from foldproof.impl.cases import Case
from foldproof.impl.policy import load_policy
from foldproof.model.prove import Bench, Question, ask, questions
from foldproof.model.scope import Size
from foldproof.model.verdict import Status
from foldproof.props.checks import violation
from foldproof.props.strategies import cases

CONTRACT = '''
from types import SimpleNamespace as Plain

from foldproof.impl.launch import Kind
from foldproof.impl.rules import Rules, Strictness, arg_refusal

EXACT, GENERAL, RUNTIME_ONE = (Rules(s) for s in (Strictness.EXACT, Strictness.GENERAL, Strictness.RUNTIME_ONE))
SWITCHES = {"nospec": False, "noalign": False, "annotated": False, "range32": False}


def keeps_t01(r: int, address: int, a_div16: bool, b_div16: bool, a_folds: bool, b_folds: bool) -> bool:
    """
    pre: -5 <= r <= 20 and 0 <= address < 64
    post: _
    """
    pointer = Plain(kind=Kind.PTR, number=address, type="*bf16", bytes=None)
    number = Plain(kind=Kind.I32, number=r, type="i32", bytes=None)
    one = Plain(kind="int", value=1)

    def admits(div16, folds, rules):
        on_pointer = Plain(type="*bf16", div16=div16, **SWITCHES)
        on_number = None if folds else Plain(type="i32", div16=False, **SWITCHES)
        pointer_fits = arg_refusal(pointer, on_pointer, None, rules) is None
        return pointer_fits and arg_refusal(number, on_number, one if folds else None, rules) is None

    candidates = [(a_div16, a_folds), (b_div16, b_folds)]
    picked = [c for c in candidates if admits(*c, EXACT)] or [c for c in candidates if admits(*c, RUNTIME_ONE)]
    folded = any(admits(*c, GENERAL) and (c[1] or r != 1) for c in candidates)
    reads_one = bool(picked) and r == 1 and not picked[0][1]
    return not (folded and reads_one)
'''
"""T01 of single-guard over two candidates of one pointer and one int, in plain objects that CrossHair can follow."""


def by_the_model() -> None:
    """Refute T01 for single-guard, smallest counterexample included."""
    question = next(q for q in questions(load_policy("single-guard"), ["T01"]) if isinstance(q, Question))
    verdict = ask(Bench(Size(2, 2)), question)
    if verdict.status != Status.REFUTED:
        raise RuntimeError("the model did not refute T01")


def by_hypothesis(seed: int) -> None:
    """Refute T01 for single-guard with the same strategy and check that the tests use, shrunk by Hypothesis."""
    policy = load_policy("single-guard")

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=100_000, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(cases())
    def keeps(case: Case) -> None:
        assert violation("T01", case, policy) is None

    try:
        keeps()
    except AssertionError:
        return
    raise RuntimeError("Hypothesis did not refute T01")


def by_crosshair() -> bool:
    """Refute T01 for single-guard by `crosshair check`; False where CrossHair does not say so."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "contract.py"
        file.write_text(CONTRACT, encoding="utf-8")
        command = [str(crosshair()), "check", "--per_condition_timeout", "60", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)  # noqa: S603 (our own words)
        # Its exit code is 0 for "not confirmed" too, so the output is what counts.
        return "false when calling keeps_t01" in done.stdout


def crosshair() -> Path | None:
    """Where CrossHair is: beside this interpreter, or on the path."""
    beside = Path(sys.executable).parent / "crosshair"
    found = shutil.which("crosshair")
    return beside if beside.exists() else Path(found) if found else None
