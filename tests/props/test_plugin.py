"""The pytest plugin, as another project's test suite meets it."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]
SERVE = f"{sys.executable} -m foldproof.impl.external.serve --policy"
TEST = """
import pytest
from foldproof.props.strategies import cases
from hypothesis import given, settings, HealthCheck

def test_campaign(foldproof_selector):
    done = foldproof_selector.check(rounds=12)
    assert done.part.rounds == 12

@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_cases(foldproof_selector, case):
    assert foldproof_selector.agrees(case)
"""


@pytest.fixture
def loaded(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder in whose runs of pytest the plugin is loaded, by its entry point where it is installed with one."""
    if not any(point.name == "foldproof" for point in entry_points(group="pytest11")):
        pytester.plugins = ["foldproof.props.plugin"]
    return pytester


def test_a_sound_selector_passes(loaded: pytest.Pytester) -> None:
    loaded.makepyfile(TEST)
    result = loaded.runpytest_subprocess("--foldproof-selector", f"{SERVE} three-pass")
    result.assert_outcomes(passed=2)


def test_a_planted_fault_fails_with_the_case_and_no_traceback_of_ours(loaded: pytest.Pytester) -> None:
    loaded.makepyfile(TEST)
    loaded.makeini(f"[pytest]\nfoldproof_selector = {SERVE} single-guard\n")
    result = loaded.runpytest_subprocess("-k", "campaign", "--foldproof-seed", "3")
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*another variant: expected kernels*", "*@example(*", "*case=case_of(*"])
    result.stdout.no_fnmatch_line("*plugin.py*")


def test_a_mark_names_selector_and_policy(loaded: pytest.Pytester) -> None:
    loaded.makepyfile(
        f"""
        import pytest

        @pytest.mark.foldproof(selector={SERVE + " single-guard"!r}, against="single-guard")
        def test_same(foldproof_selector):
            foldproof_selector.check(rounds=6)

        @pytest.mark.foldproof(selector="x", policy="y")
        def test_wrong(foldproof_selector):
            pass
        """
    )
    result = loaded.runpytest_subprocess("--strict-markers")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*takes selector, against and timeout*"])


def test_without_a_selector_the_test_is_skipped_with_the_reason(loaded: pytest.Pytester) -> None:
    loaded.makepyfile("def test_it(foldproof_selector):\n    assert 0\n")
    result = loaded.runpytest_subprocess("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*no selector is named*"])


@pytest.mark.parametrize("in_ci", [False, True])
@pytest.mark.parametrize(("profile", "examples"), [("ci", 200), ("nightly", 5000)])
def test_the_profiles_are_there_where_a_selector_is(
    loaded: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, profile: str, examples: int, in_ci: bool
) -> None:
    if in_ci:
        monkeypatch.setenv("CI", "true")
    else:
        monkeypatch.delenv("CI", raising=False)
    loaded.makepyfile(
        f"""
        from hypothesis import settings

        def test_profile():
            assert settings().max_examples == {examples}
            assert settings().derandomize == {profile == "ci"}
        """
    )
    words = ("--hypothesis-profile", profile)
    loaded.runpytest_subprocess(*words, "--foldproof-selector", "x").assert_outcomes(passed=1)
    if profile == "nightly":
        assert loaded.runpytest_subprocess(*words).ret != 0


def test_a_run_that_does_not_use_it_loads_nothing(loaded: pytest.Pytester) -> None:
    loaded.makepyfile(
        "import sys\n\ndef test_it():\n"
        "    assert not [m for m in sys.modules if m.split('.')[0] in ('numpy', 'z3')]\n"
        "    assert 'foldproof.props.plugin' in sys.modules\n"
    )
    loaded.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)
