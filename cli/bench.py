"""`foldproof bench`: the table of docs/performance.md, measured here."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import click
from foldproof.cli.ui import steps
from foldproof.props.bench import (
    QUICK,
    Built,
    Sizes,
    batch_rows,
    campaign_rows,
    driver_rows,
    exhaust_rows,
    machine,
    markdown,
)

EXIT_NOT_RUN = 3
BUILD = Path(__file__).resolve().parent.parent / "selectors" / "zig" / "build.py"


@click.command(epilog="Example: foldproof bench --quick")
@click.option("--quick", is_flag=True, help="Little work each: whether it runs, not how fast.")
def bench(quick: bool) -> int:
    """Print rates of the batch reference and the drivers, and the time to find a planted fault and to exhaust a scope.

    The selector is the Zig one of the repository, built here; without it, or without the package ziglang, only the
    batch reference is measured, and the exit code is 3.
    """
    sizes = QUICK if quick else Sizes()
    click.echo(f"{machine()}\n")
    with tempfile.TemporaryDirectory() as folder, steps() as shown:
        shown.step("bench", 4)
        rows = list(batch_rows(sizes))
        shown.at(1, "selectors")
        built, why = _built(Path(folder))
        if built is not None:
            for done, group in enumerate((driver_rows, campaign_rows, exhaust_rows), 2):
                rows += group(built, sizes)
                shown.at(done)
        shown.close()
    click.echo(markdown(rows))
    if built is None:
        click.echo(f"\nnot run: drivers, campaign and exhaustive scope ({why})")
    return 0 if built is not None else EXIT_NOT_RUN


def _built(folder: Path) -> tuple[Built | None, str]:
    """The Zig selector, sound and with the fault planted; else why there is none."""
    if not BUILD.is_file():
        return None, "the sources of the Zig selector are in the repository, not in the package"
    if importlib.util.find_spec("ziglang") is None:
        return None, "needs the package ziglang"
    for bug in ("none", "single-guard"):
        command = [sys.executable, str(BUILD), "--out", str(folder / bug), "--bug", bug]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own build)
        if done.returncode:
            return None, f"the Zig selector does not build: {done.stderr.strip()[:200]}"
    good, bad = folder / "none", folder / "single-guard"
    files = ("three-pass", "libthree_pass.so")
    return Built(good / files[0], good / files[1], bad / files[0], bad / files[1]), ""
