"""`foldproof coverage`: what a capture serves, and what to compile so that it serves the rest."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import click
import msgspec
from foldproof.cli.following import after_coverage
from foldproof.cli.release import say_json, schema_option, show_some
from foldproof.cli.ui import say, say_next, show_table
from foldproof.impl.capture import load_capture
from foldproof.impl.launch import launch_from
from foldproof.impl.policy import load_policy
from foldproof.props.derive import derive
from foldproof.release.coverage import WORDS, CoverageResult
from foldproof.release.coverage import coverage as covered
from foldproof.release.launches import Counted, read_launches
from foldproof.release.ranges import read_ranges
from foldproof.release.reachable import Reach, reach
from foldproof.reports.write import write_folder

EXAMPLE = """\b
Examples:
  foldproof coverage CAPTURE
  foldproof coverage CAPTURE trace.ndjson --strict
  foldproof coverage CAPTURE needs.json --needs-out missing.json
  foldproof coverage CAPTURE --reachable engine.toml"""


@click.command(epilog=EXAMPLE)
@click.argument("capture", type=click.Path(path_type=Path))
@click.argument("launches", required=False, type=click.Path(path_type=Path))
@click.option("--policy", default="three-pass", show_default=True, help="A policy of the zoo, or a TOML file.")
@click.option("--reachable", type=click.Path(path_type=Path), help="A TOML file: what an engine can launch; proved.")
@click.option("--strict", is_flag=True, help="Exit 1 on any miss, ambiguity or fallback.")
@click.option("--needs-out", type=click.Path(path_type=Path), help="Write the variants to compile (needs format).")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@schema_option(CoverageResult)
def coverage(  # noqa: PLR0913, PLR0917 (one parameter an option)
    capture: Path,
    launches: Path | None,
    policy: str,
    reachable: Path | None,
    strict: bool,
    needs_out: Path | None,
    form: Literal["text", "json"],
) -> int:
    """Say for each launch class whether it is served exactly, generally, by fallback, ambiguously, or not at all.

    LAUNCHES is NDJSON, a JSON list, a trace, or a needs file of either dialect; without it (and without
    --reachable), launches are derived from the capture's own variants. With --reachable the capture is proved
    complete for every launch that the file allows, or the first class that misses is shown: exit 1 then.
    """
    rules, loaded = load_policy(policy), load_capture(capture)
    shown = reach(loaded, read_ranges(reachable), rules, strict) if reachable else []
    given: Iterable[Counted] = ()
    said = "no launches"
    if launches is not None:
        given, said = read_launches(launches, loaded), str(launches)
    elif not reachable:
        given, said = (Counted(d.launch) for d in derive(loaded)), "launches derived from its variants"
    result = covered(loaded, given, rules, strict=strict, names=(str(capture), said), reachable=shown)
    if needs_out is not None:
        write_needs(needs_out, result.needs)
    if form == "json":
        say_json(result)
    else:
        _show(result)
    failed = not result.complete and (strict or not all(one.complete for one in shown))
    if failed and form == "text":
        files = (str(file) if file else None for file in (launches, reachable, needs_out))
        say_next(after_coverage(str(capture), policy, result, *files))
    return int(failed)


def write_needs(path: Path, value: dict[str, Any]) -> None:
    """Write a needs file, whole or not at all."""
    write_folder(path.parent, {path.name: msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"})


def _show(result: CoverageResult) -> None:
    if result.functions:
        words = [word for word in WORDS if result.ends[word] or word != "no rules"]
        rows = [
            (f.fn, f.variants, f.unused, f.launches, f.classes, *(f.ends[word] or "" for word in words))
            for f in result.functions
        ]
        columns = ("function", "variants", "unused", "launches", "classes", *words)
        show_table(columns, rows, title=f"{result.capture} under {result.policy}: {result.launches_from}")
    for word in ("missing", "ambiguous", "fallback"):
        found = [row for row in result.classes if row.ends == word]
        rows = [(row.fn, row.launches, _args(row.launch), row.why or _reads(row.pick, row.ones)) for row in found]
        show_some(("function", "launches", "args", "why"), rows, word, 12)
    for one in result.reachable:
        _show_reach(one, result.strict)
    needs = result.needs["needs"]
    if needs:
        rows = [(need["fn"], need["count"], _args(need)) for need in needs]
        show_some(("function", "launches", "for"), rows, "variants to compile, the least assuming first", 12)
    parts = [f"{count} {word}" for word, count in result.ends.items() if count]
    text = f"{sum(result.ends.values())} launch classes: {', '.join(parts)}" if parts else _verdict(result)
    say(text, style="bold green" if result.complete else "bold red")


def _verdict(result: CoverageResult) -> str:
    if not result.reachable:
        return "the file holds no launch"
    open_ = [one.where for one in result.reachable if not one.complete]
    return f"not complete: {', '.join(open_)}" if open_ else "complete for every launch that the file allows"


def _show_reach(one: Reach, strict: bool) -> None:
    if one.complete:
        what = "no launch misses, is ambiguous or falls back" if strict else "no launch misses or is ambiguous"
        say(f"{one.where}: proved for all {one.launch_classes} launch classes: {what}", style="green")
    for word in ("missing", "ambiguous", "fallback"):
        launch = getattr(one, word)
        if launch is not None:
            say(f"{one.where}: first {word}: {launch_text(launch)}", style="" if word == "fallback" else "red")
    if one.more_needs:
        say(f"{one.where}: more variants would be needed than are listed")


def launch_text(value: dict[str, Any]) -> str:
    """A launch in one line."""
    launch = launch_from(value)
    consts = [f"{name}={const}" for name, const in launch.consts.items()]
    return f"{launch.fn}({', '.join([f'{arg.name}: {arg}' for arg in launch.args] + consts)})"


def _reads(pick: str | None, ones: tuple[str, ...]) -> str:
    return f"{pick} reads {', '.join(ones)} at run time"


def _args(value: dict[str, Any]) -> str:
    return ", ".join(_arg(arg) for arg in value["args"])


def _arg(arg: dict[str, Any]) -> str:
    if arg["kind"] == "ptr":
        aligned = arg.get("align16", int(str(arg.get("addr", "1")), 0) % 16 == 0)
        return f"{arg['name']} {arg['type']}{'' if aligned else ' unaligned'}"
    return f"{arg['name']}={arg.get('value', arg['kind'])}"
