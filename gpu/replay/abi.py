"""How a variant's parameters lie in memory, checked against what the loaded code itself says.

A Triton cubin takes its runtime params in order, then up to two pointers of Triton's own: global scratch, and profile
scratch (both since 3.4; one before, none before 3.3).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from foldproof.impl.capture import Param, Variant
from foldproof.impl.launch import Arg, Launch

ParamPlace: TypeAlias = tuple[int, int]
"""Offset and size of a parameter, in bytes."""

POINTER_BYTES = 8
MAX_SCRATCH_POINTERS = 2
_C_TYPES: Mapping[str, Any] = {
    "u1": ctypes.c_uint8,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    # A float travels as its 32 bits, because a NaN that passes through a Python float may lose its payload.
    "fp32": ctypes.c_uint32,
}


class AbiMismatchError(Exception):
    """The loaded code takes other parameters than the capture says; the text says both."""


def param_bytes(param: Param) -> int:
    """The size of one runtime param. Raises AbiMismatchError for a type that no launcher of ours can pass."""
    if param.type.startswith("*"):
        return POINTER_BYTES
    if param.type not in _C_TYPES:
        raise AbiMismatchError(f"param {param.name} is of type {param.type}, which cannot be passed")
    return ctypes.sizeof(_C_TYPES[param.type])


def expected_places(variant: Variant, scratch_pointers: int) -> tuple[ParamPlace, ...]:
    """Where each parameter lies: naturally aligned, in the order of `params`, then the scratch pointers."""
    sizes = [param_bytes(param) for param in variant.params] + [POINTER_BYTES] * scratch_pointers
    places = []
    cursor = 0
    for size in sizes:
        cursor = -(-cursor // size) * size
        places.append((cursor, size))
        cursor += size
    return tuple(places)


def scratch_pointers(variant: Variant, places: Sequence[ParamPlace]) -> int:
    """How many scratch pointers the code takes after the params, 0 to 2.

    Raises AbiMismatchError when count, sizes or offsets are not those of the capture's params plus such pointers.
    """
    extra = len(places) - len(variant.params)
    if 0 <= extra <= MAX_SCRATCH_POINTERS and tuple(places) == expected_places(variant, extra):
        return extra
    said = ", ".join(f"{size} at {offset}" for offset, size in expected_places(variant, MAX_SCRATCH_POINTERS))
    found = ", ".join(f"{size} at {offset}" for offset, size in places) or "none"
    raise AbiMismatchError(
        f"the code takes parameters of bytes {found}; the capture says {said}, the last two optional"
    )


def packed(variant: Variant, launch: Launch, addresses: Mapping[str, int], scratch: Sequence[int]) -> tuple[Any, ...]:
    """The kernel arguments in order: addresses as int (8 bytes), everything else as a ctypes value of its size."""
    by_name = {arg.name: arg for arg in launch.args}
    values: list[Any] = [_value(param, by_name[param.name], addresses) for param in variant.params]
    return (*values, *scratch)


def _value(param: Param, arg: Arg, addresses: Mapping[str, int]) -> Any:
    if param.type.startswith("*"):
        return addresses[arg.name]
    return _C_TYPES[param.type](arg.number)
