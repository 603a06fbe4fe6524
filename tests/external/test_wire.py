"""Launches survive the way into messages and records, and the records are the header's structs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from foldproof.impl import Arg, Capture, InvalidCapture, InvalidLaunch, Kind, Launch, capture_from, launch_from
from foldproof.impl.external.records import (
    ABI,
    ABSENT,
    ARG,
    CONST,
    KINDS,
    LAUNCH,
    STRING,
    UNWRITTEN,
    encode,
    encode_family,
    launch_at,
)
from foldproof.impl.external.wire import capture_message, kernels_text, launch_messages, launch_text, wire_launch
from foldproof.impl.external.worker import Batch
from foldproof.impl.launch import launch_to
from foldproof.impl.strictjson import parse
from jsonschema import Draft202012Validator

Case = Callable[..., tuple[Capture, list[Launch]]]
STRUCTS = {"string": STRING, "arg": ARG, "const": CONST, "launch": LAUNCH}


@pytest.fixture(scope="session")
def messages() -> Draft202012Validator:
    file = resources.files("foldproof.impl.external") / "schemas/foldproof-selector-1.schema.json"
    return Draft202012Validator(json.loads(file.read_text("utf-8")))


def test_a_launch_text_is_the_launch_and_true_to_the_schema(case: Case, messages: Draft202012Validator) -> None:
    for seed in range(60):
        capture, launches = case(seed)
        assert messages.is_valid(json.loads(capture_message(3, kernels_text(capture))))
        assert capture_from({"kernels": parse(kernels_text(capture), "")}) == capture
        lines = launch_messages(7, 3, [wire_launch(launch) for launch in launches]).splitlines()
        for number, (line, launch) in enumerate(zip(lines, launches, strict=True), 7):
            message = json.loads(line)
            assert messages.is_valid(message)
            assert (message["id"], message["capture"]) == (number, 3)
            assert message["launch"] == launch_to(launch) == json.loads(launch_text(launch))


def test_a_text_that_was_made_before_is_sent_as_it_is() -> None:
    launch = Launch("größe", (Arg("n", Kind.I32, -7),))
    raw = launch_messages(0, 1, [msgspec.Raw(launch_text(launch))])
    assert raw == launch_messages(0, 1, [wire_launch(launch)])


def test_records_give_the_launches_back(case: Case) -> None:
    launches = [launch for seed in range(150) for launch in case(seed)[1]]
    encoded = encode(launches)
    assert [launch_at(encoded, position) for position in range(len(encoded))] == launches


def test_equal_texts_have_equal_string_numbers(case: Case) -> None:
    encoded = encode([launch for seed in range(20) for launch in case(seed)[1]])
    texts = [encoded.text[offset : offset + length] for offset, length in encoded.strings.tolist()]
    assert len(set(texts)) == len(texts) > 5


def test_no_launches_are_no_records() -> None:
    assert len(encode([])) == 0


def test_a_family_is_its_template_with_other_numbers() -> None:
    args = (Arg("p", Kind.PTR, 0, "*i8", 7), Arg("n", Kind.I32, 0), Arg("m", Kind.I64, 0))
    template = Launch("k", args, launch_from({"fn": "k", "args": [], "consts": {"C": {"int": 3}}}).consts)
    numbers = np.array([[16, 1, 2**64 - 1], [24, 2**64 - 5, 0]], np.uint64)
    family = encode_family(template, numbers)
    got = [[arg.number for arg in launch_at(family, position).args] for position in range(2)]
    assert got == [[16, 1, -1], [24, -5, 0]]
    assert launch_at(family, 1).consts == template.consts
    with pytest.raises(InvalidLaunch, match="3 args"):
        encode_family(template, numbers[:, :2])


@pytest.mark.parametrize(
    "launch",
    [
        Launch("k", (), num_warps=2**63),
        Launch("k", (), num_stages=2**63),
        Launch("k", (Arg("p", Kind.PTR, 0, "*i8", 2**64),)),
    ],
)
def test_what_64_bits_do_not_hold_is_refused(launch: Launch) -> None:
    with pytest.raises(InvalidLaunch, match="64 bits"):
        launch_text(launch)
    with pytest.raises(InvalidLaunch, match="64 bits"):
        encode([launch])


def test_a_capture_beyond_64_bits_is_refused() -> None:
    kernels = [{"fn": "k", "hash": "h", "num_warps": 2**63, "params": [], "consts": {}}]
    with pytest.raises(InvalidCapture, match="63 bits"):
        kernels_text(capture_from({"kernels": kernels}))


def test_records_are_the_structs_of_the_header(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    fields = [(struct, field) for struct, dtype in STRUCTS.items() for field in dtype.names or ()]
    fields += [("batch", name) for name in BATCH_FIELDS]
    prints = "".join(
        f'printf("%zu %zu\\n", offsetof(foldproof_{struct}, {field}), sizeof(((foldproof_{struct} *)0)->{field}));'
        for struct, field in fields
    )
    values = "".join(f'printf("%lld\\n", (long long){name});' for name in CONSTANTS)
    text = f"#include <stdio.h>\n#include <foldproof_selector.h>\nint main(void) {{ {prints} {values} return 0; }}\n"
    program = compile_c(text, tmp_path / "layout")
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    assert [tuple(map(int, line.split())) for line in said[: len(fields)]] == [_place(*field) for field in fields]
    assert [int(line) for line in said[len(fields) :]] == list(CONSTANTS.values())


BATCH_FIELDS = {
    "text": "text",
    "strings": "strings",
    "args": "args",
    "consts": "consts",
    "launches": "launches",
    "text_size": "text_count",
    "string_count": "string_count",
    "arg_count": "arg_count",
    "const_count": "const_count",
    "launch_count": "launch_count",
}
CONSTANTS: dict[str, int] = {
    "FOLDPROOF_SELECTOR_ABI": ABI,
    "FOLDPROOF_ABSENT": ABSENT,
    "FOLDPROOF_UNWRITTEN": UNWRITTEN,
    **{f"FOLDPROOF_{kind.upper()}": number for number, kind in enumerate(KINDS)},
}


def _place(struct: str, field: str) -> tuple[int, int]:
    if struct == "batch":
        described: Any = getattr(Batch, BATCH_FIELDS[field])
        return described.offset, described.size
    kind, offset = (STRUCTS[struct].fields or {})[field][:2]
    return offset, kind.itemsize
