"""From an evidence folder to a report, and from a report to its files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from foldproof.cli.at_hand import Scene
from foldproof.cli.recording import started
from foldproof.reports.recorder import recording
from foldproof.reports.render import render
from foldproof.reports.store import damage, raw, read
from foldproof.reports.view import Report, build
from foldproof.reports.write import write_folder


def rendered(folder: Path, scene: Scene) -> Report:
    """The report of a folder's records. Raises `FoldproofError` where there are none."""
    stored, damaged = read(folder)
    at_hand = replace(scene.at_hand, folder=from_here(folder))
    return build(scene.config, stored, at_hand, scene.promises, [*damaged, *damage(folder, stored)])


def render_into(
    folder: Path, report: Report, formats: Iterable[str], command: str, out: Path | None = None
) -> list[str]:
    """Write the files of the formats below `out`; their paths.

    In the evidence folder itself, which is the default, a run of `report` records their digests.
    """
    files = render(report, formats, lambda path: raw(folder / path), from_here(folder))
    target = out or folder
    if target.resolve() == folder.resolve():
        with recording(folder, started("report", command)) as to:
            to.render(files)
            to.exit_code = report.exit_code
    else:
        write_folder(target, files)
    return list(files)


def from_here(folder: Path) -> str:
    """A folder as a path from the working directory, which is taken for the root of the repository."""
    absolute, here = folder.resolve(), Path.cwd().resolve()
    return (absolute.relative_to(here) if absolute.is_relative_to(here) else folder).as_posix()
