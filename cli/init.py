"""`foldproof init`: a commented foldproof.toml to start from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click
from foldproof.cli.ui import say
from foldproof.impl.errors import FoldproofError
from foldproof.reports.obligations import FILE
from foldproof.reports.write import write_folder


@click.command(epilog="Example: foldproof init")
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
def init(folder: Path) -> int:
    """Write foldproof.toml, which says what a release owes: each table with its comment, ready to edit.

    FOLDER is where it goes, by default the current one. A file that is there already is never overwritten.
    """
    if (folder / FILE).exists():
        raise FoldproofError("is there already", where=str(folder / FILE), fix="edit it, or remove it first")
    text = (resources.files("foldproof.reports") / "templates" / FILE).read_bytes()
    write_folder(folder, {FILE: text})
    say(f"wrote {folder / FILE}")
    say("next: edit it, then foldproof check && foldproof report")
    return 0
