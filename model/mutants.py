"""Mutants: one planted fault each, as data. A proof counts only if some mutant of the policy refutes the theorem.

A fault is either in the policy (`change` rewrites it) or in the code that runs it (`flaws`, looked for by
`model.rules` and `model.selection`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from foldproof.impl.policy import Pass, Policy
from foldproof.impl.rules import Strictness
from foldproof.model.world import SOUND, Flaws

Change = Callable[[Policy], Policy]
_put = msgspec.structs.replace


class Mutant(msgspec.Struct, frozen=True):
    """A named fault: what it does in words, and the policy and flaws that run under it."""

    name: str
    says: str
    running: Policy
    flaws: Flaws = SOUND


def _passes(edit: Callable[[Pass], Pass | None]) -> Change:
    """The policy with each pass edited; a pass edited to None is dropped."""

    def change(policy: Policy) -> Policy:
        kept = tuple(p for p in map(edit, policy.passes) if p is not None)
        return _put(policy, passes=kept or policy.passes)

    return change


def _choose(edit: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Change:
    return _passes(lambda p: _put(p, choose=edit(p.choose) or ("first",)))


def _without(key: str) -> Change:
    return _choose(lambda keys: tuple(k for k in keys if k != key))


def _unrefused(name: str) -> Change:
    return _passes(lambda p: _put(p, refuse=tuple(r for r in p.refuse if r != name)))


def _weaker(old: Strictness, new: Strictness) -> Change:
    return _passes(lambda p: _put(p, rules=new) if p.rules == old else p)


def _dropped(strictness: Strictness) -> Change:
    return _passes(lambda p: None if p.rules == strictness else p)


def _renamed(old: str, new: str) -> Change:
    return _choose(lambda keys: tuple(new if k == old else k for k in keys))


EXACT, GENERAL, RUNTIME_ONE = Strictness.EXACT, Strictness.GENERAL, Strictness.RUNTIME_ONE

IN_THE_POLICY: dict[str, tuple[str, Change]] = {
    "passes-reversed": ("the passes run in reverse", lambda p: _put(p, passes=p.passes[::-1])),
    "exact-pass-dropped": ("there is no exact pass", _dropped(EXACT)),
    "general-pass-dropped": ("there is no general pass", _dropped(GENERAL)),
    "runtime-one-pass-dropped": ("there is no runtime-one pass", _dropped(RUNTIME_ONE)),
    "general-pass-takes-ones": ("the general pass is a runtime-one pass", _weaker(GENERAL, RUNTIME_ONE)),
    "exact-pass-is-general": ("the exact pass is a general pass", _weaker(EXACT, GENERAL)),
    "exact-pass-takes-ones": ("the exact pass is a runtime-one pass", _weaker(EXACT, RUNTIME_ONE)),
    "runtime-one-pass-is-general": ("the runtime-one pass takes no 1", _weaker(RUNTIME_ONE, GENERAL)),
    "last-match": ("the last match instead of the first", _choose(lambda _: ("last",))),
    "first-match": ("the first match instead of the best", _choose(lambda _: ("first",))),
    "smallest-hash": ("the smallest hash decides alone", _choose(lambda _: ("hash",))),
    "no-tie-break-by-hash": ("ties go to the earlier candidate", _without("hash")),
    "ones-not-counted": ("foldable 1s are not counted", _without("fewest-ones")),
    "runtime-ones-not-counted": ("1s read at all are not counted", _without("fewest-runtime-ones")),
    "assumptions-not-counted": ("assumptions are not counted", _without("most-assumptions")),
    "fewest-assumptions-win": ("fewest assumptions win", _renamed("most-assumptions", "fewest-assumptions")),
    "score-reversed": ("the keys count in reverse", _choose(lambda keys: keys[::-1] if len(keys) > 1 else keys)),
    "least-held-wins": ("the one holding fewest wins", _renamed("most-held", "fewest-held")),
    "most-held-wins": ("the one holding most wins", _renamed("fewest-held", "most-held")),
    "free-constants-allowed": ("free constants are not refused", _unrefused("free-constants")),
    "launch-options-allowed": ("launch options left open are not refused", _unrefused("launch-options")),
    "twins-allowed": ("twins are not refused", _unrefused("twins")),
    "warps-and-stages-allowed": ("other warps or stages are not refused", _unrefused("warps-and-stages")),
    "options-ignored": ("pinned launch options are ignored", lambda p: _put(p, options="ignored")),
    "options-pinned": ("launch options are compared", lambda p: _put(p, options="pinned")),
    "source-ignored": ("the source is not compared", lambda p: _put(p, source=False)),
    "log-none": ("nothing is logged", lambda p: _put(p, log="none")),
    "log-once-a-variant": ("a variant is logged once", lambda p: _put(p, log="variant")),
    "dialect-public": ("args are matched as the public selectors do", lambda p: _put(p, dialect="public")),
    "dialect-full": ("args are matched by section 3", lambda p: _put(p, dialect="section-3")),
}

IN_THE_CODE: dict[str, str] = {
    "log-every-launch": "every selection is logged",
    "log-dropped": "the log line is dropped",
    "log-doubled": "the log line is written twice",
    "log-only-two-ones": "a fallback on a single 1 is not logged",
    "bare-miss": "a miss lists nothing",
    "loop-stops-before-the-last-pass": "the last pass never runs",
    "only-the-first-candidate": "the scan stops after the first candidate",
    "second-best": "the runner-up is picked",
    "exact-takes-one": "exact admits a foldable 1",
    "general-takes-one": "general admits a foldable 1",
    "exact-takes-lost-div16": "exact admits a variant that does not use an alignment",
    "div16-ignored": "div16 is not tested",
    "div16-ignored-on-ints": "div16 of ints is not tested",
    "div16-ignored-on-pointers": "div16 of pointers is not tested",
    "div16-flipped": "div16 is required where it holds",
    "div16-weakened-to-8": "a multiple of 8 passes for one of 16",
    "nospec-ignored-by-div16": "a nospec param counts as alignable",
    "noalign-ignored": "a noalign param counts as alignable",
    "nospec-one-is-foldable": "a 1 on a nospec param counts as foldable",
    "annotated-range-unchecked": "an annotated param takes any int",
    "i64-one-admitted": "an i64 of value 1 needs no annotation",
    "pointer-types-alike": "pointer types are not compared",
    "range32-ignored": "the size of the allocation is not tested",
    "range32-unsaid-admitted": "an allocation of unsaid size passes for a small one",
    "folded-without-the-value": "any i32 fits a folded 1",
    "folded-takes-any-int-kind": "a 1 of any int kind fits a folded 1",
    "const-kinds-alike": "constants are compared by value alone",
    "const-value-ignored": "constants are compared by kind alone",
    "absent-const-admitted": "a named constant may be absent",
    "named-consts-ignored": "named constants are not compared",
    "none-matches-any-const": "None fits any constant",
    "unplaced-arg-admitted": "an arg may be placed nowhere",
    "count-unchecked": "a param may be named by no arg",
    "num-warps-unchecked": "a pinned num_warps is not compared",
}

TELLING: dict[str, tuple[str, ...]] = {
    "T01": ("general-takes-one", "exact-takes-one"),
    "T02": ("exact-pass-dropped", "exact-takes-lost-div16", "second-best"),
    "T03": ("exact-takes-one", "general-takes-one"),
    "T04": ("div16-ignored", "count-unchecked"),
    "T05": ("bare-miss", "only-the-first-candidate"),
    "T06": ("only-the-first-candidate",),
    "T06v": ("first-match", "last-match"),
    "T07": ("only-the-first-candidate",),
    "T08": ("second-best",),
    "T09": ("last-match", "second-best"),
    "T09c": ("last-match", "second-best", "only-the-first-candidate", "exact-pass-dropped"),
    "T10": ("log-every-launch", "log-dropped"),
    "T11": ("source-ignored",),
    "T12": ("runtime-ones-not-counted", "last-match"),
    "T13": ("ones-not-counted", "exact-takes-one"),
    "T14": ("free-constants-allowed",),
    "T15": ("div16-weakened-to-8",),
}
"""The mutants that are tried first against each theorem."""


def mutants(policy: Policy, names: tuple[str, ...] = ()) -> Iterator[Mutant]:
    """The mutants of a policy, those named or all; a change that leaves the policy as it is makes none."""
    for name in names or (*IN_THE_POLICY, *IN_THE_CODE):
        if name in IN_THE_CODE:
            yield Mutant(name, IN_THE_CODE[name], policy, frozenset({name}))
            continue
        says, change = IN_THE_POLICY[name]
        changed = change(policy)
        if changed != policy:
            yield Mutant(name, says, changed)
