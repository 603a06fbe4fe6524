"""`foldproof select`: the reference's answers to a case file, one JSON line a case."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from foldproof.impl.cases import answers, read_cases
from foldproof.impl.policy import load_policy


@click.command(
    epilog="Example: foldproof select --cases foldproof-report/cases/T01-single-guard.json --policy single-guard"
)
@click.option(
    "--cases",
    "cases_file",
    required=True,
    type=click.Path(path_type=Path),
    help="A JSON list or NDJSON, plain or gzip.",
)
@click.option("--policy", default="three-pass", show_default=True, help="A policy of the zoo, or a TOML file.")
def select(cases_file: Path, policy: str) -> None:
    """Answer each case of FILE with one JSON line.

    An invalid capture or launch inside a case is that case's answer; exit 2 only when the file cannot be read.
    """
    rules = load_policy(policy)
    values = read_cases(cases_file)
    for row in answers(values, rules):
        click.echo(msgspec.json.encode(row))
