"""Whether a selector conforms to `foldproof-selector/1`: the shipped vectors, put to it one by one."""

from __future__ import annotations

from importlib import resources
from typing import Any, TypeAlias

import msgspec
from foldproof.impl.external.answers import Fault, Reply, Unasked
from foldproof.impl.external.compare import difference
from foldproof.impl.external.process import ProcessSelector

POLICY = "three-pass"
Json: TypeAlias = dict[str, Any]


def shipped() -> list[Json]:
    """The lines of the shipped file."""
    file = resources.files("foldproof.impl.external") / "vectors" / f"{POLICY}.ndjson"
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]


def conform(selector: ProcessSelector) -> list[str]:
    """What the selector answers otherwise than the shipped vectors, a sentence a launch; empty if it conforms.

    Launches with kinds that it does not know are left out.
    """
    unequal: list[str] = []
    capture: Json = {}
    for line in shipped():
        sent = line["send"]
        if sent["type"] == "capture":
            capture = line
            continue
        kinds = {arg["kind"] for arg in sent["launch"]["args"]}
        if not (kinds <= selector.kinds or line["expect"].get("error") == "InvalidLaunch"):
            continue
        kernels = msgspec.json.encode(capture["send"]["kernels"])
        text = msgspec.json.encode(sent["launch"])
        (answer,) = selector.ask_texts(("vector", sent["capture"]), kernels, len(capture["send"]["kernels"]), [text])
        if said := _unequal(line["expect"], answer):
            unequal.append(f"{capture['why']}: launch {sent['id']}: {said}")
    return unequal


def _unequal(expected: Json, answer: Reply | Fault | Unasked) -> str:
    if isinstance(answer, Reply):
        return difference(msgspec.convert(expected, Reply), answer)
    return str(answer) if isinstance(answer, Fault) else "not asked: too many faults"
