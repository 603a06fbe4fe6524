"""Triton's dispatcher as a shared library behind foldproof_selector.h, for the driver `impl.external.cabi`."""

from __future__ import annotations

import ctypes
import hashlib
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from foldproof.impl.capture import INT_TYPES, Capture
from foldproof.impl.external.records import KINDS
from foldproof.impl.launch import Kind
from foldproof.props.peers.aot import AotError, Compiled, Linked, compiled, function, linked
from foldproof.props.peers.tools import c_compiler

NATIVE = Path(__file__).with_name("native")
C_KINDS = {
    "CUdeviceptr": Kind.PTR,
    "int32_t": Kind.I32,
    "int64_t": Kind.I64,
    "uint64_t": Kind.U64,
    "uint8_t": Kind.U1,
    "double": Kind.FP32,
}
"""The kind of arg that a param of that C type takes; Triton's table, read backwards."""
MAX_ARGS = 32
_CONST_KINDS = {"int": 0, "f32": 2}


@dataclass(frozen=True, slots=True)
class LinkerPeer:
    """A dispatcher to drive: the capture that it chooses from, candidate order being link order, and its library.

    The library answers for this capture alone, variants in this order; for any other it says InvalidCapture.
    """

    capture: Capture
    library: Path
    linked: Linked

    def trial(self, values: Mapping[str, int | float]) -> tuple[str, tuple[int, ...]]:
        """Call the default entry as a C program would, ints as int64_t (uint64_t), converted by C to what it declares.

        Answers with the hash of the variant that was launched ("" if none), and the low 32 bits of each arg that its
        kernel takes, in order. The library is loaded into this process.
        """
        entry = ctypes.CDLL(str(self.library)).peer_trial
        numbers = (ctypes.c_uint64 * len(self.linked.params))(*(_bits(values[name]) for _, name in self.linked.params))
        words = (ctypes.c_uint32 * MAX_ARGS)()
        pick = int(entry(numbers, words))
        if pick < 0:
            return "", ()
        variant = self.capture.kernels[pick]
        return variant.hash, tuple(words[: len(variant.params)])


def _bits(value: float) -> int:
    if isinstance(value, float):
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    return value % 2**64


def peer(
    kernel: str, signatures: Sequence[str] | Sequence[Compiled], folder: Path, *, default_entry: bool = True
) -> LinkerPeer:
    """Compile, link and wrap: one kernel, its variants by their signatures, in link order.

    `default_entry`: what the entry `<kernel>_default` picks, which is what a user of the linker calls. False: its
    dispatchers are tried one after the other (`algo_id` 0, 1, ...) until one takes the launch. Raises `AotError`.
    Call it inside `tools.triton_without_gpu`; the folder can be shared, and files in it are made once.
    """
    parts = [s if isinstance(s, Compiled) else compiled(kernel, s, folder / "kernels") for s in signatures]
    order = "\n".join(part.name for part in parts)
    own = folder / hashlib.sha256(f"{kernel}\n{order}\n{default_entry}".encode()).hexdigest()[:16]
    made = linked(kernel, parts, own)
    (own / "peer_table.h").write_text(table(made, default_entry=default_entry), "utf-8")
    library = _built(made, own, folder / "objects")
    return LinkerPeer(Capture(tuple(part.variant for part in parts)), library, made)


def _built(made: Linked, own: Path, objects: Path) -> Path:
    """The shared library. Its name tells what is in it: `dlopen` answers a path that it knows with what it loaded."""
    objects.mkdir(exist_ok=True)
    header = Path(str(resources.files("foldproof.impl") / "native"))
    flags = ("-O1", "-fPIC", f"-I{NATIVE}", f"-I{header}", f"-I{own}")
    for part in made.compiled:
        # One at a time, because not every compiler names the objects of several sources alike.
        if not _object(part, objects).exists():
            _cc([*flags, "-w", "-c", str(part.source), "-o", str(_object(part, objects))], objects)
    sources = [made.source, own / "peer_table.h", NATIVE / "driver.c", NATIVE / "selector.c", NATIVE / "peer.h"]
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in sources)).hexdigest()[:16]
    out = own / f"lib{made.kernel}-{digest}.so"
    given = [str(NATIVE / "driver.c"), str(NATIVE / "selector.c"), str(made.source)]
    parts = [str(_object(part, objects)) for part in made.compiled]
    if not out.exists():
        _cc([*flags, "-w", "-shared", *given, *parts, "-o", str(out)], own)
    return out


def _object(part: Compiled, objects: Path) -> Path:
    return objects / part.source.with_suffix(".o").name


def _cc(arguments: Sequence[str], folder: Path) -> None:
    done = subprocess.run([*c_compiler(), "-std=gnu11", *arguments], cwd=folder, capture_output=True, text=True)  # noqa: S603, PLW1510
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise AotError(f"the C compiler refuses: {first}", where=str(folder), fix="read the generated .c there")


def table(made: Linked, *, default_entry: bool) -> str:
    """`peer_table.h`: everything that the selector knows of this dispatcher."""
    names = [name for _, name in made.params]
    values = ", ".join(
        f"peer_double(v[{i}])" if c_type == "double" else f"v[{i}]" for i, (c_type, _) in enumerate(made.params)
    )
    consts = _consts(made)
    lines = [
        f'#include "{made.header.name}"',
        f'#define PEER_NAME "triton-linker:{made.kernel}"',
        f'#define PEER_FN "{made.kernel}"',
        f"#define PEER_ALGOS_TRIED {1 if default_entry else len(made.groups)}",
        f"#define PEER_CONST_COUNT {len(consts)}",
        *(f"extern unsigned char {part.name}_cubin[];" for part in made.compiled),
        "static const struct peer_variant PEER_VARIANTS[] = {",
        *(f'    {{"{p.name}", {p.name}_cubin, {len(p.variant.params)}}},' for p in made.compiled),
        "};",
        "static const struct peer_param PEER_PARAMS[] = {",
        *(f"    {_param(made.kernel, c_type, name)}," for c_type, name in made.params),
        "};",
        "static const struct peer_const PEER_CONSTS[] = {",
        *(f"    {row}," for row in consts or ['{-1, "", 0, 0}']),
        "};",
        "static double peer_double(uint64_t v) {",
        "    const uint32_t bits = (uint32_t)v;",
        "    float value;",
        "    memcpy(&value, &bits, sizeof(value));",
        "    return value;",
        "}",
        "static CUresult peer_call(int algo, const uint64_t *v) {",
        f"    (void)peer_double; /* {', '.join(names)} */",
        f"    return algo == 0 ? {made.kernel}_default(NULL, {values}) : {made.kernel}(NULL, {values}, algo);",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _param(kernel: str, c_type: str, name: str) -> str:
    kind = KINDS.index(C_KINDS[c_type]) if c_type in C_KINDS else -1
    own = next(param for param in function(kernel).params if param.name == name)
    annotated = own.annotation_type in INT_TYPES
    low, high = INT_TYPES[own.annotation_type] if annotated else (0, 0)
    return f'{{"{name}", {kind}, {int(annotated)}, (int64_t){low + 1}LL - 1, {high}ULL}}'


def _consts(made: Linked) -> list[str]:
    """The constants of each dispatcher: those of the variant whose signature it has, which is the last one."""
    by_name = {part.name: part for part in made.compiled}
    rows = []
    for algo, group in enumerate(made.groups):
        for name, const in by_name[group.members[-1]].literal.items():
            rows.append(f'{{{algo}, "{name}", {_CONST_KINDS[const.kind]}, {int(const.value) % 2**64}ULL}}')
    return rows
