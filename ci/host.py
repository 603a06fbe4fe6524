"""What the host of a pipeline offers a step: outputs, a summary, annotations, a log that obeys no text of others.

GitHub's files and commands where GITHUB_ACTIONS is "true"; plain lines elsewhere.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Env = Mapping[str, str]
SUMMARY_BYTES = 1024 * 1024
"""GitHub drops the whole summary of a step that is larger."""
_ROOM = 1024
_CUT = "\n\nThe summary ends here: a step shows 1 MiB. The rest is in the report.\n"


def on_github(env: Env) -> bool:
    """Whether the step runs under GitHub Actions."""
    return env.get("GITHUB_ACTIONS") == "true"


def say(line: str) -> None:
    """A line of the log, in order with what child processes print."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def tell(env: Env, kind: str, message: str) -> None:
    """An `error`, `warning` or `notice`: an annotation on GitHub, one line of the log elsewhere."""
    if on_github(env):
        text = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        say(f"::{kind} title=foldproof::{text}")
    else:
        say(f"foldproof: {kind}: {' '.join(message.splitlines())}")


@contextmanager
def group(env: Env, title: str) -> Iterator[None]:
    """A part of the log that folds, in which no line is obeyed as a command: names in it come from captures."""
    if not on_github(env):
        say(f"== {title}")
        yield
        return
    token = secrets.token_hex(16)
    say(f"::group::{title}")
    say(f"::stop-commands::{token}")
    try:
        yield
    finally:
        say(f"::{token}::")
        say("::endgroup::")


def put_outputs(env: Env, values: Mapping[str, str]) -> None:
    """Outputs of the step, in the form that takes any text: a value ends at a word that nobody can guess."""
    file = env.get("GITHUB_OUTPUT")
    if file:
        word = f"end-{secrets.token_hex(16)}"
        with Path(file).open("a", encoding="utf-8") as to:
            to.writelines(f"{name}<<{word}\n{value}\n{word}\n" for name, value in values.items())


def put_summary(env: Env, text: str) -> None:
    """Append to the step summary what fits, cut at the end of a line and of a fence."""
    file = env.get("GITHUB_STEP_SUMMARY")
    if file:
        path = Path(file)
        left = SUMMARY_BYTES - (path.stat().st_size if path.exists() else 0)
        with path.open("a", encoding="utf-8") as to:
            to.write(fitting(text, left))


def fitting(text: str, limit: int) -> str:
    """`text` if it takes at most `limit` bytes; else its first whole lines, a word about that, and no open fence."""
    content = text.encode()
    if len(content) <= limit:
        return text
    if limit < 2 * _ROOM:
        return ""
    kept = content[: limit - _ROOM].decode(errors="ignore").rpartition("\n")[0]
    fences = sum(line.lstrip().startswith("```") for line in kept.splitlines())
    return kept + ("\n```" if fences % 2 else "") + _CUT
