"""`attestation.intoto.json`: an in-toto Statement v1 with the predicate test-result v0.1, ready to be signed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import msgspec
from foldproof.reports.canonical import canonical, sha256
from foldproof.reports.obligations import FILE
from foldproof.reports.render.checks import Check, checks, label
from foldproof.reports.view import EXIT_FAILS, Report

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
FAILED = ("failed", "damaged")
Descriptor = dict[str, Any]


def attestation(report: Report) -> bytes:
    """The file. Its subjects are what is at hand: captures, cubins, the files of selectors, the policy.

    FAILED where the report exits with 1, PASSED where every test passed, else WARNED: something is owed, undecided or
    a finding. `configuration` holds the obligations whole, and the versions of what judged them.
    """
    results = checks(report)
    passed = [_name(one) for one in results if one.ended == "passed"]
    failed = [_name(one) for one in results if one.ended in FAILED]
    warned = [_name(one) for one in results if one.ended not in (*FAILED, "passed")]
    value = {
        "_type": STATEMENT,
        "subject": _subjects(report),
        "predicateType": PREDICATE,
        "predicate": {
            "result": "FAILED" if report.exit_code == EXIT_FAILS else "WARNED" if warned or not passed else "PASSED",
            "configuration": _configuration(report),
            "passedTests": passed,
            "warnedTests": warned,
            "failedTests": failed,
        },
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _name(check: Check) -> str:
    return "/".join((check.suite, *([check.of] if check.of else []), check.name))


def _subjects(report: Report) -> list[Descriptor]:
    """Each thing at hand once; a name that two things share gets the start of its digest."""
    found: dict[str, str] = {}
    for name, digest in _digests(report):
        free = name if found.get(name, digest) == digest else f"{name} ({digest[:12]})"
        found[free] = digest
    return [{"name": name, "digest": {"sha256": digest}} for name, digest in found.items()]


def _digests(report: Report) -> Iterator[tuple[str, str]]:
    here = report.at_hand
    for digest, cubins in here.captures.items():
        yield label(f"{here.names.get(digest, 'capture')}/aot.json"), digest
        yield from ((label(f"cubins/{name}.cubin"), cubin) for name, cubin in cubins.items())
    for files in here.selectors.values():
        yield from ((label(f"selector {name}"), digest) for name, digest in files.items())
    if report.policy in here.policies:
        yield label(f"policy {report.policy}"), here.policies[report.policy]
    else:
        # A statement must have a subject: without a policy at hand it speaks of the obligations alone.
        yield FILE, sha256(canonical(report.config))


def _configuration(report: Report) -> list[Descriptor]:
    config = canonical(report.config)
    said: list[Descriptor] = [
        {
            "name": FILE,
            "digest": {"sha256": sha256(config)},
            "content": base64.b64encode(config).decode("ascii"),
            "mediaType": "application/json",
        }
    ]
    if report.found.runs:
        last = report.found.runs[-1].started
        versions = canonical({"tool": last.tool, **last.versions})
        said.append(
            {
                "name": "versions",
                "digest": {"sha256": sha256(versions)},
                "content": base64.b64encode(versions).decode("ascii"),
                "mediaType": "application/json",
            }
        )
    return said
