"""Renderers: from a report to the bytes of its files. Each is a pure function; two calls give equal bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from foldproof.reports.evidence import FOLDER
from foldproof.reports.obligations import FORMATS
from foldproof.reports.view import Report

FILES: dict[str, tuple[str, str, str]] = {
    "receipt": ("receipt.md", "receipt", "receipt"),
    "summary": ("summary.md", "summary", "summary"),
    "html": ("report.html", "html", "html"),
    "json": ("result.json", "result", "result"),
    "junit": ("junit.xml", "junit", "junit"),
    "ctrf": ("ctrf.json", "ctrf", "ctrf"),
    "sarif": ("result.sarif", "sarif", "sarif"),
    "codequality": ("gl-code-quality.json", "annotations", "code_quality"),
    "intoto": ("attestation.intoto.json", "attestation", "attestation"),
}
"""Format -> file, module of this package, function in it. "cases" and "csv" are of more than the report or one file."""
LOCATED = ("sarif", "codequality")
"""Formats that name files as a host of repositories does, so they need to know where the evidence folder is."""
ReadFile = Callable[[str], bytes]
"""The bytes of a file of the evidence folder, by its path below it."""


def render(report: Report, formats: Iterable[str], read: ReadFile, folder: str = FOLDER) -> dict[str, bytes]:
    """The files of the formats, by path. A renderer is imported when it is asked for: plots take a second.

    `folder` is the evidence folder as a path from the root of the repository.
    """
    made: dict[str, bytes] = {}
    for name in FORMATS:
        if name not in set(formats):
            continue
        if name == "cases":
            made["cases.ndjson.gz"] = _function("cases", "cases")(report, read)
        elif name == "csv":
            made.update(_function("table_files", "table_files")(report))
        else:
            file, module, function = FILES[name]
            content = _function(module, function)(report, *([folder] if name in LOCATED else []))
            made[file] = content.encode() if isinstance(content, str) else content
    return made


def _function(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), name)
    return found
