"""Selection: the passes of a policy over the candidates of a launch, and what comes out.

`decide` is pure. `select` is the same for callers who want exceptions and a logged line.
"""

from __future__ import annotations

import logging
from typing import TypeAlias

import msgspec
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.choose import Candidate, ambiguous, best, best_scored, ones_read
from foldproof.impl.errors import AmbiguousTritonVariant, MissingTritonVariant
from foldproof.impl.launch import Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Strictness, refusal

LOGGER = logging.getLogger("foldproof.selection")


class Selection(msgspec.Struct, frozen=True):
    """A picked variant.

    `index` is its place in `kernels`; `strictness` the strictest rules it meets, None if it meets none (a
    policy that tests less than the rules can pick such a variant); `ones` the foldable 1s it reads, in
    launch order; `log` the lines that the policy logs for this launch.
    """

    index: int
    variant: Variant
    strictness: Strictness | None
    ones: tuple[str, ...]
    log: tuple[str, ...] = ()

    @property
    def is_fallback(self) -> bool:
        """Whether the selection reads a 1 that the compiler would have folded."""
        return bool(self.ones)


class Refused(msgspec.Struct, frozen=True):
    """No selection: `code` says why, `detail` is the whole message, `among` the indices it is about."""

    code: str
    detail: str
    among: tuple[int, ...] = ()
    log: tuple[str, ...] = ()


Outcome: TypeAlias = Selection | Refused


def decide(capture: Capture, launch: Launch, policy: Policy, warned: frozenset[str] = frozenset()) -> Outcome:
    """What the policy answers. `warned` holds the hashes that a policy with log "variant" has warned of before."""
    candidates: list[Candidate] = [(i, v) for i, v in enumerate(capture.kernels) if v.fn == launch.fn]
    for sweep in policy.passes:
        rules = policy.rules(sweep.rules)
        admissible = [c for c in candidates if refusal(c[1], launch, rules) is None]
        if not admissible:
            continue
        scored = best_scored(admissible, sweep.choose, launch)
        for name in sweep.refuse:
            if among := ambiguous(name, admissible, scored, launch):
                return _ambiguous(launch, name, among)
        return _selection(*best(admissible, sweep.choose, launch), launch, policy, warned)
    return Refused(MissingTritonVariant.code, miss_text(launch) if policy.dump else "no variant")


def _selection(index: int, variant: Variant, launch: Launch, policy: Policy, warned: frozenset[str]) -> Selection:
    met = (r.strictness for r in policy.strictest_first if refusal(variant, launch, r) is None)
    ones = ones_read(variant, launch)
    logs = policy.log == "launch" or (policy.log == "variant" and variant.hash not in warned)
    log = (fallback_line(launch.fn, variant.hash, ones),) if ones and logs else ()
    return Selection(index, variant, next(met, None), ones, log)


def _ambiguous(launch: Launch, name: str, among: list[Candidate]) -> Refused:
    shown = ", ".join(variant.hash for _, variant in among)
    detail = f"{len(among)} variants of {launch.fn} fit this launch and {AMBIGUITY[name]}: {shown}"
    return Refused(AmbiguousTritonVariant.code, detail, tuple(index for index, _ in among))


AMBIGUITY = {
    "free-constants": "differ in a constant that the launch does not name",
    "warps-and-stages": "differ in num_warps or num_stages, which the launch does not pin",
    "launch-options": "differ in launch options, which the launch does not pin",
    "twins": "have equal params and consts",
}
"""What each refusal of the policy language says of the candidates it names."""


def fallback_line(fn: str, variant_hash: str, ones: tuple[str, ...]) -> str:
    """The log line of a fallback: the public project's wording, then the args that are read at run time."""
    said = f"aot: {fn} runs variant {variant_hash}, its 1 read at runtime (the capture holds no folded variant of it)"
    return f"{said}: {', '.join(ones)}"


def miss_text(launch: Launch) -> str:
    """The error of a miss: every arg, constant and pinned option of the launch, a line each (T05)."""
    lines = [f"no captured Triton variant of {launch.fn} for this launch:"]
    lines += [f"  arg {arg.name}: {arg}" for arg in launch.args]
    lines += [f"  const {name}: {const}" for name, const in launch.consts.items()]
    lines += [f"  option {name}: {value}" for name, value in launch.options]
    if launch.source is not None:
        lines.append(f"  source: {launch.source}")
    return "\n".join(lines)


def select(capture: Capture, launch: Launch, policy: Policy) -> Selection:
    """The selection; its log lines go to the logger `foldproof.selection` as warnings.

    Raises `MissingTritonVariant` or `AmbiguousTritonVariant`.
    """
    outcome = decide(capture, launch, policy)
    for line in outcome.log:
        LOGGER.warning("%s", line)
    if isinstance(outcome, Selection):
        return outcome
    among = tuple(capture.kernels[index].hash for index in outcome.among)
    error = MissingTritonVariant if outcome.code == MissingTritonVariant.code else AmbiguousTritonVariant
    raise error(outcome.detail, among)
