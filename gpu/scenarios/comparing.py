"""Comparing two ways of decoding one sequence: tokens, the bytes of every intermediate, the first to diverge."""

from __future__ import annotations

import msgspec
from foldproof.gpu.scenarios.session import Session, Wrote


class Divergence(msgspec.Struct, frozen=True):
    """The first launch whose output differs, in the order of positions and then of launches.

    `first` and `second` are the variants that served it. Inputs of that launch were equal on both sides. `verdict` is
    the pair's own, from the replay of the same run, where there is one.
    """

    position: int
    call: str
    fn: str
    output: str
    offset: int
    first: str
    second: str
    verdict: str = ""


class Comparison(msgspec.Struct, frozen=True):
    """Two runs of one sequence: whether the tokens agree, how much was compared, what differs first.

    `outputs` counts outputs of launches, position by position.
    """

    tokens_equal: bool
    positions: int
    outputs: int
    bytes: int
    differing_outputs: int
    divergence: Divergence | None = None

    @property
    def equal(self) -> bool:
        """Whether every token and every byte agrees."""
        return self.tokens_equal and not self.differing_outputs


def compare_sessions(left: Session, right: Session, begin: int) -> Comparison:
    """Compare what two sessions wrote from position `begin` on, as far as both went.

    Raises ValueError when they share no position: that would be a comparison of nothing.
    """
    shared = sorted(p for p in left.history.keys() & right.history.keys() if p >= begin)
    if not shared:
        raise ValueError("the two runs share no position")
    first: Divergence | None = None
    outputs = size = differing = 0
    for position in shared:
        wrote = list(zip(left.history[position], right.history[position], strict=True))
        if position in left.commits and position in right.commits:
            wrote.append((left.commits[position], right.commits[position]))
        for a, b in wrote:
            outputs += 1
            size += len(a.data)
            if a.data != b.data:
                differing += 1
                first = first or _divergence(position, a, b)
    tokens = [left.tokens[p] for p in shared] == [right.tokens[p] for p in shared]
    return Comparison(tokens, len(shared), outputs, size, differing, first)


def _divergence(position: int, a: Wrote, b: Wrote) -> Divergence:
    if (a.call, a.output, len(a.data)) != (b.call, b.output, len(b.data)):
        raise ValueError(f"{a.call} and {b.call} are not the same launch")
    offset = next(i for i, (x, y) in enumerate(zip(a.data, b.data, strict=True)) if x != y)
    return Divergence(position, a.call, a.fn, a.output, offset, a.variant, b.variant)
