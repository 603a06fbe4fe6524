"""What a corpus kernel is, as data: its params, its twins, and the verdict that is expected of each pair.

A twin is written as the argument values that make Triton's JIT compile it, never as a list of specialisations,
so that the twin's own launch comes for free and nothing can be claimed that the JIT would not claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ConstValue: TypeAlias = int | float | str | None
Role: TypeAlias = Literal["in", "out", "inout"]
Theme: TypeAlias = Literal["positive", "negative control", "unstable", "no reference"]
Domain: TypeAlias = Literal["every bit pattern", "no NaN", "finite"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A pointer param. `elems` is the smallest allocation, in elements, that every recorded launch stays within.

    `below` bounds integer inputs that reach an address: values are drawn from [0, below). 0: any bit pattern.
    """

    name: str
    type: str
    elems: int
    role: Role = "in"
    below: int = 0


@dataclass(frozen=True, slots=True)
class Int:
    """An i32 param and the value it has unless a twin says otherwise; the switches are those of the capture format."""

    name: str
    value: int
    nospec: bool = False
    noalign: bool = False
    annotated: bool = False


@dataclass(frozen=True, slots=True)
class Float:
    """An fp32 param, never specialised."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Absent:
    """A param that is given None: Triton makes it a constant."""

    name: str


Param: TypeAlias = Buffer | Int | Float | Absent


@dataclass(frozen=True, slots=True)
class Twin:
    """One specialisation of a kernel: int values in place of the defaults, and pointers that are not 16-aligned."""

    name: str
    values: Mapping[str, int] = field(default_factory=dict)
    misaligned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Label:
    """The verdict that is expected of the pairs of a kernel, and why.

    `classes` partitions the twins: within a class pairs are expected to be byte-equal on `domain`, across classes to
    differ. Twins in no class form one more. `unfused` is the partition with FP fusion off, None if it is the same.
    `by` names the specialisation that decides; `warps` says that another warp count changes the bits.
    """

    theme: Theme
    by: str
    why: str
    classes: tuple[tuple[str, ...], ...] = ()
    unfused: tuple[tuple[str, ...], ...] | None = None
    domain: Domain = "every bit pattern"
    warps: bool = False

    @property
    def fusion_matters(self) -> bool:
        """Whether FP fusion is expected to change the verdict of some pair."""
        return self.unfused is not None and self.unfused != self.classes

    def class_of(self, twin: str, fused: bool) -> int:
        """The class of a twin; -1 for those in none."""
        classes = self.classes if fused or self.unfused is None else self.unfused
        return next((i for i, names in enumerate(classes) if twin in names), -1)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: where its source is, what it is launched with, which twins are compiled, what is expected of them.

    `params` and then `consts` are in the order of the kernel's own signature. `grid` is in programs, a name standing
    for the value of that int param. `no_reference` names the twins that cannot be compared and at what they fail: to
    compile, or to load because their shared memory fits no device of the target.
    """

    name: str
    module: str
    params: tuple[Param, ...]
    consts: Mapping[str, ConstValue]
    twins: tuple[Twin, ...]
    label: Label
    grid: tuple[int | str, int | str, int | str] = (4, 1, 1)
    num_warps: tuple[int, ...] = (4,)
    fusion: tuple[bool, ...] = (True,)
    num_stages: int = 3
    no_reference: Mapping[str, Literal["compile", "load"]] = field(default_factory=dict)

    def twin(self, name: str) -> Twin:
        """The twin of that name. Raises KeyError."""
        try:
            return next(twin for twin in self.twins if twin.name == name)
        except StopIteration:
            raise KeyError(f"{self.name} has no twin {name!r}") from None


def standard_twins(fold: str, runtime: int, pointer: str, *, multiple: int = 0) -> tuple[Twin, ...]:
    """The four twins that every kernel has: `fold` = 1 or read at run time, `pointer` 16-aligned or not.

    `runtime` is the value that makes the JIT leave `fold` at run time without claiming a multiple of 16; `multiple`,
    where given, adds the twin that claims it.
    """
    twins = (
        Twin("folded", {fold: 1}),
        Twin("folded-x4", {fold: 1}, (pointer,)),
        Twin("runtime", {fold: runtime}),
        Twin("runtime-x4", {fold: runtime}, (pointer,)),
    )
    return (*twins, Twin("runtime-16", {fold: multiple})) if multiple else twins
