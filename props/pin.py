"""From a difference as it was met to a finding: asked again alone, shrunk on the real selector, ready to replay."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from time import monotonic

import msgspec
from foldproof.impl.cases import Case, case_to, replay
from foldproof.impl.external.answers import Fault, Selector, Unasked
from foldproof.impl.launch import Launch
from foldproof.impl.policy import Policy
from foldproof.impl.select import Selection
from foldproof.props.patience import HUNG, Patience
from foldproof.props.rounds import Source, own_case
from foldproof.props.selector_campaign import Raw
from foldproof.props.shrink import shrink
from foldproof.props.verdict_arrays import Answers, of_outcomes, of_replies

SHRINK_S = 20.0
"""Seconds that shrinking one finding may take."""
HUNG_S = 3.0
MOST_HUNG = 3
"""Trials that hang, each for the whole timeout, after which nothing is shrunk further once `HUNG_S` are gone."""
MOST_TRIALS = 5000


class Finding(msgspec.Struct, frozen=True):
    """A kind of difference or fault, and the smallest case that shows it.

    `reproduced`: the selector shows it again when asked for the case alone; else only the round does. `launches`
    counts how often the campaign met the kind. `seconds` is when, after the start of the campaign.
    """

    kind: str
    case: Case
    expected: str
    got: str
    round: int
    place: int
    launches: int
    reproduced: bool
    trials: int
    stderr: str = ""
    seconds: float | None = None

    @property
    def slug(self) -> str:
        """The kind as part of a file's name."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.kind).split()).lower()


class Seen(msgspec.Struct, frozen=True):
    """Both answers to one case: the kind of difference ("" if there is none), and each in words.

    Where the selector was not `asked` there is no difference, and nothing is claimed.
    """

    kind: str
    expected: str
    got: str
    fault: Fault | None = None
    asked: bool = True

    @property
    def word(self) -> str:
        """How the case ended."""
        return self.kind or ("agrees" if self.asked else "not asked")


class Bench:
    """A selector and the reference, for one case at a time. Each case is a new capture to the selector."""

    def __init__(self, selector: Selector, policy: Policy) -> None:
        self.selector = selector
        self.policy = policy
        self.trials = 0
        self._keys = itertools.count()

    def ask(self, case: Case) -> Seen:
        """Both answers. The launches in `before` are asked first, in order, in one batch with the launch."""
        self.trials += 1
        launches = [*case.before, case.launch]
        given = of_replies(self.selector.ask(("case", next(self._keys)), case.capture, launches)[-1:])
        return seen(given, of_outcomes([replay(case, self.policy)], self.policy))

    def expected(self, case: Case) -> Seen:
        """The reference's answer to a case that the selector is not asked for."""
        both = of_replies([Unasked("too-many-faults")]), of_outcomes([replay(case, self.policy)], self.policy)
        return msgspec.structs.replace(seen(*both), asked=False)


def seen(given: Answers, wanted: Answers) -> Seen:
    """Answers to one launch in words."""
    kind = given.kind_at(wanted, 0) if given.differs_from(wanted)[0] else ""
    return Seen(kind, wanted.text_at(0), given.text_at(0), given.faults.get(0))


class Met(msgspec.Struct, frozen=True):
    """Where and how often a campaign met a kind of difference; `seconds` is when it did first."""

    source: Source
    seed: int
    launches: int
    seconds: float | None = None


def pin(bench: Bench, raw: Raw, met: Met) -> Finding:
    """The finding that a difference comes to: the same kind of difference on the smallest case that shows it."""
    start, began, hung = bench.trials, monotonic(), 0
    shown: Seen | None = None

    def still(case: Case) -> bool:
        nonlocal hung, shown
        gone = monotonic() - began
        if gone >= SHRINK_S or (hung >= MOST_HUNG and gone >= HUNG_S):
            return False
        said = bench.ask(case)
        hung += said.fault is not None and said.fault.kind in HUNG
        shown = said if said.kind == raw.kind else shown
        return said.kind == raw.kind

    found = next((case for case in _ways(raw, met.source, met.seed) if still(case)), None)
    if found is None:
        texts = raw.expected, raw.got, raw.round, raw.place, met.launches
        stderr = raw.fault.stderr if raw.fault else ""
        return Finding(raw.kind, raw.case, *texts, False, bench.trials - start, stderr, met.seconds)
    small = shrink(_fewer_before(found, still), still, MOST_TRIALS)
    # The last trial that showed the kind was this case; where it hung, it is not waited for once more.
    said = shown if shown is not None and hung else bench.ask(small)
    if said.kind != raw.kind:
        # A fault that does not come every time: the words of the first time stand.
        said = Seen(raw.kind, raw.expected, raw.got, raw.fault)
    stderr = said.fault.stderr if said.fault else ""
    texts = said.expected, said.got, raw.round, raw.place, met.launches
    named = msgspec.structs.replace(small, name=f"{raw.kind}, {raw.case.name}")
    return Finding(raw.kind, named, *texts, True, bench.trials - start, stderr, met.seconds)


def _ways(raw: Raw, source: Source, seed: int) -> Iterator[Case]:
    """Cases that may show it again, the smallest first; the last ask what the selector was asked before, too."""
    yield own_case(raw.case)
    yield raw.case
    before = tuple(itertools.islice(source.round(seed, raw.round).launches(), raw.place))
    if before:
        yield msgspec.structs.replace(raw.case, before=before)


def _fewer_before(case: Case, still: Callable[[Case], bool]) -> Case:
    """The case with as few launches before it as show the difference, by dropping ever smaller runs of them."""
    size = len(case.before)
    while size:
        start = 0
        while start < len(case.before):
            fewer: tuple[Launch, ...] = (*case.before[:start], *case.before[start + size :])
            smaller = msgspec.structs.replace(case, before=fewer)
            if still(smaller):
                case = smaller
            else:
                start += size
        size //= 2
    return case


def recheck(selector: Selector, policy: Policy, cases: Iterable[tuple[str, Case]]) -> list[tuple[str, Seen]]:
    """Both answers to each named case; those that are left when patience with the selector is spent are not asked."""
    bench, patience, checked = Bench(selector, policy), Patience(), list[tuple[str, Seen]]()
    for name, case in cases:
        said = bench.expected(case) if patience.is_spent else bench.ask(case)
        if not patience.is_spent:
            patience.note([said.fault] if said.fault else (), answered=said.fault is None)
        checked.append((name, said))
    return checked


def case_file(finding: Finding, policy: Policy, selector: str) -> bytes:
    """The case as a file that `foldproof fuzz --replay` and `foldproof select --cases` read."""
    outcome = replay(finding.case, policy)
    wanted = (
        {"pick": outcome.variant.hash, "pass": outcome.strictness}
        if isinstance(outcome, Selection)
        else {"error": outcome.code}
    )
    why = f"{finding.got}, where {policy.name} answers {finding.expected}"
    value = case_to(finding.case, policy=policy.name, selector=selector, kind=finding.kind, expect=wanted, why=why)
    return msgspec.json.format(msgspec.json.encode([value]), indent=1) + b"\n"
