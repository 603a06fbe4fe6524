"""Building a capture from the corpus: compile, hold the outcome to the corpus, put the folder in place in one step."""

from __future__ import annotations

import importlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foldproof.gpu.bundle import MANIFEST, NoReferenceRow
from foldproof.gpu.compiler import (
    BuildError,
    Compiled,
    Refusal,
    compile_variant,
    ptxas_version,
    triton_version,
    workshop,
)
from foldproof.gpu.corpus import BY_NAME, CORPUS, Kernel
from foldproof.gpu.plan import ARCH, SHARED_LIMIT, Plan, plans, variant_hash
from foldproof.gpu.write import Outcome, write_capture

__all__ = ["BuildError", "BuildSummary", "Progress", "build_capture"]

Progress = Callable[[int, int, str], None]
"""Called with the variants done, the variants in all, and what the last one is called."""


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What was built: counts, the size of the folder in bytes, and the versions that decide its bytes."""

    out: Path
    kernels: int
    variants: int
    launches: int
    no_reference: int
    size: int
    triton: str
    ptxas: str


def build_capture(out: Path, *, only: Sequence[str] | None = None, progress: Progress | None = None) -> BuildSummary:
    """Compile the corpus, or the kernels named in `only`, into the folder `out`, replacing a capture built before.

    The folder appears whole or not at all; the same sources and versions give the same bytes. Raises BuildError: Triton
    is missing or of another series, an unknown name, a folder that is not ours to replace, an outcome that the corpus
    does not predict.
    """
    kernels = _chosen(only)
    version = triton_version()
    out = out.absolute()
    _replaceable(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # Beside the folder it becomes, because a rename is one step only within a file system.
        work = Path(tempfile.mkdtemp(prefix=f".{out.name}.building-", dir=out.parent))
    except OSError as problem:
        raise _unwritable(out, problem) from None
    try:
        outcome = _compile(kernels, version, work / "cache", progress)
        built = work / "capture"
        launches = write_capture(built, outcome)
        size = sum(file.stat().st_size for file in built.rglob("*") if file.is_file())
        _put_in_place(built, out, work / "replaced")
    except OSError as problem:
        raise _unwritable(out, problem) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return BuildSummary(
        out=out,
        kernels=len(kernels),
        variants=len(outcome.variants),
        launches=launches,
        no_reference=len(outcome.no_reference),
        size=size,
        triton=outcome.triton,
        ptxas=outcome.ptxas,
    )


def _chosen(only: Sequence[str] | None) -> tuple[Kernel, ...]:
    if only is None:
        return CORPUS
    unknown = [name for name in only if name not in BY_NAME]
    if unknown or not only:
        why = f"no kernel is named {', '.join(unknown)}" if unknown else "no kernel is named"
        raise BuildError(why, where="corpus", fix=f"choose from {', '.join(BY_NAME)}")
    return tuple(kernel for kernel in CORPUS if kernel.name in only)


def _replaceable(out: Path) -> None:
    if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).is_file():
        why = f"holds files but no {MANIFEST}, so it is no capture that this command built"
        raise BuildError(why, where=str(out), fix="name an empty or a new folder")
    if out.exists() and not out.is_dir():
        raise BuildError("is a file", where=str(out), fix="name a folder")


def _unwritable(out: Path, problem: OSError) -> BuildError:
    return BuildError(f"cannot be written ({problem.strerror})", where=str(out), fix="name a folder that you may write")


def _put_in_place(built: Path, out: Path, aside: Path) -> None:
    if out.exists():
        out.rename(aside)
    try:
        built.rename(out)
    except OSError:
        if aside.exists():
            aside.rename(out)
        raise


def _compile(kernels: Sequence[Kernel], version: str, cache: Path, progress: Progress | None) -> Outcome:
    todo = list(plans(kernels))
    done: dict[str, tuple[Plan, Compiled]] = {}
    without: list[NoReferenceRow] = []
    for module in sorted({kernel.module for kernel in kernels}):
        importlib.import_module(f"foldproof.gpu.kernels.{module}")
    with workshop(cache):
        ptxas = ptxas_version()
        for count, plan in enumerate(todo, start=1):
            result = compile_variant(plan)
            without += _no_reference(plan, result)
            if isinstance(result, Compiled):
                name = variant_hash(plan, version)
                if name in done:
                    why = f"{plan.title} and {done[name][0].title} are one variant"
                    raise BuildError(why, where="corpus", fix="drop one of the twins")
                done[name] = plan, result
            if progress is not None:
                progress(count, len(todo), plan.title)
    return Outcome(done, tuple(without), version, ptxas)


def _no_reference(plan: Plan, result: Compiled | Refusal) -> list[NoReferenceRow]:
    """The manifest row of a variant that cannot be compared. Raises BuildError when the corpus predicts otherwise."""
    predicted = plan.kernel.no_reference.get(plan.twin.name)
    found: str | None = None
    reason = "it compiles and fits"
    if isinstance(result, Refusal):
        found, reason = "compile", result.reason
    elif (shared := result.metadata["shared"]) > SHARED_LIMIT:
        found, reason = "load", f"needs {shared} bytes of shared memory; {ARCH} has {SHARED_LIMIT} a block"
    if found != predicted:
        claim = f"fails to {predicted}" if predicted else "compiles and loads"
        raise BuildError(
            f"the corpus predicts that it {claim}, but: {reason}",
            where=plan.title,
            fix="correct the kernel, or its no_reference in the corpus",
        )
    if found is None:
        return []
    return [NoReferenceRow(plan.kernel.name, plan.twin.name, plan.num_warps, plan.fused, found, reason)]
