"""Exhaustive runs through the C interface and the protocol count as the in-process reference counts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from foldproof.impl import load_policy
from foldproof.impl.external.answers import FaultKind
from foldproof.props.drive import SelectorSpec
from foldproof.props.exhaust import ReferenceSelector, exhaust
from foldproof.props.exhaust_external import Run, run_all
from foldproof.props.universe import Universe

THREE_PASS, SINGLE_GUARD = load_policy("three-pass"), load_policy("single-guard")
Zig = Callable[..., SelectorSpec]
SMALL = Universe(2, 2, 1)


@pytest.mark.parametrize("part", ["exe", "lib"])
@pytest.mark.parametrize("universe", [SMALL, Universe(2, 1, 1, free_const=True, options=True)], ids=["plain", "more"])
def test_a_sound_selector_agrees_on_every_case(zig: Zig, part: str, universe: Universe) -> None:
    done = run_all(Run(zig("none", part), THREE_PASS, universe))
    assert done.tally == exhaust(ReferenceSelector(THREE_PASS), universe, THREE_PASS)
    assert done.tally.is_complete
    assert done.faults == ()


@pytest.mark.parametrize("part", ["exe", "lib"])
def test_a_planted_fault_is_counted_to_the_last_case(zig: Zig, part: str) -> None:
    done = run_all(Run(zig("single-guard", part), THREE_PASS, SMALL))
    # The Zig selector keeps its exact pass, as the policy single-guard does.
    wanted = exhaust(ReferenceSelector(SINGLE_GUARD), SMALL, THREE_PASS)
    assert done.tally == wanted
    assert wanted.disagreements > 0


def test_a_selector_that_ends_is_counted_as_giving_no_answer(tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text(
        "import json, sys\n"
        "print(json.dumps({'type': 'hello', 'protocol': 'foldproof-selector/1', 'name': 'ends'}), flush=True)\n"
        "sys.stdin.readline()\n"
    )
    universe = Universe(1, 1, 0)
    done = run_all(Run(SelectorSpec(f"{sys.executable} {script}"), THREE_PASS, universe))
    assert sum(count for (_, got), count in done.tally.kinds.items() if got == "no answer") == universe.decisions
    assert {fault.kind for fault in done.faults} == {FaultKind.CRASH}


def test_no_process_is_left_behind(zig: Zig) -> None:
    spec = zig("none", "lib")
    run_all(Run(spec, THREE_PASS, Universe(1, 1, 1)))
    running = [_command(folder) for folder in Path("/proc").glob("[0-9]*")]
    assert not [command for command in running if spec.text in command]


def _command(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


@pytest.mark.slow
def test_the_scope_of_the_goal_through_the_library(zig: Zig) -> None:
    universe = Universe(3, 2, 2)
    done = run_all(Run(zig("none", "lib"), THREE_PASS, universe))
    assert done.tally.decisions == 9_437_184
    assert done.tally.disagreements == 0
