"""What `foldproof prove` runs and writes: the matrix, the mutants, the scripts, and their re-decision."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
from foldproof.cli.examples import stem
from foldproof.cli.recording import TOOL
from foldproof.cli.ui import Steps
from foldproof.impl.cases import case_to
from foldproof.impl.errors import FoldproofError
from foldproof.impl.orphans import end_with_parent
from foldproof.impl.policy import Policy
from foldproof.impl.strictjson import MAX_BYTES, read_bytes
from foldproof.model.matrix import CROSS_CHECK, EFFORT, MutantRow, Settled, matrix, mutant_matrix, with_lemmas
from foldproof.model.scope import Size
from foldproof.model.solvers import Decision, decide_text
from foldproof.model.theorems import THEOREMS
from foldproof.model.verdict import Status, Verdict
from foldproof.reports.events import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Proof:
    """Everything that a run of `prove` found. `lemmas` are scripts with both solvers' answers."""

    policies: tuple[Policy, ...]
    cells: tuple[Settled, ...]
    lemmas: tuple[tuple[str, Decision], ...]
    mutants: tuple[MutantRow, ...]
    cross: Size


def run_proof(  # noqa: PLR0913, PLR0917 (the whole of what is asked)
    policies: Sequence[Policy],
    theorems: Sequence[str],
    old: Policy | None,
    bounded: Size | None,
    mutated: Sequence[str],
    shown: Steps,
) -> Proof:
    """The matrix, and the mutants of the policies named in `mutated`."""
    shown.step("prove", len(policies) + 1)
    done: list[str] = []

    def tick(name: str) -> None:
        done.append(name)
        shown.at(len(done), name)

    # A size that was asked for gets all the time it needs; the default one a counted effort.
    cross, effort = bounded or CROSS_CHECK, 0 if bounded else EFFORT
    cells, lemmas = matrix(policies, theorems, old, cross, tick, effort)
    shown.close()
    rows: list[MutantRow] = []
    by_name = {policy.name: policy for policy in policies}
    wanted = [by_name[name] for name in mutated if name in by_name]
    shown.step("mutants", len(wanted))
    for number, policy in enumerate(wanted, 1):
        proved = [
            c.verdict.theorem for c in cells if c.verdict.policy == policy.name and c.verdict.status == Status.PROVED
        ]
        rows += mutant_matrix(policy, proved)
        shown.at(number, policy.name)
    return Proof(tuple(policies), with_lemmas(cells, lemmas), tuple(lemmas), tuple(rows), cross)


def exit_code(proof: Proof) -> int:
    """1 a promise is refuted, 3 something is undecided, else 0."""
    verdicts = [cell.verdict for cell in proof.cells]
    if any(v.breaks_a_promise for v in verdicts):
        return 1
    return 3 if any(v.status == Status.UNDECIDED for v in verdicts) else 0


def proof_json(proof: Proof, seconds: float, paths: Mapping[str, str]) -> bytes:
    """The bytes of `proof.json`: the matrix, the scripts' answers and the mutants.

    `paths` says where a case or a witness was written, by the path that it would have; those not in it were not.
    """
    scripts = [*proof.lemmas, *((c.script, c.decision) for c in proof.cells if c.decision is not None)]
    result = {
        "schema_version": SCHEMA_VERSION,
        "tool": TOOL,
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("z3-solver", "cvc5")},
        "cross_check": str(proof.cross),
        "verdicts": [_verdict_row(cell.verdict, paths) for cell in proof.cells],
        "obligations": [_obligation_row(decision) for _, decision in scripts],
        "mutants": [_mutant_row(row) for row in proof.mutants],
        "seconds": seconds,
    }
    return msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"


def _verdict_row(verdict: Verdict, paths: Mapping[str, str]) -> dict[str, Any]:
    return {
        "policy": verdict.policy,
        "theorem": verdict.theorem,
        "sentence": THEOREMS[verdict.theorem].sentence,
        "verdict": verdict.status,
        "promised": verdict.promised,
        "scope": verdict.scope if verdict.status == Status.PROVED else "",
        "old": verdict.old,
        "reason": verdict.reason,
        "passes": [{"rules": r, "reached": a, "reached_under_the_premises": u} for r, a, u in verdict.reached],
        "killed_by": verdict.killed_by,
        "counterexample": paths.get(f"cases/{stem(verdict)}.json"),
        "witness": paths.get(f"witnesses/{stem(verdict)}.json"),
        "seconds": verdict.seconds,
    }


def _obligation_row(decision: Decision) -> dict[str, Any]:
    return {
        "name": decision.name,
        "says": decision.says,
        "z3": decision.z3,
        "cvc5": decision.cvc5,
        "seconds": [round(decision.z3_seconds, 4), round(decision.cvc5_seconds, 4)],
    }


def _mutant_row(row: MutantRow) -> dict[str, Any]:
    return {
        "policy": row.policy,
        "mutant": row.mutant,
        "says": row.says,
        "killed_by": row.killed_by,
        "differs": None if row.differs is None else case_to(row.differs),
        "equivalent": row.equivalent or None,
    }


def recheck(folder: Path) -> list[Decision]:
    """Both solvers' answers to every script of an earlier run, on all cores.

    Raises `FoldproofError` if the folder has no scripts.
    """
    files = sorted((folder / "smt").glob("*.smt2"))
    if not files:
        raise FoldproofError("holds no smt/*.smt2", where=str(folder), fix="name the --out folder of an earlier run")
    scripts = [(file.stem, "", read_bytes(file, limit=MAX_BYTES).decode("utf-8", "replace")) for file in files]
    with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        return list(pool.map(_decide, scripts, chunksize=8))


def _decide(script: tuple[str, str, str]) -> Decision:
    return decide_text(*script)
