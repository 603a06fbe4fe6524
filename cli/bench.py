"""`foldproof bench`: the tables of docs/performance.md, measured here, and ratios held against kept ones."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
from foldproof.cli.bench_bytes import replaying
from foldproof.cli.bench_plot import curve_svg
from foldproof.cli.bench_report import rendering
from foldproof.cli.bench_result import Compared, Kept, Result, Sizing, as_json, held_against, machine, read_kept, result
from foldproof.cli.ui import Steps, say, show_table, steps
from foldproof.props.bench import (
    QUICK,
    Built,
    Row,
    Sizes,
    batch_rows,
    campaign_rows,
    driver_rows,
    exhaust_rows,
    markdown,
)
from foldproof.props.comparisons import batch, campaign, proofs
from foldproof.props.growth import growth
from foldproof.props.measure import Item, NotMeasured, Taken, take
from foldproof.reports.write import write_folder

EXIT_WORSE, EXIT_NOT_RUN = 1, 3
BUILD = Path(__file__).resolve().parent.parent / "selectors" / "zig" / "build.py"
SECTIONS = ("proofs", "campaign", "batch", "bytes", "report", "growth", "rates")
ON_SELECTOR = ("batch", "rates")
"""Sections that ask the Zig selector."""
EXAMPLE = """\b
Examples:
  foldproof bench --quick
  foldproof bench --only growth --out bench
  foldproof bench --quick --against docs/bench-ratios.json"""


@click.command(epilog=EXAMPLE)
@click.option("--quick", is_flag=True, help="Little work each: ratios that are good to a factor, in under a minute.")
@click.option("--only", multiple=True, type=click.Choice(SECTIONS), help="Only this section; may be repeated.")
@click.option("--out", type=click.Path(path_type=Path), help="Write bench.json and an SVG a curve here.")
@click.option(
    "--against", type=click.Path(path_type=Path), help="A bench.json or kept ratios: exit 1 where one is 2 times worse."
)
def bench(quick: bool, only: tuple[str, ...], out: Path | None, against: Path | None) -> int:
    """Measure proofs, campaigns, the batch reference, symbolic replay and reports beside peers, in one run.

    A ratio is how many times the seconds of ours the other way takes: more is better. Both sides take turns, so a busy
    machine is busy for both. Curves over candidates, params, columns and pairs have the exponent of their growth; their
    ratio is the cost for one at the least size over that at the largest. The section rates has times of this machine
    alone.

    The selector is the Zig one of the repository, built here. What cannot be measured, because a package or the
    sources are absent, is said, and the exit code is 3. Exit 1 if a ratio is worse than the kept one by a factor of 2.
    """
    sizing: Sizing = "quick" if quick else "full"
    sizes = QUICK if quick else Sizes()
    sections = tuple(name for name in SECTIONS if not only or name in only)
    kept = None if against is None else read_kept(against, sizing)
    on = machine()
    click.echo(f"{on}\n")
    taken: list[Taken] = []
    rates: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, steps() as shown:
        built, why = _built(Path(folder)) if set(sections) & set(ON_SELECTOR) else (None, "")
        for name in sections:
            shown.step(name, 1)
            if name == "rates":
                rates, missing = _rates(built, why, sizes, shown)
                taken += missing
            else:
                for item in _items(name, sizes, built, why):
                    shown.at(0, item.name)
                    one = take(item)
                    taken.append(msgspec.structs.replace(one, name=f"{name}/{one.name}"))
            shown.close()
    found = result(sizing, on, taken, rates)
    _show(found)
    if out is not None:
        curves = {f"curve-{curve.name.replace('/', '-')}.svg": curve_svg(curve) for curve in found.curves}
        write_folder(out, {"bench.json": as_json(found), **curves})
        say(f"written: {out}/bench.json, {len(curves)} curves")
    return _held(found, kept, sections)


def _items(section: str, sizes: Sizes, built: Built | None, why: str) -> Iterator[Item]:
    quick = sizes == QUICK
    if section == "batch" and built is None:
        return iter(NotMeasured(name, why) for name in ("encoded", "raw"))
    if section == "batch" and built is not None:
        return batch(built.library, sizes.repeats, quick=quick)
    makers = {"proofs": proofs, "campaign": campaign, "bytes": replaying, "report": rendering, "growth": growth}
    return makers[section](sizes.repeats, quick=quick)


def _rates(built: Built | None, why: str, sizes: Sizes, shown: Steps) -> tuple[list[Row], list[Taken]]:
    """The rows without a peer; those of the selector only where it is built."""
    rows = list(batch_rows(sizes))
    if built is None:
        return rows, [NotMeasured("rates/drivers, campaign and exhaustive scope", why)]
    for group in (driver_rows, campaign_rows, exhaust_rows):
        shown.at(0, group.__name__)
        rows += group(built, sizes)
    return rows, []


def _show(found: Result) -> None:
    if found.measures:
        rows = [
            (
                *(one.name, one.what, f"{one.ours.name}: {_time(one.ours.median)}"),
                *(f"{one.theirs.name}: {_time(one.theirs.median)}", one.unit, f"{one.ratio:.3g} x"),
            )
            for one in found.measures
        ]
        show_table(("measure", "what", "ours", "theirs", "for one", "ratio"), rows)
    if found.curves:
        curves = [
            (
                *(one.name, one.what, f"{one.axis} {one.points[0].size:,} to {one.points[-1].size:,}"),
                f"{_time(one.points[0].seconds.median)} to {_time(one.points[-1].seconds.median)} a {one.unit}",
                *(f"{one.exponent:.2f} ({one.first:,} to {one.last:,})", f"{one.ratio:.3g} x"),
            )
            for one in found.curves
        ]
        show_table(("curve", "what", "over", "median", "exponent", "ratio"), curves)
    if found.rates:
        click.echo(markdown(list(found.rates)))
    for absent in found.not_measured:
        say(f"not run: {absent.name} ({absent.why})", style="yellow")


def _held(found: Result, kept: Kept | None, sections: tuple[str, ...]) -> int:
    """Say how the ratios compare; the exit code."""
    missing = bool(found.not_measured)
    if kept is not None:
        compared: Compared = held_against(found.ratios, kept, sections)
        for line in compared.worse:
            say(f"regression: {line}", style="bold red")
        if compared.unmeasured:
            say(f"kept and not measured: {', '.join(compared.unmeasured)}", style="yellow")
        if compared.unkept:
            say(f"measured and not kept: {', '.join(compared.unkept)}")
        if compared.worse:
            return EXIT_WORSE
        missing = missing or bool(compared.unmeasured)
        say(f"{len(found.ratios) - len(compared.unkept)} ratios held against the kept ones: no regression of 2 x")
    return EXIT_NOT_RUN if missing else 0


def _time(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


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
