"""What symbolic replay is asked and answers: a pair of variants, the verdict on it, and its witness as a record."""

from __future__ import annotations

from typing import Any

import msgspec
from foldproof.gpu.symbolic.cases import LaunchCase
from foldproof.gpu.symbolic.compare import Level
from foldproof.gpu.symbolic.explain import Explanation
from foldproof.gpu.symbolic.witness import Witness
from foldproof.impl.capture import Variant
from foldproof.impl.errors import FoldproofError
from foldproof.impl.launch import launch_to


class Pair(msgspec.Struct, frozen=True):
    """Two variants of a function, by hash, and a launch that the runtime-one rules admit both for."""

    fn: str
    first: str
    second: str
    case: LaunchCase


class BitsVerdict(msgspec.Struct, frozen=True):
    """What symbolic replay says of one pair at one launch.

    `domain` is for which inputs; `scope` which blocks; `rules` the rewrites that the proof used; `modulo` what it rests
    on beyond PTX; `change` what the variants were specialised for differently; `reason` why there is no verdict, or
    what decided it.
    """

    fn: str
    first: str
    second: str
    launch: str
    level: Level
    domain: str = ""
    reason: str = ""
    scope: str = ""
    change: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    modulo: tuple[str, ...] = ()
    differing: int = 0
    explanation: Explanation | None = None
    witness: Witness | None = None

    @property
    def is_equal(self) -> bool:
        """Whether it claims equal bytes."""
        return self.level.is_equal


class BitsError(FoldproofError):
    """A capture or a selection of pairs that symbolic replay cannot work on."""

    code = "BadInput"


SHARED_LIMITS = {
    "sm_80": 166_912,
    "sm_86": 101_376,
    "sm_89": 101_376,
    "sm_90": 232_448,
    "sm_100": 232_448,
    "sm_120": 101_376,
}
"""Bytes of shared memory that one block can have, by architecture; sm_121 has that of sm_120."""


def witness_case(pair: Pair, found: BitsVerdict) -> dict[str, Any]:
    """A witness as a record that a device run can replay: launch, grid, pair, inputs and what to expect.

    `inputs` lists (index, bits) by buffer; elements that are not listed are zero. Raises `BitsError` without a witness.
    """
    if found.witness is None:
        raise BitsError(
            "has no witness", where=f"{pair.first} and {pair.second}", fix="only pairs that differ have one"
        )
    inputs: dict[str, list[tuple[int, int]]] = {}
    for element in found.witness.inputs:
        if element.bits:
            inputs.setdefault(element.buffer, []).append((element.index, element.bits))
    return {
        "name": f"{pair.case.name}: {pair.first} against {pair.second}",
        "launch": launch_to(pair.case.launch),
        "grid": list(pair.case.grid or ()),
        "buffers": {name: {"below": below} for name, below in pair.case.below.items()},
        "pair": [pair.first, pair.second],
        "inputs": inputs,
        "expect": {
            "buffer": found.witness.output.buffer,
            "index": found.witness.output.index,
            "bits": [found.witness.output.bits, found.witness.other_bits],
            "exact": found.witness.exact,
        },
    }


def cannot_load(variant: Variant) -> str:
    """Why no block of the variant fits its architecture, or nothing."""
    family = (variant.arch or "").rstrip("a")
    limit = SHARED_LIMITS.get("sm_120" if family == "sm_121" else family)
    if limit is not None and variant.shared > limit:
        return f"needs {variant.shared} bytes of shared memory, {variant.arch} has {limit} a block"
    return ""
