"""A toy function of two buffers, a foldable int and a count: its variants, its launch, its trace record."""

from __future__ import annotations

from typing import Any

COUNT = 100


def entry(name: str, **more: Any) -> dict[str, Any]:
    """A variant of the toy function: X, OUT, R, N; R folded where its name says so."""
    folded = name.startswith("folded")
    params = [
        {"name": "X", "type": "*fp32", "div16": True, "nospec": False},
        {"name": "OUT", "type": "*fp32", "div16": True, "nospec": False},
        *([] if folded else [{"name": "R", "type": "i32", "div16": False, "nospec": False}]),
        {"name": "N", "type": "i32", "div16": False, "nospec": False},
    ]
    base = {"fn": "toy", "hash": name, "name": "toy", "num_warps": 4, "params": params, "arch": "sm_90"}
    return {**base, "consts": {"R": {"int": 1}} if folded else {}, **more}


def launch(**more: Any) -> dict[str, Any]:
    return {
        "fn": "toy",
        "args": [
            {"name": "X", "kind": "ptr", "type": "*fp32", "addr": "0x7f0000000000", "bytes": 4 * COUNT},
            {"name": "OUT", "kind": "ptr", "type": "*fp32", "addr": "0x7f0000100000", "bytes": 4 * COUNT},
            {"name": "R", "kind": "i32", "value": 1},
            {"name": "N", "kind": "i32", "value": COUNT},
        ],
        **more,
    }


RECORD = {"name": "toy launch", "grid": [1, 1, 1], "buffers": {"X": {"role": "in"}, "OUT": {"role": "out"}}}
