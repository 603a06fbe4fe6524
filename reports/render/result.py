"""`result.json`: the report for machines. Every fact that counts, by kind, each with its state and its record.

Times stand in `seconds`, `rate`, `started` and `date` alone, so that two runs can be compared without them (`tidy`).
"""

from __future__ import annotations

from typing import Any

import msgspec
from foldproof.reports.canonical import plain
from foldproof.reports.events import (
    BytesJudged,
    CampaignRan,
    CaptureSeen,
    CaseFound,
    Event,
    LaunchesExamined,
    MutantsHunted,
    ObligationDecided,
    Owed,
    PolicySeen,
    SelectorSeen,
    TheoremJudged,
)
from foldproof.reports.view import Report

SCHEMA_VERSION = 2
KINDS: dict[str, type[Event]] = {
    "captures": CaptureSeen,
    "policies": PolicySeen,
    "selectors": SelectorSeen,
    "theorems": TheoremJudged,
    "scripts": ObligationDecided,
    "cases": CaseFound,
    "campaigns": CampaignRan,
    "mutants": MutantsHunted,
    "launches": LaunchesExamined,
    "bytes": BytesJudged,
    "owed": Owed,
}
TIMES = frozenset({"seconds", "rate", "started", "date", "record", "evidence", "run"})
"""Fields that say when and how fast, and the digests that hang on them."""


def result(report: Report) -> bytes:
    """The bytes of `result.json`."""
    value: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "policy": report.policy,
        "headline": report.headline,
        "exit_code": report.exit_code,
        "obligations": [msgspec.to_builtins(row) for row in report.rows],
        "damaged": [msgspec.to_builtins(one) for one in report.damaged],
        "runs": [
            msgspec.to_builtins(run.started) | {"state": run.state, "records": run.records} for run in report.found.runs
        ],
    }
    for name, kind in KINDS.items():
        value[name] = [
            msgspec.to_builtins(event)
            | {"state": f"stale: {fact.stale}" if fact.stale else "fresh", "record": fact.digest}
            for fact, event in report.found.of(kind)
        ]
    return msgspec.json.format(msgspec.json.encode(plain(value)), indent=1) + b"\n"


def tidy(value: Any) -> Any:
    """A decoded `result.json` with every time taken out, for comparing two runs."""
    if isinstance(value, dict):
        return {key: tidy(item) for key, item in value.items() if key not in TIMES}
    return [tidy(item) for item in value] if isinstance(value, list) else value
