"""launch -> select -> cubin: the step through which every kernel of a scenario goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from foldproof.gpu.corpus import BY_NAME
from foldproof.gpu.corpus.model import Absent, Float, Int, Param
from foldproof.gpu.plan import ARCH, const_json
from foldproof.gpu.replay.abi import packed
from foldproof.gpu.replay.backend import Backend, Shape
from foldproof.gpu.replay.batch import Loaded
from foldproof.gpu.replay.tally import Refusal
from foldproof.gpu.scenarios.decoder import Call, Place
from foldproof.impl import (
    AmbiguousTritonVariant,
    Arg,
    Capture,
    Const,
    FoldproofError,
    Kind,
    Launch,
    MissingTritonVariant,
    Policy,
    Selection,
    Variant,
    decide,
)

Addresses = Callable[[Place], tuple[int, int]]
"""The address of a place and the bytes from there to the end of its buffer."""
Load = Callable[[str], Loaded | Refusal]


class Launcher:
    """Serves calls from one capture by one policy, and keeps the log: each fallback line with how often it came.

    Raises MissingTritonVariant or AmbiguousTritonVariant as the policy does.
    """

    def __init__(self, backend: Backend, capture: Capture, policy: Policy, load: Load) -> None:
        self._backend, self._capture, self._policy, self._load = backend, capture, policy, load
        self._known: dict[tuple[object, ...], Selection] = {}
        self.log: Counter[str] = Counter()
        self.passes: Counter[str] = Counter()
        self.launches = 0

    def run(self, call: Call, addresses: Addresses, lane: int) -> str:
        """Launch a call on a lane; gives the hash of the variant that serves it."""
        launch, places = launch_of(call, addresses)
        selection = self._select(launch)
        self.launches += 1
        self.passes[str(selection.strictness)] += 1
        self.log.update(selection.log)
        item = self._load(selection.variant.hash)
        if isinstance(item, Refusal):
            raise FoldproofError(
                f"{call.name} cannot run: {item.reason}", where=item.hash, fix="see the replay receipt"
            )
        shape = Shape(call.grid, item.variant.num_warps * 32, item.variant.num_ctas)
        args = packed(item.variant, launch, places, [0] * item.scratch_pointers)
        self._backend.launch(item.code, shape, args, lane)
        return selection.variant.hash

    def _select(self, launch: Launch) -> Selection:
        # By T15 a selection depends on the class of each arg only; the ints stand for themselves, addresses for their
        # residue, so that a launch of every token need not be decided again.
        key = (launch.fn, *((a.number % 16 if a.kind == Kind.PTR else a.number, a.kind) for a in launch.args))
        if key not in self._known:
            outcome = decide(self._capture, launch, self._policy)
            if not isinstance(outcome, Selection):
                kind = MissingTritonVariant if outcome.code == MissingTritonVariant.code else AmbiguousTritonVariant
                raise kind(outcome.detail)
            self._known[key] = outcome
        return self._known[key]


def launch_of(call: Call, addresses: Addresses) -> tuple[Launch, dict[str, int]]:
    """The launch of a call, pinned to what the decoder was built for, and the address of each pointer argument."""
    kernel = BY_NAME[call.fn]
    places: dict[str, int] = {}
    args = []
    for param, (name, value) in zip(kernel.params, call.args, strict=True):
        if isinstance(value, Place):
            address, size = addresses(value)
            places[name] = address
            args.append(Arg(name, Kind.PTR, address, value.type, size))
        else:
            args.append(_scalar(param, value))
    consts = {name: msgspec.convert(const_json(value), Const) for name, value in kernel.consts.items()}
    options: dict[str, Any] = {"num_warps": 4, "num_stages": kernel.num_stages, "arch": ARCH, "enable_fp_fusion": True}
    return Launch(call.fn, tuple(args), consts, **options), places


def _scalar(param: Param, value: int | None) -> Arg:
    if isinstance(param, Absent):
        return Arg(param.name, Kind.NONE)
    if value is None:
        raise TypeError(f"{param.name} is given None")
    return Arg(param.name, Kind.FP32 if isinstance(param, Float) else Kind.I32, value)


def without_folded(capture: Capture) -> Capture:
    """The capture without any variant that has an int param of its kernel folded to 1: one that never saw a 1."""
    kept = tuple(variant for variant in capture.kernels if not _folds(variant))
    return msgspec.structs.replace(capture, kernels=kept)


def _folds(variant: Variant) -> bool:
    kernel = BY_NAME.get(variant.fn)
    ints = {p.name for p in kernel.params if isinstance(p, Int)} if kernel else set()
    return any(name in ints and const.kind == "int" and const.value == 1 for name, const in variant.consts.items())
