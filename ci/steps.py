"""The step `run`: check, fuzz and report, each to its end, their exit codes kept for the step `verdict`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
from foldproof.ci.host import Env, group, on_github, put_outputs, put_summary, say, tell
from foldproof.ci.settings import TOKEN, Settings, settings
from foldproof.ci.sticky import SHOWN
from foldproof.ci.verdict import BAD_INPUT, codes_file, word, worst
from foldproof.impl.errors import FoldproofError
from foldproof.reports.obligations import CaptureTable

_WITHHELD = {TOKEN, *(f"GITHUB_{name}" for name in ("ENV", "PATH", "OUTPUT", "STATE", "STEP_SUMMARY"))}
_ANNOTATION = re.compile(r"::(?:error|warning|notice) [^\r\n]*")


def run(env: Env) -> int:
    """Run the stages, and write outputs, annotations and the summary. 0, or 2 where this step itself is misused.

    A stage that fails ends nothing: the report is to say so, and the step `verdict` ends the job.
    """
    folder = ""
    shown: dict[str, str] = {}
    try:
        file = codes_file(env)
    except FoldproofError as problem:
        tell(env, "error", str(problem))
        return BAD_INPUT
    try:
        asked = settings(env, Path.cwd())
    except FoldproofError as problem:
        tell(env, "error", str(problem))
        codes = {"config": BAD_INPUT}
    else:
        folder = str(asked.evidence)
        codes, shown = stages(env, asked)
    file.write_bytes(msgspec.json.encode(codes))
    for name in SHOWN:
        (file.parent / name).write_text(shown.get(name, ""), encoding="utf-8")
    code = worst(codes)
    receipt = str(Path(folder) / "receipt.md") if "receipt.md" in shown else ""
    put_outputs(env, {"verdict": word(code), "exit-code": str(code), "receipt": receipt, "report-dir": folder})
    put_summary(env, shown.get("summary.md") or without_report(codes))
    return 0


def stages(env: Env, asked: Settings) -> tuple[dict[str, int], dict[str, str]]:
    """The exit code of each stage, and the texts that the stage `report` wrote: none that lay there before it."""
    checks = {str(i): _foldproof(env, asked, check_words(asked, one)) for i, one in enumerate(asked.captures)}
    codes = {"check": worst(checks)}
    if asked.selector:
        codes["fuzz"] = _foldproof(env, asked, fuzz_words(asked))
    before = {name: _written(asked.evidence / name) for name in SHOWN}
    codes["report"] = _foldproof(env, asked, report_words(asked, on_github(env)))
    new = [name for name in SHOWN if _written(asked.evidence / name) not in (before[name], None)]
    return codes, {name: (asked.evidence / name).read_text(encoding="utf-8", errors="replace") for name in new}


def _written(file: Path) -> tuple[int, int] | None:
    """Which writing of a file this is: a report replaces its files, so that each has an inode of its own."""
    return (status.st_ino, status.st_mtime_ns) if file.is_file() and (status := file.stat()) else None


def check_words(asked: Settings, capture: CaptureTable) -> list[str]:
    """The command that checks one capture. Text of others is the value of an option, or follows `--`."""
    words = ["check", *_options(policy=asked.policy, launches=capture.launches, seconds=asked.check_seconds)]
    words += _options(seed=asked.seed, receipts=asked.receipts, out=from_base(asked, asked.evidence))
    return words if capture.path == "bundled" else [*words, "--", capture.path]


def fuzz_words(asked: Settings) -> list[str]:
    """The command that puts the selector to the test, against the policy and with the first capture's launches."""
    first = asked.captures[0].path
    words = ["fuzz", *_options(selector=asked.selector, against=asked.policy, seconds=asked.fuzz_seconds)]
    capture = "" if first == "bundled" else first
    return words + _options(seed=asked.seed, capture=capture, out=from_base(asked, asked.evidence))


def report_words(asked: Settings, annotated: bool) -> list[str]:
    """The command that writes the report beside its evidence."""
    words = [
        "report",
        *_options(
            config=from_base(asked, asked.config) if asked.config else "",
            formats=asked.formats,
            baseline=asked.baseline,
        ),
    ]
    return [*words, *(["--annotations=github"] if annotated else []), "--", from_base(asked, asked.evidence)]


def from_base(asked: Settings, path: Path | str) -> str:
    """A path as the commands and the report have it: relative where it lies below the folder that they run in."""
    below = Path(path)
    return str(below.relative_to(asked.base)) if below.is_relative_to(asked.base) else str(below)


def _options(**values: str) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items() if value]


def _foldproof(env: Env, asked: Settings, words: list[str]) -> int:
    """Run a verb and show what it prints; only its annotations are obeyed. 128 + n where signal n ended it.

    The selector that it may start is code under test: it gets neither the token nor the files that steer later steps.
    """
    command = [sys.executable, "-P", "-m", "foldproof.cli.main", *words]
    kept = {name: value for name, value in env.items() if name not in _WITHHELD}
    annotations: list[str] = []
    with group(env, f"foldproof {words[0]}"):
        with subprocess.Popen(  # noqa: S603 (our own command)
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=asked.base,
            env=kept,
        ) as child:
            for line in child.stdout or ():
                if words[0] == "report" and _ANNOTATION.fullmatch(line.rstrip("\n")):
                    annotations.append(line.rstrip("\n"))
                else:
                    say(line.rstrip("\n"))
        code = child.returncode if child.returncode >= 0 else 128 - child.returncode
        say(f"exit code: {code}")
    for line in annotations:
        say(line)
    return code


def without_report(codes: dict[str, int]) -> str:
    """The summary where no report was written, or none with a summary."""
    listed = ", ".join(f"{stage} {code}" for stage, code in codes.items())
    return f"## foldproof: {word(worst(codes))}\n\nNo summary was written. Exit codes: {listed}. The log says why.\n"
