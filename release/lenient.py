"""Reading a capture to list its faults: what the loader would refuse at the first is a finding here, and read on.

Every entry ends as the variant that is left of it when its faulty fields, params and constants are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from foldproof.impl.capture import Capture, Const, Param, Variant, capture_file, converted, is_ending
from foldproof.impl.errors import InvalidCapture
from foldproof.impl.files import is_below
from foldproof.impl.strictjson import RepeatedKey, parse, read_bytes, whole
from foldproof.release.findings import Finding, finding

MOST_BYTES = 32 << 20
"""A shipped capture of 343 variants has 0.3 MB; this much JSON takes half a GB when it is read."""
MOST_REPEATS = 10_000
"""Repeated keys and broken texts that are told one by one: a file made for it has half a million."""
_PLACEHOLDERS = {"fn": "?", "hash": "?", "num_warps": 4, "params": [], "consts": {}}
_MISSING = re.compile(r"missing required field `(\w+)`")
_FIELD = re.compile(r"^\$\.(\w+)")


class Entry(msgspec.Struct, frozen=True):
    """One entry of `kernels[]`: its JSON path, its JSON value, and the variant that could be read of it."""

    index: int
    raw: Any
    variant: Variant

    @property
    def path(self) -> str:
        """The JSON path of the entry."""
        return f"$.kernels[{self.index}]"


class Lenient(msgspec.Struct, frozen=True):
    """A capture as far as it can be read, and what could not be."""

    file: Path
    top: dict[str, Any]
    entries: tuple[Entry, ...]
    findings: tuple[Finding, ...]

    @property
    def folder(self) -> Path:
        """Where the cubins lie, by `bin_dir`; the capture's own folder where that is no plain path."""
        name = self.top.get("bin_dir", "cubins")
        return self.file.parent / name if isinstance(name, str) and is_below(name) else self.file.parent

    def cubin(self, entry: Entry) -> Path:
        """The file of the entry's cubin."""
        ending = self.top.get("bin_ext", ".cubin")
        plain = isinstance(ending, str) and is_ending(ending)
        return self.folder / f"{entry.variant.hash}{ending if plain else '.cubin'}"


def read_leniently(path: Path) -> Lenient:
    """The capture of a folder or an `aot.json`. Raises `InvalidCapture` only for what is no JSON at all."""
    file = capture_file(path)
    value = parse(read_bytes(file, InvalidCapture, MOST_BYTES), str(file), InvalidCapture)
    repeats = _repeats(value, "$")
    found = list(islice(repeats, MOST_REPEATS))
    if next(repeats, None) is not None:
        found.append(finding("L001", "$", f"more than {MOST_REPEATS} keys and texts are faulty; these are the first"))
    value = whole(value)
    if not isinstance(value, dict) or not isinstance(value.get("kernels"), list):
        why = "the value is no object" if not isinstance(value, dict) else "kernels is no list"
        return Lenient(file, {}, (), (*found, finding("L001", "$", why)))
    if not value["kernels"]:
        found.append(finding("L001", "$.kernels", "kernels is empty: there is nothing to select from"))
    entries = []
    for index, raw in enumerate(value["kernels"]):
        variant, faults = _variant(raw, f"$.kernels[{index}]")
        found += faults
        if variant is not None:
            entries.append(Entry(index, raw, variant))
    top = {name: item for name, item in value.items() if name != "kernels"}
    found += _top_faults(top)
    return Lenient(file, top, tuple(entries), tuple(found))


def _top_faults(top: dict[str, Any]) -> Iterator[Finding]:
    """What the loader says of the fields beside `kernels`, asked with one entry that is sound."""
    sound = {"fn": "k", "hash": "h", "num_warps": 1, "params": [], "consts": {}}
    for name in ("bin_dir", "bin_ext"):
        if name in top:
            try:
                converted({"kernels": [sound], name: top[name]}, Capture, InvalidCapture)
            except InvalidCapture as problem:
                yield finding("L003", f"$.{name}", problem.why)


