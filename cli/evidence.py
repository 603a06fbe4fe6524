"""Device receipts as evidence: those that ship with foldproof and those of a folder, if they speak of the capture."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from foldproof.gpu.replay import Receipt, matching, read_receipts, verdict_index
from foldproof.reports.record import EvidenceRow


def receipts(*folders: Path) -> list[Receipt]:
    """The receipts that ship in the package and those of further folders. Raises `FoldproofError`."""
    shipped = Path(str(resources.files("foldproof.reports") / "receipts"))
    return [receipt for folder in (shipped, *folders) for receipt in read_receipts(folder)]


def evidence(capture: Path, found: Sequence[Receipt]) -> tuple[EvidenceRow, ...]:
    """A row a receipt; one whose digests do not match the capture at hand is stale and shows nothing of it."""
    rows = []
    for receipt in found:
        fits = matching(receipt, capture)
        rows.append(
            EvidenceRow(
                receipt.kind,
                receipt.device.name,
                receipt.started[:10],
                receipt.commit,
                receipt.dirty,
                "matches the capture" if fits else "stale: made on another capture",
                {domain: dict(sorted(words.items())) for domain, words in receipt.counts.items()} if fits else {},
                receipt.command,
            )
        )
    return tuple(rows)


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
