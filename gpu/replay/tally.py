"""What a run of a bout counted: facts only, no verdicts. These structs cross from the worker process to its parent."""

from __future__ import annotations

import msgspec
from foldproof.gpu.replay.inputs import SetClass


class Difference(msgspec.Struct, frozen=True):
    """The first differing byte that was found: in which set, which buffer, and a window of both sides as hex.

    `offset` is in bytes from the buffer's begin, `at` the place of that byte within the window.
    """

    set_class: SetClass
    kind: str
    index: int
    buffer: str
    offset: int
    at: int
    first: str
    second: str

    @property
    def values(self) -> tuple[str, str]:
        """The differing byte of both sides, in hex."""
        return self.first[2 * self.at : 2 * self.at + 2], self.second[2 * self.at : 2 * self.at + 2]


class VariantCount(msgspec.Struct, frozen=True):
    """One variant against itself over the sets of a class.

    `unstable`: sets in which two runs on the same bytes differ. `reads_fill`: sets in which the result follows the
    fill pattern, that is, bytes that the launch did not give. `spills`: sets in which a redzone changed.
    `written`: bytes of buffers that changed from what they held, over all sets.
    """

    hash: str
    set_class: SetClass
    sets: int
    unstable: int = 0
    reads_fill: int = 0
    spills: int = 0
    written: int = 0
    first: Difference | None = None


class PairCount(msgspec.Struct, frozen=True):
    """Two variants over the sets of a class: sets that differ, bytes that differ, bytes compared, the first difference.

    A set is compared under both fill patterns; its bytes count once.
    """

    first: str
    second: str
    set_class: SetClass
    sets: int
    differing: int = 0
    differing_bytes: int = 0
    bytes: int = 0
    difference: Difference | None = None


class Refusal(msgspec.Struct, frozen=True):
    """A variant that could not be run: `word` is the verdict that its pairs get, with the reason."""

    hash: str
    word: str
    reason: str


class BoutCount(msgspec.Struct, frozen=True):
    """All that a bout counted. `owed` is why it was not run, empty if it was; `seconds` by phase."""

    name: str
    variants: tuple[VariantCount, ...] = ()
    pairs: tuple[PairCount, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    owed: str = ""
    launches: int = 0
    seconds: dict[str, float] = {}


def merged(before: VariantCount, after: VariantCount) -> VariantCount:
    """The counts of two batches of one variant and class together; the earlier difference stays."""
    return VariantCount(
        before.hash,
        before.set_class,
        before.sets + after.sets,
        before.unstable + after.unstable,
        before.reads_fill + after.reads_fill,
        before.spills + after.spills,
        before.written + after.written,
        before.first or after.first,
    )


def merged_pair(before: PairCount, after: PairCount) -> PairCount:
    """The same for a pair."""
    return PairCount(
        before.first,
        before.second,
        before.set_class,
        before.sets + after.sets,
        before.differing + after.differing,
        before.differing_bytes + after.differing_bytes,
        before.bytes + after.bytes,
        before.difference or after.difference,
    )
