"""Explanations as plain tables: every candidate under every pass, and a case on one screen."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from foldproof.impl.capture import Capture, Param, Variant
from foldproof.impl.cases import Case
from foldproof.impl.errors import AmbiguousTritonVariant
from foldproof.impl.launch import Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Refusal, refusal
from foldproof.impl.select import Outcome, Selection, decide


class Row(msgspec.Struct, frozen=True):
    """One candidate: its index, its hash, and for each pass the first refusal, None where it is admissible."""

    index: int
    hash: str
    passes: tuple[Refusal | None, ...]
    picked: bool


class Explanation(msgspec.Struct, frozen=True):
    """How a policy decides one launch: the passes by name, a row a candidate, and the outcome."""

    policy: str
    passes: tuple[str, ...]
    rows: tuple[Row, ...]
    outcome: Outcome


def explain(capture: Capture, launch: Launch, policy: Policy) -> Explanation:
    """Every candidate of the launch's function against every pass of the policy."""
    outcome = decide(capture, launch, policy)
    picked = outcome.index if isinstance(outcome, Selection) else None
    rules = [policy.rules(sweep.rules) for sweep in policy.passes]
    rows = []
    for index in capture.candidates(launch.fn):
        variant = capture.kernels[index]
        rows.append(Row(index, variant.hash, tuple(refusal(variant, launch, r) for r in rules), index == picked))
    return Explanation(policy.name, tuple(str(r.strictness) for r in rules), tuple(rows), outcome)


def case_table(case: Case, outcome: Outcome) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Columns and rows of a case: the launch first, then each candidate; the deciding arg's column is marked `*`.

    A cell says how the candidate holds the arg: a type with its switches, `folded 1`, a constant, or `-`.
    """
    launch, kernels = case.launch, case.capture.kernels
    names = [arg.name for arg in launch.args]
    consts = list(dict.fromkeys([*launch.consts, *(n for v in kernels for n in v.consts if n not in names)]))
    deciding = decides(case, outcome)
    extras = [
        title for title in ("options", "source") if _extra(title, launch) or any(_extra(title, v) for v in kernels)
    ]
    picked = outcome.index if isinstance(outcome, Selection) else None
    among = outcome.among if not isinstance(outcome, Selection) else ()
    columns = ("", "", *(f"{n} *" if n == deciding else n for n in (*names, *consts, *extras)))
    rows = [
        (
            "launch",
            launch.fn,
            *(str(arg) for arg in launch.args),
            *(str(launch.consts.get(name, "")) for name in consts),
            *(_extra(title, launch) for title in extras),
        )
    ]
    for index, variant in enumerate(kernels):
        mark = "picked" if index == picked else "among" if index in among else ""
        held = [_held(variant, name) for name in (*names, *consts)]
        rows.append((mark, variant.hash, *held, *(_extra(title, variant) for title in extras)))
    return columns, tuple(rows)


def _held(variant: Variant, name: str) -> str:
    param, const = variant.param(name), variant.consts.get(name)
    if param is not None:
        return describe_param(param)
    if const is None:
        return "-"
    return "folded 1" if const.kind == "int" and const.value == 1 else f"const {const}"


def describe_param(param: Param) -> str:
    """A param's type and the switches that are on."""
    switches = [s for s in ("div16", "nospec", "noalign", "annotated", "range32") if getattr(param, s)]
    return " ".join([param.type, *switches])


def _extra(title: str, holder: Launch | Variant) -> str:
    if title == "source":
        return holder.source or ""
    if isinstance(holder, Launch):
        return ", ".join(f"{name} {value}" for name, value in holder.options)
    shown = {"num_warps": holder.num_warps if holder.num_warps != 4 else 0, "num_stages": holder.num_stages}
    rest = {"arch": holder.arch, "enable_fp_fusion": holder.enable_fp_fusion}
    return ", ".join(f"{name} {value}" for name, value in (shown | rest).items() if value not in (0, None))


def decides(case: Case, outcome: Outcome) -> str:
    """The arg or constant that decides: a foldable 1 that is read, else the first that candidates hold unlike."""
    if isinstance(outcome, Selection) and outcome.ones:
        return outcome.ones[0]
    kernels = case.capture.kernels
    if isinstance(outcome, Selection) and len(kernels) > 1:
        kernels = (outcome.variant, *(v for v in kernels if v is not outcome.variant))
    return next(_differing(case.launch, kernels), "")


def _differing(launch: Launch, kernels: tuple[Variant, ...]) -> Iterator[str]:
    names = dict.fromkeys([a.name for a in launch.args] + [n for v in kernels for n in v.consts])
    for name in names:
        if len({_held(variant, name) for variant in kernels}) > 1:
            yield name


def verdict_line(explanation: Explanation) -> str:
    """The outcome in one line."""
    outcome = explanation.outcome
    if isinstance(outcome, Selection):
        reads = f", reading {', '.join(outcome.ones)} at run time" if outcome.ones else ""
        return f"{explanation.policy} picks {outcome.variant.hash} by {outcome.strictness or 'no rules'}{reads}"
    if outcome.code == AmbiguousTritonVariant.code:
        return f"{explanation.policy} refuses: {outcome.code}: {outcome.detail}"
    return f"{explanation.policy} finds nothing: {outcome.code}"


class Node(msgspec.Struct, frozen=True):
    """One step of a decision as a tree: what it says, how it ended, and the steps below it.

    `state` is picked, refused, passed over, skipped, or "" for a step that only groups others.
    """

    says: str
    state: str = ""
    below: tuple[Node, ...] = ()


def decision_tree(explanation: Explanation, launch: Launch) -> Node:
    """The whole decision: the passes in order, in each what happened to every candidate, and why the pick was it.

    Passes after the one that decided are skipped: nothing was asked of them.
    """
    decided = False
    below = []
    for number, name in enumerate(explanation.passes):
        if decided:
            below.append(Node(f"{name}: not tried", "skipped"))
            continue
        admissible = sum(row.passes[number] is None for row in explanation.rows)
        decided = admissible > 0
        leaves = tuple(_leaf(row, number, explanation.outcome) for row in explanation.rows)
        below.append(Node(f"{name}: {admissible} of {len(explanation.rows)} admissible", "", leaves))
    said = ", ".join(f"{arg.name}: {arg}" for arg in launch.args)
    verdict = Node(verdict_line(explanation), "picked" if isinstance(explanation.outcome, Selection) else "refused")
    return Node(f"{launch.fn}({said})", "", (*below, verdict))


def _leaf(row: Row, number: int, outcome: Outcome) -> Node:
    refused = row.passes[number]
    if refused is not None:
        return Node(f"{row.hash}: {refused}", "refused")
    if row.picked:
        return Node(f"{row.hash}: admissible, and preferred", "picked")
    among = not isinstance(outcome, Selection) and row.index in outcome.among
    return Node(
        f"{row.hash}: admissible{', and one of the ambiguous' if among else ', and another is preferred'}",
        "passed over",
    )
