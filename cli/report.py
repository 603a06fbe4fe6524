"""`foldproof report`: a finished run again, with the device evidence that speaks of its capture."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from foldproof.cli.ui import say, show_table
from foldproof.impl.errors import FoldproofError
from foldproof.impl.strictjson import read_bytes
from foldproof.reports.markdown import headline
from foldproof.reports.markdown import report as rendered
from foldproof.reports.record import SCHEMA_VERSION, Result
from foldproof.reports.write import write_folder


@click.command(epilog="Example: foldproof report foldproof-report")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("foldproof-report"))
def report(folder: Path) -> int:
    """Show the verdict of a finished run and its device evidence, and write its report.md again."""
    file = folder / "result.json"
    try:
        result = msgspec.json.decode(read_bytes(file), type=Result)
    except (msgspec.DecodeError, msgspec.ValidationError) as problem:
        raise FoldproofError(f"is no result: {problem}", where=str(file), fix="run foldproof check again") from None
    if result.schema_version != SCHEMA_VERSION:
        why = f"has schema version {result.schema_version}; this foldproof reads {SCHEMA_VERSION}"
        raise FoldproofError(why, where=str(file), fix="run foldproof check again")
    write_folder(folder, {"report.md": rendered(result).encode()})
    rows = [
        (row.kind, row.device, row.date, row.state, "; ".join(f"{d}: {_words(w)}" for d, w in row.counts.items()))
        for row in result.evidence
    ]
    if rows:
        show_table(("evidence", "device", "date", "state", "pairs"), rows)
    for row in result.owed:
        say(f"owed: {row.what} ({row.settle})")
    say(headline(result), style="bold green" if result.exit_code == 0 else "bold red")
    return result.exit_code


def _words(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items())
