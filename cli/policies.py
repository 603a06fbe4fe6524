"""`foldproof policies`: the zoo, one sentence each."""

from __future__ import annotations

import click
from foldproof.cli.ui import show_table
from foldproof.impl.policy import ZOO, zoo_policy


@click.command(epilog="Example: foldproof policies")
def policies() -> None:
    """List the policies of the zoo, what each does, and what it promises."""
    rows = [(p.name, p.summary, " ".join(p.promises)) for p in map(zoo_policy, ZOO)]
    show_table(("policy", "what it does", "promises"), rows)
