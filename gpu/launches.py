"""The launches recorded with a capture: what each variant is for, what several may serve, and what none may.

Expectations come from how the twins were made (`pairs.admits`), not from the reference selector, so that holding the
selector to them means something. They are those of the policy `three-pass`, except `expect_recommended`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from foldproof.gpu.corpus.model import Absent, Buffer, Float, Int, Kernel, Twin
from foldproof.gpu.pairs import served
from foldproof.gpu.plan import ARCH, Plan, const_json, f32_bits
from foldproof.gpu.specialise import ALIGNMENT, MISALIGNED_BY

_FIRST_ADDRESS = 0x7F00_0000_0000
_SPACING = 1 << 20
ITEM_BYTES: Mapping[str, int] = {"*fp32": 4, "*i32": 4, "*bf16": 2}
"""Bytes an element, by pointer type."""


def recorded_launches(variants: Mapping[str, Plan]) -> list[dict[str, Any]]:
    """The records for the variants of a capture, given by hash and in the order of the corpus.

    Each is a case of `foldproof select` without its capture, and says grid and buffers for those who run it.
    """
    records: list[dict[str, Any]] = []
    for kernel in {plan.kernel.name: plan.kernel for plan in variants.values()}.values():
        own = {name: plan for name, plan in variants.items() if plan.kernel.name == kernel.name}
        for plan in own.values():
            why = "the values for which the JIT compiles this very variant"
            records.append(_record(f"{plan.title} exact", own, plan, plan.twin, why))
        first = next(iter(own.values()))
        records += _mixed(own, first)
        records += _misses(own, first)
        if len(kernel.num_warps) > 1:
            records.append(_unpinned(own, first))
    return records


def launch_json(plan: Plan, values: Twin) -> dict[str, Any]:
    """The launch of a kernel with these values, pinned to the options of `plan`; addresses are those of no machine."""
    kernel = plan.kernel
    args = [_arg(param, values, place) for place, param in enumerate(kernel.params)]
    return {
        "fn": kernel.name,
        "args": args,
        "consts": {name: const_json(value) for name, value in kernel.consts.items()},
        "num_warps": plan.num_warps,
        "num_stages": kernel.num_stages,
        "arch": ARCH,
        "enable_fp_fusion": plan.fused,
    }


def grid_of(kernel: Kernel, values: Twin) -> list[int]:
    """The grid of a launch in programs, with named extents replaced by their values."""
    ints = {p.name: values.values.get(p.name, p.value) for p in kernel.params if isinstance(p, Int)}
    return [ints[extent] if isinstance(extent, str) else extent for extent in kernel.grid]


def _arg(param: Buffer | Int | Float | Absent, values: Twin, place: int) -> dict[str, Any]:
    if isinstance(param, Buffer):
        address = _FIRST_ADDRESS + place * _SPACING + (MISALIGNED_BY if param.name in values.misaligned else 0)
        size = param.elems * ITEM_BYTES[param.type]
        return {"name": param.name, "kind": "ptr", "type": param.type, "addr": hex(address), "bytes": size}
    if isinstance(param, Int):
        return {"name": param.name, "kind": "i32", "value": values.values.get(param.name, param.value)}
    if isinstance(param, Float):
        return {"name": param.name, "kind": "fp32", "bits": f32_bits(param.value)}
    return {"name": param.name, "kind": "none"}


def _record(name: str, own: Mapping[str, Plan], plan: Plan, values: Twin, why: str) -> dict[str, Any]:
    alike = {n: p for n, p in own.items() if p.options == plan.options}
    strictness, first = served(alike, values, plan.kernel)
    expect = {"pick": first[0], "pass": strictness} if first else {"error": "MissingTritonVariant"}
    return {
        "name": name,
        "launch": launch_json(plan, values),
        "expect": expect,
        "why": why,
        "grid": grid_of(plan.kernel, values),
        "buffers": {p.name: {"role": p.role, "below": p.below} for p in plan.kernel.params if isinstance(p, Buffer)},
    }


_WHY_MIXED = {
    "exact": "the JIT would compile this variant although it is not the value that the twin was made with",
    "general": "no variant was compiled for these values, but the assumptions of some hold",
    "runtime-one": "there is no folded variant, so a 1 that the JIT would fold is read at run time",
}


def _mixed(own: Mapping[str, Plan], plan: Plan) -> list[dict[str, Any]]:
    """Launches with values that no compiled twin was made with: 1 or 16, and each choice of misaligned pointers."""
    kernel = plan.kernel
    fold = next(iter(plan.twin.values))
    losses = {twin.misaligned for twin in kernel.twins}
    known = {(p.spec.values[fold], p.twin.misaligned) for p in own.values() if set(p.twin.values) == {fold}}
    records = []
    for value, lost in sorted({(value, lost) for value in (1, ALIGNMENT) for lost in losses} - known):
        record = _record(f"{kernel.name}[{fold}={value}, {_lost(lost)}]", own, plan, Twin("", {fold: value}, lost), "")
        record["why"] = _WHY_MIXED[record["expect"]["pass"]]
        records.append(record)
    return records


def _lost(names: tuple[str, ...]) -> str:
    return f"{' and '.join(names)} misaligned" if names else "all aligned"


def _misses(own: Mapping[str, Plan], plan: Plan) -> list[dict[str, Any]]:
    kernel = plan.kernel
    out = next(p.name for p in kernel.params if isinstance(p, Buffer) and p.role != "in")
    lost = Twin("out", plan.twin.values, (out,))
    records = [
        _record(f"{kernel.name} {out} misaligned", own, plan, lost, f"every variant assumes that {out} is aligned")
    ]
    base = _record("", own, plan, plan.twin, "")
    for title, why, change in (
        ("other constant", "a constant has another value", _other_const),
        ("other option", "no variant was compiled for this number of warps", _other_warps),
        ("wide int", "an i64 is no i32, even when its value is small", _wide_int),
        ("absent arg", "a param is given no argument", _absent_arg),
        ("other source", "the launch names another source", _other_source),
    ):
        record = copy.deepcopy(base)
        change(record["launch"])
        record.update(name=f"{kernel.name} {title}", why=why, expect={"error": "MissingTritonVariant"})
        records.append(record)
    return records


def _other_const(launch: dict[str, Any]) -> None:
    name = next(n for n, const in launch["consts"].items() if "int" in const)
    launch["consts"][name] = {"int": launch["consts"][name]["int"] * 2}


def _other_warps(launch: dict[str, Any]) -> None:
    launch["num_warps"] = 16


def _wide_int(launch: dict[str, Any]) -> None:
    # The last i32: where a param is annotated, and so takes any width, it is an earlier one.
    next(arg for arg in reversed(launch["args"]) if arg["kind"] == "i32")["kind"] = "i64"


def _absent_arg(launch: dict[str, Any]) -> None:
    launch["args"].pop(0)


def _other_source(launch: dict[str, Any]) -> None:
    launch["source"] = "0" * 16


def _unpinned(own: Mapping[str, Plan], plan: Plan) -> dict[str, Any]:
    """A launch that pins no warp count: a policy that takes the first match takes whichever hash is smaller."""
    record = _record(f"{plan.kernel.name} warps not pinned", own, plan, plan.twin, "the warp count is left to chance")
    del record["launch"]["num_warps"]
    alike = {n: p for n, p in own.items() if p.fused == plan.fused}
    strictness, names = served(alike, plan.twin, plan.kernel)
    record["expect"] = {"pick": names[0], "pass": strictness}
    record["expect_recommended"] = {"error": "AmbiguousTritonVariant", "among": names}
    return record
