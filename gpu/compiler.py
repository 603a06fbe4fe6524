"""The bridge to Triton: one variant compiled on a CPU, with code and debug data free of machine paths.

Nothing here is imported before a build asks for it, and Triton only inside the functions.
"""

# ruff: noqa: PLC0415
# Triton is 1 GB and optional, so it is imported where it is used.

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foldproof.gpu.plan import TARGET, TRITON_SERIES, Plan
from foldproof.gpu.specialise import ALIGNMENT
from foldproof.impl.errors import FoldproofError


class BuildError(FoldproofError):
    """A capture that cannot be built: what is wrong, where, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The outcome of a compilation. `metadata` is Triton's own, by its own names."""

    cubin: bytes
    ptx: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A variant that the compiler refuses, with its reason in one line."""

    reason: str


def triton_version() -> str:
    """The version of the installed Triton. Raises BuildError when it is missing or of another series."""
    need = f"install foldproof[triton], which brings Triton {TRITON_SERIES}"
    try:
        import triton
    except ImportError as problem:
        raise BuildError(
            f"building a capture needs Triton {TRITON_SERIES} ({problem})", where="triton", fix=need
        ) from None
    version = str(triton.__version__)
    if version.split(".")[:2] != TRITON_SERIES.split("."):
        why = f"this is Triton {version}; another series than {TRITON_SERIES} compiles other code and another ABI"
        raise BuildError(why, where="triton", fix=need)
    return version


def ptxas_version() -> str:
    """The release of the assembler that Triton runs for the target, such as "13.4"."""
    from triton.backends.nvidia.compiler import get_ptxas

    return str(get_ptxas(TARGET[1]).version)


@contextmanager
def workshop(scratch: Path) -> Iterator[None]:
    """Triton made reproducible for the length of a build.

    Code locations are named by package, not by the place of the files, and the cache is a fresh one in `scratch`,
    because Triton's cache key ignores those names and a hit could bring another machine's paths back. Raises BuildError
    when an environment variable changes what Triton compiles.
    """
    from triton import knobs
    from triton._C.libtriton import get_cache_invalidating_env_vars
    from triton.runtime import jit

    changed = sorted(get_cache_invalidating_env_vars())
    changed += [name for name, on in _KNOBS.items() if _knob(knobs, on)]
    if changed:
        raise BuildError(
            f"{', '.join(changed)} changes what Triton compiles", where="environment", fix="unset it and build again"
        )
    # A property on the class, and not a changed attribute on each function: Triton makes further function objects while
    # it compiles, and those would still name the files of this machine.
    jit.JITCallable.file_name = property(_package_file, lambda fn, name: fn.__dict__.update(file_name=name))
    try:
        with knobs.cache.scope():
            knobs.cache.dir = str(scratch)
            yield
    finally:
        del jit.JITCallable.file_name


def _package_file(fn: Any) -> str:
    return str(fn.__module__).replace(".", "/") + ".py"


_KNOBS = {
    "TRITON_INTERPRET": "runtime.interpret",
    "TRITON_OVERRIDE_ARCH": "runtime.override_arch",
    "TRITON_FORCE_DISABLE_FP_FUSION": "language.force_disable_fp_fusion",
    "TRITON_KERNEL_OVERRIDE": "compilation.override",
    "TRITON_DISABLE_LINE_INFO": "compilation.disable_line_info",
    "TRITON_MOCK_PTX_VERSION": "nvidia.mock_ptx_version",
    "PTXAS_OPTIONS": "nvidia.ptxas_options",
    "DISABLE_PTXAS_OPT": "nvidia.disable_ptxas_opt",
}


def _knob(knobs: Any, path: str) -> bool:
    room, name = path.split(".")
    return bool(getattr(getattr(knobs, room), name))


def load_kernel(plan: Plan) -> Any:
    """Triton's function object of the plan's kernel. Raises BuildError when its params are not those of the corpus."""
    module = importlib.import_module(f"foldproof.gpu.kernels.{plan.kernel.module}")
    fn = getattr(module, plan.kernel.name)
    if list(fn.arg_names) != list(plan.spec.signature):
        raise BuildError(
            f"the kernel takes {', '.join(fn.arg_names)}; the corpus lists {', '.join(plan.spec.signature)}",
            where=f"corpus entry {plan.kernel.name}",
            fix="list the params and constants in the order of the kernel",
        )
    return fn


def compile_variant(plan: Plan) -> Compiled | Refusal:
    """Compile one variant for the target; no device is needed. Call it inside `workshop`."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, CompilationError

    fn = load_kernel(plan)
    spec = plan.spec
    index = {name: position for position, name in enumerate(spec.signature)}
    source = ASTSource(
        fn,
        dict(spec.signature),
        {(index[name],): value for name, value in spec.constants.items()},
        {(index[name],): [["tt.divisibility", ALIGNMENT]] for name in index if name in spec.div16},
    )
    try:
        kernel = triton.compile(source, target=GPUTarget(*TARGET), options=dict(plan.options))
    except CompilationError as problem:
        return Refusal(_reason(problem))
    return Compiled(kernel.asm["cubin"], kernel.asm["ptx"], kernel.metadata._asdict())


def _reason(problem: BaseException) -> str:
    """The message of the innermost cause: the outer ones quote the source around it."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    text = str(getattr(problem, "error_message", None) or problem)
    return f"{type(problem).__name__}: {text.strip().splitlines()[-1].strip()}"
