"""What the release verbs share: JSON output, its schema, and the one way in which text is cut to a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
import msgspec
from foldproof.cli.ui import say, show_table
from foldproof.impl.strictjson import json_lines

F = TypeVar("F", bound=Callable[..., Any])
MOST_ROWS = 40


def schema_option(kind: type[msgspec.Struct]) -> Callable[[F], F]:
    """The option `--schema`: print the JSON Schema of the verb's JSON output, and stop."""

    def show(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            say_json(msgspec.json.schema(kind))
            context.exit()

    text = "Print the JSON Schema of --format json."
    return click.option("--schema", is_flag=True, is_eager=True, expose_value=False, callback=show, help=text)


def say_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(json_lines(value))


def show_some(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str, most: int = MOST_ROWS) -> None:
    """A table of the first rows, and how many more there are; nothing for none."""
    if rows:
        show_table(columns, rows[:most], title=title)
    if len(rows) > most:
        say(f"and {len(rows) - most} more; --format json has all")
