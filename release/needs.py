"""The work list: which variants to compile, as launches in the needs format, the least assuming first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from foldproof import __version__
from foldproof.impl.capture import Capture, Const, Consts, Param, Variant
from foldproof.impl.choose import assumptions
from foldproof.impl.launch import INT_KINDS, Arg, Kind, Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Strictness, has_alignment, refusal
from foldproof.impl.select import Outcome, Selection, decide
from foldproof.release.shapes import Family, Switches


def compiled_for(launch: Launch, family: Family, mark: str) -> Variant:
    """The variant that Triton would compile for the launch, with the switches that the function's own params have."""
    params: list[Param] = []
    consts: Consts = dict(launch.consts)
    for arg in launch.args:
        place = _place(arg, family.switches(arg.name))
        if isinstance(place, Param):
            # A launch may name an arg as a constant too; no variant has both, and the one that is compiled has the arg.
            consts.pop(arg.name, None)
            params.append(place)
        else:
            consts[arg.name] = place
    warps = launch.num_warps or (family.variants[0].num_warps if family.variants else 4)
    return Variant(
        launch.fn,
        mark,
        warps,
        tuple(params),
        consts,
        num_stages=launch.num_stages or 0,
        arch=launch.arch,
        enable_fp_fusion=launch.enable_fp_fusion,
        source=launch.source,
    )


def _place(arg: Arg, switches: Switches) -> Param | Const:
    """Where the compiler puts the arg; a switch that every variant of the function has belongs to the function."""
    if arg.kind == Kind.NONE:
        return Const(none=True)
    annotated = switches.annotated is not None and arg.kind in INT_KINDS
    if arg.kind == Kind.I32 and arg.number == 1 and not switches.nospec and not annotated:
        return Const(int_=1)
    div16 = has_alignment(arg) and arg.number % 16 == 0 and not switches.nospec and not switches.noalign
    type_name = switches.annotated if annotated and switches.annotated else arg.type
    return Param(arg.name, type_name, div16, switches.nospec, switches.noalign, annotated)


def is_gap(outcome: Outcome, strict: bool) -> bool:
    """Whether the outcome is none that a complete capture has: a miss, and with `strict` a fallback too."""
    if isinstance(outcome, Selection):
        return strict and outcome.is_fallback
    return outcome.code == "MissingTritonVariant"


def weight(launch: Launch, family: Family) -> tuple[int, int, str]:
    """How much the variant compiled for the launch would assume, then how many args it has."""
    variant = compiled_for(launch, family, "new")
    return assumptions(variant, launch), len(launch.args), str(launch)


def work_list(
    family: Family, launches: Iterable[tuple[Launch, int]], policy: Policy, strict: bool
) -> list[tuple[Launch, int]]:
    """Launches to compile for, least assuming first, so that no launch is a gap any more; each with its count.

    A launch that a variant chosen earlier serves is not listed; its count goes nowhere.
    """
    added: dict[object, list[Variant]] = {}
    chosen: list[tuple[Launch, int]] = []
    for launch, count in sorted(launches, key=lambda pair: weight(pair[0], family)):
        # A variant made for other constants or options is no candidate of this launch.
        same = added.setdefault((tuple(launch.consts), str(launch.consts), launch.options, launch.source), [])
        if _is_open(launch, family, same, policy, strict):
            same.append(compiled_for(launch, family, f"new-{len(chosen)}"))
            chosen.append((launch, count))
    return chosen


def _is_open(launch: Launch, family: Family, added: Sequence[Variant], policy: Policy, strict: bool) -> bool:
    """Whether the launch, a gap before, is still one with the variants added."""
    # Each strictness admits what those before it admit, so the loosest pass speaks for all.
    loosest = [s for s in Strictness if any(sweep.rules == s for sweep in policy.passes)][-1]
    rules = [policy.rules(s) for s in {loosest, *(sweep.rules for sweep in policy.passes if sweep.rules == "linker")}]
    bare = msgspec.structs.replace(launch, consts={})
    if not any(refusal(variant, bare, one) is None for variant in added for one in rules):
        return True
    return strict and is_gap(decide(Capture((*family.variants, *added)), launch, policy), strict)


def needs_json(pairs: Iterable[tuple[Launch, int]]) -> dict[str, Any]:
    """A needs file in the first public dialect, extended by the kinds i64, u1 and none."""
    needs = [_need(launch, count) for launch, count in pairs]
    calls = sum(need["count"] for need in needs)
    return {"generator": f"foldproof {__version__}", "calls": calls, "needs": needs}


def _need(launch: Launch, count: int) -> dict[str, Any]:
    need = {
        "fn": launch.fn,
        "count": count,
        "num_warps": launch.num_warps,
        "num_stages": launch.num_stages,
        "consts": msgspec.to_builtins(launch.consts),
        "args": [_need_arg(arg) for arg in launch.args],
    }
    more = {name: getattr(launch, name) for name in ("arch", "enable_fp_fusion", "source")}
    return need | {name: value for name, value in more.items() if value is not None}


def _need_arg(arg: Arg) -> dict[str, Any]:
    if arg.kind == Kind.PTR:
        return {"name": arg.name, "kind": "ptr", "type": arg.pointee, "align16": arg.number % 16 == 0}
    if arg.kind == Kind.FP32:
        return {"name": arg.name, "kind": "f32", "bits": arg.number}
    if arg.kind == Kind.NONE:
        return {"name": arg.name, "kind": "none"}
    return {
        "name": arg.name,
        "kind": arg.kind.value,
        "value": bool(arg.number) if arg.kind == Kind.U1 else arg.number,
    }
