"""JUnit, CTRF, SARIF, in-toto, annotations, cases and CSV: valid by their published schemas, whatever the names."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID
from xml.etree import ElementTree as ET

import jsonschema
import junitparser
import msgspec
import pytest
import xmlschema
from foldproof.cli.rendering import from_here
from foldproof.impl.cases import case_from
from foldproof.impl.errors import FoldproofError
from foldproof.reports.duty import Row
from foldproof.reports.events import TheoremJudged
from foldproof.reports.render import render
from foldproof.reports.render.annotations import SHOWN, annotations, code_quality, command
from foldproof.reports.render.attestation import attestation
from foldproof.reports.render.cases import cases
from foldproof.reports.render.checks import checks, label
from foldproof.reports.render.ctrf import ctrf
from foldproof.reports.render.findings import findings
from foldproof.reports.render.junit import junit
from foldproof.reports.render.sarif import FINGERPRINT, sarif
from foldproof.reports.render.table_files import cell, table_files
from foldproof.reports.store import Damage, raw
from foldproof.reports.tables import tables
from foldproof.reports.view import Report
from google.protobuf.json_format import ParseDict, ParseError
from in_toto_attestation.predicates.test_result.v0.test_result_pb2 import TestResult as Predicate
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from samples import HOSTILE, sample

HERE = Path(__file__).parent

SCHEMAS = HERE / "schemas"
XSD = xmlschema.XMLSchema10(str(SCHEMAS / "junit-10.xsd"))
NAMES = {"plain": "_rms_norm", "long": HOSTILE[2], "mixed": " ".join(name for name in HOSTILE if len(name) < 1_000)}
BIDI = "\u202e\u202c\u2066\u2069\u200f"


def validator(name: str) -> jsonschema.protocols.Validator:
    schema = json.loads((SCHEMAS / name).read_text("utf-8"))
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


SARIF, CTRF = validator("sarif-2.1.0-errata01.json"), validator("ctrf.json")


@pytest.fixture(scope="module", params=NAMES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    folder = tmp_path_factory.mktemp("evidence")
    return sample(folder, NAMES[request.param]), folder


@pytest.fixture
def report(made: tuple[Report, Path]) -> Report:
    return made[0]


@pytest.fixture
def folder(made: tuple[Report, Path]) -> Path:
    return made[1]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return sample(tmp_path_factory.mktemp("plain"))


def clean(text: str) -> None:
    """No control character besides the line feed, nothing that reorders text."""
    assert not [c for c in text if (ord(c) < 32 and c != "\n") or c in BIDI or 0x7F <= ord(c) < 0xA0]


def texts(value: Any) -> list[str]:
    """Every text in a JSON value, keys too."""
    if isinstance(value, dict):
        return [*value, *(text for item in value.values() for text in texts(item))]
    return (
        [text for item in value for text in texts(item)]
        if isinstance(value, list)
        else [value]
        if isinstance(value, str)
        else []
    )


def worse(report: Report) -> Report:
    """The report with a damaged file, an undecided obligation, and a finding that nothing requires."""
    rows = (
        Row("T99", "proved", "undecided", "undecided", settle="foldproof prove"),
        Row("T98", "proved", "refuted", "fails", required=False),
        Row("T97", "proved", "gave up", "undecided", required=False),
    )
    return replace(
        report, rows=(*report.rows, *rows), damaged=(Damage("records/\x1b[31mred\x00.json", "was ::error::"),)
    )


def test_two_long_names_that_differ_at_their_end_stay_two() -> None:
    names = [label("K" * 10_000 + end) for end in "ab"]
    assert names[0] != names[1]
    assert all(len(name) < 400 for name in names)
    assert label("short\n") == "short\\n"


# --- JUnit ---------------------------------------------------------------------------------------------------------


def test_junit_is_valid_and_parses_back(report: Report) -> None:
    for one in (report, worse(report)):
        written = junit(one)
        XSD.validate(ET.ElementTree(ET.fromstring(written)))  # noqa: S314 (our own bytes)
        clean(written.decode())
        suites = junitparser.JUnitXml.fromstring(written)
        ended = Counter(
            type(case.result[0]).__name__ if case.result else "passed" for suite in suites for case in suite
        )
        told = Counter(check.ended for check in checks(one))
        assert ended["passed"] == told["passed"] > 0
        assert ended["Failure"] == told["failed"] == suites.failures > 0
        assert ended["Error"] == told["undecided"] + told["damaged"] == suites.errors
        assert ended["Skipped"] == told["owed"] + told["finding"] > 0
        assert suites.tests == len(checks(one))


def test_junit_names_what_settles_what_is_owed(plain: Report) -> None:
    suites = junitparser.JUnitXml.fromstring(junit(plain))
    skipped = [case.result[0] for suite in suites for case in suite if case.result and case.is_skipped]
    owed = [one.message for one in skipped if one.type == "owed"]
    assert owed == ["owed: 1 unknown; settle with: foldproof bits _rms_norm --out foldproof-report"]


def test_junit_fails_exactly_where_the_report_does(tmp_path: Path) -> None:
    good = sample(tmp_path, refuted=False)
    assert good.exit_code == 3
    assert junitparser.JUnitXml.fromstring(junit(good)).failures == 0
    for one in (replace(good, damaged=(Damage("records/x.json", "is missing"),)), sample(tmp_path / "bad")):
        assert one.exit_code == 1
        read = junitparser.JUnitXml.fromstring(junit(one))
        assert read.failures + read.errors > 0


def test_a_refuted_theorem_fails_only_where_an_obligation_asks_for_it(plain: Report) -> None:
    made = plain
    ended = {check.name: check.ended for check in checks(made) if check.suite == "theorems"}
    assert ended["T06 name-of-T06"] == "finding"
    digest = next(check.digest for check in checks(made) if check.name == "T06 name-of-T06")
    asking = replace(made, rows=(*made.rows, Row("T06", "proved", "refuted", "fails", evidence=digest)))
    results = {(check.suite, check.name.split(" ")[0]): check.ended for check in checks(asking)}
    assert results["theorems", "T06"] == results["cases", "theorem:"] == "failed"
    levels = {one.rule: one.level for one in findings(asking)}
    assert levels["T06"] == "error"


# --- CTRF ----------------------------------------------------------------------------------------------------------


def test_ctrf_is_valid_and_its_summary_counts_its_tests(report: Report) -> None:
    for one in (report, worse(report)):
        value = json.loads(ctrf(one))
        CTRF.validate(value)
        results = value["results"]
        statuses = Counter(test["status"] for test in results["tests"])
        assert {word: results["summary"][word] for word in statuses} == statuses
        assert results["summary"]["tests"] == len(results["tests"]) == len(checks(one))
        ids = [UUID(test["id"]) for test in results["tests"]]
        assert len(set(ids)) == len(ids)
        assert 0 < results["summary"]["start"] <= results["summary"]["stop"]
        for text in texts(value):
            clean(text)


def test_the_ctrf_schema_refuses_what_it_should(plain: Report) -> None:
    value = json.loads(ctrf(plain))
    value["results"]["tests"][0]["status"] = "owed"
    with pytest.raises(jsonschema.ValidationError):
        CTRF.validate(value)


# --- SARIF ---------------------------------------------------------------------------------------------------------


def test_sarif_is_valid_and_points_at_files_that_are_there(report: Report, folder: Path) -> None:
    for one in (report, worse(report)):
        value = json.loads(sarif(one, "out dir"))
        SARIF.validate(value)
        run = value["runs"][0]
        for result in run["results"]:
            assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
            uri = unquote(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
            assert uri == "foldproof.toml" or uri.startswith("out dir/")
            if result["ruleId"] not in ("damaged", "owed", "undecided", "obligation"):
                assert (folder / uri.removeprefix("out dir/")).is_file()
        for text in texts(value):
            clean(text)
        messages = [result["message"]["text"] for result in run["results"]]
        assert not [text for text in messages if "](" in text]


def test_sarif_levels_say_what_stops_a_release(plain: Report) -> None:
    run = json.loads(sarif(worse(plain)))["runs"][0]
    levels = {(result["ruleId"], result["level"]) for result in run["results"]}
    assert levels == {
        ("divergence", "error"),
        ("obligation", "error"),
        ("damaged", "error"),
        ("T06", "warning"),
        ("owed", "note"),
        ("undecided", "note"),
    }
    rules = {rule["id"]: rule["fullDescription"]["text"] for rule in run["tool"]["driver"]["rules"]}
    assert rules["T06"] == "A sentence."


def test_a_refuted_theorem_says_why_in_the_words_of_its_case(plain: Report) -> None:
    made = plain
    facts = tuple(
        replace(f, event=msgspec.structs.replace(f.event, reason="")) if isinstance(f.event, TheoremJudged) else f
        for f in made.found.facts
    )
    told = next(
        one.says for one in findings(replace(made, found=replace(made.found, facts=facts))) if one.rule == "T06"
    )
    assert told.startswith(
        "T06 name-of-T06 of three-pass is refuted: another order picks k2 of _rms_norm. The theorem:"
    )


def test_sarif_fingerprints_stay_from_run_to_run_and_tell_results_apart(tmp_path: Path) -> None:
    first, second = (
        [
            one["partialFingerprints"][FINGERPRINT]
            for one in json.loads(sarif(sample(tmp_path / name)))["runs"][0]["results"]
        ]
        for name in "ab"
    )
    assert first == second
    assert len(set(first)) == len(first)


def test_braces_and_links_in_a_sarif_message_are_text(tmp_path: Path) -> None:
    run = json.loads(sarif(sample(tmp_path, "{0} [x](javascript:alert(1)) {")))["runs"][0]
    said = next(result["message"]["text"] for result in run["results"] if result["ruleId"] == "T06")
    assert "{{0}} [x] (javascript:alert(1)) {{" in said


# --- in-toto -------------------------------------------------------------------------------------------------------


def test_the_attestation_is_a_statement_of_a_test_result(report: Report) -> None:
    for one in (report, worse(report)):
        value = json.loads(attestation(one))
        parsed = StatementMessage()
        ParseDict(value, parsed)
        Statement.copy_from_pb(parsed).validate()
        assert parsed.type == "https://in-toto.io/Statement/v1"
        assert parsed.predicate_type == "https://in-toto.io/attestation/test-result/v0.1"
        predicate = Predicate()
        ParseDict(value["predicate"], predicate)
        assert predicate.result == "FAILED"
        assert len(predicate.configuration) == 2
        for descriptor in predicate.configuration:
            ResourceDescriptor.copy_from_pb(descriptor).validate()
        names = [subject.name for subject in parsed.subject]
        assert len(set(names)) == len(names)
        listed = [*predicate.passed_tests, *predicate.warned_tests, *predicate.failed_tests]
        assert len(listed) == len(checks(one)) == len(set(listed))
        for text in texts(value):
            clean(text)


def test_the_attestation_speaks_of_what_is_at_hand(plain: Report) -> None:
    made = plain
    value = json.loads(attestation(made))
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in value["subject"]}
    assert digests == {
        "_rms_norm/aot.json": "b" * 64,
        "cubins/k1.cubin": "d" * 64,
        "cubins/k2.cubin": "e" * 64,
        "selector ./my-selector": "c" * 64,
        "policy three-pass": "a" * 64,
    }
    twice = replace(
        made, at_hand=replace(made.at_hand, captures={"1" * 64: {"k": "d" * 64}, "2" * 64: {"k": "e" * 64}})
    )
    names = [one["name"] for one in json.loads(attestation(twice))["subject"]]
    assert names.count("cubins/k.cubin") == 1
    assert f"cubins/k.cubin ({'e' * 12})" in names


@pytest.mark.parametrize(("change", "result"), [("owed", "WARNED"), ("all hold", "PASSED"), ("damaged", "FAILED")])
def test_the_result_of_the_attestation(tmp_path: Path, change: str, result: str) -> None:
    made = sample(tmp_path, refuted=False)
    if change == "all hold":
        facts = tuple(f for f in made.found.facts if getattr(f.event, "verdict", "") != "refuted")
        facts = tuple(f for f in facts if type(f.event).__name__ != "CaseFound")
        rows = tuple(row for row in made.rows if row.verdict == "holds")
        made = replace(made, rows=rows, found=replace(made.found, facts=facts))
    if change == "damaged":
        made = replace(made, damaged=(Damage("records/x.json", "is missing"),))
    assert json.loads(attestation(made))["predicate"]["result"] == result


def test_the_message_classes_refuse_what_is_no_attestation() -> None:
    with pytest.raises(ParseError):
        ParseDict({"_type": "x", "subjects": []}, StatementMessage())
    with pytest.raises(ParseError):
        ParseDict({"result": "PASSED", "configuration": "none"}, Predicate())


# --- annotations ---------------------------------------------------------------------------------------------------


def test_annotations_are_workflow_commands_and_nothing_else(report: Report) -> None:
    for one in (report, worse(report)):
        lines = annotations(one).splitlines()
        assert lines
        for line in lines:
            kind, properties, text = (line[2:].split(" ", 1)[0], *line[2:].split(" ", 1)[1].split("::", 1))
            assert line.startswith("::")
            assert kind in ("error", "warning", "notice")
            assert [part.partition("=")[0] for part in properties.split(",")] == ["file", "line", "title"]
            assert ":" not in properties
            clean(text)


def test_data_and_properties_are_escaped_as_github_has_it() -> None:
    line = command("error", "a,b:c%.json", "100%: x,y", "50% a,b:c\r\n::error::z")
    assert line == r"::error file=a%2Cb%3Ac%25.json,line=1,title=100%25%3A x%2Cy::50%25 a,b:c\r\n::error::z"


def test_of_more_annotations_than_a_host_shows_the_last_says_how_many(plain: Report) -> None:
    made = plain
    rows = tuple(Row(f"row {n}", "x", "y", "fails") for n in range(15))
    lines = [line for line in annotations(replace(made, rows=rows)).splitlines() if line.startswith("::error ")]
    assert len(lines) == SHOWN
    # 15 rows; the fuzz case belongs to no failing row of these, so it is a warning.
    assert lines[-1].endswith("::6 more of this level are in foldproof-report/receipt.md")


def test_code_quality_has_what_gitlab_asks_for(report: Report) -> None:
    value = json.loads(code_quality(report))
    assert len(value) == len(findings(report)) == len({one["fingerprint"] for one in value})
    for one in value:
        assert one["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert one["description"]
        assert one["location"]["lines"]["begin"] == 1
        for text in texts(one):
            clean(text)


def test_places_are_below_the_evidence_folder_wherever_it_is(report: Report, folder: Path) -> None:
    made = render(report, ("sarif", "codequality"), lambda path: raw(folder / path), "ci/evidence")
    assert made.keys() == {"result.sarif", "gl-code-quality.json"}
    (run,) = json.loads(made["result.sarif"])["runs"]
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]]
    paths = [one["location"]["path"] for one in json.loads(made["gl-code-quality.json"])]
    for found in (places, paths):
        assert any(place.startswith("ci/evidence/cases/") for place in found)
        assert not any(place.startswith("foldproof-report") for place in found)


def test_a_folder_is_named_from_where_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert from_here(tmp_path / "ci" / "evidence") == from_here(Path("ci/evidence")) == "ci/evidence"
    assert from_here(tmp_path.parent) == tmp_path.parent.as_posix()


# --- cases and tables ----------------------------------------------------------------------------------------------


def test_packed_cases_replay_line_by_line(report: Report, folder: Path) -> None:
    packed = cases(report, lambda path: raw(folder / path))
    assert packed == cases(report, lambda path: raw(folder / path))
    assert packed[4:8] == bytes(4)
    lines = gzip.decompress(packed).decode("ascii").splitlines()
    assert len(lines) == len(report.cases()) == 2
    for line, (fact, found) in zip(lines, report.cases(), strict=True):
        clean(line)
        value = json.loads(line)
        case = case_from(value)
        assert [variant.hash for variant in case.capture.kernels] == ["k1", "k2"]
        assert value["evidence"]["why"] == found.why
        assert value["evidence"]["record"] == fact.digest


def test_a_case_that_is_gone_or_no_case_keeps_its_line(plain: Report) -> None:
    made = plain

    def gone(path: str) -> bytes:
        raise FoldproofError("is missing", where=path)

    for read, why in ((gone, "is missing"), (lambda _: b"[7]", "holds no case"), (lambda _: b"\xff", "is not UTF-8")):
        lines = [json.loads(line) for line in gzip.decompress(cases(made, read)).splitlines()]
        assert len(lines) == 2
        assert all(line["launch"] is None and line["evidence"]["missing"].startswith(why) for line in lines)


def test_integers_of_a_case_stay_exact(plain: Report) -> None:
    made = plain
    line = gzip.decompress(cases(made, lambda _: b'[{"launch": 18446744073709551615}]')).splitlines()[0]
    assert b'"launch":18446744073709551615,' in line


def test_each_table_is_a_csv_file_with_its_rows(report: Report) -> None:
    files = table_files(report)
    frames = tables(report)
    assert set(files) == {f"tables/{name}.csv" for name in frames}
    for name, frame in frames.items():
        text = files[f"tables/{name}.csv"].decode("utf-8")
        clean(text)
        rows = list(csv.reader(io.StringIO(text)))
        assert len(text.splitlines()) == len(rows) == len(frame) + 1
        assert {len(row) for row in rows} == {len(frame.columns)}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("  =HYPERLINK(1)", "'  =HYPERLINK(1)"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\\t=1"),
        ("\r=1", "'\\r=1"),
        ("\uff1d1", "'\uff1d1"),
        ("'quoted", "''quoted"),
        ("plain - text = 1", "plain - text = 1"),
        (-1, -1),
        (0.25, 0.25),
    ],
)
def test_no_cell_is_a_formula(text: object, written: object) -> None:
    assert cell(text) == written


def test_two_calls_give_equal_bytes(plain: Report) -> None:
    for make in (junit, ctrf, sarif, attestation, annotations, code_quality, table_files):
        assert make(plain) == make(plain)
