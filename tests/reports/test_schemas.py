"""The JSON Schemas that ship: equal to what the types say, and met by what is written."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from foldproof.reports.schema_files import COMMAND, schema_files
from samples import HOSTILE, fill

RECORD, TOML = "record.schema.json", "foldproof-toml.schema.json"


def shipped(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((resources.files("foldproof.reports") / "schemas" / name).read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", [RECORD, TOML])
def test_the_shipped_schema_is_that_of_the_types(name: str) -> None:
    there = (resources.files("foldproof.reports") / "schemas" / name).read_bytes()
    assert there == schema_files()[name], f"the types have changed: renew the schemas with {COMMAND}"


@pytest.mark.parametrize(
    "name", ["_rms_norm", HOSTILE[0], HOSTILE[2], HOSTILE[4]], ids=["plain", "script", "long", "lines"]
)
def test_each_kind_of_record_meets_the_schema(name: str, tmp_path: Path) -> None:
    fill(tmp_path, name)
    validator = shipped(RECORD)
    kinds = set()
    for file in (tmp_path / "records").iterdir():
        value = json.loads(file.read_bytes())
        validator.validate(value)
        kinds.add(value["event"]["kind"])
    assert len(kinds) == 13  # all but "rendered"


@pytest.mark.parametrize(
    ("path", "value"),
    [(("schema_version",), "1"), (("sequence",), None), (("event", "kind"), "other"), (("event", "started"), 5)],
)
def test_what_is_no_record_does_not_meet_it(path: tuple[str, ...], value: object, tmp_path: Path) -> None:
    fill(tmp_path)
    records = [json.loads(file.read_bytes()) for file in (tmp_path / "records").iterdir()]
    record = next(one for one in records if one["event"]["kind"] == "run-started")
    part = record
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    assert not shipped(RECORD).is_valid(record)


def test_the_example_that_init_writes_meets_the_schema() -> None:
    text = (resources.files("foldproof.reports") / "templates" / "foldproof.toml").read_text("utf-8")
    shipped(TOML).validate(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        "[police]\n",
        "[fuzz]\nseconds = 5\n",
        "[fuzz]\nselector = ''\n",
        "[fuzz]\nselector = 'x'\nseconds = 0\n",
        "[bits]\nmust = 'maybe'\n",
        "[bits]\ndomains = ['all']\n",
        "[report]\nformats = ['pdf']\n",
        "[capture]\npath = 'x'\n",
    ],
)
def test_a_wrong_file_does_not_meet_the_schema(text: str) -> None:
    assert not shipped(TOML).is_valid(tomllib.loads(text))
