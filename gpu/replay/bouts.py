"""What is to be run: a bout is one launch, the variants that may serve it, and the pairs among them to compare.

Planning needs no device. The bundled capture's bouts come from its corpus, with a label a pair; those of any other
capture from a trace: for each launch, every two variants that the runtime-one rules admit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import msgspec
from foldproof.gpu.bundle import MANIFEST, Manifest, read_manifest
from foldproof.gpu.corpus import BY_NAME, Kernel
from foldproof.gpu.corpus.model import Buffer
from foldproof.gpu.launches import grid_of, launch_json
from foldproof.gpu.pairs import Pair, pairs
from foldproof.gpu.plan import Plan
from foldproof.gpu.replay.trace import Record, record_from, record_to
from foldproof.impl import Capture, Launch, Variant, load_capture, load_policy
from foldproof.impl.launch import Kind
from foldproof.impl.rules import Strictness, refusal


class Matchup(msgspec.Struct, frozen=True):
    """Two variants of a bout by hash. `expected` is the verdict that a label predicts on `domain`, where there is one.

    `change` is what they differ in: "fold of R", "div16 of X", "4 against 8 warps".
    """

    first: str
    second: str
    change: tuple[str, ...]
    expected: str | None = None
    domain: str | None = None


class Bout(msgspec.Struct, frozen=True):
    """One launch and all that is to be compared under it."""

    record: Record
    variants: tuple[str, ...]
    matchups: tuple[Matchup, ...]


class Missing(msgspec.Struct, frozen=True):
    """A pair of the corpus of which one variant does not exist, with the reason: no reference without a run."""

    fn: str
    first: str
    second: str
    change: tuple[str, ...]
    expected: str
    reason: str


def corpus_bouts(capture: Path) -> tuple[tuple[Bout, ...], tuple[Missing, ...]]:
    """The bouts of a capture that was built from the corpus, and the pairs that cannot be run.

    Raises `InvalidCapture` where the capture has no readable manifest.
    """
    manifest = read_manifest(capture)
    names = _hashes(capture, manifest)
    absent = {(r.fn, r.twin, r.num_warps, r.enable_fp_fusion): r.reason for r in manifest.no_reference}
    present = [BY_NAME[row.name] for row in manifest.kernels if row.name in BY_NAME]
    grouped: dict[bytes, tuple[Record, list[Matchup]]] = {}
    missing = []
    for pair in pairs(present):
        first, second = names.get(_key(pair.first)), names.get(_key(pair.second))
        if first is None or second is None:
            plan = pair.first if first is None else pair.second
            reason = absent.get(_key(plan), "it is not in the capture")
            missing.append(_missing(pair, f"{plan.title} does not exist: {reason.strip().splitlines()[-1]}"))
            continue
        record = corpus_record(pair)
        key = msgspec.json.encode(record_to(record))
        domain = pair.first.kernel.label.domain
        grouped.setdefault(key, (record, []))[1].append(Matchup(first, second, pair.change, pair.expected, domain))
    return _named(_bout(record, matchups) for record, matchups in grouped.values()), tuple(missing)


def corpus_record(pair: Pair) -> Record:
    """The launch under which both variants of a corpus pair are admissible, as a trace record."""
    kernel, plan = pair.first.kernel, pair.first
    launch = launch_json(plan, pair.launch)
    if pair.first.num_warps != pair.second.num_warps:
        del launch["num_warps"]
    buffers = {p.name: {"role": p.role, "below": p.below} for p in kernel.params if isinstance(p, Buffer)}
    grid = grid_of(kernel, pair.launch)
    return record_from({"name": _launch_name(kernel, pair, plan), "launch": launch, "grid": grid, "buffers": buffers})


def trace_bouts(capture: Capture, records: Sequence[Record]) -> tuple[Bout, ...]:
    """A bout for each distinct launch of a trace that two or more variants may serve."""
    bouts: dict[bytes, Bout] = {}
    for record in records:
        variants = [v for v in capture.kernels if v.fn == record.launch.fn and admits(v, record.launch)]
        if len(variants) < 2:
            continue
        key = msgspec.json.encode(record_to(msgspec.structs.replace(record, name="")))
        matchups = [
            Matchup(a.hash, b.hash, change(a, b)) for a, b in combinations(_folded_first(variants, record.launch), 2)
        ]
        bouts.setdefault(key, _bout(record, matchups))
    return _named(bouts.values())


def admits(variant: Variant, launch: Launch) -> bool:
    """Whether the runtime-one rules of the policy `recommended` admit the variant."""
    return refusal(variant, launch, load_policy("recommended").rules(Strictness.RUNTIME_ONE)) is None


def change(first: Variant, second: Variant) -> tuple[str, ...]:
    """What two variants of one function differ in, in the words of `gpu.pairs`."""
    folded = [{name for name, const in v.consts.items() if const.kind == "int"} for v in (first, second)]
    runtime = [{p.name: p for p in v.params} for v in (first, second)]
    crossed = (folded[0] & set(runtime[1])) | (folded[1] & set(runtime[0]))
    found = [f"fold of {name}" for name in sorted(crossed)]
    shared = sorted(set(runtime[0]) & set(runtime[1]))
    found += [f"div16 of {name}" for name in shared if runtime[0][name].div16 != runtime[1][name].div16]
    if first.num_warps != second.num_warps:
        found.append(f"{first.num_warps} against {second.num_warps} warps")
    if first.num_stages != second.num_stages:
        found.append(f"{first.num_stages} against {second.num_stages} stages")
    if first.enable_fp_fusion != second.enable_fp_fusion:
        found.append("fp fusion")
    if first.source != second.source:
        found.append("source")
    return tuple(found)


def is_corpus(capture: Path) -> bool:
    """Whether a capture folder has a manifest, so that its bouts can come from the corpus."""
    return (capture / MANIFEST).is_file()


def _folded_first(variants: Sequence[Variant], launch: Launch) -> list[Variant]:
    """The variants with the most args folded first, so that a pair reads "folded against runtime"."""
    ints = {arg.name for arg in launch.args if arg.kind in (Kind.I32, Kind.I64, Kind.U64)}
    return sorted(variants, key=lambda v: -len(ints & set(v.consts)))


def _named(bouts: Iterable[Bout]) -> tuple[Bout, ...]:
    """The bouts with launch names that tell them apart: counts and verdicts are kept by name."""
    seen: Counter[str] = Counter()
    named = []
    for bout in bouts:
        name = bout.record.name
        seen[name] += 1
        if seen[name] > 1:
            record = msgspec.structs.replace(bout.record, name=f"{name} ({seen[name]})")
            named.append(msgspec.structs.replace(bout, record=record))
        else:
            named.append(bout)
    return tuple(named)


def _bout(record: Record, matchups: Iterable[Matchup]) -> Bout:
    fought = tuple(matchups)
    variants = dict.fromkeys(name for matchup in fought for name in (matchup.first, matchup.second))
    return Bout(record, tuple(variants), fought)


def _key(plan: Plan) -> tuple[str, str, int, bool]:
    return plan.kernel.name, plan.twin.name, plan.num_warps, plan.fused


def _hashes(capture: Path, manifest: Manifest) -> Mapping[tuple[str, str, int, bool], str]:
    """The hash of each variant by kernel, twin, warps and fusion."""
    variants = {variant.hash: variant for variant in load_capture(capture).kernels}
    found = {}
    for row in manifest.variants:
        variant = variants.get(row.hash)
        if variant is not None:
            found[row.fn, row.twin, variant.num_warps, bool(variant.enable_fp_fusion)] = row.hash
    return found


def _missing(pair: Pair, reason: str) -> Missing:
    fn = pair.first.kernel.name
    return Missing(fn, pair.first.title, pair.second.title, pair.change, pair.expected, reason)


def _launch_name(kernel: Kernel, pair: Pair, plan: Plan) -> str:
    lost = f", {' and '.join(pair.launch.misaligned)} misaligned" if pair.launch.misaligned else ""
    varied = dict.fromkeys(name for twin in kernel.twins for name in twin.values)
    fold = ", ".join(f"{name}={pair.launch.values[name]}" for name in varied)
    warps = f"{plan.num_warps} warps" if pair.first.num_warps == pair.second.num_warps else "warps not pinned"
    return f"{kernel.name}[{fold}{lost}, {warps}, fusion {'on' if plan.fused else 'off'}]"
