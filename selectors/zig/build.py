"""Builds the Zig selector: `three-pass`, which speaks the protocol, and `libthree_pass.so`, with the C interface.

    python selectors/zig/build.py --out DIR [--bug NAME] [--optimize ReleaseFast|ReleaseSafe|Debug]

needs the package `ziglang`. It does what these two commands do, where `config.zig` holds one line,
`pub const planted = "none";`:

    zig build-exe -O ReleaseFast -lc --dep config -Mroot=src/protocol.zig -Mconfig=config.zig --name three-pass
    zig build-lib -dynamic -O ReleaseFast -lc --dep config -Mroot=src/abi.zig -Mconfig=config.zig --name three_pass
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
PARTS = {
    # part: command of Zig, root source, file, further flags
    "exe": ("build-exe", "protocol.zig", "three-pass", ()),
    "lib": ("build-lib", "abi.zig", "libthree_pass.so", ("-dynamic",)),
}
MODES = ("ReleaseFast", "ReleaseSafe", "Debug")


def bugs() -> tuple[str, ...]:
    """The faults that can be planted, as `src/rules.zig` lists them; "none" is the first, "any" the last.

    What "any" plants, the environment variable FOLDPROOF_PLANTED says when it runs, in the words of `src/rules.zig`.
    """
    body = re.search(r"pub const Fault = enum \{(.*?)\};", (HERE / "src/rules.zig").read_text("utf-8"), re.DOTALL)
    assert body
    return tuple(name.replace("_", "-") for name in re.findall(r"^    (\w+),", body.group(1), re.MULTILINE))


def build(out: Path, bug: str = "none", optimize: str = "ReleaseFast", parts: tuple[str, ...] = ("exe", "lib")) -> None:
    """Write the executable and the library into `out`. Raises `CalledProcessError` with the compiler's words.

    What was built once from the same sources is taken from the cache of Zig's user, so that tests may ask often.
    """
    out.mkdir(parents=True, exist_ok=True)
    for part in parts:
        file = PARTS[part][2]
        built = cached(part, bug, optimize)
        fresh = out / f".{file}.{os.getpid()}"
        shutil.copy2(built, fresh)
        fresh.replace(out / file)


def cached(part: str, bug: str, optimize: str) -> Path:
    """The built file in the cache, built now if the cache lacks it."""
    verb, root, file, more = PARTS[part]
    sources = sorted((HERE / "src").glob("*.zig"))
    said = [part, bug, optimize, version("ziglang"), *(source.read_text("utf-8") for source in sources)]
    key = hashlib.sha256("\0".join(said).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foldproof-zig"
    kept = cache / key / file
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
        config = Path(scratch) / "config.zig"
        config.write_text(f'pub const planted = "{bug.replace("-", "_")}";\n', "utf-8")
        command = [sys.executable, "-m", "ziglang", verb, *more, "-O", optimize, "-lc"]
        command += ["--dep", "config", f"-Mroot={HERE / 'src' / root}", f"-Mconfig={config}", f"-femit-bin={file}"]
        subprocess.run(command, cwd=scratch, check=True, capture_output=True, text=True)  # noqa: S603  # our own
        (Path(scratch) / file).replace(kept)
    return kept


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="build the Zig selector")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--bug", choices=bugs(), default="none")
    parser.add_argument("--optimize", choices=MODES, default="ReleaseFast")
    options = parser.parse_args()
    try:
        build(options.out, options.bug, options.optimize)
    except subprocess.CalledProcessError as problem:
        sys.stderr.write(problem.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
