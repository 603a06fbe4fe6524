"""Triton's dispatcher against the policy `linker-order`: the same launches, both picks, and the theorems that fall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from foldproof.impl.capture import Capture
from foldproof.impl.cases import Case
from foldproof.impl.choose import ones_read
from foldproof.impl.errors import FoldproofError, MissingTritonVariant
from foldproof.impl.external.answers import Reply
from foldproof.impl.external.cabi import AbiSelector
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.impl.policy import Policy, zoo_policy
from foldproof.impl.rules import refusal
from foldproof.impl.select import Outcome, Refused, Selection, decide
from foldproof.props.checks import CHECKS, Trial
from foldproof.props.peers.library import C_KINDS, LinkerPeer

POLICY = "linker-order"
TESTED = ("T01", "T02", "T03", "T04", "T13")
"""The theorems about one answer to one launch, as far as a dispatcher without log and source can break them."""
NUMBERS = {
    Kind.PTR: (0x1000, 0x1004),
    Kind.FP32: (0x3F80_0000,),
    Kind.I32: (1, 16, 7, 0, -32),
    Kind.I64: (2**40, 2**40 + 1),
    Kind.U64: (2**63, 2**63 + 1),
    Kind.U1: (1, 0),
}
"""One number a class of each kind: an int that is 1, a multiple of 16, another; a pointer on 16 bytes or not."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One launch, the index that the real dispatcher launched (None: a miss), and the policy's."""

    launch: Launch
    real: int | None
    policy: int | None

    @property
    def agrees(self) -> bool:
        """Whether both pick the same variant, or both none."""
        return self.real == self.policy


def compared(peer: LinkerPeer, launches: Sequence[Launch]) -> tuple[Answer, ...]:
    """Both picks for each launch. Raises `FoldproofError` when the library breaks, which is no answer."""
    policy = zoo_policy(POLICY)
    theirs = real_picks(peer, launches)
    return tuple(
        Answer(launch, real, _index(decide(peer.capture, launch, policy)))
        for launch, real in zip(launches, theirs, strict=True)
    )


def real_picks(peer: LinkerPeer, launches: Sequence[Launch]) -> list[int | None]:
    """What the dispatcher launches, driven through the C interface. Raises `FoldproofError` when it breaks."""
    with AbiSelector(peer.library) as selector:
        answers = selector.ask(str(peer.library), peer.capture, launches)
    picks: list[int | None] = []
    for answer in answers:
        if not isinstance(answer, Reply) or answer.error not in (None, MissingTritonVariant.code):
            raise FoldproofError(f"the dispatcher gave no answer: {answer}", where=str(peer.library))
        picks.append(answer.pick)
    return picks


def _index(outcome: Outcome) -> int | None:
    return outcome.index if isinstance(outcome, Selection) else None


def class_launches(peer: LinkerPeer) -> Iterator[Launch]:
    """A launch for each combination of classes of the dispatcher's params; keep the params few."""
    types = {param.name: param.type for variant in peer.capture.kernels for param in variant.params}
    columns = []
    for c_type, name in peer.linked.params:
        kind = C_KINDS[c_type]
        pointee = types[name] if kind == Kind.PTR else ""
        columns.append([Arg(name, kind, number, pointee) for number in NUMBERS[kind]])
    for args in product(*columns):
        yield Launch(peer.linked.kernel, args)


def broken_theorems(capture: Capture, launch: Launch, pick: int | None) -> dict[str, str]:
    """The theorems of `TESTED` that this answer breaks, each with why."""
    policy = zoo_policy(POLICY)
    trial = Trial(Case("peer", capture, launch), policy, _outcome(capture, launch, pick, policy))
    found = {theorem: next(iter(CHECKS[theorem](trial)), None) for theorem in TESTED}
    return {theorem: broken[0] for theorem, broken in found.items() if broken}


def _outcome(capture: Capture, launch: Launch, pick: int | None, policy: Policy) -> Outcome:
    if pick is None:
        return Refused(MissingTritonVariant.code, "the dispatcher returns TT_ERROR_INVALID_VALUE")
    variant = capture.kernels[pick]
    met = (r.strictness for r in policy.strictest_first if refusal(variant, launch, r) is None)
    return Selection(pick, variant, next(met, None), ones_read(variant, launch))
