"""The entry point: the verbs, and one place where errors become one line and an exit code."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module

import click
from foldproof import __version__
from foldproof.impl.errors import FoldproofError

EXIT_OK, EXIT_REFUTED, EXIT_BAD_INPUT, EXIT_UNDECIDED = 0, 1, 2, 3


VERBS = (
    *("check", "prove", "explain", "policies", "select", "capture"),
    *("bits", "replay"),
    *("init", "report", "verify-receipt"),
    *("fuzz", "exhaust", "serve", "bench"),
    *("lint", "coverage", "diff", "watch", "merge"),
)
"""Each verb is the command of its name in the module of its name, in the order of the help."""


class Verbs(click.Group):
    """The verbs, each imported when it is asked for: solvers and plots take a second that `select` need not wait."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """The names, in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (as above)
        """The verb of that name."""
        if cmd_name not in VERBS:
            return None
        module = cmd_name.replace("-", "_")
        verb: click.Command = getattr(import_module(f"foldproof.cli.{module}"), module)
        return verb


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="foldproof")
def cli() -> None:
    """Proofs, counterexamples and byte verdicts for the code that picks a precompiled Triton kernel.

    \b
    Start here:
      foldproof check                         the bundled capture, policy three-pass
      foldproof check CAPTURE --policy NAME   your capture, your policy

    Exit codes: 0 every promise holds, 1 a promise is refuted or something disagrees, 2 bad input or usage,
    3 undecided or asked for and not run.
    """  # noqa: D301 (click reads the backspace as "keep these lines")


def main() -> None:
    """Run the command; exit with its code, and with one line instead of a traceback for bad input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the name of a file need not be UTF-8
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except FoldproofError as problem:
        click.echo(f"foldproof: {problem.code}: {problem}", err=True)
        sys.exit(EXIT_BAD_INPUT)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("foldproof: stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as problem:  # every file has an error of its own; what is left is the output itself
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        what = problem.filename or "standard output"
        click.echo(f"foldproof: {FoldproofError.code}: {what}: {problem.strerror or problem}", err=True)
        sys.exit(EXIT_BAD_INPUT)
    sys.exit(code if isinstance(code, int) else EXIT_OK)


if __name__ == "__main__":
    main()
