"""The theorems as executable checks of the reference: the same ids as `model.theorems`, on one concrete case.

A check answers with a `Violation`, or None where the theorem holds of the case. Theorems about a second capture
or launch try every neighbour of the case: each swap, each removal, or the other launch that is given.

Longer than 250 lines because the checks are read side by side, one function each, in the order of the theorems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec
from foldproof.impl.capture import Capture, Variant
from foldproof.impl.cases import Case, replay
from foldproof.impl.choose import is_folded, ones_read, runtime_ones
from foldproof.impl.errors import AmbiguousTritonVariant, MissingTritonVariant
from foldproof.impl.launch import INT_KINDS, Kind, Launch
from foldproof.impl.policy import Pass, Policy
from foldproof.impl.rules import RANGE32_BYTES, Strictness, holds, is_one, refusal, source_refusal
from foldproof.impl.select import Outcome, Refused, Selection


class Violation(msgspec.Struct, frozen=True):
    """A theorem broken by a case: what the policy answered, why that breaks it, and the twin case it takes."""

    theorem: str
    policy: str
    case: Case
    outcome: Outcome
    why: str
    twin: Case | None = None
    twin_outcome: Outcome | None = None
    decides: str = ""
    """The arg, constant or option that decides, where one does."""


class Trial(msgspec.Struct, frozen=True):
    """What a check looks at: the case, the policy and its answer, the older policy, another launch for T15."""

    case: Case
    policy: Policy
    outcome: Outcome
    old: Policy | None = None
    other: Launch | None = None

    def candidates(self) -> Iterator[Variant]:
        """The variants of the launch's function."""
        return (v for v in self.case.capture.kernels if v.fn == self.case.launch.fn)

    def admissible(self, strictness: Strictness) -> list[Variant]:
        """The candidates that the policy's own rules of that strictness admit."""
        rules = self.policy.rules(strictness)
        return [v for v in self.candidates() if refusal(v, self.case.launch, rules) is None]

    def winning(self) -> tuple[Pass | None, list[Variant]]:
        """The first pass with admissible candidates, and those."""
        for sweep in self.policy.passes:
            if found := self.admissible(sweep.rules):
                return sweep, found
        return None, []

    def ones(self, variant: Variant) -> int:
        """How many foldable 1s the variant reads."""
        return len(ones_read(variant, self.case.launch))


Finding = tuple[str, Case | None]
Check = Callable[[Trial], Iterator[Finding]]
"""Yields why the theorem is broken, and the twin case where it takes one."""


def _pick(trial: Trial) -> Selection | None:
    return trial.outcome if isinstance(trial.outcome, Selection) else None


def _t01(t: Trial) -> Iterator[Finding]:
    ones = [a for a in t.case.launch.args if is_one(a)]
    folding = [v for v in t.admissible(Strictness.GENERAL) if all(is_folded(v, a) for a in ones)]
    pick = _pick(t)
    if folding and pick and pick.ones:
        yield f"{folding[0].hash} folds every 1 and is admissible; {pick.variant.hash} reads {_list(pick.ones)}", None


def _t02(t: Trial) -> Iterator[Finding]:
    exact = t.admissible(Strictness.EXACT)
    if not exact:
        return
    pick = _pick(t)
    if pick and pick.variant not in exact:
        yield f"{exact[0].hash} matches exactly, {pick.variant.hash} does not", None
    if isinstance(t.outcome, Refused):
        among = [t.case.capture.kernels[i] for i in t.outcome.among]
        if t.outcome.code == MissingTritonVariant.code or any(v not in exact for v in among):
            yield f"{exact[0].hash} matches exactly, and the answer is {t.outcome.code}", None


def _t03(t: Trial) -> Iterator[Finding]:
    pick = _pick(t)
    stricter = [*t.admissible(Strictness.EXACT), *t.admissible(Strictness.GENERAL)]
    if pick and pick.ones and stricter:
        yield f"{pick.variant.hash} falls back though {stricter[0].hash} is admissible without it", None


def _t04(t: Trial) -> Iterator[Finding]:
    pick = _pick(t)
    for subject in broken_assumptions(pick.variant, t.case.launch) if pick else ():
        yield f"{subject} breaks what {pick.variant.hash if pick else ''} was compiled under", None


