"""The capture that ships inside the package: where it lies, what its manifest says, and whether its files are whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from foldproof.gpu.sources import KERNELS, source_digest
from foldproof.impl.capture import is_file_name
from foldproof.impl.errors import InvalidCapture
from foldproof.impl.files import digest_of as sha256_of
from foldproof.impl.strictjson import NOT_JSON, read_bytes

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
LAUNCHES = "launches.json"
AOT = "aot.json"


class FileDigest(msgspec.Struct, frozen=True):
    """A file of the capture: its sha256 in hex and its size in bytes."""

    sha256: str
    bytes: int


class KernelRow(msgspec.Struct, frozen=True):
    """A kernel of the capture and the sha256 of the source text that decides its code."""

    name: str
    module: str
    theme: str
    source_sha256: str


class VariantRow(msgspec.Struct, frozen=True):
    """A variant and its files; `twin` is the name of its specialisation in the corpus."""

    hash: str
    fn: str
    twin: str
    cubin: FileDigest
    ptx: FileDigest

    def __post_init__(self) -> None:
        if not is_file_name(self.hash):
            raise ValueError(f"the hash {self.hash!r} is no plain file name")


class NoReferenceRow(msgspec.Struct, frozen=True):
    """A variant that cannot be compared: `fails_to` compile (it is then in no other file) or load, and why."""

    fn: str
    twin: str
    num_warps: int
    enable_fp_fusion: bool
    fails_to: str
    reason: str


class Manifest(msgspec.Struct, frozen=True):
    """What a capture was built from, by what. `ptx_version` and `ptx_target` are as the PTX states them."""

    schema_version: int
    generator: str
    triton: str
    ptxas: str
    ptx_version: str
    ptx_target: str
    target: tuple[str, int, int]
    pinned_options: tuple[str, ...]
    aot: FileDigest
    launches: FileDigest
    kernels: tuple[KernelRow, ...]
    variants: tuple[VariantRow, ...]
    no_reference: tuple[NoReferenceRow, ...]


def bundled_capture() -> Path:
    """The folder of the bundled capture, for `foldproof.impl.load_capture`."""
    return Path(__file__).resolve().parent / "bundled"


def read_manifest(path: Path) -> Manifest:
    """The manifest of a built capture. Raises InvalidCapture when it is missing, malformed or of another schema."""
    file = path / MANIFEST
    fix = "build the capture again with foldproof capture build"
    try:
        manifest = msgspec.json.decode(read_bytes(file, InvalidCapture), type=Manifest)
    except NOT_JSON as problem:
        raise InvalidCapture(f"is no manifest: {problem}", where=str(file), fix=fix) from None
    if manifest.schema_version != SCHEMA_VERSION:
        why = f"has schema version {manifest.schema_version}; this foldproof reads {SCHEMA_VERSION}"
        raise InvalidCapture(why, where=str(file), fix=fix)
    return manifest


def digest_of(data: bytes) -> FileDigest:
    """The digest of a file's content."""
    return FileDigest(hashlib.sha256(data).hexdigest(), len(data))


def verify_bundle(path: Path) -> list[str]:
    """The faults of a built capture, a line each: files missing, changed or not listed. Empty: it is whole.

    Raises InvalidCapture when there is no readable manifest to hold the files to.
    """
    manifest = read_manifest(path)
    listed = {AOT: manifest.aot, LAUNCHES: manifest.launches}
    for row in manifest.variants:
        listed[f"cubins/{row.hash}.cubin"] = row.cubin
        listed[f"ptx/{row.hash}.ptx"] = row.ptx
    faults = [fault for name, digest in listed.items() for fault in _file_faults(path, name, digest)]
    present = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    faults += [f"{name}: not listed in {MANIFEST}" for name in sorted(present - set(listed) - {MANIFEST})]
    return faults


def stale_kernels(path: Path) -> list[str]:
    """Names of kernels whose source at hand is not the one that the capture was built from."""
    return [row.name for row in read_manifest(path).kernels if _digest_at_hand(row) != row.source_sha256]


def _digest_at_hand(row: KernelRow) -> str | None:
    if not (KERNELS / f"{row.module}.py").is_file():
        return None
    try:
        return source_digest(row.module, row.name)
    except KeyError:
        return None


def _file_faults(path: Path, name: str, digest: FileDigest) -> Iterator[str]:
    file = path / name
    if not file.is_file():
        yield f"{name}: cannot be read (no such file)"
    elif file.stat().st_size != digest.bytes or sha256_of(file, InvalidCapture) != digest.sha256:
        yield f"{name}: sha256 or size is not the one in {MANIFEST}"
