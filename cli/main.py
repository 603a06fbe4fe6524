"""The entry point: the verbs, and one place where errors become one line and an exit code."""

from __future__ import annotations

import os
import sys

import click
from foldproof import __version__
from foldproof.cli.bench import bench
from foldproof.cli.bits import bits
from foldproof.cli.capture import capture
from foldproof.cli.check import check
from foldproof.cli.coverage import coverage
from foldproof.cli.diff import diff
from foldproof.cli.exhaust import exhaust
from foldproof.cli.explain import explain
from foldproof.cli.fuzz import fuzz
from foldproof.cli.lint import lint
from foldproof.cli.merge import merge
from foldproof.cli.policies import policies
from foldproof.cli.prove import prove
from foldproof.cli.replay import replay
from foldproof.cli.report import report
from foldproof.cli.select import select
from foldproof.cli.serve import serve
from foldproof.cli.watch import watch
from foldproof.impl.errors import FoldproofError

EXIT_OK, EXIT_REFUTED, EXIT_BAD_INPUT, EXIT_UNDECIDED = 0, 1, 2, 3


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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


for _verb in (
    check,
    prove,
    explain,
    policies,
    select,
    capture,
    bits,
    replay,
    report,
    fuzz,
    exhaust,
    serve,
    bench,
    lint,
    coverage,
    diff,
    watch,
    merge,
):
    cli.add_command(_verb)


def main() -> None:
    """Run the command; exit with its code, and with one line instead of a traceback for bad input."""
    try:
        code = cli.main(standalone_mode=False)
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
    sys.exit(code if isinstance(code, int) else EXIT_OK)


if __name__ == "__main__":
    main()
