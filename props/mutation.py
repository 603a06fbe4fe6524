"""The mutation score: which planted faults a campaign finds, how fast, and why it cannot find the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from time import monotonic

import msgspec
import z3
from foldproof.impl.capture import Capture
from foldproof.impl.cases import Case, replay
from foldproof.impl.external.answers import Answer, Fault
from foldproof.impl.external.compare import reply_of
from foldproof.impl.launch import Kind, Launch
from foldproof.impl.policy import Policy
from foldproof.impl.select import Outcome, Selection
from foldproof.model.matrix import MUTANT_SIZES, SEARCH
from foldproof.model.mutants import Mutant, mutants
from foldproof.model.prove import Bench as ModelBench
from foldproof.model.prove import witness_case
from foldproof.model.rules import disj
from foldproof.model.selection import answer
from foldproof.props.checks import CHECKS, Trial
from foldproof.props.drive import Driver, driver_of
from foldproof.props.mutants import decide_as
from foldproof.props.pin import Bench, Met, pin
from foldproof.props.rounds import Round, Source
from foldproof.props.selector_campaign import run_rounds
from foldproof.props.verdict_arrays import Answers, reference

SECONDS = 10.0
"""Seconds that a campaign has for one mutant."""
STEP = 4
"""Rounds between two looks at the clock."""


class Killed(msgspec.Struct, frozen=True):
    """A mutant and what became of it: `caught` by the campaign, by the `theorem` of a check, or not.

    `why` explains what was not caught: the model's word that no case tells it apart, or what the protocol does not
    carry. `rounds` and `seconds` are those until it was caught.
    """

    policy: str
    mutant: str
    says: str
    caught: bool
    kind: str = ""
    theorem: str = ""
    why: str = ""
    variants: int = 0
    args: int = 0
    rounds: int = 0
    seconds: float = 0.0

    @property
    def explained(self) -> bool:
        """Whether it was caught by something, or is known to be no fault at all."""
        return self.caught or bool(self.theorem) or bool(self.why)


class MutationScore(msgspec.Struct, frozen=True):
    """The rows, in the order of `model.mutants`."""

    rows: tuple[Killed, ...]

    @property
    def caught(self) -> int:
        """Mutants that the campaign caught."""
        return sum(row.caught for row in self.rows)

    @property
    def real(self) -> int:
        """Mutants that are faults: all but those that the model calls equivalent."""
        return sum(not row.why.startswith(EQUIVALENT) for row in self.rows)

    def __str__(self) -> str:
        left = [row for row in self.rows if not row.caught]
        known = sum(row.explained for row in left)
        rest = f"; {known} of the other {len(left)} explained" if left else ""
        return f"{self.caught} of {len(self.rows)} mutants caught by the campaign{rest}"


EQUIVALENT, ALIKE = "equivalent", "alike"
_put = msgspec.structs.replace


class MutantSelector:
    """A mutant of the reference as a selector under test, in this process."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name, self.kinds = mutant.name, frozenset(Kind)
        self.faults: list[Fault] = []
        self._warned: dict[Hashable, frozenset[str]] = {}

    def ask(self, capture_id: Hashable, capture: Capture, launches: Sequence[Launch]) -> list[Answer]:
        """One answer a launch, in order, its variants' warnings remembered by capture."""
        return [reply_of(self._decide(capture_id, capture, launch)) for launch in launches]

    def _decide(self, key: Hashable, capture: Capture, launch: Launch) -> Outcome:
        warned = self._warned.get(key, frozenset())
        outcome = decide_as(self.mutant, capture, launch, warned)
        if isinstance(outcome, Selection) and outcome.log:
            self._warned[key] = warned | {outcome.variant.hash}
        return outcome

    def close(self) -> None:
        """Nothing to end."""


class _PolicyDriver:
    """A mutant that is but another policy: the batch reference decides for it."""

    def __init__(self, mutant: Mutant) -> None:
        self.name, self.kinds = mutant.name, frozenset(Kind)
        self.stray: Sequence[Fault] = ()
        self._policy = mutant.running

    def answers(self, rounds: Sequence[Round]) -> list[Answers]:
        return [reference(of, self._policy) for of in rounds]


