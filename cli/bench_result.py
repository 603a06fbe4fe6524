"""The result of `foldproof bench` as data: what bench.json holds, and how it is held against kept ratios."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from foldproof.cli.recording import versions
from foldproof.impl.errors import FoldproofError
from foldproof.props.bench import Row
from foldproof.props.measure import Grown, Measured, NotMeasured, Taken, ratios, regressions
from foldproof.reports.recorder import now

SCHEMA_VERSION = 1
Sizing = Literal["quick", "full"]
PEERS = ("crosshair-tool", "ziglang", "triton", "matplotlib")
"""Packages beside those of every run that a ratio depends on; one that is absent is left out."""


class Machine(msgspec.Struct, frozen=True):
    """Where and when: `load` is the load average over 1, 5 and 15 minutes at the start."""

    architecture: str
    cores: int
    load: tuple[float, float, float]
    started: str
    versions: dict[str, str]

    def __str__(self) -> str:
        load = ", ".join(f"{number:.1f}" for number in self.load)
        return f"{self.architecture}, {self.cores} cores, load {load}, Python {self.versions['python']}"


class Result(msgspec.Struct, frozen=True):
    """One run. `ratios` by name, more is better: the part that is worth keeping."""

    schema_version: int
    sizes: Sizing
    machine: Machine
    ratios: dict[str, float]
    measures: tuple[Measured, ...]
    curves: tuple[Grown, ...]
    rates: tuple[Row, ...]
    not_measured: tuple[NotMeasured, ...]


class Kept(msgspec.Struct, frozen=True):
    """Ratios to be held against, of a bench.json or of a file with these fields alone."""

    schema_version: int
    sizes: Sizing
    ratios: dict[str, Annotated[float, msgspec.Meta(gt=0)]]


class Compared(msgspec.Struct, frozen=True):
    """What holding says: a line a regression, the names that were kept and not measured, and the other way round."""

    worse: tuple[str, ...]
    unmeasured: tuple[str, ...]
    unkept: tuple[str, ...]


def machine() -> Machine:
    """This machine as it is."""
    found = versions()
    for name in PEERS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    cores = len(os.sched_getaffinity(0))
    return Machine(platform.machine(), cores, os.getloadavg(), now(), found)


def result(sizes: Sizing, on: Machine, taken: Sequence[Taken], rates: Sequence[Row]) -> Result:
    """The result of a run."""
    return Result(
        SCHEMA_VERSION,
        sizes,
        on,
        ratios(taken),
        tuple(one for one in taken if isinstance(one, Measured)),
        tuple(one for one in taken if isinstance(one, Grown)),
        tuple(rates),
        tuple(one for one in taken if isinstance(one, NotMeasured)),
    )


def as_json(of: Result) -> bytes:
    """The bytes of bench.json."""
    return msgspec.json.format(msgspec.json.encode(of), indent=1) + b"\n"


def read_kept(path: Path, sizes: Sizing) -> Kept:
    """The kept ratios. Raises `FoldproofError` for a file that is none, or that was measured at other sizes."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Kept)
    except OSError as problem:
        raise FoldproofError(f"cannot be read: {problem.strerror}", where=str(path), fix="name a bench.json") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise FoldproofError(f"holds no ratios: {problem}", where=str(path), fix="name a bench.json") from None
    if kept.schema_version != SCHEMA_VERSION:
        why = f"has schema version {kept.schema_version}; this foldproof reads {SCHEMA_VERSION}"
        raise FoldproofError(why, where=str(path), fix="measure and keep the ratios again")
    if kept.sizes != sizes:
        fix = "add --quick" if kept.sizes == "quick" else "leave out --quick"
        raise FoldproofError(
            f"was measured at the {kept.sizes} sizes, and this run is {sizes}", where=str(path), fix=fix
        )
    return kept


def held_against(now: dict[str, float], kept: Kept, sections: Sequence[str]) -> Compared:
    """The ratios of these sections against the kept ones."""
    owed = {name for name in kept.ratios if name.partition("/")[0] in sections}
    return Compared(
        tuple(regressions(now, kept.ratios)), tuple(sorted(owed - now.keys())), tuple(sorted(now.keys() - owed))
    )
