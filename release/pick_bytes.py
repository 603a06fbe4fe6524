"""The output bytes of two picks: what is known of them, on which ground, and what would settle what is not.

Identical code is seen here. Everything else is asked of a `Judge`, which the command line makes of device receipts and
of symbolic replay, so that this room needs neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec
from foldproof.impl.capture import Variant
from foldproof.release.contradictions import identity
from foldproof.release.launches import Counted

Word: TypeAlias = Literal["equal", "differs", "unstable", "no reference", "owed"]
Digests: TypeAlias = dict[str, str]
EVERY = "every bit pattern"
IDENTICAL, SAME_HASH = "identical code", "equal hashes, cubins not compared"


class Bytes(msgspec.Struct, frozen=True):
    """A verdict on two picks under one launch. `word` is that of every bit pattern; `domains` has those of others.

    `basis` is its ground (identical code; a device and a date; symbolic replay), "" where it is owed. `settle` is the
    command that would settle what is owed.
    """

    word: Word
    basis: str = ""
    why: str = ""
    settle: str = ""
    domains: dict[str, str] = {}

    def __str__(self) -> str:
        """The verdict in a few words: where it holds for fewer inputs too, and its ground."""
        smaller = [domain for domain, word in self.domains.items() if word == "equal" and domain != EVERY]
        also = f" (equal for {', '.join(smaller)})" if smaller and self.word != "equal" else ""
        return f"{self.word}{also}{f': {self.basis}' if self.basis else ''}"


Judge: TypeAlias = Callable[[Variant, Variant, Counted], Bytes]
"""Says of two picks, whose code is not known to be identical, what their bytes are under a launch."""


def owed(_: Variant, __: Variant, ___: Counted) -> Bytes:
    """The judge who has seen nothing."""
    return Bytes("owed", why="nothing was asked for it", settle="foldproof replay on a device; foldproof bits")


def same_call(one: Variant, other: Variant) -> bool:
    """Whether equal code is run alike: the params in one order, and as many threads and blocks to a cluster."""
    a, b = ([p.name for p in v.params] for v in (one, other))
    return a == b and (one.num_warps, one.num_ctas) == (other.num_warps, other.num_ctas)


def pick_bytes(old: tuple[Variant, Digests], new: tuple[Variant, Digests], launch: Counted, judge: Judge) -> Bytes:
    """The verdict on two picks; the judge is asked where their code is not identical."""
    (one, before), (other, after) = old, new
    a, b = before.get(one.hash), after.get(other.hash)
    if same_call(one, other):
        if a is not None and a == b:
            return Bytes("equal", IDENTICAL)
        if (a is None or b is None) and one.hash == other.hash and identity(one) == identity(other):
            return Bytes("equal", SAME_HASH)
    return judge(one, other, launch)