def _driver(mutant: Mutant, selector: MutantSelector) -> Driver:
    plain = not mutant.flaws and mutant.running.log != "variant"
    return _PolicyDriver(mutant) if plain else driver_of(selector)


def hunt(policy: Policy, mutant: Mutant, seed: int = 0, seconds: float = SECONDS) -> Killed:
    """Put one mutant to the campaign; if it is not caught within `seconds`, say why.

    After a tenth of the time the other ways are tried: a check of the answer's text, and the model, which knows
    whether there is anything to catch.
    """
    selector, source, began = MutantSelector(mutant), Source.of(frozenset(Kind)), monotonic()
    driver, number, row = _driver(mutant, selector), 0, Killed(policy.name, mutant.name, mutant.says, caught=False)
    looked = False
    while not row.explained and monotonic() - began < seconds:
        part = run_rounds(driver, source, policy, seed, range(number, number + STEP))
        number, gone = number + STEP, monotonic() - began
        if part.first:
            kind, raw = next(iter(part.first.items()))
            small = pin(Bench(selector, policy), raw, Met(source, seed, part.kinds[kind], gone)).case
            row = _put(row, caught=True, kind=kind, variants=len(small.capture.kernels), args=len(small.launch.args))
        elif gone > seconds / 10 and not looked:
            looked = True
            theorem = "T05" if _hides_a_miss(policy, mutant, source, seed) else ""
            row = _put(row, theorem=theorem, why="" if theorem else _why_not(policy, mutant))
        row = _put(row, rounds=number, seconds=gone)
    return row


def _hides_a_miss(policy: Policy, mutant: Mutant, source: Source, seed: int) -> bool:
    """Whether the mutant breaks T05 where the policy keeps it: the protocol does not carry the text of a miss."""
    for number in range(30):
        of = source.round(seed, number)
        for launch in of.others:
            case = Case("", of.capture, launch)
            outcomes = replay(case, policy), decide_as(mutant, of.capture, launch)
            broken = [any(True for _ in CHECKS["T05"](Trial(case, policy, outcome))) for outcome in outcomes]
            if broken == [False, True]:
                return True
    return False


def _why_not(policy: Policy, mutant: Mutant) -> str:
    """Why no campaign can tell the mutant from the policy; "" where the model has a case that does."""
    size, bench = MUTANT_SIZES[-1], _model()
    scope = bench.scope(size)
    ours, theirs = answer(scope, policy), answer(scope, mutant.running, flaws=mutant.flaws)
    differs = [ours.missing != theirs.missing, ours.ambiguous != theirs.ambiguous]
    differs += [ours.picks(i) != theirs.picks(i) for i in range(size.candidates)]
    logs = [z3.Or(ours.silent(i) != theirs.silent(i), ours.once(i) != theirs.once(i)) for i in range(size.candidates)]
    logged = [z3.And(ours.picks(i), theirs.picks(i), other) for i, other in enumerate(logs)]
    if witness_case(bench, [disj(differs if policy.log == "variant" else differs + logged)], size, mutant.name):
        return ""
    if policy.log == "variant" and witness_case(bench, [disj(logged)], size, mutant.name):
        return f"{ALIKE} in {size}: it selects alike, and the log of a policy that warns once a variant is not compared"
    return f"{EQUIVALENT} in {size}: no case tells it from {policy.name}"


@cache
def _model() -> ModelBench:
    return ModelBench(SEARCH)


def score(
    policy: Policy, seed: int = 0, seconds: float = SECONDS, tick: Callable[[Killed], None] = lambda _: None
) -> MutationScore:
    """Every mutant of a policy."""
    rows = []
    for mutant in mutants(policy):
        rows.append(hunt(policy, mutant, seed, seconds))
        tick(rows[-1])
    return MutationScore(tuple(rows))