def broken_assumptions(variant: Variant, launch: Launch) -> Iterator[str]:
    """The names of args, params and constants of which something that the variant was compiled under is false."""
    unnamed = {param.name: param for param in variant.params}
    for arg in launch.args:
        param, const = unnamed.pop(arg.name, None), variant.consts.get(arg.name)
        if param is None:
            is_none = const is not None and const.kind == "none" and arg.kind == Kind.NONE
            sound = is_none or is_folded(variant, arg)
        else:
            is_int = arg.kind in INT_KINDS
            typed = holds(param.type, arg.number) if param.annotated and is_int else arg.type == param.type
            aligned = not (param.div16 and (is_int or arg.kind == Kind.PTR)) or arg.number % 16 == 0
            within = arg.kind == Kind.PTR and arg.bytes is not None and arg.bytes <= RANGE32_BYTES
            sound = typed and aligned and (within or not param.range32)
        if not sound:
            yield arg.name
    yield from unnamed
    for name, wanted in launch.consts.items():
        if variant.consts.get(name) != wanted:
            yield name


def _t05(t: Trial) -> Iterator[Finding]:
    some = any(t.admissible(sweep.rules) for sweep in t.policy.passes)
    missing = isinstance(t.outcome, Refused) and t.outcome.code == MissingTritonVariant.code
    if missing == some:
        yield "the answer is a miss though a candidate is admissible" if some else "nothing is admissible", None
    if missing and isinstance(t.outcome, Refused):
        names = [a.name for a in t.case.launch.args] + list(t.case.launch.consts)
        silent = [name for name in names if f" {name}: " not in t.outcome.detail]
        if silent or t.case.launch.fn not in t.outcome.detail:
            yield f"the error does not list {_list(silent) or 'the function'}", None


def _summary(outcome: Outcome) -> tuple[object, ...]:
    if isinstance(outcome, Selection):
        return "selection", outcome.strictness, outcome.ones
    return (outcome.code,)


def _swaps(case: Case) -> Iterator[Case]:
    kernels = case.capture.kernels
    for i in range(len(kernels) - 1):
        swapped = (*kernels[:i], kernels[i + 1], kernels[i], *kernels[i + 2 :])
        yield msgspec.structs.replace(case, capture=Capture(swapped))


def _removals(case: Case) -> Iterator[tuple[Variant, Case]]:
    kernels = case.capture.kernels
    for i, removed in enumerate(kernels if len(kernels) > 1 else ()):
        yield removed, msgspec.structs.replace(case, capture=Capture((*kernels[:i], *kernels[i + 1 :])))


def _t06(t: Trial) -> Iterator[Finding]:
    for twin in _swaps(t.case):
        other = replay(twin, t.policy)
        if _summary(other) != _summary(t.outcome):
            yield f"in another order the answer is {describe(other)}", twin


def _t06v(t: Trial) -> Iterator[Finding]:
    for twin in _swaps(t.case):
        other = replay(twin, t.policy)
        if _hash(other) != _hash(t.outcome):
            yield f"in another order the answer is {describe(other)}", twin


def _hash(outcome: Outcome) -> str | None:
    return outcome.variant.hash if isinstance(outcome, Selection) else None


PASS_ORDER: tuple[Strictness | None, ...] = (Strictness.EXACT, Strictness.GENERAL, Strictness.RUNTIME_ONE, None)


def _t07(t: Trial) -> Iterator[Finding]:
    for added, twin in _removals(t.case):
        before = replay(twin, t.policy)
        if not isinstance(before, Selection):
            continue
        pick = _pick(t)
        missed = isinstance(t.outcome, Refused) and t.outcome.code == MissingTritonVariant.code
        if missed or (pick and PASS_ORDER.index(pick.strictness) > PASS_ORDER.index(before.strictness)):
            yield f"without {added.hash} the answer is {describe(before)}", twin


def _t08(t: Trial) -> Iterator[Finding]:
    pick = _pick(t)
    for removed, twin in _removals(t.case):
        if pick and removed != pick.variant:
            after = replay(twin, t.policy)
            if _hash(after) != pick.variant.hash:
                yield f"without {removed.hash} the answer is {describe(after)}", twin


def _before(t: Trial) -> Selection | None:
    """What the old policy selected, if its source is not another than the launch's."""
    if t.old is None:
        return None
    before = replay(t.case, t.old)
    if not isinstance(before, Selection) or source_refusal(before.variant.source, t.case.launch.source):
        return None
    return before


def _t09(t: Trial) -> Iterator[Finding]:
    before = _before(t)
    if t.old and before and _hash(t.outcome) != before.variant.hash:
        yield f"{t.old.name} answers {describe(before)}", None


