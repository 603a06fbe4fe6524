"""Annotations of a pull request: workflow commands for GitHub, a code quality report for GitLab."""

from collections.abc import Iterator, Sequence

import msgspec
from foldproof.impl.errors import one_line
from foldproof.reports.evidence import FOLDER
from foldproof.reports.render.findings import Finding, Level, findings
from foldproof.reports.view import Report

COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}
SEVERITIES: dict[Level, str] = {"error": "critical", "warning": "minor", "note": "info"}
SHOWN = 10
"""GitHub shows as many of each level of one step and drops the rest without a word."""
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = _DATA | {":": "%3A", ",": "%2C"}


def annotations(report: Report, folder: str = FOLDER) -> str:
    """Workflow commands, one a line, and nothing else: `::error file=PATH,line=1,title=TITLE::MESSAGE`.

    Of a level with more than GitHub shows, the last says how many there are. `folder` is the evidence folder as a path
    from the root of the repository.
    """
    return "".join(f"{line}\n" for level in COMMANDS for line in _of_level(report, level, folder))


def _of_level(report: Report, level: Level, folder: str) -> Iterator[str]:
    found = [one for one in findings(report) if one.level == level]
    shown = found if len(found) <= SHOWN else found[: SHOWN - 1]
    for one in shown:
        yield command(COMMANDS[level], _place(one, folder), one.title, one.says)
    if len(shown) < len(found):
        says = f"{len(found) - len(shown)} more of this level are in {folder}/receipt.md"
        yield command(COMMANDS[level], f"{folder}/receipt.md", "foldproof", says)


def _place(one: Finding, folder: str) -> str:
    return f"{folder}/{one.file}" if one.file else "foldproof.toml"


def command(name: str, file: str, title: str, says: str) -> str:
    """One workflow command, escaped as GitHub's documentation and its toolkit have it: data and properties apart."""
    properties = f"file={_escaped(file, _PROPERTY)},line=1,title={_escaped(title, _PROPERTY)}"
    return f"::{name} {properties}::{_escaped(says, _DATA)}"


def _escaped(text: str, by: dict[str, str]) -> str:
    return "".join(by.get(c, c) for c in one_line(text))


def code_quality(report: Report, folder: str = FOLDER) -> bytes:
    """The findings as GitLab's code quality report, which a merge request shows beside the files."""
    value: Sequence[dict[str, object]] = [
        {
            "description": one_line(one.says),
            "check_name": one_line(one.rule),
            "fingerprint": one.fingerprint,
            "severity": SEVERITIES[one.level],
            "location": {"path": one_line(_place(one, folder)), "lines": {"begin": 1}},
        }
        for one in findings(report)
    ]
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
