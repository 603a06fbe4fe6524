"""The theorems: one id, one name and one English sentence each, the same in docs, report and property tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from foldproof.impl.policy import Policy
from foldproof.model import statements
from foldproof.model.statements import Setting, Statement


@dataclass(frozen=True, slots=True)
class Theorem:
    """A theorem: its id, name and sentence, its formula, and whether it is about a policy and an older one."""

    id: str
    name: str
    sentence: str
    state: Callable[[Setting], Statement]
    pairwise: bool = False


_SENTENCES = """
T01 folded-one-wins
    If some candidate admissible by the general rules has every i32 1 of the launch folded, the selection reads
    no foldable 1.
T02 exact-first
    If some candidate matches exactly, the selection is an exact match, or is refused as ambiguous among exact
    matches.
T03 fallback-last
    A fallback is selected only when no candidate is admissible by the exact or general rules.
T04 guards-imply-assumptions
    Every assumption the selected variant was compiled under holds for the launch.
T05 loud-miss
    The outcome is missing exactly when no candidate is admissible in any pass of the policy; the error lists
    every arg and const.
T06 order-independence
    Reordering the candidates changes neither the pass nor the ones read.
T06v order-independence-of-the-variant
    Reordering the candidates does not change the variant.
T07 monotone
    Adding a candidate never turns a selection into a miss or moves it to a later pass (an ambiguity is no
    miss).
T08 irrelevant-candidates
    If a variant was selected, removing another candidate does not change the selection.
T09 conservative-extension
    Wherever the old policy selected a variant of no other source than the launch's, the new one selects the
    same variant.
T09c conservative-extension-of-the-pass
    Wherever the old policy selected a variant of no other source than the launch's, the new one selects in the
    same pass or refuses as ambiguous, and selects the same variant if it alone is admissible in that pass.
T10 logged-iff-fallback
    Each launch served by fallback is logged exactly once, naming the args read at run time; no other launch is.
T11 source
    A variant from another source than the launch's is never selected.
T12 folded-over-nospec
    No candidate of the winning pass that reads as many foldable 1s reads fewer 1s through nospec or annotated
    params.
T13 fewest-runtime-ones
    A fallback reads no more foldable 1s than any other candidate that the runtime-one rules admit.
T14 no-free-constants
    Two admissible candidates of the winning pass that differ in a constant the launch names neither as const
    nor as arg are refused as ambiguous.
T15 class-only
    The selection (variant, pass, ones) depends only on each arg's class: type, is 1, multiple of 16 or aligned,
    allocation within 2^31 - 1 bytes.
"""


def _read(text: str) -> Iterator[Theorem]:
    """The theorems of `_SENTENCES`: a line with id and name, then the sentence, indented."""
    for block in re.split(r"\n(?=T)", text.strip()):
        head, *lines = block.splitlines()
        id_, name = head.split()
        sentence = " ".join(line.strip() for line in lines)
        yield Theorem(id_, name, sentence, getattr(statements, id_.lower()), id_.startswith("T09"))


THEOREMS: Mapping[str, Theorem] = {theorem.id: theorem for theorem in _read(_SENTENCES)}
"""The theorems by id, in the order of docs, reports and checks."""

OLDER: Mapping[str, str] = {
    "two-pass": "exact-first",
    "single-guard": "two-pass",
    "three-pass": "two-pass",
    "recommended": "three-pass",
}
"""The older policy that T09 and T09c of a policy of the zoo are stated against when none is named."""


def older(policy: Policy, theorem: str) -> str:
    """The older policy for T09 or T09c: the one that the policy promises it against, else its neighbour, else ""."""
    promised = (p.partition(":")[2] for p in policy.promises if p.startswith(f"{theorem}:"))
    return next(promised, OLDER.get(policy.name, ""))