def _t09c(t: Trial) -> Iterator[Finding]:
    before = _before(t)
    if not t.old or not before:
        return
    own = [r for r in t.policy.strictest_first if refusal(before.variant, t.case.launch, r) is None]
    strictness = own[0].strictness if own else None
    pick = _pick(t)
    ambiguous = isinstance(t.outcome, Refused) and t.outcome.code == AmbiguousTritonVariant.code
    alone = strictness is None or t.admissible(strictness) == [before.variant]
    if not ambiguous and (pick is None or pick.strictness != strictness):
        yield f"{t.old.name} answers {describe(before)}", None
    elif alone and _hash(t.outcome) != before.variant.hash:
        yield f"{t.old.name} answers {describe(before)}, which alone is admissible in its pass", None


def _t10(t: Trial) -> Iterator[Finding]:
    pick = _pick(t)
    if pick is None:
        if t.outcome.log:
            yield "a launch without a selection is logged", None
        return
    named = [line for line in pick.log if all(name in line for name in pick.ones)]
    if pick.ones and len(named) != 1:
        yield f"the fallback on {_list(pick.ones)} is logged {len(named)} times", None
    if not pick.ones and pick.log:
        yield "a selection that is no fallback is logged", None


def _t11(t: Trial) -> Iterator[Finding]:
    pick = _pick(t)
    if pick and source_refusal(pick.variant.source, t.case.launch.source):
        yield f"{pick.variant.hash} comes from {pick.variant.source!r}, the launch from {t.case.launch.source!r}", None


def _t12(t: Trial) -> Iterator[Finding]:
    pick = _pick(t)
    if pick is None:
        return
    launch = t.case.launch
    for other in t.winning()[1]:
        unfoldable = [runtime_ones(v, launch) - t.ones(v) for v in (other, pick.variant)]
        if t.ones(other) == t.ones(pick.variant) and unfoldable[0] < unfoldable[1]:
            yield f"{other.hash} reads fewer 1s through nospec and annotated params than {pick.variant.hash}", None


def _t13(t: Trial) -> Iterator[Finding]:
    pick = _pick(t)
    for other in t.admissible(Strictness.RUNTIME_ONE) if pick and pick.ones else ():
        if pick and t.ones(other) < t.ones(pick.variant):
            yield f"{other.hash} reads fewer foldable 1s than {pick.variant.hash}", None


def _t14(t: Trial) -> Iterator[Finding]:
    named = {a.name for a in t.case.launch.args} | set(t.case.launch.consts)
    free = [({n: c for n, c in v.consts.items() if n not in named}, v) for v in t.winning()[1]]
    differing = [v for consts, v in free if consts != free[0][0]]
    refused = isinstance(t.outcome, Refused) and t.outcome.code == AmbiguousTritonVariant.code
    if differing and not refused:
        yield f"{free[0][1].hash} and {differing[0].hash} differ in a constant that the launch does not name", None


def _t15(t: Trial) -> Iterator[Finding]:
    if t.other is None:
        return
    before = (t.other,) if t.case.before else ()
    twin = msgspec.structs.replace(t.case, launch=t.other, before=before)
    other = replay(twin, t.policy)
    if (_hash(other), _summary(other)) != (_hash(t.outcome), _summary(t.outcome)):
        yield f"another launch of the same classes gets {describe(other)}", twin


CHECKS: Mapping[str, Check] = {
    name.upper() if not name.endswith(("v", "c")) else name[:-1].upper() + name[-1]: check
    for name, check in {
        "t01": _t01, "t02": _t02, "t03": _t03, "t04": _t04, "t05": _t05, "t06": _t06, "t06v": _t06v, "t07": _t07,
        "t08": _t08, "t09": _t09, "t09c": _t09c, "t10": _t10, "t11": _t11, "t12": _t12, "t13": _t13, "t14": _t14,
        "t15": _t15,
    }.items()
}  # fmt: skip
"""The check of each theorem."""


def violation(
    theorem: str, case: Case, policy: Policy, old: Policy | None = None, other: Launch | None = None
) -> Violation | None:
    """How the case breaks the theorem for the policy, None if it does not."""
    outcome = replay(case, policy)
    trial = Trial(case, policy, outcome, old, other)
    for why, twin in CHECKS[theorem](trial):
        return Violation(theorem, policy.name, case, outcome, why, twin, replay(twin, policy) if twin else None)
    return None


def describe(outcome: Outcome) -> str:
    """An outcome in a few words."""
    if isinstance(outcome, Refused):
        return outcome.code
    reads = f", reading {_list(outcome.ones)}" if outcome.ones else ""
    return f"{outcome.variant.hash} by {outcome.strictness or 'no rules'}{reads}"


def _list(names: object) -> str:
    return ", ".join(names)  # type: ignore[arg-type]
