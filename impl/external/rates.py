"""How many launches a second a selector takes through each driver: the workload that docs/performance.md names.

    python -m foldproof.impl.external.rates --command selectors/out/three-pass --library selectors/out/libthree_pass.so

8 variants of one function, launches of 2 pointers and 2 ints in all their classes, one named constant.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import msgspec
from foldproof.impl.capture import Capture, capture_from
from foldproof.impl.external.cabi import AbiSelector
from foldproof.impl.external.process import ProcessSelector
from foldproof.impl.external.records import encode
from foldproof.impl.external.wire import kernels_text, launch_text
from foldproof.impl.launch import Launch, launch_from

LAUNCHES = 100_000
RUNS = 5


class Rate(msgspec.Struct, frozen=True):
    """Launches a second: the median and the best of the runs."""

    what: str
    median: float
    best: float

    def __str__(self) -> str:
        return f"{self.what}: {self.median:,.0f} launches/s (best {self.best:,.0f})"


def workload(count: int = LAUNCHES, seed: int = 0) -> tuple[Capture, list[Launch]]:
    """The capture and the launches, equal for equal seeds."""
    rng = random.Random(seed)  # noqa: S311  # a seed that replays is the point
    kernels = [_variant(number) for number in range(8)]
    return capture_from({"kernels": kernels}), [_launch(rng) for _ in range(count)]


def _variant(number: int) -> dict[str, object]:
    def param(name: str, kind: str, bit: int) -> dict[str, object]:
        return {"name": name, "type": kind, "div16": bool(number & bit), "nospec": False}

    params = [param("x", "*bf16", 1), param("y", "*bf16", 2), param("n", "i32", 4)]
    folded = {} if number % 2 else {"s": {"int": 1}}
    params += [] if folded else [param("s", "i32", 0)]
    return {"fn": "k", "hash": f"h{number}", "num_warps": 4, "params": params, "consts": {"B": {"int": 64}, **folded}}


def _launch(rng: random.Random) -> Launch:
    def pointer(name: str) -> dict[str, object]:
        return {"name": name, "kind": "ptr", "type": "*bf16", "addr": hex(rng.randrange(2**40) * 8)}

    def number(name: str) -> dict[str, object]:
        return {"name": name, "kind": "i32", "value": rng.choice((1, 16 * rng.randrange(2**20), rng.randrange(2**20)))}

    args = [pointer("x"), pointer("y"), number("n"), number("s")]
    return launch_from({"fn": "k", "args": args, "consts": {"B": {"int": 64}}})


def _rate(what: str, count: int, action: Callable[[], object], runs: int) -> Rate:
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return Rate(what, count / median(seconds), count / min(seconds))


def protocol_rates(command: Sequence[str], count: int = LAUNCHES, runs: int = RUNS) -> list[Rate]:
    """Through the protocol: launches as objects, and as texts made before."""
    capture, launches = workload(count)
    kernels, texts = kernels_text(capture), [launch_text(launch) for launch in launches]
    with ProcessSelector(command) as selector:
        return [
            _rate("protocol", count, lambda: selector.ask(0, capture, launches), runs),
            _rate("protocol, texts made before", count, lambda: selector.ask_texts(0, kernels, 8, texts), runs),
        ]


def abi_rates(library: Path, count: int = LAUNCHES, runs: int = RUNS) -> list[Rate]:
    """Through the C interface: launches encoded before, the encoding alone, and 36 launches against each capture."""
    capture, launches = workload(count)
    kernels, encoded = kernels_text(capture), encode(launches)
    few, captures = encode(launches[:36]), count // 36
    jobs = [(number, 0, 36) for number in range(captures)]
    with AbiSelector(library) as selector:
        return [
            _rate("C interface", count, lambda: selector.decide([kernels], [8], encoded, [(0, 0, count)]), runs),
            _rate("encoding for it", count, lambda: encode(launches), runs),
            _rate(
                "C interface, 36 launches a capture",
                captures * 36,
                lambda: selector.decide([kernels] * captures, [8] * captures, few, jobs),
                runs,
            ),
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rates of the selectors that are named."""
    parser = argparse.ArgumentParser(description="launches a second through a selector")
    parser.add_argument("--command", nargs="+", help="a selector that speaks the protocol")
    parser.add_argument("--library", type=Path, help="a selector with the C interface")
    options = parser.parse_args(arguments)
    rates = protocol_rates(options.command) if options.command else []
    rates += abi_rates(options.library) if options.library else []
    sys.stdout.writelines(f"{rate}\n" for rate in rates)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
