"""Deciding an obligation twice: by Z3, and by cvc5 from its SMT-LIB 2 text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import perf_counter

import cvc5
import z3
from foldproof.model.terms import Bool

TIMEOUT_MS = 30_000
_SHARED = re.compile(r"[$?]x\d+")


@dataclass(frozen=True, slots=True)
class Obligation:
    """A formula that must hold: the conjunction of `assumed` and the negation of `claimed` is unsatisfiable.

    `name` is its file name below the output folder; `says` is the claim in English.
    """

    name: str
    says: str
    assumed: tuple[Bool, ...]
    claimed: Bool

    def smt2(self) -> str:
        """The obligation as an SMT-LIB 2 script that answers `unsat` when it holds."""
        solver = z3.Solver()
        solver.add(*self.assumed, z3.Not(self.claimed))
        body = "\n".join(line for line in solver.to_smt2().splitlines() if not line.startswith((";", "(set-info")))
        # Z3 names shared terms by a number of its process; the same formula is to be the same script.
        names: dict[str, str] = {}
        body = _SHARED.sub(lambda found: names.setdefault(found[0], f"{found[0][0]}x{len(names)}"), body)
        return f"; {self.name}: {self.says}\n; The claim holds if this is unsat.\n(set-logic ALL)\n{body}\n"


@dataclass(frozen=True, slots=True)
class Decision:
    """What the two solvers answer to one script: each `sat`, `unsat` or `unknown`, and how long each took."""

    name: str
    says: str
    z3: str
    cvc5: str
    z3_seconds: float = 0.0
    cvc5_seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether both solvers say unsat."""
        return self.z3 == self.cvc5 == "unsat"


def decide_text(name: str, says: str, text: str, timeout_ms: int = TIMEOUT_MS) -> Decision:
    """Both solvers' answers to a script. A solver that fails on the script answers `unknown`."""
    started = perf_counter()
    by_z3 = by_z3_text(text, timeout_ms)
    middle = perf_counter()
    by_cvc5 = by_cvc5_text(text, timeout_ms)
    return Decision(name, says, by_z3, by_cvc5, middle - started, perf_counter() - middle)


def by_z3_text(text: str, timeout_ms: int = TIMEOUT_MS) -> str:
    """Z3's answer to an SMT-LIB 2 script."""
    solver = z3.Solver()
    solver.set("timeout", timeout_ms)
    try:
        solver.from_string(text)
    except z3.Z3Exception:
        return "unknown"
    return str(solver.check())


def by_cvc5_text(text: str, timeout_ms: int = TIMEOUT_MS) -> str:
    """cvc5's answer to an SMT-LIB 2 script."""
    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(timeout_ms))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
    symbols = parser.getSymbolManager()
    answer = "unknown"
    try:
        while True:
            command = parser.nextCommand()
            if command.isNull():
                return answer
            said = command.invoke(solver, symbols).strip()
            if said in ("sat", "unsat", "unknown"):
                answer = said
            elif said:
                return "unknown"
    except RuntimeError:
        return "unknown"
