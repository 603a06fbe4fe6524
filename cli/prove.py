"""`foldproof prove`: the matrix policy x theorem, every obligation decided by two solvers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter

import click
from foldproof.cli.digests import policy_seen
from foldproof.cli.emitting import emit_model_mutants, emit_proofs
from foldproof.cli.proofs import Proof, exit_code, proof_json, recheck, run_proof
from foldproof.cli.recording import started
from foldproof.cli.ui import console, say, show_table, steps
from foldproof.impl.errors import FoldproofError
from foldproof.impl.explain import case_table
from foldproof.impl.policy import ZOO, Policy, load_policy
from foldproof.model.scope import Size
from foldproof.model.theorems import THEOREMS
from foldproof.model.verdict import Status, Verdict
from foldproof.reports.recorder import recording

EXAMPLE = """\b
Examples:
  foldproof prove
  foldproof prove --policy recommended --theorem T01 --theorem T13 --out proof
  foldproof prove --old two-pass --new three-pass
  foldproof prove --recheck proof"""
MARKS = {Status.PROVED: "proved", Status.REFUTED: "refuted", Status.UNDECIDED: "undecided", Status.NOT_APPLICABLE: "-"}


def _size(_: object, __: object, text: str | None) -> Size | None:
    if text is None:
        return None
    try:
        candidates, args = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise click.BadParameter(f"{text!r} is no size such as 64x24") from None
    return Size(max(candidates, 1), max(args, 0))


@click.command(epilog=EXAMPLE)
@click.option(
    "--policy", "names", multiple=True, help="A policy of the zoo or a TOML file; may be repeated. Default: the zoo."
)
@click.option("--theorem", "theorems", multiple=True, metavar="ID", help="A theorem, such as T01; may be repeated.")
@click.option("--old", help="The older policy for T09 and T09c.")
@click.option("--new", help="The newer policy for T09 and T09c; the same as --policy.")
@click.option(
    "--bounded", callback=_size, metavar="NxM", help="Cross-check with N variants of M params instead of 8x8."
)
@click.option(
    "--mutants",
    is_flag=True,
    help="The matrix mutant x theorem as well, for each policy named (default three-pass and recommended).",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write records, proof.json, the SMT-LIB scripts and the cases here."
)
@click.option(
    "--recheck", "recheck_folder", type=click.Path(path_type=Path), help="Decide the scripts of an earlier run again."
)
@click.option("--json", "as_json", is_flag=True, help="Print proof.json instead of tables.")
def prove(  # noqa: PLR0913, PLR0917 (one parameter an option)
    names: tuple[str, ...],
    theorems: tuple[str, ...],
    old: str | None,
    new: str | None,
    bounded: Size | None,
    mutants: bool,
    out: Path | None,
    recheck_folder: Path | None,
    as_json: bool,
) -> int:
    """Prove each theorem for each policy, or refute it by the smallest counterexample.

    "unbounded" proofs hold for every capture, every number of params and every launch; Z3 and cvc5 both accept
    them and the lemmas they rest on. Exit 1 if a promise is refuted, 3 if something is undecided.
    """
    if recheck_folder is not None:
        return _recheck(recheck_folder)
    begin = perf_counter()
    chosen = [load_policy(name) for name in (*names, *([new] if new else []))] or [load_policy(n) for n in ZOO]
    if len({p.name for p in chosen}) != len(chosen):
        raise FoldproofError("two policies have one name", fix="give each policy file a name of its own")
    asked = theorems or (("T09", "T09c") if old or new else ())
    with steps() as shown:
        proof = run_proof(
            chosen,
            asked,
            load_policy(old) if old else None,
            bounded,
            _mutated(names, mutants),
            shown,
        )
    named = dict(zip((policy.name for policy in chosen), (*names, *([new] if new else [])) or ZOO, strict=True))
    words = [*_asked(names, theorems, old, new), *(["--mutants"] if mutants else [])]
    words += ["--bounded", f"{bounded.candidates}x{bounded.args}"] if bounded else []
    command = shlex.join([*words, *(["--out", str(out)] if out else [])])
    text = proof_json(proof, perf_counter() - begin, {})
    if out is not None:
        text = _record(proof, named, load_policy(old) if old else None, out, command, perf_counter() - begin)
    if as_json:
        click.echo(text, nl=False)
    else:
        _show(proof, perf_counter() - begin, out)
    return exit_code(proof)


def _asked(names: Sequence[str], theorems: Sequence[str], old: str | None, new: str | None) -> list[str]:
    words = ["foldproof", "prove", *(word for name in names for word in ("--policy", name))]
    words += [word for theorem in theorems for word in ("--theorem", theorem)]
    return [*words, *(["--old", old] if old else []), *(["--new", new] if new else [])]


def _record(  # noqa: PLR0913, PLR0917 (all that a record of it says)
    proof: Proof, named: Mapping[str, str], old: Policy | None, out: Path, command: str, seconds: float
) -> bytes:
    """Write the run's records, scripts, cases and witnesses below `out`; the bytes of its proof.json."""
    with recording(out, started("prove", command)) as to:
        for policy in (*proof.policies, *([old] if old else [])):
            to.emit(policy_seen(policy))
        paths = emit_proofs(
            to, proof.cells, proof.lemmas, {policy.name: (policy, named[policy.name]) for policy in proof.policies}
        )
        for policy in proof.policies:
            emit_model_mutants(to, policy, [row for row in proof.mutants if row.policy == policy.name])
        text = proof_json(proof, seconds, {path: ref.path for path, ref in paths.items()})
        to.render({"proof.json": text})
        to.exit_code = exit_code(proof)
    return text


