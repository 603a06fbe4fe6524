"""What a cubin says of its own kernel, read from the ELF file without a device: `.nv.info` and the symbol table.

Attribute numbers are those that `cuobjdump -elf` prints the names of; unknown attributes are passed over.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Iterator, Mapping

import msgspec
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection

EM_CUDA = "EM_CUDA"
_SIZED, _WORD = 4, 4
MOST_SECTIONS = 4096
MOST_RECORDS = 1 << 16
"""Attributes in one section; a kernel of 200 parameters has some 300."""
_REQNTID, _CBANK_PARAM_SIZE, _KPARAM_INFO, _REGCOUNT = 0x10, 0x19, 0x17, 0x2F


class CubinError(ValueError):
    """The file is no whole ELF file for CUDA; the text says what is wrong."""


class KernelParam(msgspec.Struct, frozen=True):
    """One parameter as the kernel reads it: its place, and offset and size in bytes."""

    ordinal: int
    offset: int
    size: int


class KernelInfo(msgspec.Struct, frozen=True):
    """One kernel of a cubin. `registers` a thread; `threads` a block, 0 where any number is allowed.

    `shared` is what the code reserves statically; Triton passes its own at launch. None: the cubin does not say.
    """

    name: str
    params: tuple[KernelParam, ...]
    param_bytes: int | None
    registers: int | None
    threads: int
    shared: int


class Cubin(msgspec.Struct, frozen=True):
    """A cubin: the number of its SM architecture (90 for sm_90), its kernels, and the sha256 of its code, which leaves
    out debug sections.
    """

    sm: int
    kernels: tuple[KernelInfo, ...]
    code: bytes


def read_cubin(data: bytes) -> Cubin:
    """What a cubin says. Raises `CubinError` for anything that is no whole ELF file for CUDA."""
    try:
        return _read(data)
    except CubinError:
        raise
    except Exception as problem:  # noqa: BLE001 (pyelftools lets through whatever its parts raise)
        raise CubinError(f"broken ELF ({str(problem) or type(problem).__name__})") from None


def _read(data: bytes) -> Cubin:
    if data[:4] != b"\x7fELF":
        raise CubinError("does not begin as an ELF file")
    elf = ELFFile(io.BytesIO(data))
    header = elf.header
    if header["e_machine"] != EM_CUDA:
        raise CubinError(f"is an ELF file for {header['e_machine']}, not for CUDA")
    for table, count, size in (("e_shoff", "e_shnum", "e_shentsize"), ("e_phoff", "e_phnum", "e_phentsize")):
        end = header[table] + header[count] * header[size]
        if end > len(data):
            raise CubinError(f"is cut short: a table of its header ends at byte {end} of {len(data)}")
    sections = _sections(elf, len(data))
    flags = header["e_flags"]
    # From ABI version 8 on the architecture stands in the second byte of the flags.
    sm = flags >> 8 & 0xFF if header["e_ident"]["EI_ABIVERSION"] >= 8 else flags & 0xFF
    registers = _registers(sections)
    names = [n.removeprefix(".text.") for n in sections if n.startswith(".text.")]
    kernels = []
    for name in names:
        info = sections.get(f".nv.info.{name}")
        records = list(_records(info.data())) if info is not None else []
        shared = sections.get(f".nv.shared.{name}")
        kernels.append(_kernel(name, records, registers.get(name), 0 if shared is None else shared["sh_size"]))
    code = b"".join(sections[f".text.{name}"].data() + name.encode() for name in names)
    return Cubin(sm, tuple(kernels), hashlib.sha256(code).digest())


def _sections(elf: ELFFile, size: int) -> dict[str, Section]:
    """The sections by name. Raises `CubinError` for a file whose sections would take more than itself to read."""
    if elf.num_sections() > MOST_SECTIONS:
        raise CubinError(f"has {elf.num_sections()} sections; a cubin has some 30")
    sections: dict[str, Section] = {}
    held = 0
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_NOBITS":
            sections[section.name] = section
            continue
        held += section["sh_size"] + len(section.name)
        if section["sh_offset"] + section["sh_size"] > size:
            raise CubinError(f"is cut short: {section.name} ends beyond the file")
        if section.compressed:
            raise CubinError(f"packs its section {section.name}, which no cubin does")
        if held > 2 * size:
            raise CubinError("has sections that overlap")
        sections[section.name] = section
    return sections


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes of a `.nv.info` section: number and value."""
    place = count = 0
    while place < len(data):
        form, attribute = data[place], data[place + 1]
        size = struct.unpack_from("<H", data, place + 2)[0] if form == _SIZED else 0
        start = place + _WORD if form == _SIZED else place + 2
        value = data[start : start + (size if form == _SIZED else 2)]
        if form == _SIZED and len(value) != size:
            raise CubinError("is cut short inside .nv.info")
        yield attribute, value
        place += _WORD + size
        count += 1
        if count > MOST_RECORDS:
            raise CubinError(f"has more than {MOST_RECORDS} attributes in one section")


def _kernel(name: str, records: list[tuple[int, bytes]], registers: int | None, shared: int) -> KernelInfo:
    params, param_bytes, threads = [], None, 0
    for attribute, value in records:
        if attribute == _KPARAM_INFO:
            _, ordinal, offset, packed = struct.unpack("<IHHI", value)
            params.append(KernelParam(ordinal, offset, packed >> 18))
        elif attribute == _CBANK_PARAM_SIZE:
            param_bytes = struct.unpack("<H", value)[0]
        elif attribute == _REQNTID:
            x, y, z = struct.unpack("<III", value)
            threads = x * y * z
    params.sort(key=lambda param: param.ordinal)
    return KernelInfo(name, tuple(params), param_bytes, registers, threads, shared)


def _registers(sections: Mapping[str, Section]) -> dict[str, int]:
    """Registers a thread, by function name."""
    symbols, info = sections.get(".symtab"), sections.get(".nv.info")
    if not isinstance(symbols, SymbolTableSection) or info is None:
        return {}
    found = {}
    for attribute, value in _records(info.data()):
        if attribute == _REGCOUNT:
            index, number = struct.unpack("<II", value)
            found[str(symbols.get_symbol(index).name)] = int(number)
    return found
