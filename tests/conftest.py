"""Which tests are slow: whole files that take minutes on two cores. CI runs them in a step of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

SLOW_FILES = {
    "batch/test_equal_to_decide.py": "compares with `decide` over whole small scopes",
    "batch/test_exhaust.py": "exhausts scopes under planted faults",
    "cli/test_bytes.py": "replays pairs, and checks the bundled capture",
    "cli/test_fuzz.py": "runs campaigns on selectors",
    "cli/test_prove.py": "proves in processes of its own",
    "cli/test_release_coverage.py": "covers a real capture",
    "cli/test_release_diff.py": "proves regions",
    "cli/test_release_lint.py": "decides what is shadowed",
    "cli/test_release_watch.py": "starts the command for each example",
    "external/test_agreement.py": "builds the Zig selector and asks thousands of cases",
    "external/test_cabi.py": "builds libraries that crash and hang",
    "external/test_hostile.py": "three thousand mutated launches",
    "external/test_misbehaving.py": "waits for selectors that hang",
    "gpu/test_build.py": "compiles with Triton",
    "gpu/test_kernels_compute.py": "runs every kernel in Triton's interpreter",
    "model/test_proving.py": "proves, refutes and shrinks at two by two",
    "peers/test_linker.py": "builds C from Triton's linker, a dispatcher a case",
    "props/test_crew.py": "starts a Dask scheduler and workers, and kills one",
    "props/test_mutants.py": "hunts every mutant",
    "props/test_plugin.py": "starts pytest in processes of its own",
    "props/test_rounds.py": "visits every cell of the coverage table",
    "props/test_selector_campaign.py": "finds and shrinks every planted fault",
    "props/test_stateful.py": "runs a state machine",
    "release/test_diff.py": "proves regions",
    "release/test_world.py": "compares the class world with `decide` for every policy",
    "replay/test_device_script.py": "runs the device script on a fake device",
    "replay/test_ladder.py": "waits for a device that hangs",
    "replay/test_running.py": "replays on a fake device",
    "replay/test_scenarios.py": "decodes on a fake device",
    "symbolic/test_corpus_bits.py": "replays every pair of the bundled capture",
    "symbolic/test_execution.py": "executes corpus launches against NumPy",
    "symbolic/test_mutants.py": "replays two hundred mutants",
}
"""The file, and why it takes long."""
COVERING = {"external/test_cabi.py", "external/test_misbehaving.py", "model/test_proving.py"}
"""The slow files without which impl and model are not covered (docs/reliability.md)."""
HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of a slow file, and of those the ones that coverage needs."""
    for item in items:
        name = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
        if name in SLOW_FILES:
            item.add_marker(pytest.mark.slow)
        if name in COVERING:
            item.add_marker(pytest.mark.covering)