def _mutated(names: Sequence[str], wanted: bool) -> list[str]:
    return list(names or ("three-pass", "recommended")) if wanted else []


def _recheck(folder: Path) -> int:
    rows = recheck(folder)
    bad = [row for row in rows if not row.holds]
    for row in bad:
        say(f"{row.name}: Z3 says {row.z3}, cvc5 says {row.cvc5}", style="red")
    say(f"{len(rows) - len(bad)} of {len(rows)} obligations hold by Z3 and by cvc5")
    return 1 if any("sat" in (r.z3, r.cvc5) for r in bad) else 3 if bad else 0


def _show(proof: Proof, seconds: float, out: Path | None) -> None:
    verdicts = [cell.verdict for cell in proof.cells]
    ids = [name for name in THEOREMS if any(v.theorem == name for v in verdicts)]
    by_cell = {(v.policy, v.theorem): v for v in verdicts}
    policies = list(dict.fromkeys(v.policy for v in verdicts))
    rows = [(THEOREMS[i].id, THEOREMS[i].name, *(_mark(by_cell[p, i]) for p in policies)) for i in ids]
    show_table(("id", "theorem", *policies), rows, title="policy x theorem (* promised)")
    for verdict in verdicts:
        if verdict.breaks_a_promise:
            _show_counterexample(verdict)
    for verdict in verdicts:
        if verdict.status == Status.UNDECIDED or (verdict.status == Status.PROVED and verdict.scope != "unbounded"):
            say(f"{verdict.policy} {verdict.theorem}: {verdict.status}, {verdict.scope}: {verdict.reason}")
    if proof.mutants:
        _show_mutants(proof)
    decisions = [d for _, d in proof.lemmas] + [c.decision for c in proof.cells if c.decision is not None]
    proved = [v for v in verdicts if v.status == Status.PROVED]
    unbounded = sum(v.scope == "unbounded" for v in proved)
    console().print()
    say(
        f"{len(proved)} proved ({unbounded} unbounded), {sum(v.status == Status.REFUTED for v in verdicts)} refuted; "
        f"{sum(d.holds for d in decisions)} of {len(decisions)} obligations hold by Z3 and by cvc5; "
        f"cross-check {proof.cross}; {seconds:.1f} s"
    )
    say(
        "scripts: give --out DIR to keep them"
        if out is None
        else f"scripts: {out / 'smt'}; again: foldproof prove --recheck {out}"
    )


def _mark(verdict: Verdict) -> str:
    return MARKS[verdict.status] + (" *" if verdict.promised else "")


def _show_counterexample(verdict: Verdict) -> None:
    from foldproof.impl.cases import replay  # noqa: PLC0415 (only where a promise is broken)

    example = verdict.counterexample
    assert example is not None
    outcome = replay(example.case, load_policy(verdict.policy)) if verdict.policy in ZOO else None
    say(f"\n{verdict.policy} breaks its promise {verdict.theorem}: {THEOREMS[verdict.theorem].sentence}", style="red")
    if outcome is not None:
        show_table(*case_table(example.case, outcome))


def _show_mutants(proof: Proof) -> None:
    for policy in dict.fromkeys(row.policy for row in proof.mutants):
        rows = [
            (
                r.mutant,
                r.says,
                " ".join(r.killed_by) or ("differs (witness kept)" if r.differs else f"equivalent in {r.equivalent}"),
            )
            for r in proof.mutants
            if r.policy == policy
        ]
        show_table(("mutant", "fault", "refutes"), rows, title=f"mutants of {policy}")
