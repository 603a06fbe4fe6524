"""`result.sarif`: SARIF 2.1.0, which code hosts show beside the case files."""

from __future__ import annotations

from typing import Any

import msgspec
from foldproof import __version__
from foldproof.impl.errors import one_line
from foldproof.reports.events import CaseFound, TheoremJudged
from foldproof.reports.evidence import FOLDER, Run
from foldproof.reports.render.findings import RULES, Finding, findings
from foldproof.reports.view import Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "foldproof/v1"


def sarif(report: Report, folder: str = FOLDER) -> bytes:
    """The file. `folder` is the evidence folder as a path from the root of the repository, with `/`.

    Level error is what an obligation refuses, warning a finding, note what is owed.
    """
    found = findings(report)
    names = {e.theorem: e for _, e in report.found.of(TheoremJudged)}
    ids = list(dict.fromkeys(one.rule for one in found))
    rules = [_rule(name, names.get(name)) for name in ids]
    driver = {
        "name": "foldproof",
        "semanticVersion": __version__,
        "version": __version__,
        "rules": rules,
    }
    value = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [_invocation(run) for run in report.found.runs],
                "artifacts": _artifacts(report, found, folder),
                "results": [_result(one, ids.index(one.rule), folder) for one in found],
                "columnKind": "unicodeCodePoints",
                "properties": {"headline": one_line(report.headline), "exitCode": report.exit_code},
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def message(text: str) -> dict[str, str]:
    """`text` as a message that no reader takes for more: braces would be placeholders, `](` the middle of a link."""
    return {"text": one_line(text).replace("{", "{{").replace("}", "}}").replace("](", "] (") or "(nothing said)"}


def _rule(name: str, theorem: TheoremJudged | None) -> dict[str, Any]:
    sentence = theorem.sentence if theorem else RULES.get(name, f"The theorem {name} holds.")
    title = theorem.name if theorem else name
    return {
        "id": one_line(name),
        "name": one_line(title),
        "shortDescription": message(title),
        "fullDescription": message(sentence),
        "help": message(f"{sentence} See the counterexample, replay it with its command, and foldproof explain."),
    }


def _result(one: Finding, index: int, folder: str) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": one.uri(folder)}, "region": {"startLine": 1}}
    return {
        "ruleId": one_line(one.rule),
        "ruleIndex": index,
        "level": one.level,
        "message": message(one.says),
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {FINGERPRINT: one.fingerprint},
    }


def _artifacts(report: Report, found: tuple[Finding, ...], folder: str) -> list[dict[str, Any]]:
    """Each file that a result is located at, once, with its digest where a record has it."""
    digests = {e.file.path: e.file.sha256 for _, e in report.found.of(CaseFound)}
    digests |= {
        e.counterexample.path: e.counterexample.sha256 for _, e in report.found.of(TheoremJudged) if e.counterexample
    }
    files = {one.uri(folder): digests.get(one.file) for one in found}
    return [
        {"location": {"uri": uri}} | ({"hashes": {"sha-256": digest}} if digest else {})
        for uri, digest in files.items()
    ]


def _invocation(run: Run) -> dict[str, Any]:
    said: dict[str, Any] = {
        "commandLine": one_line(run.started.command),
        "startTimeUtc": run.started.started,
        "executionSuccessful": run.state == "complete",
    }
    if run.finished and run.finished.exit_code is not None:
        said["exitCode"] = run.finished.exit_code
    return said
