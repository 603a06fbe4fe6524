"""From what the stages found to the events of their run. Each function emits; none decides."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from foldproof.cli.digests import policy_digest
from foldproof.cli.examples import Example, difference_example, example_of, stem, violation_example
from foldproof.gpu.replay.receipts import Receipt
from foldproof.gpu.symbolic.bits import BitsVerdict
from foldproof.gpu.symbolic.compare import Level
from foldproof.impl.cases import case_bytes, case_to
from foldproof.impl.policy import Policy, load_policy
from foldproof.model.matrix import MutantRow, Settled
from foldproof.model.solvers import Decision
from foldproof.model.theorems import THEOREMS, older
from foldproof.model.verdict import Status
from foldproof.props.campaign import Campaign
from foldproof.reports.events import (
    BytesJudged,
    BytesRow,
    CampaignRan,
    CaseFound,
    FileRef,
    HexWindow,
    MutantsHunted,
    ObligationDecided,
    TheoremJudged,
)
from foldproof.reports.obligations import DOMAINS
from foldproof.reports.recorder import Recorder

EVERY, NO_NAN, FINITE = DOMAINS
Scripts = Sequence[tuple[str, Decision]]
"""SMT-LIB scripts, each with both solvers' answers."""


def emit_proofs(
    to: Recorder, cells: Sequence[Settled], lemmas: Scripts, policies: Mapping[str, tuple[Policy, str]]
) -> dict[str, FileRef]:
    """The scripts, the cases and the verdicts of a matrix; each case and witness file, by the path that it asked for.

    `policies` are those of the cells by name, each with the words that name it on a command line.
    """
    own = [(cell.script, cell.decision) for cell in cells if cell.decision is not None]
    for script, decision in (*lemmas, *own):
        ref = to.file(f"smt/{decision.name}.smt2", script.encode())
        says = (decision.name, decision.says)
        to.emit(ObligationDecided(name=says[0], says=says[1], script=ref, z3=decision.z3, cvc5=decision.cvc5))
    shared = tuple(decision.name for _, decision in lemmas)
    refs: dict[str, FileRef] = {}
    for cell in cells:
        policy, named = policies[cell.verdict.policy]
        example = example_of(cell.verdict, policy)
        if example is not None:
            refs[example.path] = to.file(example.path, example.content)
            to.emit(_case(example, refs[example.path], named))
        witness = None
        if cell.verdict.witness is not None and cell.verdict.status == Status.PROVED:
            path = f"witnesses/{stem(cell.verdict)}.json"
            witness = refs[path] = to.file(path, case_bytes(case_to(cell.verdict.witness)))
        to.emit(_judged(cell, policy, shared, refs[example.path] if example else None, witness))
    return refs


def _case(example: Example, ref: FileRef, named: str) -> CaseFound:
    proved = example.path.startswith("cases/T")
    return CaseFound(
        stage="theorem" if proved else "campaign",
        title=example.theorem or "reference and model differ",
        theorem=example.theorem,
        old=example.old,
        policy=example.policy.name,
        policy_sha256=policy_digest(example.policy),
        why=example.why,
        file=ref,
        command=shlex.join(["foldproof", "select", "--policy", named, "--cases", ref.path]),
        expected=THEOREMS[example.theorem].sentence if example.theorem else "the same answer",
        got=example.says,
        columns=example.columns,
        rows=example.rows,
        decides=example.decides,
    )


def _judged(
    cell: Settled, policy: Policy, lemmas: tuple[str, ...], example: FileRef | None, witness: FileRef | None
) -> TheoremJudged:
    verdict = cell.verdict
    theorem = THEOREMS[verdict.theorem]
    carried = (*lemmas, cell.decision.name) if cell.decision is not None and verdict.scope == "unbounded" else ()
    return TheoremJudged(
        policy=policy.name,
        policy_sha256=policy_digest(policy),
        theorem=theorem.id,
        name=theorem.name,
        sentence=theorem.sentence,
        verdict=str(verdict.status),
        promised=verdict.promised,
        scope=verdict.scope if verdict.status == Status.PROVED else "",
        old=verdict.old,
        old_sha256=policy_digest(load_policy(verdict.old)) if verdict.old else "",
        reason=verdict.reason,
        obligations=carried,
        counterexample=example,
        witness=witness,
        passes_reached=tuple(f"{name}{' under the premises' if under else ''}" for name, _, under in verdict.reached),
        killed_by=verdict.killed_by,
        seconds=round(verdict.seconds, 3),
    )


def emit_campaign(to: Recorder, campaign: Campaign, policy: Policy, named: str) -> None:
    """The campaign of the reference against the model, a case for each difference and for each broken promise."""
    for number, differing in enumerate(campaign.disagreements):
        example = difference_example(differing, policy, number)
        to.emit(_case(example, to.file(example.path, example.content), named))
    for violated in campaign.violations:
        older_one = older(policy, violated.theorem) if THEOREMS[violated.theorem].pairwise else ""
        example = violation_example(violated, policy, load_policy(older_one) if older_one else None)
        to.emit(_case(example, to.file(example.path, example.content), named))
    promised = {violation.theorem for violation in campaign.violations}
    to.emit(
        CampaignRan(
            stage="check",
            policy=policy.name,
            policy_sha256=policy_digest(policy),
            seed=str(campaign.seed),
            cases=campaign.cases,
            outcomes=campaign.outcomes,
            disagreements=len(campaign.disagreements),
            violated=campaign.violated,
            violated_promises={name: n for name, n in campaign.violated.items() if name in promised},
            seconds=round(campaign.seconds, 3),
            rate=round(campaign.cases / campaign.seconds, 1) if campaign.seconds else None,
        )
    )


