"""`foldproof serve`: the reference as a selector under test."""

from __future__ import annotations

import click
from foldproof.impl.external.serve import serve_stdio
from foldproof.impl.policy import load_policy


@click.command(epilog="Example: foldproof fuzz --selector 'foldproof serve --policy single-guard' --against three-pass")
@click.option("--policy", default="three-pass", show_default=True, help="A policy of the zoo, or a TOML file.")
def serve(policy: str) -> None:
    """Answer launches on standard input as the reference does: foldproof-selector/1, see docs/reference/protocol.md.

    Ends with the end of input. Exit 2 for a line that is no message.
    """
    serve_stdio(load_policy(policy))
