"""Captures joined into one: duplicates by content, collisions refused or namespaced, order canonical, and the proof.

The candidate order of the result is by function, then hash, as in shipped captures; where a policy looks at the order
this may change a pick, and a constant that a launch leaves free may now mean another capture's variant. So the
result is held against each input by `changes.verdicts`: nothing changes unless it is reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from foldproof import __version__
from foldproof.impl.capture import Capture, Variant, capture_file, capture_from, load_capture
from foldproof.impl.errors import InvalidCapture
from foldproof.impl.files import digest_of
from foldproof.impl.policy import Policy
from foldproof.impl.strictjson import read_document
from foldproof.release.changes import FunctionVerdict, verdicts
from foldproof.release.contradictions import identity

Mode = Literal["refuse", "namespace"]
SEPARATOR = "::"
SCHEMA_VERSION = 1


class Collision(msgspec.Struct, frozen=True):
    """Two entries that cannot both stand as they are: why, which, and what was done about it ("" where refused)."""

    what: str
    fn: str
    first: str
    second: str
    done: str


class InputVerdict(msgspec.Struct, frozen=True):
    """What became of one input: its entries, those that another input had already, and the proof for its functions."""

    capture: str
    variants: int
    duplicates: int
    functions: tuple[FunctionVerdict, ...]

    @property
    def is_kept(self) -> bool:
        """Whether it is proved that every launch that the input served gets the same variant."""
        return all(function.proved for function in self.functions)


class MergeResult(msgspec.Struct, frozen=True):
    """What `foldproof merge` found; `written` says whether the result is in `out`."""

    schema_version: int
    tool: str
    out: str
    policy: str
    variants: int
    collisions: tuple[Collision, ...]
    inputs: tuple[InputVerdict, ...]
    written: bool


class Entry(msgspec.Struct, frozen=True):
    """An entry of an input: its JSON, the variant, its cubin if it is there, and the number of the input."""

    raw: dict[str, Any]
    variant: Variant
    cubin: Path | None
    digest: str | None
    source: int


class Input(msgspec.Struct, frozen=True):
    """One capture to be joined; `label` is a short name of its own, for namespaces."""

    path: Path
    label: str
    capture: Capture
    entries: tuple[Entry, ...]


class Merged(msgspec.Struct, frozen=True):
    """The joined capture, and for each input how each of its variants is called in it: (function, hash)."""

    entries: tuple[Entry, ...]
    top: dict[str, Any]
    collisions: tuple[Collision, ...]
    names: tuple[dict[tuple[str, str], tuple[str, str]], ...]
    duplicates: tuple[int, ...]


def read_inputs(paths: Sequence[Path]) -> list[Input]:
    """The captures to join. Raises `InvalidCapture`, also where they are for different targets."""
    inputs = [_input(path, number) for number, path in enumerate(paths)]
    targets = {str(one.capture.target): one for one in inputs if one.capture.target is not None}
    if len(targets) > 1:
        first, second = list(targets.values())[:2]
        why = f"is for {second.capture.target}, {first.path} for {first.capture.target}"
        raise InvalidCapture(why, where=str(second.path), fix="join captures of one target")
    return inputs


def _input(path: Path, number: int) -> Input:
    capture, file = load_capture(path), capture_file(path)
    raw = read_document(file, InvalidCapture)
    folder = file.parent / capture.bin_dir
    entries = []
    for value, variant in zip(raw["kernels"], capture.kernels, strict=True):
        cubin = folder / f"{variant.hash}{capture.bin_ext}"
        there = cubin.is_file()
        digest = digest_of(cubin, InvalidCapture) if there else None
        entries.append(Entry(value, variant, cubin if there else None, digest, number))
    name = path.name if path.suffix != ".json" else file.parent.name
    label = re.sub(r"[^\w.-]", "_", name) or "capture"
    return Input(path, f"{label}-{number + 1}", capture, tuple(entries))


def merged(inputs: Sequence[Input], mode: Mode) -> Merged:
    """The inputs joined, collisions named. With "namespace", the later of two that collide is renamed."""
    kept: list[Entry] = []
    collisions: list[Collision] = []
    names: list[dict[tuple[str, str], tuple[str, str]]] = []
    duplicates = []
    for one in inputs:
        renamed = _renamed_functions(kept, one, mode, collisions)
        called: dict[tuple[str, str], tuple[str, str]] = {}
        twice = 0
        for entry in one.entries:
            own = entry.variant.fn, entry.variant.hash
            entry = _called(entry, renamed.get(own[0], own[0]), own[1])  # noqa: PLW2901 (the entry as it is to be)
            same = next((k for k in kept if _is_duplicate(k, entry)), None)
            if same is not None:
                called[own] = same.variant.fn, same.variant.hash
                twice += 1
                continue
            entry = _with_own_hash(kept, entry, one.label, mode, collisions)  # noqa: PLW2901 (as above)
            kept.append(entry)
            called[own] = entry.variant.fn, entry.variant.hash
        names.append(called)
        duplicates.append(twice)
    kept.sort(key=lambda entry: (entry.variant.fn, entry.variant.hash))
    target = next((one.capture.target for one in inputs if one.capture.target is not None), None)
    top = {"generator": f"foldproof {__version__} merge", "bin_dir": "cubins", "bin_ext": ".cubin"}
    return Merged(
        tuple(kept),
        top | ({"target": target} if target is not None else {}),
        tuple(collisions),
        tuple(names),
        tuple(duplicates),
    )


def _renamed_functions(kept: Sequence[Entry], one: Input, mode: Mode, collisions: list[Collision]) -> dict[str, str]:
    """Functions of an input that are another kernel than the one of that name so far: other source, or other args."""
    renamed = {}
    for fn in one.capture.functions:
        theirs = [entry.variant for entry in kept if entry.variant.fn == fn]
        own = [variant for variant in one.capture.kernels if variant.fn == fn]
        if not theirs or not (why := _other_kernel(theirs, own)):
            continue
        new = f"{one.label}{SEPARATOR}{fn}"
        done = f"called {new}" if mode == "namespace" else ""
        collisions.append(Collision(why, fn, theirs[0].hash, own[0].hash, done))
        renamed[fn] = new if mode == "namespace" else fn
    return renamed


def _other_kernel(theirs: Sequence[Variant], own: Sequence[Variant]) -> str:
    sources = [{v.source for v in side if v.source is not None} for side in (theirs, own)]
    if all(sources) and sources[0] != sources[1]:
        return "one function name, two sources"
    known = [{frozenset([*(p.name for p in v.params), *v.consts]) for v in side} for side in (theirs, own)]
    if not all(sources) and not known[0] & known[1]:
        return "one function name, two sets of names, and no source to tell them apart"
    return ""


def _is_duplicate(one: Entry, other: Entry) -> bool:
    """Equal in what it is, and in its code: by digest where both are here, else by hash."""
    if identity(one.variant) != identity(other.variant):
        return False
    if one.digest is not None and other.digest is not None:
        return one.digest == other.digest
    return one.variant.hash == other.variant.hash


def _with_own_hash(kept: Sequence[Entry], entry: Entry, label: str, mode: Mode, collisions: list[Collision]) -> Entry:
    """The entry under a hash that no other has. Equal variants of other code collide too: chance would decide."""
    mark, fn = entry.variant.hash, entry.variant.fn
    twin = next((k for k in kept if identity(k.variant) == identity(entry.variant)), None)
    if twin is not None:
        collisions.append(Collision("equal variants, other code", fn, twin.variant.hash, mark, ""))
    if all(k.variant.hash != mark for k in kept):
        return entry
    new = f"{mark}-{label}"
    if twin is None:
        done = f"called {new}" if mode == "namespace" else ""
        collisions.append(Collision("one hash, two variants", fn, mark, mark, done))
    return _called(entry, fn, new)


def _called(entry: Entry, fn: str, mark: str) -> Entry:
    if (entry.variant.fn, entry.variant.hash) == (fn, mark):
        return entry
    # The symbol in the cubin keeps its name, whatever the function is called in the capture.
    name = entry.variant.name or entry.variant.fn
    raw = entry.raw | {"fn": fn, "hash": mark, "name": name}
    variant = msgspec.structs.replace(entry.variant, fn=fn, hash=mark, name=name)
    return msgspec.structs.replace(entry, raw=raw, variant=variant)


def joined_capture(found: Merged) -> Capture:
    """The joined capture, as the loader would read it."""
    return capture_from(document(found))


def document(found: Merged) -> dict[str, Any]:
    """The `aot.json` of the joined capture."""
    return found.top | {"kernels": [entry.raw for entry in found.entries]}


def input_verdicts(inputs: Sequence[Input], found: Merged, policy: Policy) -> list[InputVerdict]:
    """For each input the proof that the result selects for its launches what the input selected, or what changes.

    A function that was renamed is held against its new name: launches of it name that.
    """
    result = joined_capture(found)
    rows = []
    for one, called, twice in zip(inputs, found.names, found.duplicates, strict=True):
        renamed = {old[0]: new[0] for old, new in called.items()}
        before = tuple(msgspec.structs.replace(v, fn=renamed[v.fn]) for v in one.capture.kernels)
        marks = {(renamed[v.fn], v.hash): called[v.fn, v.hash] for v in one.capture.kernels}

        def same(old: Variant, new: Variant, marks: dict[tuple[str, str], tuple[str, str]] = marks) -> bool:
            return marks[old.fn, old.hash] == (new.fn, new.hash)

        shown = verdicts(Capture(before), result, policy, same)
        rows.append(InputVerdict(str(one.path), len(before), twice, tuple(shown)))
    return rows
