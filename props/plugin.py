"""A pytest plugin: a project's own tests run the campaign on its own selector.

    # pyproject.toml
    [tool.pytest.ini_options]
    foldproof_selector = "./my-selector"

    def test_my_selector(foldproof_selector):
        foldproof_selector.check(seconds=30)

A mark names another selector or policy for one test: `@pytest.mark.foldproof(selector=..., against=...)`. A project
that names a selector gets the Hypothesis profiles `ci` and `nightly`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from foldproof.impl.cases import Case
    from foldproof.props.drive import SelectorSpec
    from foldproof.props.fuzz_run import Done

SECONDS = 10.0
NIGHTLY_EXAMPLES = 5000
CI_EXAMPLES = 200
MARK = "foldproof(selector=None, against=None, timeout=5.0): the selector and the policy of `foldproof_selector`"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options and settings."""
    group = parser.getgroup("foldproof")
    group.addoption("--foldproof-selector", metavar="CMD|LIB.so", help="the selector of `foldproof_selector`")
    group.addoption("--foldproof-seconds", type=float, help="seconds of each campaign that names none (10)")
    group.addoption("--foldproof-seed", type=int, help="seed of each campaign that names none (0)")
    parser.addini(
        "foldproof_selector", "the selector under test: a command, or the path of a library (.so)", default=""
    )
    parser.addini("foldproof_against", "the policy that it implements", default="three-pass")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and the profiles where the project has a selector."""
    config.addinivalue_line("markers", MARK)
    if _selector(config):
        _register_profiles()


def _selector(config: pytest.Config) -> str:
    return str(config.getoption("--foldproof-selector") or config.getini("foldproof_selector") or "")


def _register_profiles() -> None:
    """`ci`: the same examples in every run, and a blob to replay one; `nightly`: many, and new ones each time."""
    from hypothesis import HealthCheck, settings  # noqa: PLC0415 (a plugin is loaded in every run of pytest)

    slow = [HealthCheck.too_slow]
    # Where the variable CI is set, Hypothesis loads a profile of its own, and settings inherit from the loaded one.
    default = settings.get_profile("default")
    settings.register_profile(
        "ci",
        settings(
            default,
            derandomize=True,
            deadline=None,
            print_blob=True,
            max_examples=CI_EXAMPLES,
            suppress_health_check=slow,
        ),
    )
    settings.register_profile(
        "nightly",
        settings(default, deadline=None, print_blob=True, max_examples=NIGHTLY_EXAMPLES, suppress_health_check=slow),
    )


class SelectorUnderTest:
    """What a test gets: the selector by its spec, the policy that it implements, and ways to compare them."""

    def __init__(self, spec: SelectorSpec, against: str, seconds: float, seed: int, stack: ExitStack) -> None:
        from foldproof.impl.policy import load_policy  # noqa: PLC0415

        self.spec, self.against = spec, against
        self.policy = load_policy(against)
        self.seconds, self.seed = seconds, seed
        self._stack = stack
        self._bench: Any = None

    def campaign(
        self,
        *,
        seconds: float | None = None,
        seed: int | None = None,
        rounds: int | None = None,
        capture: Path | str | None = None,
    ) -> Done:
        """Run a campaign: for `seconds`, or exactly `rounds`. See `fuzz_run.Plan`."""
        from foldproof.impl.capture import load_capture  # noqa: PLC0415
        from foldproof.props.fuzz_run import Plan, run  # noqa: PLC0415

        budget = seconds if seconds is not None else None if rounds is not None else self.seconds
        loaded = load_capture(Path(capture)) if capture else None
        plan = Plan(self.spec, self.policy, self.seed if seed is None else seed, loaded, 0, rounds, budget)
        with self.spec.open() as selector:
            return run(plan, selector)

    def check(self, **budget: Any) -> Done:
        """As `campaign`, and fail the test for any difference or fault, each with the case that shows it."""
        done = self.campaign(**budget)
        if not done.part.is_clean:
            pytest.fail(self._said(done), pytrace=False)
        return done

    def _said(self, done: Done) -> str:
        from foldproof.props.example_patch import example_lines  # noqa: PLC0415

        lines = [f"{self.spec.text} differs from {self.policy.name} (seed {self.seed}):"]
        for finding in done.findings:
            lines += [f"{finding.kind}: expected {finding.expected}, got {finding.got}", *example_lines(finding.case)]
        return "\n".join([*lines, *map(str, done.part.stray)])

    def agrees(self, case: Case) -> bool:
        """Whether the selector answers the case as the policy does: for `assert` in a Hypothesis test.

        Cases with kinds of arg that it does not know count as agreeing. The selector is started once a test session.
        """
        return not self.difference(case)

    def difference(self, case: Case) -> str:
        """How the selector's answer to the case differs from the policy's, "" if it does not."""
        from foldproof.props.pin import Bench  # noqa: PLC0415

        if self._bench is None:
            selector = self.spec.open()
            self._stack.enter_context(selector)
            self._bench = Bench(selector, self.policy)
        seen = self._bench.ask(case)
        return f"{seen.kind}: expected {seen.expected}, got {seen.got}" if seen.kind else ""


@pytest.fixture(scope="session")
def _foldproof_selectors() -> Iterator[dict[tuple[Any, ...], SelectorUnderTest]]:
    """The selectors of the session, each started at most once."""
    with ExitStack() as stack:
        yield _Selectors(stack)


class _Selectors(dict[tuple[Any, ...], SelectorUnderTest]):
    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        self.stack = stack

    def __missing__(self, key: tuple[Any, ...]) -> SelectorUnderTest:
        from foldproof.props.drive import SelectorSpec  # noqa: PLC0415

        text, against, timeout, seconds, seed = key
        made = self[key] = SelectorUnderTest(SelectorSpec(text, timeout), against, seconds, seed, self.stack)
        return made


@pytest.fixture
def foldproof_selector(
    request: pytest.FixtureRequest, _foldproof_selectors: dict[tuple[Any, ...], SelectorUnderTest]
) -> SelectorUnderTest:
    """The project's selector: of the mark, else `--foldproof-selector`, else the setting; skipped where none is."""
    mark = request.node.get_closest_marker("foldproof")
    said = dict(mark.kwargs) if mark else {}
    text = said.pop("selector", None) or _selector(request.config)
    against = said.pop("against", None) or str(request.config.getini("foldproof_against"))
    timeout = float(said.pop("timeout", 5.0))
    if said or (mark and mark.args):
        raise pytest.UsageError(f"@pytest.mark.foldproof takes selector, against and timeout, not {said or mark.args}")
    if not text:
        pytest.skip("no selector is named: --foldproof-selector, the setting foldproof_selector, or the mark")
    seconds = request.config.getoption("--foldproof-seconds")
    seed = request.config.getoption("--foldproof-seed")
    return _foldproof_selectors[text, against, timeout, SECONDS if seconds is None else seconds, seed or 0]
