"""The parts of `foldproof fuzz` that are about policies: the mutation score, and what a capture leaves open."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec
from foldproof.cli.digests import policy_digest, policy_seen
from foldproof.cli.recording import into, started
from foldproof.cli.ui import say, say_next, show_table, steps
from foldproof.impl.capture import Capture
from foldproof.impl.policy import ZOO, Policy, load_policy
from foldproof.model.mutants import mutants
from foldproof.props.derive import derive
from foldproof.props.landscape import FunctionRow, FunctionSummary, landscape, summaries
from foldproof.props.mutation import Killed, MutationScore, score
from foldproof.reports.events import MutantsHunted
from foldproof.reports.recorder import recording


def hunt_mutants(policy: Policy, named: str, seed: int, seconds: float, out: Path) -> int:
    """Hunt every mutant of the policy: a row for each in `mutants.json`. 1 if one is neither caught nor explained."""
    words = ["foldproof", "fuzz", "--mutants", "--against", named, "--seed", str(seed)]
    command = shlex.join([*words, "--seconds", f"{seconds:g}", *into(out)])
    with recording(out, started("fuzz", command, seed)) as to, steps() as shown:
        to.emit(policy_seen(policy))
        shown.step("mutants", len(list(mutants(policy))))
        done: list[Killed] = []

        def tick(row: Killed) -> None:
            done.append(row)
            shown.at(len(done), row.mutant)

        found = score(policy, seed, seconds, tick)
        shown.close()
        to.emit(
            MutantsHunted(
                policy=policy.name,
                policy_sha256=policy_digest(policy),
                caught=found.caught,
                real=found.real,
                rows=tuple((row.mutant, row.says, caught_by(row)) for row in found.rows),
            )
        )
        to.render({"mutants.json": _json(found)})
        to.exit_code = int(any(not row.explained for row in found.rows))
    show_table(
        ("mutant", "fault", "caught after", "as"), [_row(row) for row in found.rows], f"mutants of {policy.name}"
    )
    missed = [row for row in found.rows if not row.explained]
    say(str(found), style="bold red" if missed else "bold green")
    say(f"report: {out / 'mutants.json'}")
    if missed:
        say_next([*words, "--seconds", f"{2 * seconds:g}", *into(out)])
    return int(bool(missed))


def caught_by(row: Killed) -> str:
    """What caught a mutant, or why nothing can; "" for one that is missed."""
    if row.caught:
        return f"{row.kind}, after {row.rounds} rounds"
    return f"{row.theorem} alone" if row.theorem else row.why


def _row(row: Killed) -> tuple[str, str, str, str]:
    if row.caught:
        size = f"{row.variants} x {row.args}"
        return row.mutant, row.says, f"{row.seconds:.2f} s, {row.rounds} rounds", f"{row.kind}, {size}"
    why = f"only {row.theorem} sees it: the protocol carries no text of a miss" if row.theorem else row.why
    return row.mutant, row.says, "", why or "NOT CAUGHT"


def _json(found: MutationScore) -> bytes:
    value = {"schema_version": 1, "caught": found.caught, "real": found.real, "mutants": found.rows}
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def examine(capture: Capture) -> tuple[tuple[FunctionSummary, ...], dict[str, bytes]]:
    """What each function of a capture can do under every policy of the zoo, and `functions.json` with the counts."""
    launches = [derived.launch for derived in derive(capture)]
    with steps() as shown:
        shown.step("functions", len(capture.functions))
        done: list[str] = []

        def tick(fn: str) -> None:
            done.append(fn)
            shown.at(len(done), fn)

        rows = list(landscape(capture, launches, [load_policy(name) for name in ZOO], tick))
        shown.close()
    return summaries(rows), {"functions.json": _functions(rows)}


def _functions(rows: Sequence[FunctionRow]) -> bytes:
    value = {"schema_version": 1, "functions": summaries(rows), "rows": rows}
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def show_functions(functions: Sequence[FunctionSummary]) -> None:
    """The functions that leave something open; the others in a count."""
    rows = [
        (f.fn, _under(f.falls_back), _under(f.order_dependent), _under(f.free_constants))
        for f in functions
        if f.falls_back or f.order_dependent or f.free_constants
    ]
    show_table(("function", "can fall back under", "order dependent under", "free constants under"), rows)
    say(f"{len(functions) - len(rows)} other functions: none of these under any policy")


def _under(policies: Sequence[str]) -> str:
    """The policies, or which they are not where they are nearly all."""
    missing = [name for name in ZOO if name not in policies]
    if not missing:
        return "all"
    return f"all but {', '.join(missing)}" if len(missing) < 3 else ", ".join(policies)
