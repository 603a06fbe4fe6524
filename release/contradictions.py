"""Faults that one entry, or two entries side by side, show without asking any policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from foldproof.impl.capture import INT_TYPES, Param, Variant
from foldproof.impl.launch import Kind
from foldproof.release.findings import Finding, finding
from foldproof.release.lenient import Entry

LAUNCHABLE = frozenset((Kind.I32, Kind.I64, Kind.U64, Kind.U1, Kind.FP32))
"""Scalar types that some kind of arg has."""


def contradictions(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Switches that exclude each other, types that no arg has, scratch, hashes and identities that repeat."""
    for entry in entries:
        for position, param in enumerate(entry.variant.params):
            yield from _param(param, f"{entry.path}.params[{_raw_position(entry, param, position)}]")
        yield from _scratch(entry)
    yield from _repeated_hashes(entries)
    yield from _duplicates(entries)


def _raw_position(entry: Entry, param: Param, position: int) -> int:
    """Where the param stands in the file: params that could not be read are no part of the variant."""
    raw = entry.raw.get("params", [])
    places = (i for i, item in enumerate(raw) if isinstance(item, dict) and item.get("name") == param.name)
    return next(places, position)


def _param(param: Param, path: str) -> Iterator[Finding]:
    pointer = param.type.startswith("*")
    aligned = pointer or param.type in INT_TYPES
    if param.div16 and aligned and (param.nospec or param.noalign):
        switch = "nospec" if param.nospec else "noalign"
        yield finding("L103", f"{path}.div16", f"{param.name}: {param.type} is {switch} and div16")
    if param.div16 and not aligned:
        yield finding("L104", f"{path}.div16", f"{param.name}: {param.type} is div16")
    if param.range32 and not pointer:
        yield finding("L108", f"{path}.range32", f"{param.name}: {param.type} is range32")
    if not pointer and not param.annotated and param.type not in LAUNCHABLE:
        yield finding("L109", f"{path}.type", f"{param.name}: no arg is a {param.type}")


def _scratch(entry: Entry) -> Iterator[Finding]:
    for name in ("global_scratch", "profile_scratch"):
        size = getattr(entry.variant, name)
        if size:
            yield finding("L401", f"{entry.path}.{name}", f"{entry.variant.hash} needs {size} bytes of {name}")


def _repeated_hashes(entries: Sequence[Entry]) -> Iterator[Finding]:
    first: dict[str, Entry] = {}
    for entry in entries:
        mark = entry.variant.hash
        if mark != "?" and first.setdefault(mark, entry) is not entry:
            what = f"{first[mark].path} and {entry.path} share the hash {mark!r}"
            yield finding("L105", f"{entry.path}.hash", what)


def identity(variant: Variant) -> tuple[Any, ...]:
    """What a variant is, hash aside: function, params by name, constants, launch options and facts, source."""
    params = frozenset(variant.params)
    facts = (variant.num_ctas, variant.pdl)
    return (
        variant.fn,
        params,
        tuple(sorted((n, c.kind, c.value) for n, c in variant.consts.items())),
        variant.options,
        facts,
        variant.source,
    )


def _duplicates(entries: Sequence[Entry]) -> Iterator[Finding]:
    first: dict[tuple[Any, ...], Entry] = {}
    for entry in entries:
        other = first.setdefault(identity(entry.variant), entry)
        if other is not entry and other.variant.hash != entry.variant.hash:
            what = f"{other.variant.hash} ({other.path}) and {entry.variant.hash} are equal"
            yield finding("L106", entry.path, what)