def _repeats(value: Any, path: str) -> Iterator[Finding]:
    if isinstance(value, dict):
        if isinstance(value, RepeatedKey):
            yield finding("L002", f"{path}.{whole(value.key)}", f"the key {value.key!r} is repeated")
        for key, item in value.items():
            if _is_half(key):
                yield finding("L003", path, "a key holds half of a surrogate pair")
            yield from _repeats(item, f"{path}.{whole(key)}")
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _repeats(item, f"{path}[{position}]")
    elif isinstance(value, str) and _is_half(value):
        yield finding("L003", path, "text holds half of a surrogate pair")


def _is_half(text: str) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in text) if not text.isascii() else False


def _variant(raw: Any, path: str) -> tuple[Variant | None, list[Finding]]:
    """The variant that is left of an entry, and its faults; None for an entry that is no object."""
    if not isinstance(raw, dict):
        return None, [finding("L003", path, f"an entry is an object, not {type(raw).__name__}")]
    params, found = _params(raw.get("params", []), path)
    consts, more = _consts(raw.get("consts", {}), path)
    found += more
    for name in [n for n in consts if n in params]:
        found.append(finding("L101", f"{path}.consts.{name}", f"{name!r} is both a param and a const"))
        del consts[name]
    fields = {name: item for name, item in raw.items() if name not in ("params", "consts")}
    for name in ("params", "consts"):
        if name not in raw:
            found.append(finding("L003", path, f"the required field {name!r} is missing"))
    variant, problems = _scalars(fields, path)
    found += problems
    return msgspec.structs.replace(variant, params=tuple(params.values()), consts=consts), found


def _params(raw: Any, path: str) -> tuple[dict[str, Param], list[Finding]]:
    params: dict[str, Param] = {}
    found: list[Finding] = []
    if not isinstance(raw, list):
        return params, [finding("L003", f"{path}.params", f"is a list, not {type(raw).__name__}")]
    for position, item in enumerate(raw):
        place = f"{path}.params[{position}]"
        known = item
        if isinstance(item, dict):
            unknown = sorted(set(item) - set(Param.__struct_fields__))
            found += [finding("L004", f"{place}.{n}", f"the param {item.get('name')!r} has {n!r}") for n in unknown]
            known = {name: value for name, value in item.items() if name in Param.__struct_fields__}
        try:
            param = converted(known, Param, InvalidCapture)
        except InvalidCapture as problem:
            rule = "L107" if problem.why.startswith("annotated") else "L003"
            found.append(finding(rule, _under(place, problem.where), problem.why))
            continue
        if param.name in params:
            found.append(finding("L102", f"{place}.name", f"two params are named {param.name!r}"))
        params.setdefault(param.name, param)
    return params, found


def _consts(raw: Any, path: str) -> tuple[dict[str, Const], list[Finding]]:
    consts: dict[str, Const] = {}
    found: list[Finding] = []
    if not isinstance(raw, dict):
        return consts, [finding("L003", f"{path}.consts", f"is an object, not {type(raw).__name__}")]
    for name, item in raw.items():
        try:
            consts[name] = converted(item, Const, InvalidCapture)
        except InvalidCapture as problem:
            found.append(finding("L003", _under(f"{path}.consts.{name}", problem.where), problem.why))
    return consts, found


def _scalars(fields: dict[str, Any], path: str) -> tuple[Variant, list[Finding]]:
    """The other fields, each faulty one reported and then replaced or left out until the rest can be read."""
    found: list[Finding] = []
    given = {**fields, "params": [], "consts": {}}
    while True:
        try:
            return converted(given, Variant, InvalidCapture), found
        except InvalidCapture as problem:
            if match := _MISSING.search(problem.why):
                name, why = match[1], f"the required field {match[1]!r} is missing"
            elif match := _FIELD.match(problem.where):
                name, why = match[1], problem.why
            else:
                name, why = "hash", problem.why
            rule = "L005" if "plain file name" in why else "L003"
            where = path if name not in given else f"{path}.{name}"
            found.append(finding(rule, where, why))
            given.pop(name, None)
            if name in _PLACEHOLDERS:
                given[name] = _PLACEHOLDERS[name]


def _under(path: str, place: str) -> str:
    return path + place.removeprefix("$")
