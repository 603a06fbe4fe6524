"""Random captures and launches that reach every rule: small names, few values, every kind and switch."""

from __future__ import annotations

import random
from typing import Any

from foldproof.impl import Capture, Launch, capture_from, launch_from

NAMES = ("a", "b", "c")
CONST_NAMES = ("X", "Y")
CONSTS: tuple[dict[str, Any], ...] = (
    {"int": 1},
    {"int": 0},
    {"int": -(2**63)},
    {"int": 2**63},
    {"bool": True},
    {"f32": 1},
    {"f32": 0x80000000},
    {"str": "1"},
    {"str": ""},
    {"none": True},
)
INTS = {
    "i32": (1, 1, 1, 0, 16, 7, -16, -1, 2**31 - 1, -(2**31)),
    "i64": (1, 16, 17, 2**40, -(2**63), 2**63 - 1),
    "u64": (1, 0, 16, 2**63, 2**64 - 1),
}
TYPES = ("i32", "i32", "i32", "i64", "u64", "u1", "fp32", "*bf16", "*i8")
INT_TYPES = ("i8", "u8", "i16", "i32", "i64", "u32", "u64")


def _chance(rng: random.Random, share: float) -> bool:
    return rng.random() < share


def _param(rng: random.Random, name: str, kind: str) -> dict[str, Any]:
    param: dict[str, Any] = {"name": name, "type": kind}
    param["div16"], param["nospec"] = _chance(rng, 0.35), _chance(rng, 0.15)
    if _chance(rng, 0.15):
        param["noalign"] = True
    if kind.startswith("*") and _chance(rng, 0.3):
        param["range32"] = True
    if kind in INTS and _chance(rng, 0.2):
        param |= {"annotated": True, "type": rng.choice(INT_TYPES)}
    return param


def _variant(rng: random.Random, number: int, types: dict[str, str]) -> dict[str, Any]:
    params, consts = [], {}
    for name, usual in types.items():
        kind = usual if _chance(rng, 0.9) else rng.choice(TYPES)
        if _chance(rng, 0.25):
            consts[name] = {"int": 1} if _chance(rng, 0.8) else rng.choice(CONSTS)
        elif _chance(rng, 0.97):
            params.append(_param(rng, name, kind))
    rng.shuffle(params)
    for name in CONST_NAMES:
        if _chance(rng, 0.4):
            consts[name] = rng.choice(CONSTS[:6])
    entry = {"fn": "k" if _chance(rng, 0.9) else "other", "hash": f"h{number}", "num_warps": rng.choice((4, 4, 8))}
    entry |= {"params": params, "consts": consts}
    more = {"num_stages": (0, 2, 3), "arch": ("sm_90", "sm_100"), "enable_fp_fusion": (False, True), "source": "xy"}
    return entry | {key: rng.choice(values) for key, values in more.items() if _chance(rng, 0.25)}


def _arg(rng: random.Random, name: str, kind: str) -> dict[str, Any]:
    kind = kind if _chance(rng, 0.92) else rng.choice((*TYPES, "none"))
    if kind in INTS:
        return {"name": name, "kind": kind, "value": rng.choice(INTS[kind])}
    if kind == "u1":
        return {"name": name, "kind": kind, "value": _chance(rng, 0.5)}
    if kind == "fp32":
        return {"name": name, "kind": kind, "bits": rng.choice((0, 1, 0x3F800000, 2**32 - 1))}
    if kind == "none":
        return {"name": name, "kind": kind}
    pointer = {
        "name": name,
        "kind": "ptr",
        "type": kind,
        "addr": rng.choice(("0x0", "0x10", "0x18", f"{2**64 - 1:#x}")),
    }
    return pointer | ({"bytes": rng.choice((0, 2**31 - 1, 2**31, 2**40))} if _chance(rng, 0.8) else {})


def _launch(rng: random.Random, types: dict[str, str]) -> dict[str, Any]:
    args = [_arg(rng, name, kind) for name, kind in types.items() if _chance(rng, 0.97)]
    if _chance(rng, 0.3):
        rng.shuffle(args)
    consts = {name: rng.choice(CONSTS[:6]) for name in CONST_NAMES if _chance(rng, 0.12)}
    launch: dict[str, Any] = {"fn": "k" if _chance(rng, 0.97) else "other", "args": args, "consts": consts}
    pins = {"num_warps": (4, 8), "num_stages": (0, 2, 3), "arch": ("sm_90", "sm_1"), "enable_fp_fusion": (False, True)}
    launch |= {key: rng.choice(values) for key, values in pins.items() if _chance(rng, 0.04)}
    return launch | ({"source": rng.choice("xy")} if _chance(rng, 0.2) else {})


def case(seed: int, launches: int = 12) -> tuple[Capture, list[Launch]]:
    """A capture of 1 to 6 variants and launches that are likely to fit some of them."""
    rng = random.Random(seed)  # noqa: S311  # a seed that replays is the point
    types = {name: rng.choice(TYPES) for name in NAMES[: rng.randint(0, 3)]}
    kernels = [_variant(rng, number, types) for number in range(rng.randint(1, 6))]
    return capture_from({"kernels": kernels}), [launch_from(_launch(rng, types)) for _ in range(launches)]
