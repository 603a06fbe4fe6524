"""What `foldproof bench` holds proofs and campaigns against: CrossHair, plain Hypothesis, an unrolled encoding.

The same question on both sides, asked in one process by turns. A side that answers something else than the other is
an error, never a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from pathlib import Path

import hypothesis
import numpy as np
from foldproof.impl.batch.capture import BatchCapture
from foldproof.impl.batch.classes import LaunchShape
from foldproof.impl.capture import Capture
from foldproof.impl.cases import Case, replay
from foldproof.impl.errors import FoldproofError
from foldproof.impl.external.answers import Answer, Fault
from foldproof.impl.external.cabi import AbiSelector
from foldproof.impl.external.compare import difference, reply_of
from foldproof.impl.external.rates import workload
from foldproof.impl.external.records import encode
from foldproof.impl.external.wire import kernels_text
from foldproof.impl.launch import Kind, Launch
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.select import decide
from foldproof.model.lemmas import lemmas
from foldproof.model.matrix import unbounded
from foldproof.model.prove import Bench, Question, questions, refuting
from foldproof.model.scope import Size
from foldproof.model.solvers import by_z3_text
from foldproof.props import refuting as peers
from foldproof.props.drive import SelectorSpec, driver_of
from foldproof.props.fuzz_run import Plan, run
from foldproof.props.measure import Item, Measure, NotMeasured, Side
from foldproof.props.rounds import Source
from foldproof.props.selector_campaign import run_rounds
from foldproof.props.strategies import cases
from foldproof.props.unrolled import decide_t01

SIZE, QUICK_SIZE = Size(8, 4), Size(4, 4)
"""Where the bounded encodings meet."""


def proofs(repeats: int, *, quick: bool) -> Iterator[Item]:
    """Refuting T01 of single-guard, and proving it of three-pass, our way and others."""
    good, bad, size = load_policy("three-pass"), load_policy("single-guard"), QUICK_SIZE if quick else SIZE
    unrolled = Side(f"unrolled, {size}", partial(_answered, "unsat", partial(decide_t01, good, size)))
    alone = Side("any number, its obligation", partial(_answered, "unsat", partial(_by_lemmas, good)))
    whole = Side("any number, with all lemmas", partial(_answered, "unsat", partial(_with_lemmas, good)))
    bounded = Side(f"scope, {size}", partial(_answered, "unsat", partial(_in_scope, good, size)))
    what = "prove T01 of three-pass"
    yield Measure("unbounded", what, "theorem", alone, unrolled, repeats)
    yield Measure(
        "with-lemmas", f"{what}, and the lemmas of the policy", "policy", whole, unrolled, repeats, warm=False
    )
    yield Measure("bounded", f"{what} in a scope", "theorem", bounded, unrolled, repeats, warm=False)
    model = Side("smallest counterexample", peers.by_the_model)
    refuted = "refute T01 of single-guard"
    naive = Side("unrolled, any counterexample", partial(_answered, "sat", partial(decide_t01, bad, size)))
    yield Measure("refute-unrolled", refuted, "theorem", model, naive, repeats, warm=False)
    if peers.crosshair() is None:
        yield NotMeasured("refute-crosshair", "needs the package crosshair-tool")
    else:
        check = Side("CrossHair, equivalent contract", partial(_answered, True, peers.by_crosshair))
        yield Measure("refute-crosshair", refuted, "theorem", model, check, 1 if quick else repeats, warm=False)
    if not quick:
        drawn = Side("Hypothesis, shrunk", _seeded(peers.by_hypothesis))
        yield Measure("refute-hypothesis", refuted, "theorem", model, drawn, repeats, warm=False)


def _by_lemmas(policy: Policy) -> str:
    return by_z3_text(unbounded(_t01(policy)).smt2())


def _with_lemmas(policy: Policy) -> str:
    said = {by_z3_text(lemma.smt2()) for lemma in lemmas([policy])} | {_by_lemmas(policy)}
    return said.pop() if len(said) == 1 else "several"


def _in_scope(policy: Policy, size: Size) -> str:
    return str(refuting(Bench(size), _t01(policy), size).check())


def _t01(policy: Policy) -> Question:
    return next(one for one in questions(policy, ["T01"]) if isinstance(one, Question))


def _answered(wanted: object, ask: Callable[[], object]) -> None:
    said = ask()
    if said != wanted:
        raise FoldproofError(f"answers {said}, not {wanted}", where="bench", fix="run foldproof prove")


def _seeded(action: Callable[[int], object]) -> Callable[[], object]:
    """The action with seed 0, then 1, and so on: each run is another one, and the same ones each time."""
    seeds = itertools.count()
    return lambda: action(next(seeds))


class InProcess:
    """A policy as a selector under test that needs no process: both sides of a measure then pay for it alike."""

    def __init__(self, policy: Policy) -> None:
        self.name, self.kinds, self.policy = f"{policy.name} in process", frozenset(Kind), policy
        self.faults: list[Fault] = []

    def ask(self, capture_id: Hashable, capture: Capture, launches: Sequence[Launch]) -> list[Answer]:  # noqa: ARG002 (as in `Selector`)
        """The policy's replies, in order."""
        return [reply_of(decide(capture, launch, self.policy)) for launch in launches]

    def close(self) -> None:
        """There is nothing to end."""


