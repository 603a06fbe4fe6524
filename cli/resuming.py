"""The shards of an exhaustive run below --out while it runs: what a killed run had counted, the next one goes on from.

`shards/KEY/` holds them, and goes when the run is recorded. The key is the digest of all that a tally depends on and a
file can show: universe, policy, the selector's words and the files that they name, and the version of foldproof. A
selector that changes elsewhere (a module, a library that it loads) is not seen: delete `shards/` then.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
from foldproof.cli.digests import policy_digest, selector_files
from foldproof.cli.recording import TOOL
from foldproof.impl.errors import FoldproofError
from foldproof.props.exhaust_external import Exhausted, Run
from foldproof.props.kept_shards import known_shards, shard_file
from foldproof.reports.write import write_folder

SHARDS = "shards"


def shards_folder(out: Path, run: Run, name: str) -> Path:
    """Where the shards of a run lie; `name` is what the selector calls itself."""
    text = run.spec.text
    told = [TOOL, text, name, selector_files(text), policy_digest(run.policy), run.universe, run.keep]
    return out / SHARDS / hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16]


def known(folder: Path, run: Run) -> list[Exhausted]:
    """What runs that were stopped had counted. Raises `FoldproofError` where a file cannot be read."""
    try:
        files = {file.name: file.read_bytes() for file in sorted(folder.glob("*.json"))}
    except OSError as problem:
        raise FoldproofError(f"cannot be read: {problem.strerror}", where=str(folder), fix="delete it") from None
    return known_shards(run, files)


def shard_keeper(folder: Path) -> Callable[[Exhausted], None]:
    """Writes each shard as it is done; not one that is the whole universe, which its record is about to tell.

    Raises `FoldproofError` if the folder cannot be written.
    """

    def keep(done: Exhausted) -> None:
        named = None if done.tally.is_complete else shard_file(done)
        if named:
            write_folder(folder, dict([named]))

    return keep


def forget(folder: Path) -> None:
    """Remove the shards of a run that is recorded; those of others stay."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.parent.is_dir() and not any(folder.parent.iterdir()):
        folder.parent.rmdir()
