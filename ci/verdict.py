"""The verdict of a pipeline: the worst exit code of its stages, and whether that ends the job in failure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from foldproof.ci.host import Env, tell
from foldproof.ci.settings import fail_on
from foldproof.impl.errors import FoldproofError

HOLDS, FAILS, BAD_INPUT, OWED = 0, 1, 2, 3
WORDS = {HOLDS: "holds", FAILS: "fails", BAD_INPUT: "bad input", OWED: "owed"}
FAULT = "fault"
"""The word for a code that foldproof does not give: it was killed, or a step before did not get so far."""
_MILDER = (HOLDS, OWED, FAILS, BAD_INPUT)


def worst(codes: Mapping[str, int]) -> int:
    """The gravest code: a fault before bad input, then fails, then owed. No code at all is bad input."""
    faults = [code for code in codes.values() if code not in WORDS]
    return faults[0] if faults else max(codes.values(), key=_MILDER.index, default=BAD_INPUT)


def word(code: int) -> str:
    """The verdict in a word."""
    return WORDS.get(code, FAULT)


def codes_file(env: Env) -> Path:
    """Where the step `run` leaves the exit code of each stage for the step `verdict`. Raises `FoldproofError`."""
    home = env.get("FOLDPROOF_HOME", "")
    if not home:
        raise FoldproofError("is not set", where="FOLDPROOF_HOME", fix="run ci/install.sh first: it prints a folder")
    return Path(home) / "codes.json"


def judge(env: Env) -> int:
    """The exit code of the job: that of the worst stage, or 0 where `fail-on` lets it pass."""
    try:
        codes = msgspec.json.decode(codes_file(env).read_bytes(), type=dict[str, int])
        strict = fail_on(env)
    except (OSError, msgspec.MsgspecError) as problem:
        tell(env, "error", f"the stages left no exit codes: {problem}")
        return BAD_INPUT
    except FoldproofError as problem:
        tell(env, "error", str(problem))
        return BAD_INPUT
    code = worst(codes)
    listed = ", ".join(f"{stage} {code}" for stage, code in codes.items())
    passes = code == HOLDS or (code == OWED and strict != "owed") or (code == FAILS and strict == "never")
    kind = "notice" if code == HOLDS else "warning" if passes else "error"
    tell(env, kind, f"verdict: {word(code)} (exit codes: {listed})")
    return HOLDS if passes else code
