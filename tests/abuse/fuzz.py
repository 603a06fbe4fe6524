"""Coverage-guided fuzzing of one reader: `python tests/abuse/fuzz.py --target NAME --seconds N --seed S`.

Each kind of crash (its exception and where foldproof raised it) is kept once, with its shortest input, below --out;
inputs that reach new code stay there too. It stops at an input that takes over 10 s or 1 GiB, which counts as a crash.
The last line of output is JSON: seconds, executions, crashes by kind. Exit 1 if there are any.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
TIMEOUT_S = 10
RSS_MIB = 1024
_EXECUTIONS = re.compile(r"stat::number_of_executed_units:\s*(\d+)|#(\d+)\s+\w+")
_WORDS = re.compile(rb"[A-Za-z_.$%@][\w.$:%-]{1,40}")


def main() -> int:
    """Run the fuzzer in a process of its own, since libFuzzer ends the process that it runs in, and sum it up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="Where inputs and crashes go; by default a folder that is removed.")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sys.path.insert(0, str(HERE.parent))
    if asked.child:
        _fuzz(asked.target, asked.seconds, asked.seed, asked.out)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        return _supervised(asked, asked.out or Path(scratch))


def _supervised(asked: argparse.Namespace, out: Path) -> int:
    (out / "crashes").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--child", "--target", asked.target, "--seconds", str(asked.seconds)]
    command += ["--seed", str(asked.seed), "--out", str(out)]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, check=False)
    (out / "fuzzer.log").write_bytes(done.stderr)
    said = done.stderr.decode("utf-8", "replace")
    counts = [int(a or b) for a, b in _EXECUTIONS.findall(said)]
    crashes = {file.stem: file.read_text() for file in sorted((out / "crashes").glob("*.txt"))}
    for kind in ("timeout", "oom", "crash"):
        crashes |= {f"{kind}-{file.name[-12:]}": kind for file in (out / "crashes").glob(f"{kind}-*")}
    if done.returncode and not crashes:
        crashes["fuzzer"] = said[-2000:]
    told = {"target": asked.target, "seed": asked.seed, "seconds": round(time.monotonic() - began)}
    sys.stdout.write(json.dumps({**told, "executions": max(counts, default=0), "crashes": crashes}) + "\n")
    return 1 if crashes else 0


def _fuzz(name: str, seconds: int, seed: int, out: Path) -> None:
    import atheris  # noqa: PLC0415 (an extra of its own; only this function needs it)
    from abuse.nasty import mutated  # noqa: PLC0415 (main puts its folder on the path)

    base = Path(tempfile.mkdtemp(prefix="abuse-"))
    with atheris.instrument_imports(include=["foldproof"]):
        from abuse.targets import TARGETS  # noqa: PLC0415 (instrumented as it is imported)
        from foldproof.impl.errors import FoldproofError  # noqa: PLC0415 (as above)

        target = TARGETS[name]
        # Renderers and pandas are imported when they are first asked for, which no input is to blame for.
        for number, file in enumerate(sorted((CORPUS / name).iterdir())):
            (base / f"{number}").mkdir()
            with contextlib.suppress(Exception):
                target.run(file.read_bytes(), base / f"{number}")
    seen: dict[str, int] = {}
    folder = base / "x"

    def one(data: bytes) -> None:
        folder.mkdir()
        try:
            target.run(data, folder)
        except FoldproofError:
            pass
        except Exception as problem:  # noqa: BLE001 (whatever else it is, it is a crash)
            kind = _kind(problem)
            if len(data) < seen.get(kind, len(data) + 1):
                seen[kind] = len(data)
                mark = hashlib.sha256(kind.encode()).hexdigest()[:12]
                (out / "crashes" / f"{mark}.input").write_bytes(data)
                (out / "crashes" / f"{mark}.txt").write_text(f"{kind}\n{traceback.format_exc()[-3000:]}")
        finally:
            shutil.rmtree(folder)

    def mutate(data: bytes, most: int, number: int) -> bytes:
        made = mutated(data, number) if target.json and number % 3 else None
        return made if made is not None and len(made) <= most else bytes(atheris.Mutate(data, most))

    (out / "found").mkdir(exist_ok=True)
    words = out / "words.txt"
    words.write_text(_dictionary(CORPUS / name))
    options = [
        *(f"-max_total_time={seconds}", f"-seed={seed}", f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={RSS_MIB}"),
        *(f"-dict={words}", f"-artifact_prefix={out}/crashes/", "-print_final_stats=1", "-max_len=65536"),
        *("-close_fd_mask=0", str(out / "found"), str(CORPUS / name)),
    ]
    atheris.Setup([sys.argv[0], *options], one, custom_mutator=mutate)
    atheris.Fuzz()


def _kind(problem: Exception) -> str:
    """The exception, and the last place in foldproof's own code that it passed through."""
    root = str(HERE.parents[1])
    frames = [f for f in traceback.extract_tb(problem.__traceback__) if f.filename.startswith(root)]
    last = next((f for f in reversed(frames) if "/tests/" not in f.filename), frames[-1])
    return f"{type(problem).__name__} in {Path(last.filename).relative_to(root)}:{last.name}"


def _dictionary(folder: Path) -> str:
    """The words of the corpus, as libFuzzer's dictionaries have them."""
    found = {word for file in sorted(folder.iterdir()) for word in _WORDS.findall(file.read_bytes())}
    quoted = (word.decode("ascii", "ignore").replace("\\", "\\\\").replace('"', '\\"') for word in sorted(found)[:400])
    return "".join(f'"{word}"\n' for word in quoted)


if __name__ == "__main__":
    sys.exit(main())
