"""Triton's AOT compiler and linker, run as they are: kernels compiled, and the C dispatcher that chooses among them.

Their driver is replaced (`tools.triton_without_gpu`); nothing else of theirs is. Call them inside that context.
"""

# ruff: noqa: PLC0415
# Triton is 1 GB and optional, so it is imported where it is used.

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foldproof.impl.capture import INT_TYPES, Consts, Param, Variant
from foldproof.impl.errors import FoldproofError, one_line
from foldproof.props.peers.specialisation import const_of
from foldproof.props.peers.tools import CUDA

KERNELS = Path(__file__).with_name("linked_kernels.py")
WARPS, STAGES = 4, 3
TARGET_TEXT = ":".join(str(part) for part in CUDA)
ARCH = f"sm_{CUDA[1]}"


class AotError(FoldproofError):
    """Triton's compiler or linker, or the C compiler, refuses; `why` has its words."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One kernel that the AOT compiler made: its C name, its files, and the variant of ours that it is.

    `literal` are the constants that the signature gives as a value and not as a hint: part of no C signature.
    """

    name: str
    source: Path
    header: Path
    variant: Variant
    literal: Consts


@dataclass(frozen=True, slots=True)
class Group:
    """One dispatcher of the linker: its C name, and the C names of the kernels it chooses among, in link order."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Linked:
    """What the linker wrote. `params` are C type and name of each param of the default entry."""

    kernel: str
    compiled: tuple[Compiled, ...]
    source: Path
    header: Path
    params: tuple[tuple[str, str], ...]
    groups: tuple[Group, ...]

    @property
    def dispatchers(self) -> str:
        """The C text."""
        return self.source.read_text("utf-8")


def function(kernel: str) -> Any:
    """Triton's function object of a kernel of ours."""
    return getattr(importlib.import_module("foldproof.props.peers.linked_kernels"), kernel)


def compiled(kernel: str, signature: str, folder: Path) -> Compiled:
    """Compile one kernel of `linked_kernels` for a signature in Triton's own notation, such as "*fp32:16, i32:1, 128".

    Raises `AotError` when the compiler refuses.
    """
    from triton.tools.compile import CompileArgs, compile_kernel

    folder.mkdir(parents=True, exist_ok=True)
    args = CompileArgs(
        path=str(KERNELS),
        kernel_name=kernel,
        signature=signature,
        grid="1,1,1",
        target=TARGET_TEXT,
        num_warps=WARPS,
        num_stages=STAGES,
        out_path=folder / kernel,
    )
    try:
        name, files = compile_kernel(args)
    except Exception as problem:  # noqa: BLE001 - whatever a compiler raises is its refusal
        raise _refused("compiler", f"{kernel}({signature})", problem) from None
    by_end = {file.suffix: file for file in files}
    params, consts, literal = _read(kernel, signature)
    variant = Variant(kernel, name, WARPS, params, consts, num_stages=STAGES, arch=ARCH, enable_fp_fusion=True)
    return Compiled(name, by_end[".c"], by_end[".h"], variant, literal)


def _read(kernel: str, signature: str) -> tuple[tuple[Param, ...], Consts, Consts]:
    """The params, all constants, and the literal ones of a signature, with the switches of the kernel's declaration."""
    params: list[Param] = []
    consts: Consts = {}
    literal: Consts = {}
    for own, entry in zip(function(kernel).params, signature.split(","), strict=True):
        type_name, _, hint = entry.strip().partition(":")
        number = _number(type_name)
        if number is not None:
            literal[own.name] = const_of(number)
        elif hint == "1":
            consts[own.name] = const_of(1)
        else:
            annotated = own.annotation_type == type_name and type_name in INT_TYPES
            switches = {"nospec": own.do_not_specialize, "noalign": own.do_not_specialize_on_alignment}
            params.append(Param(own.name, type_name, div16=hint == "16", annotated=annotated, **switches))
    return tuple(params), consts | literal, literal


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def linked(kernel: str, parts: Sequence[Compiled], folder: Path) -> Linked:
    """Link kernels by Triton's linker, headers in the order of `parts`. Raises `AotError` when it refuses."""
    from triton.tools import link

    folder.mkdir(parents=True, exist_ok=True)
    out = folder / kernel
    before = sys.argv
    sys.argv = ["link.py", *(str(part.header) for part in parts), "-o", str(out)]
    try:
        runpy.run_path(str(link.__file__), run_name="__main__")
        # Triton's own reading of the headers, for the names; the dispatchers were written by the line above.
        reader = link.HeaderParser()
        for part in parts:
            reader.extract_linker_meta(part.header.read_text("utf-8"))
    except Exception as problem:  # noqa: BLE001 - the linker raises plain Exception
        raise _refused("linker", ", ".join(part.name for part in parts), problem) from None
    finally:
        sys.argv = before
    groups = [
        Group(name, tuple(f"{m.orig_kernel_name}_{m.sig_hash}_{m.suffix}" for m in members))
        for name, members in reader.kernels.items()
    ]
    first = next(iter(reader.kernels.values()))[0]
    params = tuple(zip(first.arg_ctypes, first.arg_names, strict=True))
    return Linked(kernel, tuple(parts), out.with_suffix(".c"), out.with_suffix(".h"), params, tuple(groups))


def _refused(tool: str, where: str, problem: Exception) -> AotError:
    while problem.__cause__ is not None and isinstance(problem.__cause__, Exception):
        problem = problem.__cause__
    why = f"Triton's AOT {tool} refuses: {type(problem).__name__}: {one_line(str(problem))}"
    return AotError(why, where=where, fix="see docs/explanation/triton-peers.md")
