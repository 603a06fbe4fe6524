"""The conformance vectors: in step with the reference, true to the schema, and sharp enough to tell a bad selector."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from foldproof.impl.external.conformance import conform, shipped
from foldproof.impl.external.process import ProcessSelector
from foldproof.impl.external.vectors import lines
from jsonschema import Draft202012Validator

SCHEMA = json.loads(
    (resources.files("foldproof.impl.external") / "schemas/foldproof-selector-1.schema.json").read_text("utf-8")
)


def valid(part: str, value: Any) -> bool:
    return bool(Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": SCHEMA["$defs"]}).is_valid(value))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_shipped_file_is_what_the_reference_says_now() -> None:
    assert shipped() == [msgspec.json.decode(msgspec.json.encode(line)) for line in lines()]


def test_every_vector_is_true_to_the_schema_and_only_the_invalid_ones_are_not() -> None:
    captures: dict[int, bool] = {}
    for line in shipped():
        sent = line["send"]
        if sent["type"] == "capture":
            captures[sent["id"]] = valid("capture", sent)
            continue
        answer = line["expect"]
        assert valid("answer", answer)
        assert valid("launchMessage", sent) or answer["error"] in ("InvalidLaunch", "InvalidCapture")
        # Uniqueness of names across two lists is beyond JSON Schema.
        assert answer.get("error") == "InvalidCapture" or captures[sent["capture"]]
        if answer.get("error") == "InvalidLaunch":
            names = [arg["name"] for arg in sent["launch"]["args"]]
            assert not valid("launchMessage", sent) or len(set(names)) < len(names)


@pytest.mark.parametrize(
    "answer",
    [
        {"id": 1, "pick": None},
        {"id": 1},
        {"id": 1, "pick": 0, "error": "MissingTritonVariant"},
        {"id": 1, "pick": -1},
        {"id": 1, "pick": 0, "pass": "linker"},
        {"id": 1, "pick": None, "error": "Missing"},
        {"pick": 0},
    ],
)
def test_the_schema_refuses_what_the_driver_refuses(answer: dict[str, Any]) -> None:
    assert not valid("answer", answer)


def test_the_reference_conforms(reference: tuple[str, ...]) -> None:
    with ProcessSelector(reference) as selector:
        assert conform(selector) == []


def test_another_policy_does_not(reference: tuple[str, ...]) -> None:
    with ProcessSelector((*reference[:-1], "two-pass")) as selector:
        assert any("a foldable 1 is read only in the last pass" in line for line in conform(selector))


def test_the_zig_selector_conforms(zig_command: tuple[str, ...]) -> None:
    with ProcessSelector(zig_command) as selector:
        assert conform(selector) == []


def test_every_planted_fault_breaks_a_vector(
    zig_build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zig_build.build(tmp_path, bug="any", parts=("exe",))
    assert len(zig_build.bugs()) == 12
    for bug in zig_build.bugs()[1:-1]:
        monkeypatch.setenv("FOLDPROOF_PLANTED", bug.replace("-", "_"))
        with ProcessSelector([str(tmp_path / "three-pass")]) as selector:
            assert conform(selector), bug
