"""`foldproof merge`: several captures into one, with a proof that no selection changes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Literal

import click
import msgspec
from foldproof import __version__
from foldproof.cli.coverage import launch_text
from foldproof.cli.release import say_json, schema_option, show_some
from foldproof.cli.ui import say, show_table
from foldproof.impl.errors import FoldproofError
from foldproof.impl.policy import load_policy
from foldproof.release.merge import (
    SCHEMA_VERSION,
    Merged,
    MergeResult,
    document,
    input_verdicts,
    merged,
    read_inputs,
)

EXAMPLE = """\b
Examples:
  foldproof merge decode-capture prefill-capture --out joined
  foldproof merge a b --out joined --on-collision namespace --policy recommended"""


@click.command(epilog=EXAMPLE)
@click.argument("captures", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A folder that does not exist yet.")
@click.option("--policy", default="three-pass", show_default=True, help="The policy that the proof is about.")
@click.option(
    "--on-collision",
    type=click.Choice(["refuse", "namespace"]),
    default="refuse",
    show_default=True,
    help="Two kernels of one name, or two variants of one hash: refuse, or rename the later one.",
)
@click.option(
    "--accept-changes", is_flag=True, help="Write the result although some selections change; they are shown."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@schema_option(MergeResult)
def merge(  # noqa: PLR0913, PLR0917 (one parameter an option)
    captures: tuple[Path, ...],
    out: Path,
    policy: str,
    on_collision: Literal["refuse", "namespace"],
    accept_changes: bool,
    form: Literal["text", "json"],
) -> int:
    """Join captures: equal entries once, collisions refused or renamed, candidates in the order of function and hash.

    For each input it is proved that every launch that it served gets the same variant from the result, or the
    changes are shown. Nothing is written, and the exit code is 1, for a collision or for changes that are not accepted.
    """
    if out.exists():
        raise FoldproofError("exists already", where=str(out), fix="name a folder that does not exist yet")
    rules, inputs = load_policy(policy), read_inputs(captures)
    found = merged(inputs, on_collision)
    clashes = [collision for collision in found.collisions if not collision.done]
    shown = [] if clashes else input_verdicts(inputs, found, rules)
    kept = all(one.is_kept for one in shown)
    written = not clashes and (kept or accept_changes)
    if written:
        _write(out, found)
    version = f"foldproof {__version__}"
    counts = SCHEMA_VERSION, version, str(out), rules.name, len(found.entries)
    result = MergeResult(*counts, found.collisions, tuple(shown), written)
    if form == "json":
        say_json(result)
    else:
        _show(result)
    return int(not written or not kept)


def _write(out: Path, found: Merged) -> None:
    """The whole folder appears at once, by a rename."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=out.parent, prefix=".writing-"))
        try:
            cubins = folder / str(found.top["bin_dir"])
            for entry in found.entries:
                if entry.cubin is not None:
                    cubins.mkdir(exist_ok=True)
                    shutil.copyfile(entry.cubin, cubins / f"{entry.variant.hash}{found.top['bin_ext']}")
            text = msgspec.json.format(msgspec.json.encode(document(found)), indent=1)
            (folder / "aot.json").write_bytes(text + b"\n")
            folder.chmod(0o755)
            folder.rename(out)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except OSError as problem:
        why = f"cannot be written: {problem.strerror or problem}"
        raise FoldproofError(why, where=str(out), fix="name a folder that can be made") from None


def _show(result: MergeResult) -> None:
    rows = [(c.what, c.fn, c.first, c.second, c.done or "refused") for c in result.collisions]
    show_some(("collision", "function", "first", "second", ""), rows, "collisions")
    if result.inputs:
        table = [
            (
                one.capture,
                one.variants,
                one.duplicates,
                sum(f.untouched for f in one.functions),
                sum(f.proved and not f.untouched for f in one.functions),
                sum(not f.proved for f in one.functions),
            )
            for one in result.inputs
        ]
        columns = ("capture", "variants", "held already", "functions untouched", "proved unchanged", "changed")
        show_table(columns, table, title=f"selections under {result.policy}")
    for one in result.inputs:
        changes = [c for f in one.functions for c in f.changes]
        said = [(c.fn, c.old, c.new or "no variant", c.new_ends, launch_text(c.launch)) for c in changes]
        show_some(("function", "was", "is", "ends", "for example"), said, f"changed for {one.capture}", 20)
    if result.written:
        say(f"{result.variants} variants in {result.out}", style="bold green")
    else:
        what = "collisions" if not result.inputs else "selections would change; --accept-changes writes it all the same"
        say(f"nothing was written: {what}", style="bold red")
