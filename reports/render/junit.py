"""`junit.xml`: a testcase for each obligation, theorem and case, as Jenkins, GitLab and most hosts read it."""

from __future__ import annotations

from itertools import groupby

from foldproof.impl.errors import one_line
from foldproof.reports.render.checks import Check, checks
from foldproof.reports.view import Report
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite


def junit(report: Report) -> bytes:
    """The file. A failure is what an obligation refuses, an error what is undecided or damaged.

    Skipped is what is owed, with the command that settles it, and what is broken although no obligation asks for it:
    neither may turn a host's build red, and neither may pass. All text is on one line without control characters.
    """
    suites = JUnitXml("foldproof")
    for name, of_suite in groupby(checks(report), key=lambda check: check.suite):
        suites.add_testsuite(_suite(report, name, tuple(of_suite)))
    suites.update_statistics()  # type: ignore[no-untyped-call]
    # The published schemas of the root element do not know this count; each suite has it.
    del suites._elem.attrib["skipped"]  # noqa: SLF001
    written: bytes = suites.tostring()  # type: ignore[no-untyped-call]
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + written.rstrip() + b"\n"


def _suite(report: Report, name: str, of_suite: tuple[Check, ...]) -> TestSuite:
    suite = TestSuite(f"foldproof.{name}")
    if report.found.runs:
        suite.timestamp = report.found.runs[-1].started.started
    for key, value in (("headline", report.headline), ("policy", report.policy), ("exit code", report.exit_code)):
        suite.add_property(key, one_line(str(value)))
    for check in of_suite:
        suite.add_testcase(_case(check))
    suite.update_statistics()  # type: ignore[no-untyped-call]
    return suite


def _case(check: Check) -> TestCase:
    case = TestCase(check.name, f"foldproof.{check.suite}" + (f".{check.of}" if check.of else ""), check.seconds)
    text = "\n".join(check.more)
    if check.ended == "failed":
        case.result = [_told(Failure(check.says, check.ended), text)]
    elif check.ended in ("undecided", "damaged"):
        case.result = [_told(Error(check.says, check.ended), text)]
    elif check.ended in ("owed", "finding"):
        case.result = [_told(Skipped(f"{check.ended}: {check.says}", check.ended), text)]
    else:
        case.system_out = "\n".join((check.says, *check.more))
    return case


def _told(result: Failure | Error | Skipped, text: str) -> Failure | Error | Skipped:
    result.text = text
    return result
