"""The files of a built capture: everything in a fixed order, no time stamps, no place names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import foldproof
import msgspec
from foldproof.gpu.bundle import (
    AOT,
    LAUNCHES,
    MANIFEST,
    SCHEMA_VERSION,
    KernelRow,
    Manifest,
    NoReferenceRow,
    VariantRow,
    digest_of,
)
from foldproof.gpu.compiler import BuildError, Compiled
from foldproof.gpu.launches import recorded_launches
from foldproof.gpu.plan import TARGET, Plan, entry
from foldproof.gpu.sources import source_digest


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a build found: the variants by hash in the order of the corpus, those without reference, the tools."""

    variants: Mapping[str, tuple[Plan, Compiled]]
    no_reference: tuple[NoReferenceRow, ...]
    triton: str
    ptxas: str


def write_capture(folder: Path, outcome: Outcome) -> int:
    """Write the capture into a new folder; gives the number of recorded launches. Raises OSError."""
    (folder / "cubins").mkdir(parents=True)
    (folder / "ptx").mkdir()
    rows, entries = [], []
    for name, (plan, code) in sorted(outcome.variants.items()):
        ptx = code.ptx.encode()
        (folder / "cubins" / f"{name}.cubin").write_bytes(code.cubin)
        (folder / "ptx" / f"{name}.ptx").write_bytes(ptx)
        rows.append(VariantRow(name, plan.kernel.name, plan.twin.name, digest_of(code.cubin), digest_of(ptx)))
        entries.append(entry(plan, name, code.metadata))
    generator = f"foldproof {foldproof.__version__}, Triton {outcome.triton}"
    head = {"generator": generator, "target": TARGET, "bin_dir": "cubins", "bin_ext": ".cubin"}
    launches = recorded_launches({name: plan for name, (plan, _) in outcome.variants.items()})
    aot, recorded = _document(head, entries), _list(launches)
    (folder / AOT).write_bytes(aot)
    (folder / LAUNCHES).write_bytes(recorded)
    kernels = {plan.kernel.name: plan.kernel for plan, _ in outcome.variants.values()}
    ptx_text = next(iter(outcome.variants.values()))[1].ptx
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        generator=generator,
        triton=outcome.triton,
        ptxas=outcome.ptxas,
        ptx_version=_directive(ptx_text, "version"),
        ptx_target=_directive(ptx_text, "target"),
        target=TARGET,
        pinned_options=("num_warps", "num_stages", "num_ctas", "enable_fp_fusion"),
        aot=digest_of(aot),
        launches=digest_of(recorded),
        kernels=tuple(
            KernelRow(k.name, k.module, k.label.theme, source_digest(k.module, k.name))
            for k in sorted(kernels.values(), key=lambda k: k.name)
        ),
        variants=tuple(rows),
        no_reference=outcome.no_reference,
    )
    (folder / MANIFEST).write_bytes(
        msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=1) + b"\n"
    )
    return len(launches)


def _directive(ptx: str, name: str) -> str:
    found = re.search(rf"^\.{name} (\S+)$", ptx, re.MULTILINE)
    if found is None:
        raise BuildError(f"the PTX has no .{name}", where="triton", fix="report it with your Triton version")
    return found[1]


def _document(head: dict[str, Any], kernels: list[dict[str, Any]]) -> bytes:
    opening = json.dumps(head, sort_keys=True)[:-1]
    return f'{opening},\n"kernels": '.encode() + _list(kernels).rstrip(b"\n") + b"}\n"


def _list(rows: list[dict[str, Any]]) -> bytes:
    """A JSON list with a row a line, so that a change of one variant is a change of one line."""
    return ("[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in rows) + "\n]\n").encode()
