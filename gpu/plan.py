"""The variants to compile, each with the entry that the capture records for it."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from foldproof.gpu.corpus.model import ConstValue, Int, Kernel, Twin
from foldproof.gpu.sources import source_digest
from foldproof.gpu.specialise import CONSTEXPR, Specialisation, specialise

TARGET = ("cuda", 90, 32)
ARCH = "sm_90"
SHARED_LIMIT = 232_448
"""Bytes of shared memory that one block can have on the target (227 KiB)."""
TRITON_SERIES = "3.9"
SHORT = 16
"""Hex digits of a digest that are kept where it names a file or a source."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One variant: a kernel, one of its twins, and the options it is compiled with."""

    kernel: Kernel
    twin: Twin
    num_warps: int
    fused: bool

    @property
    def spec(self) -> Specialisation:
        """What the compiler is told about the launch."""
        return specialise(self.kernel, self.twin)

    @property
    def options(self) -> dict[str, int | bool]:
        """The compile options that are pinned and recorded."""
        return {
            "num_warps": self.num_warps,
            "num_stages": self.kernel.num_stages,
            "num_ctas": 1,
            "enable_fp_fusion": self.fused,
        }

    @property
    def title(self) -> str:
        """What progress and faults call it."""
        return f"{self.kernel.name}[{self.twin.name}, {self.num_warps} warps, fusion {'on' if self.fused else 'off'}]"

    @property
    def source(self) -> str:
        """The short digest of the kernel's source."""
        return source_digest(self.kernel.module, self.kernel.name)[:SHORT]


def plans(kernels: Iterable[Kernel]) -> Iterator[Plan]:
    """Every variant of the kernels, in the order of the corpus."""
    for kernel in kernels:
        for twin in kernel.twins:
            for num_warps in kernel.num_warps:
                for fused in kernel.fusion:
                    yield Plan(kernel, twin, num_warps, fused)


def variant_hash(plan: Plan, triton_version: str) -> str:
    """The name of the variant's files: 16 hex digits over all that decides its code, and over nothing else."""
    spec = plan.spec
    identity = {
        "source": source_digest(plan.kernel.module, plan.kernel.name),
        "fn": plan.kernel.name,
        "signature": list(spec.signature.items()),
        "constants": [[name, const_json(value)] for name, value in spec.constants.items()],
        "div16": sorted(spec.div16),
        "options": plan.options,
        "triton": triton_version,
        "target": TARGET,
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:SHORT]


def entry(plan: Plan, variant: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The `kernels[]` entry: what was asked for, and what the compiler reports (`metadata`, Triton's own names)."""
    spec = plan.spec
    return {
        "fn": plan.kernel.name,
        "hash": variant,
        "name": metadata["name"],
        "num_warps": metadata["num_warps"],
        "num_stages": metadata["num_stages"],
        "num_ctas": metadata["num_ctas"],
        "shared": metadata["shared"],
        "global_scratch": metadata["global_scratch_size"],
        "global_align": metadata["global_scratch_align"],
        "profile_scratch": metadata["profile_scratch_size"],
        "pdl": metadata["launch_pdl"],
        "params": _params(plan.kernel, spec),
        "consts": {name: const_json(value) for name, value in spec.constants.items()},
        "arch": ARCH,
        "enable_fp_fusion": metadata["enable_fp_fusion"],
        "source": plan.source,
    }


def _params(kernel: Kernel, spec: Specialisation) -> list[dict[str, Any]]:
    listed = []
    for param in kernel.params:
        kind = spec.signature[param.name]
        if kind == CONSTEXPR:
            continue
        row = {"name": param.name, "type": kind, "div16": param.name in spec.div16, "nospec": False}
        if isinstance(param, Int):
            row["nospec"] = param.nospec
            row.update({flag: True for flag in ("noalign", "annotated") if getattr(param, flag)})
        listed.append(row)
    return listed


def const_json(value: ConstValue) -> dict[str, Any]:
    """A constant as the capture format has it: floats by the 32 bits of their nearest fp32."""
    if value is None:
        return {"none": True}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, float):
        return {"f32": f32_bits(value)}
    return {"str": value} if isinstance(value, str) else {"int": value}


def f32_bits(value: float) -> int:
    """The bits of the fp32 nearest to `value`."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])