def emit_model_mutants(to: Recorder, policy: Policy, rows: Sequence[MutantRow]) -> None:
    """What the model says of each mutant of a policy; nothing where none was asked for."""
    if rows:
        told = [(row.mutant, row.says, " ".join(row.killed_by) or ("differs" if row.differs else "")) for row in rows]
        real = sum(not row.equivalent for row in rows)
        caught = sum(bool(by) for _, _, by in told)
        to.emit(
            MutantsHunted(
                policy=policy.name,
                policy_sha256=policy_digest(policy),
                caught=caught,
                real=real,
                rows=tuple((name, says, by or "equivalent") for name, says, by in told),
            )
        )


def emit_receipt(to: Recorder, receipt: Receipt, file: tuple[str, bytes]) -> None:
    """A device receipt, copied beside the records, and its verdicts."""
    to.emit(device_event(receipt, to.file(f"receipts/{file[0]}", file[1])))


def device_event(receipt: Receipt, file: FileRef) -> BytesJudged:
    """What a device receipt says. Scenarios that compare nothing are left out of its counts."""
    scenarios = [row["comparison"] for row in receipt.results.get("scenarios", ()) if row.get("comparison")]
    words = ["equal" if c["tokens_equal"] and not c["differing_outputs"] else "differs" for c in scenarios]
    counts = receipt.counts or {"scenarios": {word: words.count(word) for word in dict.fromkeys(words)}}
    return BytesJudged(
        by="device",
        what=receipt.kind,
        capture_sha256=receipt.capture.aot_sha256,
        cubins=receipt.capture.cubins,
        counts={domain: dict(said) for domain, said in counts.items()},
        rows=tuple(_device_rows(receipt)),
        device=receipt.device.name,
        arch="sm_{}{}".format(*receipt.device.compute_capability),
        driver=receipt.device.driver or "",
        date=receipt.started[:10],
        seed=str(receipt.seed),
        commit=receipt.commit,
        dirty=receipt.dirty,
        complete=receipt.complete,
        receipt=file,
        command=receipt.command,
    )


def _device_rows(receipt: Receipt) -> Iterable[BytesRow]:
    for pair in receipt.pairs:
        words: dict[str, str] = {str(domain): verdict.word for domain, verdict in pair.verdicts.items()}
        telling = next((v.reason for v in pair.verdicts.values() if v.word != "equal"), "")
        change = ", ".join(pair.change)
        found = next((v.difference for v in pair.verdicts.values() if v.word == "differs" and v.difference), None)
        window = HexWindow(found.buffer, found.offset, found.at, found.first, found.second) if found else None
        yield BytesRow(pair.fn, pair.launch, change, pair.first, pair.second, words, pair.basis, telling, window)


def emit_bits(to: Recorder, capture_sha256: str, cubins: dict[str, str], found: Sequence[BitsVerdict]) -> None:
    """The verdicts of symbolic replay."""
    rows = tuple(
        BytesRow(v.fn, v.launch, ", ".join(v.change), v.first, v.second, symbolic_words(v), str(v.level), v.reason)
        for v in found
    )
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        for domain, word in row.words.items():
            said = counts.setdefault(domain, {})
            said[word] = said.get(word, 0) + 1
    to.emit(
        BytesJudged(
            by="symbolic",
            what="replay",
            capture_sha256=capture_sha256,
            cubins=cubins,
            counts=counts,
            rows=rows,
            date=to.run[:10],
            command="foldproof bits",
        )
    )


def symbolic_words(verdict: BitsVerdict) -> dict[str, str]:
    """The verdict by input domain, in the words of a device run.

    A proof for all inputs holds for fewer; one for inputs without NaN says nothing of those with. No witness holds a
    NaN, and only those of the pattern "extreme" an infinity. A witness below which some operation is a model, and not
    what the device computes bit for bit, says "differs, modelled": a device may disagree.
    """
    level, witness = verdict.level, verdict.witness
    if level == Level.PROVED_NO_NAN:
        return {EVERY: "unknown", NO_NAN: "equal", FINITE: "equal"}
    if level == Level.DIFFERS and witness is not None:
        word = "differs" if witness.exact else "differs, modelled"
        return {EVERY: word, NO_NAN: word, FINITE: "unknown" if witness.pattern == "extreme" else word}
    words = {Level.IDENTICAL: "equal", Level.PROVED: "equal", Level.PROVED_MODULO: "equal modulo contraction"}
    word = words.get(level, "unstable" if level == Level.UNSTABLE else "unknown")
    return dict.fromkeys(DOMAINS, "no reference" if verdict.reason.startswith("no reference") else word)
