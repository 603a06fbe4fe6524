"""Launches as recorded with a capture: what symbolic replay needs beyond the launch itself is its grid.

A record is an object with `launch`, `grid` (three extents) and `buffers` (`{name: {"below": n}}`: integers drawn from
[0, n) that may reach addresses). A bare launch is read too; without a grid its verdict is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from foldproof.gpu.symbolic.graph import Bits
from foldproof.gpu.symbolic.lanes import Stop
from foldproof.gpu.symbolic.memory import Region
from foldproof.gpu.symbolic.program import Kernel
from foldproof.impl.capture import Variant
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.launch import Kind, Launch, launch_from
from foldproof.impl.strictjson import located, read_many, reject_repeats

ELEMENTS: Mapping[str, tuple[int, str]] = {
    "fp32": (4, "f32"),
    "f32": (4, "f32"),
    "bf16": (2, "bf16"),
    "fp16": (2, "f16"),
    "fp64": (8, "f64"),
    **{f"{sign}{width}": (width // 8, "") for sign in "iu" for width in (8, 16, 32, 64)},
    "i1": (1, ""),
    "u1": (1, ""),
    "fp8e4nv": (1, ""),
    "fp8e5": (1, ""),
}
"""Bytes and floating-point format of an element, by pointee type."""
SEED = 20240611
"""Seed of the index contents; a verdict that used them says so."""
Grid = tuple[int, int, int]


class LaunchCase(msgspec.Struct, frozen=True):
    """A launch with its name, its grid in blocks, and the exclusive bounds of its index buffers."""

    name: str
    launch: Launch
    grid: Grid | None = None
    below: dict[str, int] = {}


def load_cases(path: Path) -> tuple[LaunchCase, ...]:
    """The launches of a file, one, a JSON list or NDJSON. Raises `InvalidLaunch` with file, place and reason."""
    return tuple(_cases(path))


def _cases(path: Path) -> Iterator[LaunchCase]:
    for place, value in read_many(path, InvalidLaunch):
        yield located(f"{path}: {place}", lambda value=value, place=place: case_from(value, str(place)))  # type: ignore[misc]


def case_from(value: Any, name: str = "launch") -> LaunchCase:
    """A case from a decoded JSON value. Raises `InvalidLaunch`."""
    if not isinstance(value, dict) or "launch" not in value:
        return LaunchCase(name, launch_from(value))
    reject_repeats(value, InvalidLaunch)
    grid = value.get("grid")
    if grid is not None and not (
        isinstance(grid, list) and len(grid) == 3 and all(isinstance(n, int) and 0 < n < 1 << 31 for n in grid)
    ):
        raise InvalidLaunch("the grid is no list of three positive extents", where="$.grid", fix="write [x, y, z]")
    below = {}
    notes = value.get("buffers") or {}
    if not isinstance(notes, dict):
        raise InvalidLaunch("buffers is no object", where="$.buffers", fix="see docs/reference/replay.md")
    for buffer, note in notes.items():
        bound = note.get("below", 0) if isinstance(note, dict) else None
        if not isinstance(bound, int) or bound < 0:
            raise InvalidLaunch("below is no bound", where=f"$.buffers.{buffer}.below", fix="write a number from 0")
        if bound:
            below[buffer] = bound
    return LaunchCase(str(value.get("name", name)), launch_from(value["launch"]), tuple(grid) if grid else None, below)


def parameters(kernel: Kernel, variant: Variant, launch: Launch) -> dict[str, int]:
    """The bits of each PTX parameter: the variant's params by name, then the two scratch pointers, which are null."""
    args = {arg.name: arg for arg in launch.args}
    extra = len(kernel.params) - len(variant.params)
    if extra not in (0, 1, 2):
        raise Stop(f"the PTX takes {len(kernel.params)} parameters, the capture lists {len(variant.params)}")
    if variant.global_scratch or variant.profile_scratch:
        raise Stop("the variant uses scratch memory, which is not modelled")
    values: dict[str, int] = {}
    for place, formal in enumerate(kernel.params):
        if formal.elems:
            raise Stop(f"the parameter {formal.name} is passed by value (a tensor descriptor), which is not modelled")
        number = 0
        if place < len(variant.params):
            param = variant.params[place]
            arg = args[param.name]
            if arg.kind == Kind.FP32 and param.type not in ("fp32", "f32"):
                raise Stop(f"{param.name} is given as fp32 and taken as {param.type}, which is not modelled")
            number = arg.number
        values[formal.name] = number & ((1 << 8 * formal.bytes) - 1)
    return values


def allocations(case: LaunchCase) -> tuple[Region, ...]:
    """The buffers of a launch by address. Raises `Stop` where sizes are missing or buffers overlap."""
    found = []
    for arg in case.launch.args:
        if arg.kind != Kind.PTR or not arg.number:
            continue
        if arg.bytes is None:
            raise Stop(f"the launch does not say how large {arg.name} is")
        known = ELEMENTS.get(arg.pointee.removeprefix("*"))
        if known is None:
            raise Stop(f"elements of type {arg.pointee} are not modelled")
        size, floats = known
        values = _indices(case, arg.name, arg.bytes // size) if arg.name in case.below else None
        found.append(Region(arg.number, arg.number + arg.bytes // size * size, size, arg.name, floats, values))
    found.sort(key=lambda r: r.start)
    for one, other in pairwise(found):
        if one.stop > other.start:
            raise Stop(f"{one.name} and {other.name} overlap")
    if not found:
        raise Stop("the launch names no buffer")
    return tuple(found)


def _indices(case: LaunchCase, name: str, count: int) -> Bits:
    place = sorted(case.below).index(name)
    draw = np.random.Generator(np.random.Philox(key=[SEED, place]))
    return draw.integers(0, case.below[name], count).astype(np.uint64)


COVER = 512
"""Blocks up to which a grid runs whole."""


def blocks_of(grid: Grid) -> tuple[tuple[Grid, ...], str]:
    """The blocks to run and their description: all, or first, second, middle and last along each axis."""
    x, y, z = grid
    total = x * y * z
    if total <= COVER:
        return tuple((i, j, k) for k in range(z) for j in range(y) for i in range(x)), f"all {total} blocks"
    axes = [sorted({0, 1, n // 2, n - 2, n - 1} & set(range(n))) for n in grid]
    chosen = tuple((i, j, k) for k in axes[2] for j in axes[1] for i in axes[0])
    where = " x ".join("{" + ", ".join(map(str, axis)) + "}" for axis in axes)
    return chosen, f"{len(chosen)} of {total} blocks, {where}"
