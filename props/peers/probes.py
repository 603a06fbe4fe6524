"""Every known difference looked for in the installed Triton, for the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from foldproof.props.peers import jit_probes, linker_probes
from foldproof.props.peers.findings import FINDINGS, Observation
from foldproof.props.peers.tools import c_compiler, triton_version, triton_without_gpu

PROBES = {**jit_probes.PROBES, **linker_probes.PROBES}


def observe(folder: Path, only: Iterable[str] = tuple(FINDINGS)) -> Iterator[Observation]:
    """One observation a finding, in the order of `only`; about ten seconds for all. What is built lies in `folder`.

    Raises `FoldproofError` without Triton 3.9, and without a C compiler where the linker is looked at.
    """
    version = triton_version()
    for key in only:
        finding = FINDINGS[key]
        if finding.peer == "triton-linker":
            c_compiler()
        with triton_without_gpu(folder / "cache"):
            shown, seen = PROBES[key](folder)
        yield Observation(finding, shown, seen, version)
