"""Device receipts as evidence: those that ship with foldproof and those of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from foldproof.gpu.replay import Receipt, matching, read_receipts, verdict_index
from foldproof.gpu.replay.receipts import SUFFIX, read_receipt
from foldproof.reports.store import raw


@dataclass(frozen=True, slots=True)
class ReceiptFile:
    """A receipt, and the file that it was read from."""

    name: str
    content: bytes
    receipt: Receipt


def shipped_folder() -> Path:
    """The receipts that ship in the package."""
    return Path(str(resources.files("foldproof.reports") / "receipts"))


def receipt_files(aot_sha256: str, *folders: Path) -> Iterator[ReceiptFile]:
    """The receipts about a capture of this digest, shipped ones first, oldest first. Raises `FoldproofError`."""
    for folder in (shipped_folder(), *folders):
        files = sorted(file for suffix in (SUFFIX, SUFFIX.removesuffix(".gz")) for file in folder.glob(f"*{suffix}"))
        found = [ReceiptFile(file.name, raw(file), read_receipt(file)) for file in files]
        for one in sorted(found, key=lambda one: (one.receipt.started, one.receipt.kind)):
            if one.receipt.capture.aot_sha256 == aot_sha256:
                yield one


def receipts(*folders: Path) -> list[Receipt]:
    """The receipts that ship in the package and those of further folders. Raises `FoldproofError`."""
    return [receipt for folder in (shipped_folder(), *folders) for receipt in read_receipts(folder)]


def device_verdicts(capture: Path, found: Sequence[Receipt] | None = None) -> dict[frozenset[str], dict[str, str]]:
    """For each pair of hashes that a matching receipt has run: the verdict's word by input domain.

    `found` are the receipts, by default those that ship.
    """
    words: dict[frozenset[str], dict[str, str]] = {}
    for receipt in receipts() if found is None else found:
        if receipt.kind == "replay" and matching(receipt, capture):
            for pair, judged in verdict_index(receipt).items():
                words[pair] = {domain: verdict.word for domain, verdict in judged.verdicts.items()}
    return words
