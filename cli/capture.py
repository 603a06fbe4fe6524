"""`foldproof capture`: building the bundled capture from its kernels."""

from __future__ import annotations

from pathlib import Path

import click
from foldproof.cli.ui import say, steps


@click.group()
def capture() -> None:
    """Build and verify captures of foldproof's own kernels."""


@capture.command(epilog="Example: foldproof capture build --out /tmp/capture --only _row_sum")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="A folder that does not exist yet, or is empty."
)
@click.option("--only", multiple=True, metavar="KERNEL", help="Build this kernel alone; may be repeated.")
def build(out: Path, only: tuple[str, ...]) -> None:
    """Compile the kernel corpus with Triton 3.9 for sm_90, on a CPU (needs the extra foldproof[triton])."""
    from foldproof.gpu.build import build_capture  # noqa: PLC0415 (the corpus is needed by this verb alone)

    with steps() as shown:
        shown.step("compile", 1)
        summary = build_capture(
            out, only=only or None, progress=lambda done, total, name: shown.at(done / max(total, 1), name)
        )
        shown.close()
    say(f"{summary.variants} variants of {summary.kernels} kernels and {summary.launches} launches in {out}")


@capture.command(epilog="Example: foldproof capture verify CAPTURE")
@click.argument("folder", type=click.Path(path_type=Path))
def verify(folder: Path) -> int:
    """Recompute every digest of a capture with a manifest; exit 1 and name each file that differs."""
    from foldproof.gpu.bundle import verify_bundle  # noqa: PLC0415 (as above)

    faults = verify_bundle(folder)
    for fault in faults:
        say(fault, style="red")
    if not faults:
        say(f"{folder}: every digest matches its manifest")
    return int(bool(faults))
