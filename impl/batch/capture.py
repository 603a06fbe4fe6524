"""`BatchCapture`: one capture and one launch shape, ready to decide any number of launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from foldproof.impl.batch.classes import ArgClasses, Codes, LaunchShape, classes_of
from foldproof.impl.batch.finals import Finals
from foldproof.impl.batch.keys import blockwise
from foldproof.impl.batch.states import States, class_states, of_codes
from foldproof.impl.batch.sweep import Decisions
from foldproof.impl.batch.tables import Chain, chain_of, launch_ones
from foldproof.impl.batch.verdicts import check_servable
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.launch import Kind, Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Reason, Strictness, refusals

BLOCK = 1 << 15
"""Launches in one block: the codes and keys of a block stay in a core's second cache."""
MOST_ARGS = 64
"""The args of a launch whose *ones* fit one 64-bit mask."""
_ABOUT_ARGS = frozenset(Reason) - {Reason.SOURCE, Reason.OPTION, Reason.CONST_ABSENT, Reason.CONST_DIFFERS}


@dataclass(frozen=True, slots=True)
class BatchCapture:
    """Decides launches of one shape. `candidates` are the indices in `kernels` of the variants that the shape
    leaves open (function, source, options, named constants and arg names fit); `classes` those of each arg.
    """

    shape: LaunchShape
    policy: Policy
    candidates: tuple[int, ...]
    classes: tuple[ArgClasses, ...]
    _by_arg: tuple[States, ...]
    _start: States
    _finals: Finals
    _chain: Chain | None
    _by_state: Decisions | None

    @classmethod
    def build(cls, capture: Capture, shape: LaunchShape, policy: Policy, tables: bool = True) -> BatchCapture:
        """Prepare one shape of launches; `tables` False leaves every launch to the plain sweep (slower, less memory).

        Raises `InvalidPolicy` for a policy and `InvalidLaunch` for a shape that cannot be decided here.
        """
        check_servable(policy)
        if len(shape.args) > MOST_ARGS:
            why = f"has {len(shape.args)} args, the batch reference decides up to {MOST_ARGS}"
            raise InvalidLaunch(why, where="the launch shape", fix="use impl.select.decide")
        blank = shape.launch([classes_of(arg, ()).representatives[0] for arg in shape.args])
        candidates = tuple(i for i, v in enumerate(capture.kernels) if v.fn == shape.fn and _is_open(v, blank, policy))
        variants = [capture.kernels[i] for i in candidates]
        classes = tuple(classes_of(arg, [p for v in variants if (p := v.param(arg.name))]) for arg in shape.args)
        by_arg = tuple(class_states(variants, of, policy) for of in classes)
        finals = Finals.of(capture, candidates, blank, classes, policy)
        start = finals.start
        parts = (shape, policy, candidates, classes, by_arg, start, finals)
        ones = [of.ones for of in classes]
        chained = chain_of(by_arg, start, ones, policy) if tables else None
        if chained is None:
            return cls(*parts, None, None)
        chain, states = chained
        return cls(*parts, chain, finals.decide(states, chain.state_ones(ones)))

    @property
    def is_tabled(self) -> bool:
        """Whether launches are looked up; else they are decided by a plain sweep."""
        return self._chain is not None

    def encode(
        self, values: Mapping[str, npt.NDArray[Any]], sizes: Mapping[str, npt.NDArray[Any]] | None = None
    ) -> Codes:
        """The class codes of launches, a row an arg in the order of the shape.

        `values`: by arg name int values (int64 or uint64), addresses (uint64), bools, float32 or their bits;
        a None arg may be left out. `sizes`: bytes of pointers' allocations, negative where not said.
        Raises `InvalidLaunch` for names, lengths or values that are none of the shape's.
        """
        sizes = sizes or {}
        count = self._count(values, sizes)
        codes: Codes = np.zeros((len(self.classes), count), np.uint8)
        blockwise(count, BLOCK, lambda block: self._encode(values, sizes, block, codes[:, block]))
        return codes

    def decide(self, codes: Codes) -> Decisions:
        """The decisions of encoded launches. Raises `InvalidLaunch` for codes that are none of the shape's."""
        self._check(codes)
        found = _blank_decisions(codes.shape[1])
        blockwise(codes.shape[1], BLOCK, lambda block: self._decide(codes[:, block], found, block))
        return found

    def decide_values(
        self, values: Mapping[str, npt.NDArray[Any]], sizes: Mapping[str, npt.NDArray[Any]] | None = None
    ) -> Decisions:
        """`decide(encode(values, sizes))`, block by block."""
        sizes = sizes or {}
        count = self._count(values, sizes)
        found = _blank_decisions(count)
        codes: Codes = np.zeros((len(self.classes), min(count, BLOCK)), np.uint8)

        def step(block: slice) -> None:
            part = codes[:, : block.stop - block.start]
            self._encode(values, sizes, block, part)
            self._decide(part, found, block)

        blockwise(count, BLOCK, step)
        return found

    def launch(self, codes: Sequence[int] | npt.NDArray[np.uint8]) -> Launch:
        """A launch of these class codes, one an arg."""
        return self.shape.launch([of.representatives[code] for of, code in zip(self.classes, codes, strict=True)])

    def _decide(self, codes: Codes, found: Decisions, block: slice) -> None:
        if self._chain is None or self._by_state is None:
            states = of_codes(self._by_arg, codes, self._start)
            swept = self._finals.decide(states, launch_ones(codes, [of.ones for of in self.classes]))
            found.picks[block], found.strictness[block], found.ones[block] = swept.picks, swept.strictness, swept.ones
            return
        numbers, ones = self._chain.look_up(codes)
        self._by_state.picks.take(numbers, out=found.picks[block], mode="clip")
        self._by_state.strictness.take(numbers, out=found.strictness[block], mode="clip")
        self._by_state.ones.take(numbers, out=found.ones[block], mode="clip")
        if ones is not None:
            found.ones[block] &= ones

    def _encode(
        self, values: Mapping[str, npt.NDArray[Any]], sizes: Mapping[str, npt.NDArray[Any]], block: slice, out: Codes
    ) -> None:
        for row, of in zip(out, self.classes, strict=True):
            if of.shape.kind != Kind.NONE:
                size = sizes.get(of.shape.name)
                of.encode(values[of.shape.name][block], None if size is None else size[block], row)

    def _count(self, values: Mapping[str, npt.NDArray[Any]], sizes: Mapping[str, npt.NDArray[Any]]) -> int:
        needed = {arg.name for arg in self.shape.args if arg.kind != Kind.NONE}
        pointers = {arg.name for arg in self.shape.args if arg.kind == Kind.PTR}
        if odd := (needed ^ set(values)) | (set(sizes) - pointers):
            fix = "give values for exactly the args that are not None, and sizes for pointers only"
            raise InvalidLaunch(f"the arrays do not fit at {', '.join(sorted(odd))}", where=self.shape.fn, fix=fix)
        lengths = {array.shape for array in (*values.values(), *sizes.values())}
        if len(lengths) > 1 or any(len(shape) != 1 for shape in lengths):
            fix = "give one value a launch in every array"
            raise InvalidLaunch(f"the arrays differ in shape: {sorted(lengths)}", where=self.shape.fn, fix=fix)
        if not lengths:
            fix = "a launch without values is decided by impl.select.decide"
            raise InvalidLaunch("no array says how many launches there are", where=self.shape.fn, fix=fix)
        return int(lengths.pop()[0])

    def _check(self, codes: Codes) -> None:
        if codes.dtype != np.uint8 or codes.ndim != 2 or len(codes) != len(self.classes):
            why = f"codes are uint8 with {len(self.classes)} rows, not {codes.dtype} of shape {codes.shape}"
            raise InvalidLaunch(why, where=self.shape.fn, fix="use what encode returns")
        for row, of in zip(codes, self.classes, strict=True):
            if row.size and (most := int(row.max())) >= len(of):
                why = f"the code {most} is outside the {len(of)} classes of arg {of.shape.name}"
                raise InvalidLaunch(why, where=self.shape.fn, fix="use what encode of this BatchCapture returns")


def _is_open(variant: Variant, blank: Launch, policy: Policy) -> bool:
    """Whether nothing but the values of the args can refuse the candidate: source, options, constants, names."""
    rules = policy.rules(Strictness.RUNTIME_ONE)
    found = {refusal.reason for refusal in refusals(variant, blank, rules)}
    return found <= _ABOUT_ARGS - {Reason.UNPLACED, Reason.UNNAMED}


def _blank_decisions(count: int) -> Decisions:
    return Decisions(np.empty(count, np.int32), np.empty(count, np.int8), np.empty(count, np.uint64))
