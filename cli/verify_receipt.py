"""`foldproof verify-receipt`: whether a report still rests on its evidence."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from foldproof.cli.ui import console, say, show_table, steps
from foldproof.cli.verifying import verify

SHOWN = 20
EXAMPLE = """\b
Examples:
  foldproof check && foldproof verify-receipt foldproof-report
  foldproof verify-receipt DIR"""


@click.command("verify-receipt", epilog=EXAMPLE)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path), default=Path("foldproof-report"))
def verify_receipt(folder: Path) -> int:
    """Verify an evidence folder: recompute every digest, decide every SMT-LIB script again, replay every case.

    Names each record, case, script or report that was changed, cut, removed or says what does not hold. Needs neither
    the capture nor the selector. Exit 1 if something does not hold.
    """
    with steps() as shown:
        shown.step("verify", 100)
        checks = list(verify(folder, shown.at))
        shown.close()
    rows = [(one.what, f"{one.count:,}", f"{len(one.wrong):,} wrong" if one.wrong else "hold") for one in checks]
    show_table(("what", "checked", ""), rows, title=str(folder))
    wrong = [damage for one in checks for damage in one.wrong]
    for damage in wrong[:SHOWN]:
        say(f"{damage.file}: {damage.why}", style="red")
    if len(wrong) > SHOWN:
        say(f"{len(wrong) - SHOWN:,} more")
    console().print()
    if wrong:
        say(f"the receipt does not hold: {len(wrong)} of its files", style="bold red")
        say(f"next: make the evidence again into a new folder: foldproof check --out {shlex.quote(str(folder))}-again")
        return 1
    say("the receipt holds", style="bold green")
    return 0