ROUNDS, EXAMPLES = 24, 400
QUICK_EXAMPLES = 60


def campaign(repeats: int, *, quick: bool) -> Iterator[Item]:
    """A campaign and plain Hypothesis on a selector in this process: launches compared, and a planted fault found."""
    policy = load_policy("three-pass")
    source, driver, examples = Source(), driver_of(InProcess(policy)), QUICK_EXAMPLES if quick else EXAMPLES
    launches = run_rounds(driver, source, policy, 0, range(ROUNDS)).launches
    ours = Side("campaign", _seeded(lambda seed: run_rounds(driver, source, policy, seed, range(ROUNDS))), launches)
    theirs = Side("Hypothesis", _seeded(lambda seed: _examples(policy, policy, seed, examples)), examples)
    yield Measure("launches", "launches compared with the reference", "launch", ours, theirs, repeats, warm=False)
    if not quick:
        found = Side("campaign", _seeded(partial(_find, policy)))
        drawn = Side("Hypothesis", _seeded(partial(_find_drawn, policy)))
        what = "planted single-guard found and shrunk"
        yield Measure("finds", what, "fault", found, drawn, repeats, warm=False)


def _find(policy: Policy, seed: int) -> None:
    plan = Plan(SelectorSpec("in process"), policy, seed, seconds=60.0, exitfirst=True)
    if not run(plan, InProcess(load_policy("single-guard"))).findings:
        raise FoldproofError("finds nothing", where=f"campaign of seed {seed}", fix="run foldproof fuzz")


def _find_drawn(policy: Policy, seed: int) -> None:
    try:
        _examples(policy, load_policy("single-guard"), seed, 100_000)
    except AssertionError:
        return
    raise FoldproofError("finds nothing", where=f"Hypothesis with seed {seed}", fix="give it more examples")


def _examples(policy: Policy, selector: Policy, seed: int, examples: int) -> None:
    """Plain Hypothesis: a drawn case, the selector's reply, the reference's; `AssertionError` where they differ."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(cases())
    def agrees(case: Case) -> None:
        assert not difference(reply_of(replay(case, policy)), reply_of(replay(case, selector)))

    agrees()


LAUNCHES, QUICK_LAUNCHES = 100_000, 20_000
AGAIN = 10
"""How often the batch reference decides them in one call: once takes less than a busy machine's noise."""


def batch(library: Path, repeats: int, *, quick: bool) -> Iterator[Item]:
    """The batch reference and the Zig selector's library on the same capture and launches, encoded before.

    The selector decides in a process beside this one, so the clock is the wall's.
    """
    policy, launches = load_policy("three-pass"), QUICK_LAUNCHES if quick else LAUNCHES
    capture, drawn = workload(launches)
    reference = BatchCapture.build(capture, LaunchShape.of(drawn[0]), policy)
    dtype = {arg.name: "u8" if arg.kind == Kind.PTR else "i8" for arg in drawn[0].args}
    columns = zip(*([arg.number for arg in launch.args] for launch in drawn), strict=True)
    values = {name: np.array(column, dtype[name]) for name, column in zip(dtype, columns, strict=True)}
    codes, encoded, kernels = reference.encode(values), encode(drawn), kernels_text(capture)
    with AbiSelector(library) as selector:
        ask = partial(selector.decide, [kernels], [len(capture.kernels)], encoded, [(0, 0, launches)])
        if not np.array_equal(reference.decide(codes).picks, ask().picks):
            raise FoldproofError("disagrees with the reference", where=str(library), fix="run foldproof fuzz")
        theirs = Side("Zig selector", ask, launches)
        for name, action in (
            ("encoded", partial(reference.decide, codes)),
            ("raw", partial(reference.decide_values, values)),
        ):
            what = f"8 variants x (2 ints + 2 pointers), {name}"
            ours = Side("batch reference", partial(_again, action), AGAIN * launches)
            yield Measure(name, what, "launch", ours, theirs, repeats, "wall")


def _again(action: Callable[[], object]) -> None:
    for _ in range(AGAIN):
        action()
