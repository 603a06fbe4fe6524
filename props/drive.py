"""Selectors under test as drivers of a campaign: many rounds in, arrays of answers out.

A selector is named by one text: the path of a shared library, or a command.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec
import numpy as np
from foldproof.impl.errors import FoldproofError
from foldproof.impl.external.answers import Fault, Selector
from foldproof.impl.external.cabi import AbiSelector
from foldproof.impl.external.child import MEMORY_MIB
from foldproof.impl.external.process import START_S, ProcessSelector
from foldproof.impl.external.records import ABSENT, Encoded, Records, encode, encode_family
from foldproof.impl.external.wire import kernels_text
from foldproof.impl.launch import Kind
from foldproof.props.rounds import Round
from foldproof.props.verdict_arrays import LOG_UNSAID, Answers, of_replies

TIMEOUT_S = 5.0
ASKING = threading.Lock()
"""Held by a worker while it asks the selector that it keeps: a Dask worker may have several threads."""


class SelectorSpec(msgspec.Struct, frozen=True):
    """How to start a selector: what `--selector` says, how long it may take for an answer, in seconds, and how much
    data memory it gets, in MiB (0 for any).

    To start and greet it may take 20 seconds, however short the time for an answer: what it imports has to be read
    first. A longer time for an answer holds for the greeting, too.
    """

    text: str
    timeout_s: float = TIMEOUT_S
    memory_mib: int = MEMORY_MIB

    @property
    def is_library(self) -> bool:
        """Whether it is a shared library (one path that ends in .so) and not a command."""
        return self.text.endswith(".so") and len(self.command) == 1

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the command. Raises `FoldproofError` where the quotes do not close or there are none."""
        try:
            words = tuple(shlex.split(self.text))
        except ValueError as problem:
            raise FoldproofError(str(problem), where=f"--selector {self.text}", fix="quote as a shell would") from None
        if not words:
            raise FoldproofError("is empty", where="--selector", fix="give a command, or the path of a library")
        return words

    def open(self) -> ProcessSelector | AbiSelector:
        """The selector, to be entered; entering it raises `SelectorError` if it does not start."""
        timeout_s, memory_mib, start_s = self.timeout_s, self.memory_mib, max(START_S, self.timeout_s)
        if self.is_library:
            return AbiSelector(self.command[0], timeout_s=timeout_s, start_s=start_s, memory_mib=memory_mib)
        return ProcessSelector(self.command, timeout_s=timeout_s, start_s=start_s, memory_mib=memory_mib)


class Driver(Protocol):
    """Puts rounds to a selector."""

    @property
    def name(self) -> str:
        """The name that the selector gives itself."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of arg that it knows."""

    @property
    def stray(self) -> Sequence[Fault]:
        """Faults that belong to no launch."""

    def answers(self, rounds: Sequence[Round]) -> Iterable[Answers]:
        """The answers to each round, in order. Never raises for what the selector does.

        Where it asks a round at a time, a round is asked when its answers are taken.
        """


def driver_of(selector: Selector) -> Driver:
    """The fastest driver for a selector that has been entered."""
    if isinstance(selector, AbiSelector) and selector.kinds == frozenset(Kind):
        return _LibraryDriver(selector)
    return _AskingDriver(selector)


class _AskingDriver:
    """Launches as objects, a round at a time: for everything that has `ask`."""

    def __init__(self, selector: Selector) -> None:
        self._selector = selector
        self.name, self.kinds = selector.name, selector.kinds

    @property
    def stray(self) -> Sequence[Fault]:
        return self._selector.faults

    def answers(self, rounds: Sequence[Round]) -> Iterator[Answers]:
        for r in rounds:
            yield of_replies(self._selector.ask(r.capture_id, r.capture, list(r.launches())))


class _LibraryDriver:
    """All rounds in one call, rows of numbers never made into objects."""

    def __init__(self, selector: AbiSelector) -> None:
        self._selector = selector
        self.name, self.kinds = selector.name, selector.kinds

    @property
    def stray(self) -> Sequence[Fault]:
        return self._selector.faults

    def answers(self, rounds: Sequence[Round]) -> list[Answers]:
        captures = {r.capture_id: r.capture for r in rounds}
        slots = {key: slot for slot, key in enumerate(captures)}
        parts = [encode_family(r.template, r.numbers) for r in rounds]
        parts.append(encode([launch for r in rounds for launch in r.others]))
        jobs: list[tuple[int, int, int]] = []
        first, other = 0, sum(len(r.numbers) for r in rounds)
        for r in rounds:
            slot = slots[r.capture_id]
            jobs += [(slot, first, len(r.numbers)), (slot, other, len(r.others))]
            first, other = first + len(r.numbers), other + len(r.others)
        texts = [kernels_text(capture) for capture in captures.values()]
        sizes = [len(capture.kernels) for capture in captures.values()]
        decided = self._selector.decide(texts, sizes, joined(parts), jobs)
        ends = np.cumsum([len(r) for r in rounds])
        found = []
        for r, end in zip(rounds, ends.tolist(), strict=True):
            part = slice(end - len(r), end)
            faults = {place - part.start: f for place, f in decided.faults.items() if part.start <= place < end}
            logs = np.full(len(r), LOG_UNSAID, np.int8)
            found.append(Answers(decided.picks[part], decided.passes[part], logs, faults))
        return found


def joined(parts: Sequence[Encoded]) -> Encoded:
    """Several batches as one: launches in order, equal strings under one index."""
    texts: dict[bytes, int] = {}
    args, consts, launches = [], [], []
    first_arg = first_const = 0
    for part in parts:
        index = _string_index(part, texts)
        args.append(_renamed(part.args, ("name", "type"), index))
        named = _renamed(part.consts, ("name",), index)
        is_text = named["kind"] == _STR
        named["value"][is_text] = index[named["value"][is_text].astype(np.intp)]
        consts.append(named)
        moved = _renamed(part.launches, ("fn", "arch", "source"), index)
        moved["first_arg"] += np.uint32(first_arg)
        moved["first_const"] += np.uint32(first_const)
        launches.append(moved)
        first_arg, first_const = first_arg + len(part.args), first_const + len(part.consts)
    strings = np.zeros(len(texts), parts[0].strings.dtype)
    strings["length"] = [len(text) for text in texts]
    strings["offset"] = np.cumsum(strings["length"]) - strings["length"]
    return Encoded(b"".join(texts), strings, np.concatenate(args), np.concatenate(consts), np.concatenate(launches))


_STR = 4
"""FOLDPROOF_CONST_STR: the value of such a constant is a string index."""


def _string_index(part: Encoded, texts: dict[bytes, int]) -> Records:
    """The index in the joined table of each string of one batch; new strings are added to `texts`."""
    pairs = zip(part.strings["offset"].tolist(), part.strings["length"].tolist(), strict=True)
    found = [texts.setdefault(part.text[start : start + length], len(texts)) for start, length in pairs]
    return np.array(found, np.uint32)


def _renamed(records: Records, fields: Sequence[str], index: Records) -> Records:
    moved = records.copy()
    for name in fields:
        said = moved[name] != ABSENT
        moved[name][said] = index[moved[name][said].astype(np.intp)]
    return moved
