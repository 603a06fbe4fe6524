"""Triton's own specialisation of a launch: the variant that its JIT would have compiled, as a `Variant` of ours.

Nothing is restated: the binder that Triton generates for a function calls `native_specialize_impl`, and Triton's own
packing turns its answer into types, constants and attributes. No function is compiled and no GPU is asked.
"""

# ruff: noqa: PLC0415
# Triton is 1 GB and optional, so it is imported where it is used.

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeAlias

from foldproof.impl.capture import INT_TYPES, Const, Consts, Param, Variant
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.launch import INT_KINDS, Arg, Kind, Launch
from foldproof.props.peers.tools import CUDA, triton_version

FN = "k"
DIVISIBILITY, POINTER_RANGE = "tt.divisibility", "tt.pointer_range"
Target: TypeAlias = tuple[str, int | str, int]


@dataclass(frozen=True, slots=True)
class Declared:
    """A param as the kernel's author wrote it: an annotation as text, and the two decorator lists it is on."""

    name: str
    annotation: str = ""
    nospec: bool = False
    noalign: bool = False


@dataclass(frozen=True, slots=True)
class Tensor:
    """What the JIT looks at in a tensor: element type by Triton's name, address, allocation in bytes if known."""

    dtype: str
    address: int
    bytes: int | None = None

    def data_ptr(self) -> int:
        """The address, by the name that Triton calls."""
        return self.address


class _Sized:
    """A tensor whose allocation Triton can ask for; it looks whether the method exists."""

    def __init__(self, tensor: Tensor) -> None:
        self.dtype, self.data_ptr, self.bytes = tensor.dtype, tensor.data_ptr, tensor.bytes

    def ptr_range(self) -> int:
        return self.bytes or 0


Value: TypeAlias = int | float | bool | Tensor | None


@dataclass(frozen=True, slots=True)
class Placed:
    """What Triton makes of one arg: a constant, or a type with what is claimed of the value."""

    type: str
    const: Const | None = None
    div16: bool = False
    range32: bool = False


def placed(declared: Sequence[Declared], values: Sequence[Value], target: Target = CUDA) -> tuple[Placed, ...]:
    """Triton's specialisation of one launch, a `Placed` a param.

    Raises `InvalidLaunch` for an int that no 64 bits hold, as Triton does, and `FoldproofError` without Triton.
    """
    triton_version()
    from triton.runtime.jit import JITFunction

    backend, kernel_params, binder = _binder(tuple(declared), target)
    given = [_Sized(v) if isinstance(v, Tensor) and v.bytes is not None else v for v in values]
    try:
        bound, specialised, _ = binder(*given)
    except OverflowError as problem:
        raise InvalidLaunch(str(problem), where="$.args", fix="ints lie in [-2^63, 2^64)") from None
    # Triton's packing looks at nothing of the function but its params.
    function = SimpleNamespace(params=kernel_params)
    options = {"num_warps": 4, "enable_fp_fusion": True}
    _, signature, constants, attrs = JITFunction._pack_args(function, backend, options, bound, specialised, {})  # noqa: SLF001
    return tuple(_placed(i, signature[p.name], constants, attrs) for i, p in enumerate(declared))


@cache
def _binder(declared: tuple[Declared, ...], target: Target) -> tuple[Any, list[Any], Callable[..., Any]]:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend
    from triton.runtime.jit import KernelParam, create_function_from_signature

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    none = inspect.Parameter.empty
    params = [inspect.Parameter(p.name, kind, annotation=p.annotation or none) for p in declared]
    own = [KernelParam(i, q, p.nospec, p.noalign) for i, (p, q) in enumerate(zip(declared, params, strict=True))]
    backend = make_backend(GPUTarget(*target))
    return backend, own, create_function_from_signature(inspect.Signature(params), own, backend)


def _placed(index: int, type_name: str, constants: Mapping[Any, Any], attrs: Mapping[Any, Any]) -> Placed:
    if (index,) in constants:
        return Placed("", const_of(constants[index,]))
    claims = dict(attrs.get((index,), []))
    return Placed(type_name, None, claims.get(DIVISIBILITY) == 16, claims.get(POINTER_RANGE) == 32)


def const_of(value: Any) -> Const:
    """A constant of ours from a Python value."""
    if value is None:
        return Const(none=True)
    if isinstance(value, bool):
        return Const(bool_=value)
    if isinstance(value, float):
        return Const(f32=float_bits(value))
    return Const(int_=value) if isinstance(value, int) else Const(str_=str(value))


def float_bits(value: float) -> int:
    """The 32 bits of a float."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def is_annotated(declared: Declared) -> bool:
    """Whether the rules call the param annotated: an explicit integer type."""
    return annotated_type(declared) in INT_TYPES


def annotated_type(declared: Declared) -> str:
    """The type that the annotation names, by Triton's own reading; "" if it names none."""
    return str(_binder((declared,), CUDA)[1][0].annotation_type)


def is_const(declared: Declared) -> bool:
    """Whether the annotation makes a pointer one to constants (`*k`), by Triton's own reading."""
    return bool(_binder((declared,), CUDA)[1][0].is_const)


def param_of(declared: Declared, type_name: str, *, div16: bool, range32: bool = False) -> Param:
    """A param of ours with the switches of the declaration."""
    switches = {"nospec": declared.nospec, "noalign": declared.noalign}
    annotated = is_annotated(declared) and type_name in INT_TYPES
    return Param(declared.name, type_name, div16=div16, annotated=annotated, range32=range32, **switches)


def variant_for(
    declared: Sequence[Declared], values: Sequence[Value], target: Target = CUDA, mark: str = "triton"
) -> Variant:
    """The variant that Triton's JIT would have compiled for this launch. Raises as `placed` does."""
    params: list[Param] = []
    consts: Consts = {}
    for own, place in zip(declared, placed(declared, values, target), strict=True):
        if place.const is None:
            params.append(param_of(own, place.type, div16=place.div16, range32=place.range32))
        else:
            consts[own.name] = place.const
    return Variant(FN, mark, 4, tuple(params), consts)


def launch_for(declared: Sequence[Declared], values: Sequence[Value]) -> Launch:
    """The launch as the rules want it narrowed: the kind of an int is the smallest of i32, i64, u64 that holds it.

    Raises `InvalidLaunch` for an int that none holds.
    """
    return Launch(FN, tuple(arg_of(own.name, value) for own, value in zip(declared, values, strict=True)))


def arg_of(name: str, value: Value) -> Arg:
    """One arg from a Python value. Raises `InvalidLaunch` for an int that 64 bits do not hold."""
    if value is None:
        return Arg(name, Kind.NONE)
    if isinstance(value, Tensor):
        return Arg(name, Kind.PTR, value.address, f"*{value.dtype}", value.bytes)
    if isinstance(value, bool):
        return Arg(name, Kind.U1, int(value))
    if isinstance(value, float):
        return Arg(name, Kind.FP32, float_bits(value))
    for kind in INT_KINDS:
        low, high = INT_TYPES[kind]
        if low <= value <= high:
            return Arg(name, kind, value)
    raise InvalidLaunch(f"{value} fits no 64 bits", where="$.args", fix="ints lie in [-2^63, 2^64)")
