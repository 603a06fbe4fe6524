"""`foldproof bits`: byte verdicts for every interchangeable pair of a capture with PTX, on a CPU."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

import click
import msgspec
from foldproof.cli.digests import capture_seen, identified
from foldproof.cli.emitting import emit_bits
from foldproof.cli.evidence import device_verdicts
from foldproof.cli.recording import started
from foldproof.cli.ui import console, say, show_table, steps
from foldproof.gpu.bundle import LAUNCHES, bundled_capture
from foldproof.gpu.symbolic.bits import BitsVerdict, Replay, load_cases
from foldproof.gpu.symbolic.compare import Level
from foldproof.impl.capture import capture_file
from foldproof.impl.errors import FoldproofError
from foldproof.reports.events import SCHEMA_VERSION
from foldproof.reports.evidence import BUNDLED
from foldproof.reports.recorder import recording

EXAMPLE = """\b
Examples:
  foldproof bits
  foldproof bits CAPTURE --launch launches.json --out bits
  foldproof bits --pair HASH_A HASH_B"""


@click.command(epilog=EXAMPLE)
@click.argument("capture", required=False, type=click.Path(path_type=Path))
@click.option("--pair", nargs=2, metavar="A B", help="Only the pair of these two hashes, with its explanation.")
@click.option(
    "--launch", "launches", type=click.Path(path_type=Path), help="Launches; by default launches.json beside aot.json."
)
@click.option("--out", type=click.Path(path_type=Path), help="Write bits.json, with every witness, here.")
@click.option("--json", "as_json", is_flag=True, help="Print bits.json instead of tables.")
def bits(
    capture: Path | None, pair: tuple[str, str] | None, launches: Path | None, out: Path | None, as_json: bool
) -> int:
    """Say of each pair of variants that one launch admits whether all its output bytes are equal, for all inputs.

    Verdicts: identical code, proved for every bit pattern, proved for inputs without NaN, proved modulo contraction,
    differs (with inputs on which it does), unstable, unknown (with the reason). Exit 3 if a pair is undecided.
    """
    folder = bundled_capture() if capture is None else capture
    replay = Replay.open(folder)
    file = launches or capture_file(folder).parent / LAUNCHES
    if not file.exists():
        raise FoldproofError("no launches are known", where=str(file), fix="give --launch FILE")
    cases = load_cases(file)
    asked = [replay.pair(*pair, cases)] if pair else list(replay.pairs(cases))
    with steps() as shown:
        shown.step("pairs", len(asked))
        found: list[BitsVerdict] = []
        for done, one in enumerate(asked, 1):
            found.append(replay.verdict(one))
            shown.at(done, one.fn)
    text = msgspec.json.format(
        msgspec.json.encode({"schema_version": SCHEMA_VERSION, "verdicts": msgspec.to_builtins(found)}), indent=1
    )
    code = 3 if any(not v.level.is_decided for v in found) else 0
    if out is not None:
        words = ["foldproof", "bits", *([str(capture)] if capture else [])] + (["--pair", *pair] if pair else [])
        words += ["--out", str(out)]
        loaded, digests = identified(folder)
        with recording(out, started("bits", shlex.join(words))) as to:
            to.emit(capture_seen(str(capture) if capture else BUNDLED, loaded, digests))
            emit_bits(to, digests.aot_sha256, digests.cubins, found)
            to.render({"bits.json": text + b"\n"})
            to.exit_code = code
    if as_json:
        click.echo(text)
    else:
        _show(found, folder, detailed=pair is not None)
    return code


def _show(found: list[BitsVerdict], folder: Path, *, detailed: bool) -> None:
    device = device_verdicts(folder)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for verdict in found:
        counts.setdefault((verdict.fn, str(verdict.level)), Counter())[_on_device(verdict, device)] += 1
    rows = [(fn, level, sum(c.values()), _words(c)) for (fn, level), c in sorted(counts.items())]
    show_table(("function", "verdict", "pairs", "on a device"), rows)
    if detailed:
        for verdict in found:
            say(f"{verdict.first} against {verdict.second} on {verdict.launch}: {verdict.level}")
            for line in (verdict.reason, verdict.scope, *verdict.change, *verdict.rules, *verdict.modulo):
                if line:
                    say(f"  {line}")
            if verdict.explanation is not None:
                say(str(msgspec.json.format(msgspec.json.encode(verdict.explanation), indent=1).decode()))
    undecided = [v for v in found if not v.level.is_decided]
    for verdict in undecided[:12]:
        say(f"undecided: {verdict.first} against {verdict.second} ({verdict.fn}): {verdict.reason or verdict.level}")
    contradicted = [v for v in found if contradicts(v, device)]
    console().print()
    say(f"{len(found)} pairs: {_words(Counter(str(v.level) for v in found))}")
    if device:
        word = "no" if not contradicted else str(len(contradicted))
        say(f"{word} pair proved equal differs on the device", style="" if not contradicted else "bold red")


def _words(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.most_common())


def _on_device(verdict: BitsVerdict, device: dict[frozenset[str], dict[str, str]]) -> str:
    words = device.get(frozenset((verdict.first, verdict.second)))
    return "not run" if words is None else words[_domain(verdict)]


def _domain(verdict: BitsVerdict) -> str:
    """The input domain on the device that the symbolic verdict speaks of."""
    return "no NaN" if verdict.level == Level.PROVED_NO_NAN else "every bit pattern"


def contradicts(verdict: BitsVerdict, device: dict[frozenset[str], dict[str, str]]) -> bool:
    """Whether the verdict says equal and the device found other bytes in the domain that it speaks of."""
    words = device.get(frozenset((verdict.first, verdict.second)))
    return verdict.is_equal and words is not None and words[_domain(verdict)] == "differs"
