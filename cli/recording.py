"""Starting a run: who ran what, with which versions, on which commit."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path

from foldproof import __version__
from foldproof.reports.events import RunStarted
from foldproof.reports.evidence import FOLDER
from foldproof.reports.recorder import now

DEFAULT_POLICY = "three-pass"
TOOL = f"foldproof {__version__}"
DEPENDENCIES = ("z3-solver", "cvc5", "hypothesis", "numpy", "pandas", "msgspec", "cuda-python")


def started(verb: str, command: str, seed: int | None = None) -> RunStarted:
    """The first event of a run of a verb. `command` is the line that runs it again."""
    commit, dirty = git_state()
    return RunStarted(
        verb=verb,
        command=command,
        tool=TOOL,
        versions=versions(),
        started=now(),
        seed=None if seed is None else str(seed),
        commit=commit,
        dirty=dirty,
    )


def into(folder: Path, default: str = FOLDER) -> list[str]:
    """The words by which a command line names the folder that it writes to, none where the verb takes it by itself."""
    return [] if str(folder) == default else ["--out", str(folder)]


def under(policy: str) -> list[str]:
    """The words by which a command line names the policy, none where the verb takes it by itself."""
    return [] if policy == DEFAULT_POLICY else ["--policy", policy]


def versions() -> dict[str, str]:
    """The versions of Python and of what the verdicts rest on."""
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in DEPENDENCIES}


def git_state() -> tuple[str | None, bool | None]:
    """The commit of the current folder's repository and whether it has changes; None where git does not say."""
    answers = []
    for words in (("rev-parse", "HEAD"), ("status", "--porcelain")):
        try:
            done = subprocess.run(["git", *words], capture_output=True, text=True, timeout=20, check=False)  # noqa: S603, S607 (fixed words)
        except (OSError, subprocess.TimeoutExpired):
            return None, None
        if done.returncode:
            return None, None
        answers.append(done.stdout.strip())
    return answers[0], bool(answers[1])
