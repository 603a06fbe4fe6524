"""What a parsed PTX kernel is: its parameters, its shared memory, and its instructions in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from foldproof.impl.errors import FoldproofError


class PtxError(FoldproofError):
    """PTX that cannot be read; `where` ends in the line."""

    code = "InvalidPtx"


@dataclass(frozen=True, slots=True)
class Reg:
    """A register, special ones such as `%tid.x` included."""

    name: str


@dataclass(frozen=True, slots=True)
class Imm:
    """A literal: the value of an integer, or the bits of a float of `width` bits (32 or 64; 0 for an integer)."""

    value: int
    width: int = 0


@dataclass(frozen=True, slots=True)
class Sym:
    """A name: a label, a parameter or a shared memory symbol."""

    name: str


@dataclass(frozen=True, slots=True)
class Mem:
    """`[base + offset]`; `extra` holds tensor coordinates, which no supported instruction has."""

    base: Reg | Sym | Imm
    offset: int = 0
    extra: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Vec:
    """`{a, b, ...}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """`p|q`, two destinations."""

    first: Reg
    second: Reg


Operand: TypeAlias = "Reg | Imm | Sym | Mem | Vec | Split"
Loc: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`."""

    reg: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Instr:
    """One instruction. `opcode` is whole, `parts` its words; `line` is in the PTX, `loc` indexes `Kernel.locs`."""

    opcode: str
    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    loc: int


@dataclass(frozen=True, slots=True)
class Param:
    """A kernel parameter and its type as PTX has it (`u64`, `u32`, `f32`, `b8`); `elems` is 0 unless it is an array."""

    name: str
    type: str
    elems: int = 0

    @property
    def bytes(self) -> int:
        """Its size."""
        return int(self.type[1:]) // 8 * max(self.elems, 1)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: `labels` map to indices into `code`, `shared` names each symbol with its byte offset.

    `reqntid` is the block that it was compiled for; `regs` maps a register prefix to its type; `locs` holds
    (file index, line, column) of each `.loc`, already followed out of inlined calls to the kernel's own line.
    """

    name: str
    target: str
    params: tuple[Param, ...]
    reqntid: tuple[int, int, int]
    shared: Mapping[str, int]
    shared_static: int
    regs: Mapping[str, str]
    labels: Mapping[str, int]
    code: tuple[Instr, ...]
    files: Mapping[int, str]
    locs: tuple[Loc, ...]

    def source(self, instr: Instr) -> str:
        """The kernel's own source line that an instruction came from, `file:line`, empty where PTX does not say."""
        if instr.loc < 0:
            return ""
        file, line, _ = self.locs[instr.loc]
        return f"{self.files.get(file, '?')}:{line}"

    def width_of(self, register: str) -> int:
        """Bits of a register, 1 for a predicate, 0 when undeclared."""
        prefix = register.rstrip("0123456789")
        kind = self.regs.get(register) or self.regs.get(prefix, "")
        if kind == "pred":
            return 1
        return int(kind[1:]) if kind else 0
