"""The PTX reader: a grammar for what Triton emits, read by lark, with the line in each error.

Debug sections are skipped; `.loc` and `.file` are kept. Results are cached by the digest of the text.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any

from foldproof.gpu.symbolic.grammar import GRAMMAR
from foldproof.gpu.symbolic.program import (
    Guard,
    Imm,
    Instr,
    Kernel,
    Loc,
    Mem,
    Operand,
    Param,
    PtxError,
    Reg,
    Split,
    Sym,
    Vec,
)
from foldproof.gpu.symbolic.renaming import rename
from lark import Lark, Token, Transformer, UnexpectedInput
from lark.exceptions import VisitError

CACHED = 512
"""How many parsed texts are kept."""


class _Build(Transformer):  # type: ignore[type-arg]
    """Turns the parse into a `Kernel`, statement by statement, in the order of the text."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: dict[str, int] = {}
        self.code: list[Instr] = []
        self.locs: list[Loc] = []
        self.inlined: dict[Loc, Loc] = {}
        self.scopes = 0
        self.regs: dict[str, str] = {}
        self.files: dict[int, str] = {}
        self.shared: dict[str, tuple[int, int]] = {}
        self.target_name = ""
        self.entry_data: tuple[str, tuple[Param, ...], tuple[int, int, int]] | None = None

    def reg(self, items: list[Token]) -> Reg:
        return Reg(str(items[0]))

    def integer(self, items: list[Token]) -> Imm:
        return Imm(_int(items[0]))

    def real(self, items: list[Token]) -> Imm:
        return Imm(int(f"0x{items[0][2:]}", 0), 4 * (len(items[0]) - 2))

    def sym(self, items: list[Token]) -> Sym:
        return Sym(str(items[0]))

    def split(self, items: list[Token]) -> Split:
        return Split(Reg(str(items[0])), Reg(str(items[1])))

    def vec(self, items: list[Any]) -> Vec:
        return Vec(tuple(item for item in items if item is not None))

    def mem(self, items: list[Any]) -> Mem:
        offset = next((_int(i) for i in items[1:] if isinstance(i, Token)), 0)
        return Mem(items[0], offset, tuple(i for i in items[1:] if isinstance(i, Vec)))

    def guard(self, items: list[Token]) -> Guard:
        return Guard(str(items[0]).lstrip("@!"), items[0][1] == "!")

    def instr(self, items: list[Any]) -> int:
        guard, opcode, *rest = items
        operands = tuple(_operand(o) for o in rest if o is not None)
        where = len(self.locs) - 1
        self.code.append(Instr(str(opcode), tuple(opcode.split(".")), operands, guard, opcode.line, where))
        return len(self.code) - 1

    def label(self, items: list[Token]) -> str:
        name = str(items[0])[:-1]
        if name in self.labels:
            raise PtxError(f"the label {name} is defined twice", where=f"line {items[0].line}")
        self.labels[name] = len(self.code)
        return name

    def block(self, items: list[Any]) -> list[int]:
        """A nested scope: its registers and labels get names of their own, so that pasted assembly does not clash."""
        self.scopes += 1
        inside = [i for item in items for i in (item if isinstance(item, list) else [item]) if isinstance(i, int)]
        renamed: dict[str, str] = {}
        for item in items:
            names = [item] if isinstance(item, str) else item if isinstance(item, tuple) else ()
            renamed.update((name, f"{name}@{self.scopes}") for name in names)
        if renamed:
            for name, own in renamed.items():
                if name in self.labels:
                    self.labels[own] = self.labels.pop(name)
                if name in self.regs:
                    self.regs[own] = self.regs.pop(name)
            for index in inside:
                self.code[index] = rename(self.code[index], renamed)
        return inside

    def loc(self, items: list[Token]) -> None:
        head, _, tail = str(items[0]).partition("//")[0].partition("inlined_at")
        place = _triple(head.replace(",", " ").split()[1:4])
        if tail:
            self.inlined[place] = _triple(tail.split()[:3])
        self.locs.append(place)

    def declare(self, items: list[Any]) -> tuple[str, ...]:
        kind = str(items[0])[1:]
        self.regs.update(dict.fromkeys(items[1:], kind))
        return tuple(items[1:])

    def regname(self, items: list[Token | None]) -> str:
        return str(items[0])

    def target(self, items: list[Token]) -> None:
        self.target_name = str(items[0])

    def variable(self, items: list[Token]) -> None:
        kinds = {t.type: t for t in items}
        space, name = str(kinds["SPACE"]), str(kinds["NAME"])
        if space != ".shared":
            return  # a use of it is refused by name where it stands
        count = _int(kinds["INT"]) if "INT" in kinds else 0
        align = int(kinds["ALIGN"].split()[1]) if "ALIGN" in kinds else 16
        self.shared[name] = (count * _type_bytes(kinds["TYPE"]), align)

    def param(self, items: list[Token]) -> Param:
        kinds = {t.type: t for t in items}
        return Param(str(kinds["NAME"]), str(kinds["TYPE"])[1:], _int(kinds["INT"]) if "INT" in kinds else 0)

    def entry(self, items: list[Any]) -> None:
        names = [i for i in items if isinstance(i, Token) and i.type == "NAME"]
        if self.entry_data is not None:
            raise PtxError("a second .entry; one kernel a file is supported", where=f"line {names[0].line}")
        needed = [str(i) for i in items if isinstance(i, Token) and i.type == "DIRECTIVE" and "reqntid" in i]
        if not needed:
            raise PtxError("no .reqntid, so the size of a block is not known", where=f"line {names[0].line}")
        sizes = [int(n) for n in needed[0].split(None, 1)[1].split(",")]
        block = [*sizes, 1, 1][:3]
        params = tuple(i for i in items if isinstance(i, Param))
        self.entry_data = (str(names[0]), params, (block[0], block[1], block[2]))

    def FILE(self, token: Token) -> Token:  # noqa: N802  # lark names terminal callbacks so
        words = str(token).split(None, 2)
        self.files[int(words[1])] = words[2].split('"')[1]
        return token

    def start(self, _: list[Any]) -> Kernel:
        if self.entry_data is None:
            raise PtxError("no .entry: this is no kernel", where="line 1")
        name, params, block = self.entry_data
        offsets, top = {}, 0
        for symbol, (size, align) in self.shared.items():
            offsets[symbol] = -(-top // align) * align
            top = offsets[symbol] + size
        locs = tuple(self._outermost(loc) for loc in self.locs)
        return Kernel(
            name,
            self.target_name,
            params,
            block,
            offsets,
            top,
            self.regs,
            self.labels,
            tuple(self.code),
            self.files,
            locs,
        )

    def _outermost(self, loc: Loc) -> Loc:
        seen = set()
        while loc in self.inlined and loc not in seen:
            seen.add(loc)
            loc = self.inlined[loc]
        return loc


_PARSER = Lark(GRAMMAR, parser="lalr", lexer="contextual", propagate_positions=False)
_CACHE: OrderedDict[str, Kernel] = OrderedDict()


def read_ptx(text: str, *, where: str = "ptx") -> Kernel:
    """The kernel of a PTX text. Raises `PtxError` with the line of what cannot be read; `where` names the file."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = _CACHE.get(digest)
    if found is None:
        found = _CACHE[digest] = _read(text, where)
        if len(_CACHE) > CACHED:
            _CACHE.popitem(last=False)
    return found


def _read(text: str, where: str) -> Kernel:
    try:
        kernel: Kernel = _Build().transform(_PARSER.parse(text))
    except UnexpectedInput as problem:
        line = max(getattr(problem, "line", 0), 0)
        shown = text.split("\n")[line - 1].strip() if 0 < line <= text.count("\n") + 1 else "the end of the file"
        fix = "only PTX as Triton emits it is read"
        raise PtxError(f"cannot read {shown!r}", where=f"{where}: line {line}", fix=fix) from None
    except PtxError as problem:
        raise problem.at(where) from None
    except VisitError as problem:
        if isinstance(problem.orig_exc, PtxError):
            raise problem.orig_exc.at(where) from None
        # A token of the right shape that says nothing: 09, `.loc` without numbers, `.align 0`.
        why = f"a {problem.rule} that means nothing ({problem.orig_exc})"
        raise PtxError(
            why, where=f"{where}: line {_line(problem.obj)}", fix="only PTX as Triton emits it is read"
        ) from None
    except RecursionError:
        raise PtxError("blocks are nested too deeply", where=where, fix="only PTX as Triton emits it is read") from None
    for instr in kernel.code:
        if instr.parts[0] == "bra":
            target = instr.operands[0] if instr.operands else None
            if not isinstance(target, Sym) or target.name not in kernel.labels:
                raise PtxError("branches to a label that is not in this kernel", where=f"{where}: line {instr.line}")
    return kernel


def _line(item: Any) -> int:
    """The line of a token, or of the first token below a part of the parse that has one; 0 where none has."""
    tokens = [item] if isinstance(item, Token) else getattr(item, "children", [])
    return next((one.line for one in tokens if isinstance(one, Token) and one.line), 0)


def _operand(item: Any) -> Operand:
    return Sym(str(item)) if isinstance(item, Token) else item


def _int(token: str) -> int:
    return int(str(token).rstrip("U"), 0)


def _type_bytes(token: str) -> int:
    return int(str(token)[2:]) // 8


def _triple(words: list[str]) -> Loc:
    return int(words[0]), int(words[1]), int(words[2])
