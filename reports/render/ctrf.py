"""`ctrf.json`: the same test results in the Common Test Report Format."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import datetime
from typing import Any

import msgspec
from foldproof import __version__
from foldproof.impl.errors import one_line
from foldproof.reports.canonical import canonical, sha256
from foldproof.reports.render.checks import Check, Ended, checks
from foldproof.reports.view import Report

SPEC_VERSION = "0.0.0"
"""Of the published schema, and what the reference implementation writes."""
STATUSES: dict[Ended, str] = {
    "passed": "passed",
    "failed": "failed",
    "damaged": "failed",
    "undecided": "other",
    "finding": "other",
    "owed": "pending",
}
"""Pending is what is planned and was not run. `rawStatus` keeps our own word."""
_SPACE = uuid.UUID("c9a8f1de-5a5e-5b0a-9d43-0d7a3f4c2b11")
"""Names of this space are ours alone; equal reports and equal tests have equal ids."""


def ctrf(report: Report) -> bytes:
    """The file. Times are milliseconds; those of the runs, not of the rendering, so that two calls give equal bytes."""
    results = checks(report)
    counts = Counter(STATUSES[check.ended] for check in results)
    start, stop = _span(report)
    said = ("passed", "failed", "skipped", "pending", "other")
    value = {
        "reportFormat": "CTRF",
        "specVersion": SPEC_VERSION,
        "reportId": str(uuid.uuid5(_SPACE, sha256(canonical([fact.digest for fact in report.found.facts])))),
        "generatedBy": f"foldproof {__version__}",
        "results": {
            "tool": {"name": "foldproof", "version": __version__},
            "summary": {"tests": len(results), **{word: counts[word] for word in said}, "start": start, "stop": stop},
            "tests": [_test(check) for check in results],
        },
        "extra": {"headline": one_line(report.headline), "policy": one_line(report.policy), "exit": report.exit_code},
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _test(check: Check) -> dict[str, Any]:
    suite = [check.suite, *([check.of] if check.of else [])]
    test: dict[str, Any] = {
        "id": str(uuid.uuid5(_SPACE, "/".join((*suite, check.name)))),
        "name": check.name or "(no name)",
        "status": STATUSES[check.ended],
        "rawStatus": check.ended,
        "duration": round(1000 * (check.seconds or 0)),
        "suite": suite,
        "message": check.says,
        "extra": {"measured": check.seconds is not None, "record": check.digest},
    }
    if check.ended != "passed" and check.more:
        test["trace"] = "\n".join(check.more)
    if check.file:
        test["filePath"] = one_line(check.file)
    return test


def _span(report: Report) -> tuple[int, int]:
    """From the start of the first run to the end of the last, in milliseconds since 1970; 0 where none says it."""
    spans = [(_epoch(run.started.started), run.finished.seconds if run.finished else None) for run in report.found.runs]
    ends = [began + round(1000 * (seconds or 0)) for began, seconds in spans]
    return min((began for began, _ in spans), default=0), max(ends, default=0)


def _epoch(text: str) -> int:
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return 0
