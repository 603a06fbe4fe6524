"""`foldproof.toml`: what a release owes, as the maintainer wrote it down; and the obligations that follow from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from foldproof.impl.errors import FoldproofError, one_line
from foldproof.impl.tomlfile import toml_text
from msgspec import Meta

FILE = "foldproof.toml"
FORMATS = ("receipt", "summary", "html", "json", "junit", "ctrf", "sarif", "codequality", "intoto", "cases", "csv")
"""The formats of a report, in the order that the help has them."""
DOMAINS = ("every bit pattern", "no NaN", "finite")
SYMBOLIC = "symbolic"
"""In `devices`: symbolic replay, which needs none."""
Said = Annotated[str, Meta(min_length=1)]
"""A name or a path: an empty one is a typing error, and would fit every device."""
_FIX = "see docs/reference/evidence.md, or start from foldproof init"


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all tables have in common: an unknown key is refused, so that a typing error owes nothing silently."""


class PolicyTable(Table, frozen=True):
    """`name`: a policy of the zoo, or a TOML file."""

    name: Said = "three-pass"


class ProveTable(Table, frozen=True):
    """`theorems`: ids, "promised" for those of the policy, or "all"."""

    theorems: tuple[Said, ...] = ("promised",)


class FuzzTable(Table, frozen=True):
    """`selector`: a command or a library; at least `seconds` of campaign are owed, from `seed`."""

    selector: Said
    seconds: Annotated[float, Meta(gt=0, le=31_536_000)] = 60.0
    seed: int = 0


class CaptureTable(Table, frozen=True):
    """`path` of a capture; `launches` to decide, by default derived from its variants."""

    path: Said
    launches: str = ""


class BitsTable(Table, frozen=True):
    """Which byte verdicts are owed: for `pairs` ("interchangeable", or lists of two hashes), domains and devices.

    `must`: "judged" (each pair has a verdict) or "equal" (and each verdict is equal). A device is a part of its name,
    such as "H200", or "symbolic".
    """

    pairs: Literal["interchangeable"] | tuple[tuple[str, str], ...] = "interchangeable"
    domains: tuple[Literal["every bit pattern", "no NaN", "finite"], ...] = ("finite",)
    devices: tuple[Said, ...] = (SYMBOLIC,)
    must: Literal["judged", "equal"] = "judged"


class ScenariosTable(Table, frozen=True):
    """Devices on which the scenarios must have run."""

    devices: tuple[Said, ...]


class ReportTable(Table, frozen=True):
    """`formats` that a report is written in, by default all."""

    formats: tuple[
        Literal[
            "receipt", "summary", "html", "json", "junit", "ctrf", "sarif", "codequality", "intoto", "cases", "csv"
        ],
        ...,
    ] = FORMATS  # type: ignore[assignment]


class Config(Table, frozen=True):
    """The whole of `foldproof.toml`. A table that is absent owes nothing, except `[policy]` and `[prove]`."""

    policy: PolicyTable = PolicyTable()
    prove: ProveTable = ProveTable()
    fuzz: FuzzTable | None = None
    capture: tuple[CaptureTable, ...] = ()
    bits: BitsTable | None = None
    scenarios: ScenariosTable | None = None
    report: ReportTable = ReportTable()


def load_config(file: Path) -> Config:
    """The obligations that a file states. Raises `FoldproofError` with the place of what is wrong."""
    text = toml_text(file)
    try:
        return msgspec.toml.decode(text, type=Config)
    except msgspec.ValidationError as problem:
        said = str(problem)
        why, mark, place = said.rpartition(" - at `")
        # A fault of the whole file has no place in msgspec's words.
        why, place = (why, place.rstrip("`")) if mark else (said, "$")
        raise FoldproofError(why, where=f"{file}: {place}", fix=_FIX) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        raise FoldproofError(f"is not TOML: {one_line(str(problem))}", where=str(file), fix=_FIX) from None


def schema() -> dict[str, Any]:
    """The JSON Schema of the file's value."""
    made: dict[str, Any] = msgspec.json.schema(Config)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": FILE, **made}
