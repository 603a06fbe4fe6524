"""The two captures of a diff as byte verdicts need them: what receipts say of each, and both as one to replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from foldproof.gpu.bundle import LAUNCHES
from foldproof.gpu.replay import PairVerdict, Receipt, capture_digest, capture_id, matching, verdict_index
from foldproof.gpu.symbolic.bits import load_cases
from foldproof.gpu.symbolic.cases import LaunchCase
from foldproof.impl.capture import FILE_NAME, Capture, Variant, capture_file
from foldproof.impl.errors import FoldproofError
from foldproof.release.capture_diff import digests
from foldproof.release.contradictions import identity
from foldproof.release.pick_bytes import Digests, same_call

PTX = "ptx"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the captures: where it lies, what it holds, and the digest of each cubin that is there."""

    path: Path
    by_hash: Mapping[str, Variant]
    digests: Digests
    folder: Path
    cubins: tuple[str, str]
    told: Mapping[frozenset[str], tuple[PairVerdict, str]]
    """What matching receipts say of pairs of its hashes, each with the receipt's title."""

    @classmethod
    def of(cls, path: Path, capture: Capture, found: Sequence[Receipt]) -> Side:
        """The side with the receipts that speak for it, the newest last. Raises `InvalidCapture`."""
        digest = capture_digest(path)
        speaking = [r for r in found if r.kind == "replay" and r.capture.aot_sha256 == digest]
        own = capture_id(path) if speaking else None
        told: dict[frozenset[str], tuple[PairVerdict, str]] = {}
        for receipt in speaking:
            if own is not None and matching(receipt, own):
                told |= {pair: (judged, receipt.title) for pair, judged in verdict_index(receipt).items()}
        by_hash = {v.hash: v for v in capture.kernels}
        folder, cubins = capture_file(path).parent, (capture.bin_dir, capture.bin_ext)
        return cls(path, by_hash, digests(path, capture), folder, cubins, told)

    def called(self, variant: Variant, known: Digests) -> str | None:
        """The hash under which the capture has this very variant with this very code, None if it does not."""
        own = self.by_hash.get(variant.hash)
        if own is None or identity(own) != identity(variant) or not same_call(own, variant):
            return None
        a, b = self.digests.get(own.hash), known.get(variant.hash)
        return None if a is not None and b is not None and a != b else own.hash

    def cubin(self, variant: Variant) -> Path:
        """Where the cubin of a variant lies, if it is there."""
        return self.folder / self.cubins[0] / f"{variant.hash}{self.cubins[1]}"

    def ptx(self, variant: Variant) -> Path:
        """Where the PTX of a variant lies, if it is there."""
        return self.folder / PTX / f"{variant.hash}.ptx"

    def cases(self) -> tuple[LaunchCase, ...]:
        """The launches that are recorded beside the capture, with their grids."""
        file = self.folder / LAUNCHES
        return load_cases(file) if file.is_file() else ()


def joined(folder: Path, sides: tuple[Side, Side]) -> dict[tuple[int, str], str]:
    """Both captures as one for symbolic replay: every variant that has PTX, and the name that it has there."""
    marks: dict[tuple[int, str], str] = {}
    kernels: list[Variant] = []
    for number, side in enumerate(sides):
        for variant in side.by_hash.values():
            if side.ptx(variant).is_file():
                mark = marks[number, variant.hash] = f"diffed-{number}-{len(kernels)}-"
                kernels.append(msgspec.structs.replace(variant, hash=mark))
                _link(side.ptx(variant), folder / PTX / f"{mark}.ptx")
                if side.cubin(variant).is_file():
                    _link(side.cubin(variant), folder / "cubins" / f"{mark}.cubin")
    if kernels:
        (folder / FILE_NAME).write_bytes(msgspec.json.encode({"kernels": kernels}))
    return marks


def _link(file: Path, place: Path) -> None:
    try:
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(file.resolve())
    except OSError as problem:
        why = f"cannot be written: {problem.strerror or problem}"
        raise FoldproofError(why, where=str(place), fix="set TMPDIR to a folder that can be written") from None
