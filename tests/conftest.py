"""Which tests are slow: whole files that take minutes on two cores. CI runs them in a step of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

SLOW_FILES = {
    "symbolic/test_corpus_bits.py": "replays every pair of the bundled capture",
    "symbolic/test_mutants.py": "replays two hundred mutants",
    "symbolic/test_execution.py": "executes corpus launches against NumPy",
    "batch/test_equal_to_decide.py": "compares with `decide` over whole small scopes",
    "external/test_hostile.py": "three thousand mutated launches",
    "external/test_misbehaving.py": "waits for selectors that hang",
    "props/test_crew.py": "starts a Dask scheduler and workers, and kills one",
    "props/test_mutants.py": "hunts every mutant",
    "replay/test_ladder.py": "waits for a device that hangs",
    "gpu/test_kernels_compute.py": "runs every kernel in Triton's interpreter",
    "gpu/test_build.py": "compiles with Triton",
}
"""The file, and why it takes long."""
HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of a slow file."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).as_posix() in SLOW_FILES:
            item.add_marker(pytest.mark.slow)
