"""`foldproof watch`: what an engine's log says of fallbacks and misses, as launches and as work."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click
import msgspec
from foldproof import __version__
from foldproof.cli.coverage import launch_text, write_needs
from foldproof.cli.numbers import Finite
from foldproof.cli.release import say_json, schema_option, show_some
from foldproof.cli.ui import say
from foldproof.impl.capture import Capture, load_capture
from foldproof.impl.launch import launch_to
from foldproof.impl.policy import load_policy
from foldproof.release.coverage import coverage
from foldproof.release.log_lines import lines_of
from foldproof.release.logs import FALLBACK, MISSING, Fallback, LogEvents, launches_of, read_log
from foldproof.release.needs import needs_json

SCHEMA_VERSION = 1
EXAMPLE = """\b
Examples:
  foldproof watch engine.log
  foldproof watch engine.log --capture CAPTURE --needs-out compile.json --launches-out seen.json"""


class MissRow(msgspec.Struct, frozen=True):
    """How often one launch class found no variant."""

    fn: str
    count: int
    first_line: int
    last_line: int
    launch: dict[str, Any]


class WatchResult(msgspec.Struct, frozen=True):
    """What `foldproof watch` read: events, dumps that could not be read, and the work list in the needs format."""

    schema_version: int
    tool: str
    log: str
    lines: int
    fallbacks: tuple[Fallback, ...]
    misses: tuple[MissRow, ...]
    unread: tuple[str, ...]
    launches: dict[str, Any]
    needs: dict[str, Any]


@click.command(epilog=EXAMPLE)
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--capture", type=click.Path(path_type=Path), help="The engine's capture: turns fallbacks into launches.")
@click.option("--policy", default="three-pass", show_default=True, help="The engine's policy, for the work list.")
@click.option("--fallback", default=FALLBACK, help="Pattern of a fallback line: groups fn, and hash and ones if any.")
@click.option("--missing", default=MISSING, help="Pattern of the line above a dumped launch: group fn.")
@click.option("--follow", type=Finite(min=0), default=0.0, metavar="SECONDS", help="Read on as it grows.")
@click.option("--launches-out", type=click.Path(path_type=Path), help="Write the launches, for coverage.")
@click.option("--needs-out", type=click.Path(path_type=Path), help="Write the variants to compile (needs format).")
@click.option("--strict", is_flag=True, help="Exit 1 on any fallback or miss.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@schema_option(WatchResult)
def watch(  # noqa: PLR0913, PLR0917 (one parameter an option)
    log: Path,
    capture: Path | None,
    policy: str,
    fallback: str,
    missing: str,
    follow: float,
    launches_out: Path | None,
    needs_out: Path | None,
    strict: bool,
    form: Literal["text", "json"],
) -> int:
    """Read an engine's log: how often each fallback fires, which launches found no variant, and what to compile.

    The launches go to foldproof coverage (--launches-out). With --capture a fallback's launch is rebuilt from its
    variant, and the work list says what would serve every launch without a fallback.
    """
    loaded = load_capture(capture) if capture is not None else None
    events = read_log(lines_of(log, follow), fallback, missing)
    result = _result(log, events, loaded, policy)
    for path, value in ((launches_out, result.launches), (needs_out, result.needs)):
        if path is not None:
            write_needs(path, value)
    if form == "json":
        say_json(result)
    else:
        _show(result, capture is not None)
    return int(strict and bool(result.fallbacks or result.misses or result.unread))


def _result(log: Path, events: LogEvents, capture: Capture | None, policy: str) -> WatchResult:
    launches = list(launches_of(events, capture))
    pairs = [(one.launch, one.count) for one in launches]
    if capture is not None:
        needs = coverage(capture, launches, load_policy(policy), strict=True).needs
    else:
        needs = needs_json(pairs)
    misses = [MissRow(m.launch.fn, m.count, m.first_line, m.last_line, launch_to(m.launch)) for m in events.misses]
    return WatchResult(
        SCHEMA_VERSION,
        f"foldproof {__version__}",
        str(log),
        events.lines,
        events.fallbacks,
        tuple(misses),
        events.unread,
        needs_json(pairs),
        needs,
    )


def _show(result: WatchResult, captured: bool) -> None:
    fallbacks = [
        (r.fn, r.hash, ", ".join(r.ones) or "?", r.count, f"{r.first_line} to {r.last_line}") for r in result.fallbacks
    ]
    show_some(("function", "variant", "reads", "times", "lines"), fallbacks, "fallbacks")
    misses = [(r.fn, r.count, f"{r.first_line} to {r.last_line}", launch_text(r.launch)) for r in result.misses]
    show_some(("function", "times", "lines", "launch"), misses, "launches without a variant")
    for line in result.unread:
        say(f"a dump that could not be read: {line}", style="yellow")
    needs = result.needs["needs"]
    if needs:
        rows = [(n["fn"], n["count"], ", ".join(_arg(a) for a in n["args"])) for n in needs]
        show_some(("function", "launches", "for"), rows, "variants to compile, the least assuming first")
    if result.fallbacks and not captured:
        say("fallback lines name no values: give --capture to turn them into launches")
    if not result.lines:
        what = "check the path, and that the engine writes its warnings there"
        say(f"0 lines: the log is empty and shows nothing; {what}", style="bold yellow")
        return
    times = sum(r.count for r in result.fallbacks), sum(r.count for r in result.misses)
    say(
        f"{result.lines} lines: {times[0]} fallbacks of {len(result.fallbacks)} variants, {times[1]} misses of "
        f"{len(result.misses)} launch classes",
        style="bold red" if times[1] else "bold yellow" if times[0] else "bold green",
    )


def _arg(arg: dict[str, Any]) -> str:
    if arg["kind"] == "ptr":
        return f"{arg['name']} {arg['type']}{'' if arg['align16'] else ' unaligned'}"
    return f"{arg['name']}={arg.get('value', arg['kind'])}"
