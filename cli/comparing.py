"""`foldproof report --baseline`: this release's evidence against an earlier one's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from foldproof.reports.compare import Picks, compare
from foldproof.reports.events import LaunchesExamined
from foldproof.reports.picks import read_picks
from foldproof.reports.store import damage, raw, read
from foldproof.reports.then import report_then
from foldproof.reports.view import Report


def against(report: Report, evidence: Path, baseline: Path) -> Report:
    """The report with what changed since `baseline`. Raises `FoldproofError` where that folder has no evidence."""
    stored, damaged = read(baseline)
    old = report_then(report.config, stored, [*damaged, *damage(baseline, stored)])
    return replace(report, compared=compare(old, report, _picks(old, baseline), _picks(report, evidence)))


def _picks(report: Report, folder: Path) -> Picks:
    """The picks of each launches record whose file is whole."""
    spoilt = {one.file for one in report.damaged}
    refs = [event.picks for _, event in report.found.of(LaunchesExamined) if event.picks is not None]
    return {
        ref.path: list(read_picks(raw(folder / ref.path), str(folder / ref.path)))
        for ref in refs
        if ref.path not in spoilt
    }
