"""Witnesses on the device: inputs on which symbolic replay says two variants differ, run to confirm or refute it.

A witness file holds byte verdicts of `foldproof bits` as JSON, a list or one a line; those without a witness are passed
over. Each witness is one launch on one input set: the elements that it lists, the index contents that symbolic replay
draws, zeros elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from foldproof.gpu.replay.arena import Arena
from foldproof.gpu.replay.backend import Backend
from foldproof.gpu.replay.bouts import Bout, Matchup
from foldproof.gpu.replay.formats import item_bytes
from foldproof.gpu.replay.inputs import Bytes, SetClass
from foldproof.gpu.replay.messages import bout_from, bout_to
from foldproof.gpu.replay.supervising import Supervisor
from foldproof.gpu.replay.tally import BoutCount, Difference
from foldproof.gpu.replay.trace import Record
from foldproof.gpu.replay.verdicts import pair_verdicts
from foldproof.gpu.replay.worker import Bench, Emit, Job, Orders, counted
from foldproof.impl.errors import FoldproofError
from foldproof.impl.strictjson import read_many

Answer: TypeAlias = Literal["confirmed", "differs", "refuted", "not decided"]
"""Differs in the bits that were predicted; differs in others; the bytes are equal; did not run to a comparison."""


class Element(msgspec.Struct, frozen=True):
    """An element of a buffer: its index and its bits."""

    buffer: str
    index: int
    bits: int


class Witness(msgspec.Struct, frozen=True):
    """The inputs, and an output element with its bits under both variants. `exact`: evaluated as a device computes."""

    inputs: tuple[Element, ...]
    output: Element
    other_bits: int
    exact: bool


class Predicted(msgspec.Struct, frozen=True):
    """A byte verdict with a witness; `launch` names a recorded launch of the capture."""

    first: str
    second: str
    launch: str
    witness: Witness


class Confirmation(msgspec.Struct, frozen=True):
    """What the device says of one witness, and where the bytes differ first."""

    first: str
    second: str
    launch: str
    exact: bool
    word: Answer
    reason: str


def read_witnesses(path: Path) -> tuple[Predicted, ...]:
    """The verdicts of a file that have a witness. Raises FoldproofError with file, place and reason."""
    found = []
    for place, value in read_many(path, FoldproofError):
        if isinstance(value, dict) and value.get("witness") is None:
            continue
        try:
            found.append(msgspec.convert(value, Predicted))
        except msgspec.ValidationError as problem:
            fix = "write it with foldproof bits"
            raise FoldproofError(
                f"is no verdict with a witness: {problem}", where=f"{path}: {place}", fix=fix
            ) from None
    return tuple(found)


def confirm(
    predicted: Iterable[Predicted], records: Mapping[str, Record], supervisor: Supervisor
) -> tuple[Confirmation, ...]:
    """Run each witness under the recorded launch that it names."""
    return tuple(_confirmed(case, records.get(case.launch), supervisor) for case in predicted)


def _confirmed(case: Predicted, record: Record | None, supervisor: Supervisor) -> Confirmation:
    if record is None:
        return _said(case, "not decided", f"the capture records no launch {case.launch!r}")
    bout = Bout(record, (case.first, case.second), (Matchup(case.first, case.second, ()),))
    elements = [msgspec.to_builtins(element) for element in case.witness.inputs]
    event = supervisor.ask("witness", {"bout": bout_to(bout), "elements": elements})
    if event["event"] != "done":
        return _said(case, "not decided", event["reason"])
    verdict = pair_verdicts(bout, msgspec.convert(event["count"], BoutCount), {})[0].verdicts["finite"]
    if verdict.word == "differs":
        wanted = verdict.difference is not None and _as_predicted(case.witness, verdict.difference, record)
        return _said(case, "confirmed" if wanted else "differs", verdict.reason)
    return _said(case, "refuted" if verdict.word == "equal" else "not decided", f"{verdict.word}: {verdict.reason}")


def _said(case: Predicted, word: Answer, reason: str) -> Confirmation:
    return Confirmation(case.first, case.second, case.launch, case.witness.exact, word, reason)


def _as_predicted(witness: Witness, seen: Difference, record: Record) -> bool:
    """Whether the first differing byte is in the predicted element and both sides have the predicted bits there."""
    width = item_bytes(next(a.pointee for a in record.launch.args if a.name == witness.output.buffer))
    at = seen.at + witness.output.index * width - seen.offset
    sides = [bytes.fromhex(side)[at : at + width] for side in (seen.first, seen.second)] if at >= 0 else []
    bits = [int.from_bytes(side, "little") for side in sides]
    inside = 0 <= seen.offset - witness.output.index * width < width and witness.output.buffer in seen.buffer.split("/")
    return inside and bits == [witness.output.bits, witness.other_bits]


class _Elements:
    """One input set given element by element."""

    def __init__(self, record: Record, elements: tuple[Element, ...]) -> None:
        self._elements = elements
        self._fixed = _indices(record)
        self._width = {a.name: item_bytes(a.pointee) for a in record.launch.args if a.pointee}

    def room(self, slots: int, stride: int) -> Bytes:
        """Memory for the set."""
        return np.zeros((slots, stride), np.uint8)

    def ahead(self, fn: str, arena: Arena, cls: SetClass, indices: range) -> None:
        """Nothing is prepared: there is one set."""

    def image(self, fn: str, arena: Arena, cls: SetClass, indices: range, out: Bytes) -> None:
        """The set, zero where nothing is said."""
        del fn, cls, indices
        out[:] = 0
        for name, values in self._fixed.items():
            for index, bits in enumerate(values):
                self._put(arena, Element(name, index, int(bits)), out)
        for element in self._elements:
            self._put(arena, element, out)

    def _put(self, arena: Arena, element: Element, out: Bytes) -> None:
        width = self._width[element.buffer]
        at = arena.offsets[element.buffer] + element.index * width
        out[0, at : at + width] = np.frombuffer(element.bits.to_bytes(width, "little"), np.uint8)


def _indices(record: Record) -> dict[str, Any]:
    """The contents that symbolic replay gives the index buffers of a launch, by buffer."""
    below = {name: note.below for name, note in record.buffers.items() if note.below}
    if not below:
        return {}
    from foldproof.gpu.symbolic.cases import LaunchCase, allocations  # noqa: PLC0415 -- few launches need it

    case = LaunchCase(record.name, record.launch, record.grid, below)
    return {region.name: region.values for region in allocations(case) if region.values is not None}


def witness_job(backend: Backend, bench: Bench, body: dict[str, Any], emit: Emit) -> dict[str, Any]:
    """Run one witness as a bout of one set."""
    bout = bout_from(body["bout"])
    elements = tuple(msgspec.convert(element, Element) for element in body["elements"])
    source = _Elements(bout.record, elements)
    count = counted(backend, bench, bout, emit, Orders({"finite": 1}, source))
    return {"count": msgspec.to_builtins(count)}


WITNESS_JOBS: Mapping[str, Job] = {"witness": witness_job}
