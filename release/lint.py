"""Lint: every finding of a capture, as one record, as text rows, and as SARIF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from foldproof import __version__
from foldproof.impl.policy import Policy
from foldproof.release.binaries import cubin_findings
from foldproof.release.choices import open_choices
from foldproof.release.contradictions import contradictions
from foldproof.release.findings import RULES, Finding, Severity, chosen
from foldproof.release.lenient import Lenient, read_leniently
from foldproof.release.reach import missing_twins, unreached

SCHEMA_VERSION = 1
SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


class LintResult(msgspec.Struct, frozen=True):
    """What lint found. `counts` is by severity; `cubins` says how many of the variants have their cubin here."""

    schema_version: int
    tool: str
    capture: str
    policy: str
    variants: int
    cubins: int
    counts: dict[str, int]
    findings: tuple[Finding, ...]


def lint(path: Path, policy: Policy, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> LintResult:
    """Every finding of the selected rules. Raises `InvalidCapture` for what is no JSON, `FoldproofError` for a rule."""
    chosen((), select, ignore)
    capture = read_leniently(path)
    found = chosen(_all(capture, policy), select, ignore)
    counts = Counter(str(f.severity) for f in found)
    cubins = sum(capture.cubin(entry).is_file() for entry in capture.entries)
    return LintResult(
        SCHEMA_VERSION,
        f"foldproof {__version__}",
        str(path),
        policy.name,
        len(capture.entries),
        cubins,
        {str(severity): counts[severity] for severity in Severity},
        tuple(found),
    )


def _all(capture: Lenient, policy: Policy) -> Iterator[Finding]:
    yield from capture.findings
    yield from contradictions(capture.entries)
    yield from open_choices(capture.entries)
    barred = {"L103", "L108", "L109", "L106"}
    known = {f.where.split(".")[1] for f in contradictions(capture.entries) if f.rule in barred}
    for found in unreached(capture.entries, policy):
        # What already has its reason named is not said twice.
        if found.where.removeprefix("$.") not in known:
            yield found
    yield from missing_twins(capture.entries)
    yield from cubin_findings(capture)


def sarif(result: LintResult) -> dict[str, Any]:
    """The findings as a SARIF 2.1.0 log, which code hosts show beside the file."""
    file = Path(result.capture)
    uri = (file / "aot.json" if file.suffix != ".json" else file).as_posix()
    rules = [
        {
            "id": rule.id,
            "name": rule.name,
            "shortDescription": {"text": rule.says},
            "fullDescription": {"text": f"{rule.says}: {rule.why}"},
            "help": {"text": rule.fix},
            "defaultConfiguration": {"level": str(rule.severity)},
        }
        for rule in RULES.values()
    ]
    results = [
        {
            "ruleId": f.rule,
            "level": str(f.severity),
            "message": {"text": f"{f.what}. {f.why}. Fix: {f.fix}."},
            "locations": [
                {
                    "physicalLocation": {"artifactLocation": {"uri": uri}},
                    "logicalLocations": [{"fullyQualifiedName": f.where}],
                }
            ],
        }
        for f in result.findings
    ]
    driver = {"name": "foldproof lint", "version": __version__, "rules": rules}
    return {"$schema": SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
