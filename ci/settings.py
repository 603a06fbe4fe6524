"""What a pipeline asks for: the variables FOLDPROOF_*, completed from `foldproof.toml`.

docs/howto/ci.md lists the variables. An empty variable is one that is absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from foldproof.ci.host import Env
from foldproof.impl.errors import FoldproofError, one_line
from foldproof.reports.obligations import FILE, CaptureTable, Config, load_config

EVIDENCE = "foldproof-report"
TOKEN = "FOLDPROOF_TOKEN"  # noqa: S105 (the name of a variable)
"""The variable with the token for the comment."""
FAIL_ON = ("owed", "fails", "never")
"""What ends the job in failure: also what is owed; only what fails; nothing but bad input and faults."""
_FIX = "see docs/howto/ci.md"


@dataclass(frozen=True, slots=True)
class Settings:
    """The runs of one step. `base` is the folder that they run in; `config` is absolute, or empty where none is."""

    base: Path
    config: str
    captures: tuple[CaptureTable, ...]
    policy: str
    selector: str
    check_seconds: str
    fuzz_seconds: str
    seed: str
    receipts: str
    evidence: Path
    formats: str
    baseline: str


def settings(env: Env, here: Path) -> Settings:
    """The settings; `here` is the workspace. Raises `FoldproofError` for a config that does not load."""

    def said(name: str) -> str:
        return env.get(f"FOLDPROOF_{name}", "").strip()

    file = here / (said("CONFIG") or FILE)
    config = load_config(file) if said("CONFIG") or file.exists() else None
    fuzz = config.fuzz if config else None
    return Settings(
        base=file.parent if config else here,
        config=str(file) if config else "",
        captures=_captures(said("CAPTURE"), said("LAUNCHES"), config),
        policy=said("POLICY") or (config.policy.name if config else ""),
        selector=said("SELECTOR") or (fuzz.selector if fuzz else ""),
        check_seconds=said("CHECK_SECONDS"),
        fuzz_seconds=said("FUZZ_SECONDS") or (f"{fuzz.seconds:g}" if fuzz else "60"),
        seed=said("SEED") or (str(fuzz.seed) if fuzz else "0"),
        receipts=said("RECEIPTS"),
        evidence=here / (said("EVIDENCE") or EVIDENCE),
        formats=said("FORMATS"),
        baseline=str(here / said("BASELINE")) if said("BASELINE") else "",
    )


def _captures(named: str, launches: str, config: Config | None) -> tuple[CaptureTable, ...]:
    if not named and config and config.capture:
        return config.capture
    return (CaptureTable(named or "bundled", launches),)


def fail_on(env: Env) -> str:
    """FOLDPROOF_FAIL_ON, by default "owed". Raises `FoldproofError` for another word."""
    word = env.get("FOLDPROOF_FAIL_ON", "").strip() or FAIL_ON[0]
    if word not in FAIL_ON:
        raise FoldproofError(f"is {one_line(word)}, not one of {', '.join(FAIL_ON)}", where="fail-on", fix=_FIX)
    return word
