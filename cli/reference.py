"""The reference of the command line as Markdown, from the commands themselves; `docs/reference/cli.md`.

python -m foldproof.cli.reference > docs/reference/cli.md
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click
from foldproof.cli.main import VERBS, cli

KEEP = "\b"
"""What click reads as: keep the lines of this paragraph."""
HEAD = """# The command line

Every verb and option. This page is written by `python -m foldproof.cli.reference`, and a test compares it with the
commands. `--help` after a verb says the same on a terminal.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | every promise holds, nothing disagrees, there is nothing to look at |
| 1 | a promise is refuted, something disagrees, or there are findings |
| 2 | bad input or usage: one line on standard error that says what, where and what to do; nothing is half written |
| 3 | undecided, or asked for and not run: a solver gave up, there is no device, the selector does not start |
| 130 | stopped from the keyboard |
| 141 | whatever reads the output has gone |

A refuted theorem that the policy does not promise is a finding in the report, and no failure. Where 1 or 3 means more
than this for a verb, the verb says so below.
"""


def reference() -> str:
    """The text of the page."""
    return "\n".join([HEAD, *_verbs()])


def _verbs() -> Iterator[str]:
    top = click.Context(cli, info_name="foldproof")
    for name in VERBS:
        verb = cli.get_command(top, name)
        if isinstance(verb, click.Group):
            inner = click.Context(verb, info_name=name, parent=top)
            yield f"## {name}\n\n{_prose(verb.help)}\n"
            yield from (_verb(command, inner, "###", f"{name} {sub}") for sub, command in sorted(verb.commands.items()))
        elif verb is not None:
            yield _verb(verb, top, "##", name)


def _verb(verb: click.Command, parent: click.Context, heading: str, title: str) -> str:
    context = click.Context(verb, info_name=verb.name, parent=parent)
    usage = " ".join(verb.collect_usage_pieces(context))
    parts = [f"{heading} {title}", f"```text\n{context.command_path} {usage}\n```", _prose(verb.help)]
    options = [option for option in verb.params if isinstance(option, click.Option) and not option.hidden]
    if options:
        rows = [_row(option, context) for option in options]
        parts.append("\n".join(["| option | meaning |", "| --- | --- |", *rows]))
    if verb.epilog:
        parts.append(_examples(verb.epilog))
    return "\n\n".join(parts) + "\n"


def _row(option: click.Option, context: click.Context) -> str:
    names, meaning = option.get_help_record(context) or ("", "")
    return f"| `{_cell(names)}` | {_cell(meaning)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _prose(text: str | None) -> str:
    """A help text as paragraphs; one whose lines click must keep becomes a block."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(_kept(p) if p.startswith(KEEP) else _escaped(p) for p in paragraphs)


def _kept(paragraph: str) -> str:
    lines = paragraph.removeprefix(KEEP).strip("\n")
    return f"```text\n{lines}\n```"


def _escaped(paragraph: str) -> str:
    return re.sub(r"([<>*_])", r"\\\1", paragraph)


def _examples(epilog: str) -> str:
    lines = [line.strip() for line in inspect.cleandoc(epilog).replace(KEEP, "").splitlines() if line.strip()]
    commands = [line.removeprefix("Example:").strip() for line in lines if not line.startswith("Examples:")]
    return "```text\n" + "\n".join(commands) + "\n```"


if __name__ == "__main__":
    click.echo(reference(), nl=False)
