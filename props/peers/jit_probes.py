"""Each known difference between our rules and Triton's JIT, looked for in the installed Triton."""

# ruff: noqa: PLC0415
# Triton is 1 GB and optional, so it is imported where it is used.

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

from foldproof.props.peers.agreement import Disagreement, sweep
from foldproof.props.peers.aot import function
from foldproof.props.peers.specialisation import Tensor, const_of
from foldproof.props.peers.tools import triton_version, triton_without_gpu

Seen: TypeAlias = tuple[bool, tuple[str, ...]]
"""Whether the difference is there, and what was seen."""


@cache
def swept() -> tuple[int, dict[str, list[Disagreement]]]:
    """How many decisions agree, and the disagreements by finding ("" where none explains them)."""
    found: dict[str, list[Disagreement]] = defaultdict(list)
    agreeing = 0
    for entry in sweep():
        if entry is None:
            agreeing += 1
        else:
            found[entry.finding].append(entry)
    return agreeing, dict(found)


def _swept(finding: str) -> Callable[[Path], Seen]:
    def probe(_: Path) -> Seen:
        agreeing, found = swept()
        those = found.get(finding, [])
        total = agreeing + sum(len(entries) for entries in found.values())
        backends = Counter(entry.target[0] for entry in those)
        counted = ", ".join(f"{count} on {name}" for name, count in sorted(backends.items()))
        seen = (f"{len(those)} of {total} decisions ({counted})", str(those[0])) if those else ()
        return bool(those), seen

    return probe


CONSTANTS: tuple[tuple[int | float | bool, ...], ...] = ((1, True, 1.0), (0, False, 0.0, -0.0))
"""Constants that Python takes for equal."""


def _cache(folder: Path) -> Seen:
    """Which constants share an entry of the JIT's own cache, and what its -0.0 is after a 0.0."""
    triton_version()
    from triton.runtime.jit import compute_cache_key

    shared = []
    for values in CONSTANTS:
        for first, second in combinations(values, 2):
            known: dict[object, str] = {}
            keys = [compute_cache_key(known, [("constexpr", value)], {}) for value in (first, second)]
            alone = compute_cache_key({}, [("constexpr", second)], {})
            if keys[0] == keys[1] != alone and const_of(first) != const_of(second):
                shared.append(f"{second!r} after {first!r} gets the kernel of {keys[0]!s}")
    stored = {order: _stored(folder, order) for order in ((0.0, -0.0), (-0.0,))}
    lines = (f"launched with {order}, the kernel stores {bits}" for order, bits in stored.items())
    return len(shared) > 0 and len(set(stored.values())) == 2, (*lines, *shared)


def _stored(folder: Path, values: tuple[float, ...]) -> str:
    """What a kernel that stores its constant stores by its PTX, the last of several that a process launches."""
    with triton_without_gpu(folder / "cache"):
        kernel = function("constant")
        kernel.device_caches.clear()
        for value in values:
            made = kernel.run(Tensor("fp32", 16), value, grid=(1,), warmup=True)
        kernel.device_caches.clear()
    return ", ".join(re.findall(r"mov\.b32\s+%r\d+, (-?\d+);", made.asm["ptx"]))


PROBES: Mapping[str, Callable[[Path], Seen]] = {**{f"J0{n}": _swept(f"J0{n}") for n in range(1, 8)}, "J08": _cache}
"""By the id of the finding; the folder is for what a probe writes."""
