"""What Triton's JIT makes of the values of a launch: which ints become constants, what is claimed a multiple of 16.

Restated here in plain Python because the build has no device for the JIT to ask; a test holds it to Triton's own
answer value by value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foldproof.gpu.corpus.model import Absent, Buffer, ConstValue, Float, Int, Kernel, Twin

CONSTEXPR = "constexpr"
ALIGNMENT = 16
MISALIGNED_BY = 4
"""Bytes by which the address of a misaligned pointer misses a multiple of 16: enough for every element type we use."""


@dataclass(frozen=True, slots=True)
class Specialisation:
    """The compile-time side of one twin.

    `signature` has a type a param, `constexpr` for a constant, in the kernel's own order; `constants` the value of each
    constant; `div16` the params claimed to be multiples of 16; `values` every int as the twin's own launch has it.
    """

    signature: Mapping[str, str]
    constants: Mapping[str, ConstValue]
    div16: frozenset[str]
    values: Mapping[str, int]


def specialise(kernel: Kernel, twin: Twin) -> Specialisation:
    """The specialisation for which the JIT would compile `kernel` when launched with the values of `twin`."""
    signature: dict[str, str] = {}
    constants: dict[str, ConstValue] = {}
    div16: set[str] = set()
    values: dict[str, int] = {}
    for param in kernel.params:
        if isinstance(param, Int):
            value = twin.values.get(param.name, param.value)
            values[param.name] = value
            if folds(param, value):
                constants[param.name] = value
            elif claims_multiple(param, value):
                div16.add(param.name)
        elif isinstance(param, Buffer) and param.name not in twin.misaligned:
            div16.add(param.name)
        elif isinstance(param, Absent):
            constants[param.name] = None
        signature[param.name] = CONSTEXPR if param.name in constants else type_of(param)
    for name, const in kernel.consts.items():
        constants[name] = const
        signature[name] = CONSTEXPR
    return Specialisation(signature, constants, frozenset(div16), values)


def folds(param: Int, value: int) -> bool:
    """Whether the JIT compiles this value into the kernel: a 1 that nothing keeps at run time."""
    return value == 1 and not param.nospec and not param.annotated


def claims_multiple(param: Int, value: int) -> bool:
    """Whether the JIT claims that this value is a multiple of 16 (0 and negative multiples count)."""
    return value % ALIGNMENT == 0 and not param.nospec and not param.noalign


def type_of(param: Buffer | Int | Float | Absent) -> str:
    """The type of a param in a signature; None has none and is a constant."""
    if isinstance(param, Buffer):
        return param.type
    if isinstance(param, Int):
        return "i32"
    return "fp32" if isinstance(param, Float) else CONSTEXPR
