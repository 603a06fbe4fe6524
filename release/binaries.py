"""The cubins of a capture against its entries: what each file says of its own kernel must be what the entry says."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from foldproof.gpu.bundle import MANIFEST, read_manifest
from foldproof.impl.capture import Param
from foldproof.impl.errors import InvalidCapture
from foldproof.impl.strictjson import read_document
from foldproof.release.findings import Finding, Severity, finding
from foldproof.release.lenient import Entry, Lenient
from foldproof.release.nvinfo import Cubin, CubinError, KernelInfo, read_cubin

SHARED_LIMITS: Mapping[int, int] = {
    **dict.fromkeys((70, 72), 96),
    75: 64,
    **dict.fromkeys((80, 87), 163),
    **dict.fromkeys((86, 89, 120, 121), 99),
    **dict.fromkeys((90, 100, 101, 103, 110), 227),
}
"""KiB of shared memory that one block may have, by SM architecture (CUDA programming guide, compute capabilities)."""
REGISTERS_A_BLOCK = 65536
REGISTER_GRAIN = 8
SIZES: Mapping[str, int] = {"u1": 1, "i1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4} | {
    "fp32": 4,
    "i64": 8,
    "u64": 8,
    "fp64": 8,
}
MOST_SCRATCH_POINTERS = 2
MOST_BYTES = 128 << 20


def cubin_findings(capture: Lenient) -> Iterator[Finding]:
    """Findings L501 to L513 of the cubins that are there, and L509 of the sizes that the entries state."""
    target, known = _target(capture), _known_not_to_load(capture)
    for entry in capture.entries:
        yield from _shared(entry, _arch_number(entry) or target, known)
    present = [entry for entry in capture.entries if capture.cubin(entry).is_file()]
    if not present:
        return
    for entry in capture.entries:
        if entry not in present:
            yield finding("L501", f"{entry.path}.hash", f"{capture.cubin(entry).name} is not in {capture.folder.name}")
    digests: dict[int, str] = {}
    cubins: dict[int, Cubin] = {}
    broken = []
    for entry in present:
        data = _bytes(capture, entry)
        digests[entry.index] = hashlib.sha256(data).hexdigest()
        try:
            cubins[entry.index] = read_cubin(data)
        except CubinError as problem:
            broken.append(finding("L503", f"{entry.path}.hash", f"{capture.cubin(entry).name} {problem}"))
    yield from _digests(capture, present, digests)
    yield from broken
    pairs = [(entry, cubins[entry.index]) for entry in present if entry.index in cubins]
    trailing = _trailing(pairs)
    for entry, cubin in pairs:
        yield from _one(entry, cubin, _arch_number(entry) or target, trailing)
    yield from _identical(pairs)
    named = {capture.cubin(entry).name for entry in capture.entries}
    for stray in sorted(p.name for p in capture.folder.glob("*.cubin") if p.name not in named):
        yield finding("L513", f"{capture.folder.name}/{stray}", f"{stray} belongs to no entry")


def _bytes(capture: Lenient, entry: Entry) -> bytes:
    file = capture.cubin(entry)
    return file.read_bytes() if file.stat().st_size <= MOST_BYTES else b""


def _target(capture: Lenient) -> int | None:
    target = capture.top.get("target")
    found = target[1] if isinstance(target, list) and len(target) > 1 else None
    return found if isinstance(found, int) else None


def _arch_number(entry: Entry) -> int | None:
    match = re.fullmatch(r"sm_?(\d+)[af]?", entry.variant.arch or "")
    return int(match[1]) if match else None


def _shared(entry: Entry, sm: int | None, known: Mapping[str, str]) -> Iterator[Finding]:
    limit, mark = SHARED_LIMITS.get(sm or 0), entry.variant.hash
    if limit is not None and entry.variant.shared > limit * 1024:
        what = f"{mark} needs {entry.variant.shared} bytes; a block of sm_{sm} has {limit * 1024}"
        if mark in known:
            said = f"{what} ({MANIFEST} says so: {known[mark]})"
            yield finding("L509", f"{entry.path}.shared", said, Severity.NOTE)
        else:
            yield finding("L509", f"{entry.path}.shared", what)


def _digests(capture: Lenient, present: list[Entry], digests: Mapping[int, str]) -> Iterator[Finding]:
    """Each cubin, and `aot.json` itself, against the manifest beside it, if there is one."""
    manifest = _manifest(capture)
    for entry in present:
        wanted = manifest.get(entry.variant.hash)
        if wanted and digests[entry.index] != wanted:
            yield finding("L502", f"{entry.path}.hash", f"{capture.cubin(entry).name} has another sha256")
        elif manifest and wanted is None:
            yield finding("L502", f"{entry.path}.hash", f"{MANIFEST} has no digest of {entry.variant.hash}")


def _manifest(capture: Lenient) -> dict[str, str]:
    """The sha256 of each cubin by hash; empty where there is no manifest that says them."""
    try:
        value = read_document(capture.file.parent / MANIFEST, InvalidCapture)
        return {str(row["hash"]): str(row["cubin"]["sha256"]) for row in value["variants"]}
    except (InvalidCapture, KeyError, TypeError):
        return {}


def _known_not_to_load(capture: Lenient) -> dict[str, str]:
    """The variants that the manifest itself records as failing to load, and the reason: no fault, but a fact."""
    try:
        manifest = read_manifest(capture.file.parent)
    except InvalidCapture:
        return {}
    by_hash = {entry.variant.hash: entry.variant for entry in capture.entries}
    found = {}
    for row in manifest.no_reference:
        for own in manifest.variants:
            variant = by_hash.get(own.hash)
            options = None if variant is None else (variant.num_warps, variant.enable_fp_fusion)
            if (own.fn, own.twin) == (row.fn, row.twin) and options == (row.num_warps, row.enable_fp_fusion):
                found[own.hash] = row.reason
    return found


def _trailing(pairs: list[tuple[Entry, Cubin]]) -> int:
    """How many scratch pointers follow the params in this capture: what most of its cubins say.

    It depends on the Triton that compiled them: none, one, or (from 3.5 on) two.
    """
    surplus = Counter(
        len(kernel.params) - len(entry.variant.params)
        for entry, cubin in pairs
        if (kernel := _own_kernel(entry, cubin)) is not None
    )
    likely = [(n, -k) for k, n in surplus.items() if 0 <= k <= MOST_SCRATCH_POINTERS]
    return -max(likely)[1] if likely else 0


def _own_kernel(entry: Entry, cubin: Cubin) -> KernelInfo | None:
    name = entry.variant.name or entry.variant.fn
    return next((kernel for kernel in cubin.kernels if kernel.name == name), None)


def _one(entry: Entry, cubin: Cubin, sm: int | None, trailing: int) -> Iterator[Finding]:
    mark, place = entry.variant.hash, entry.path
    if sm is not None and cubin.sm != sm:
        yield finding("L504", f"{place}.arch", f"{mark} is for sm_{cubin.sm}, not sm_{sm}")
    kernel = _own_kernel(entry, cubin)
    if kernel is None:
        there = ", ".join(k.name for k in cubin.kernels) or "no function"
        yield finding("L505", f"{place}.name", f"{mark} has {there}, not {entry.variant.name or entry.variant.fn}")
        return
    yield from _layout(entry, kernel, trailing)
    threads = entry.variant.num_warps * 32
    if kernel.threads and kernel.threads != threads:
        what = f"{mark} was compiled for {kernel.threads} threads; num_warps says {threads}"
        yield finding("L512", f"{place}.num_warps", what)
    if kernel.registers is not None:
        needed = -(-kernel.registers // REGISTER_GRAIN) * REGISTER_GRAIN * threads
        if needed > REGISTERS_A_BLOCK:
            what = f"{mark} needs {kernel.registers} registers a thread, {needed} a block of {threads} threads"
            yield finding("L508", f"{place}.num_warps", f"{what}; the device has {REGISTERS_A_BLOCK}")
    limit = SHARED_LIMITS.get(cubin.sm)
    total = kernel.shared + entry.variant.shared
    if limit is not None and entry.variant.shared <= limit * 1024 < total:
        yield finding(
            "L509", f"{place}.shared", f"{mark} needs {total} bytes; a block of sm_{cubin.sm} has {limit} KiB"
        )


def _layout(entry: Entry, kernel: KernelInfo, trailing: int) -> Iterator[Finding]:
    params = entry.variant.params
    wanted = len(params) + trailing
    if len(kernel.params) != wanted:
        what = f"{entry.variant.hash} takes {len(kernel.params)} parameters; params and {trailing} scratch pointers are"
        yield finding("L506", f"{entry.path}.params", f"{what} {wanted}")
        return
    offset = 0
    for position, (param, found) in enumerate(zip(params, kernel.params, strict=False)):
        size = size_of(param)
        if size is None:
            return
        offset = -(-offset // size) * size
        if (found.offset, found.size) != (offset, size):
            what = f"{param.name}: {param.type} is {size} bytes at {offset}; the cubin has {found.size} at"
            yield finding("L507", f"{entry.path}.params[{position}]", f"{what} {found.offset}")
            return
        offset += size


def size_of(param: Param) -> int | None:
    """The bytes that a param takes in the kernel's parameter space, None for a type that is passed differently."""
    return 8 if param.type.startswith("*") else SIZES.get(param.type)


def _identical(pairs: list[tuple[Entry, Cubin]]) -> Iterator[Finding]:
    groups: dict[bytes, list[Entry]] = {}
    for entry, cubin in pairs:
        groups.setdefault(cubin.code, []).append(entry)
    for group in groups.values():
        if len(group) > 1:
            names = ", ".join(entry.variant.hash for entry in group)
            alike = len({entry.variant.fn for entry in group}) == 1
            yield finding("L510" if alike else "L511", f"{group[-1].path}.hash", f"{names} hold identical code")
