"""Receipts: what one device run showed, as a JSON record that stands beside a release. No machine paths in it.

A receipt speaks for one capture. The report takes it up only where `matching` says that the capture at hand is that
capture: the same canonical `aot.json`, and the same cubins.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from foldproof.gpu.replay.ablating import AblationRow
from foldproof.gpu.replay.backend import DeviceFacts
from foldproof.gpu.replay.inputs import DOMAINS, DomainName
from foldproof.gpu.replay.verdicts import PairVerdict
from foldproof.impl.capture import capture_file, load_capture
from foldproof.impl.errors import FoldproofError, InvalidCapture
from foldproof.impl.files import digest_of
from foldproof.impl.strictjson import NOT_JSON, read_bytes, read_document

SCHEMA_VERSION = 1
SUFFIX = ".receipt.json.gz"
"""A receipt of the corpus is 400 KB of text and 30 KB packed; unpacked ones are read as well."""
MOST_BYTES = 16 << 20
"""Unpacked."""


class CaptureId(msgspec.Struct, frozen=True):
    """Which capture: the sha256 of its canonical `aot.json`, and that of each cubin by variant hash."""

    aot_sha256: str
    kernels: int
    generator: str
    cubins: dict[str, str]


class Owed(msgspec.Struct, frozen=True):
    """What the run could not settle, and what it needs."""

    what: str
    needs: str


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One device run. `counts` are pairs by domain and verdict; `results` holds what a kind of run has besides.

    `commit` is None where the run was not told; `started` is UTC; `seconds` is wall time; `sets` by class, and under
    "search" the finite sets more that a launch got where bits that should differ had not.
    """

    schema_version: int
    kind: Literal["replay", "scenarios"]
    foldproof: str
    capture: CaptureId
    device: DeviceFacts
    started: str
    seconds: float
    seed: int
    command: str
    commit: str | None = None
    dirty: bool | None = None
    complete: bool = True
    sets: dict[str, int] = {}
    counts: dict[str, dict[str, int]] = {}
    pairs: tuple[PairVerdict, ...] = ()
    ablation: tuple[AblationRow, ...] = ()
    owed: tuple[Owed, ...] = ()
    results: dict[str, Any] = {}

    @property
    def title(self) -> str:
        """What a report calls it."""
        return f"{self.kind} on {self.device.name}, {self.started[:10]}"


def capture_digest(capture: Path) -> str:
    """The sha256 of the canonical `aot.json`: its JSON value with sorted keys and no spaces.

    Raises `InvalidCapture`.
    """
    value = read_document(capture_file(capture), InvalidCapture)
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def capture_id(capture: Path) -> CaptureId:
    """The identity of a capture. Cubins that are absent are left out. Raises `InvalidCapture`."""
    loaded = load_capture(capture)
    folder = capture_file(capture).parent / loaded.bin_dir
    files = {v.hash: folder / f"{v.hash}{loaded.bin_ext}" for v in loaded.kernels}
    cubins = {name: digest_of(file, InvalidCapture) for name, file in files.items() if file.is_file()}
    return CaptureId(capture_digest(capture), len(loaded.kernels), str(loaded.generator or ""), cubins)


def matching(receipt: Receipt, capture: Path | CaptureId) -> bool:
    """Whether the receipt speaks for this capture: equal `aot.json`, and no cubin at hand with other bytes.

    Who asks of many receipts passes the capture's `capture_id`, so that its cubins are read once.
    """
    if isinstance(capture, CaptureId):
        at_hand = capture
    elif receipt.capture.aot_sha256 != capture_digest(capture):
        return False
    else:
        at_hand = capture_id(capture)
    cubins = receipt.capture.cubins
    return receipt.capture.aot_sha256 == at_hand.aot_sha256 and all(
        cubins.get(name) == digest for name, digest in at_hand.cubins.items()
    )


def read_receipt(file: Path) -> Receipt:
    """One receipt. Raises FoldproofError with file, place and reason."""
    fix = "make it again with foldproof replay, or remove it"
    try:
        receipt = msgspec.json.decode(read_bytes(file, limit=MOST_BYTES), type=Receipt)
    except NOT_JSON as problem:
        raise FoldproofError(f"is no receipt: {problem}", where=str(file), fix=fix) from None
    if receipt.schema_version != SCHEMA_VERSION:
        why = f"has schema version {receipt.schema_version}; this foldproof reads {SCHEMA_VERSION}"
        raise FoldproofError(why, where=str(file), fix=fix)
    return receipt


def read_receipts(folder: Path) -> list[Receipt]:
    """The receipts of a folder, oldest first; none where there is no such folder. Raises FoldproofError."""
    plain = SUFFIX.removesuffix(".gz")
    files = sorted(file for suffix in (SUFFIX, plain) for file in folder.glob(f"*{suffix}"))
    found = [read_receipt(file) for file in files]
    return sorted(found, key=lambda receipt: (receipt.started, receipt.kind))


def write_receipt(receipt: Receipt, folder: Path) -> Path:
    """Write a receipt, packed, under a name made of its kind, device, time and seed. Raises OSError."""
    device = "".join(c if c.isalnum() else "-" for c in receipt.device.name.lower()).strip("-")
    stamp = "".join(c for c in receipt.started if c.isalnum())[:15]
    file = folder / f"{receipt.kind}-{device}-{stamp}-{receipt.seed}{SUFFIX}"
    folder.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_bytes(gzip.compress(_text(receipt).encode(), mtime=0))
    part.replace(file)
    return file


def _text(receipt: Receipt) -> str:
    """A line a field, and a line a row of the long ones."""
    value: dict[str, Any] = msgspec.to_builtins(receipt, order="sorted")
    lines = []
    for key, item in value.items():
        if isinstance(item, list) and item:
            rows = ",\n".join(f"  {json.dumps(row, sort_keys=True)}" for row in item)
            lines.append(f" {json.dumps(key)}: [\n{rows}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(item, sort_keys=True)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def counted(pairs: Iterable[PairVerdict]) -> dict[str, dict[str, int]]:
    """How many pairs have which verdict, by domain."""
    listed = tuple(pairs)
    return {domain: dict(Counter(pair.verdicts[domain].word for pair in listed)) for domain in DOMAINS}


class Row(msgspec.Struct, frozen=True):
    """One verdict of a receipt as a table shows it."""

    fn: str
    launch: str
    change: str
    first: str
    second: str
    domain: DomainName
    word: str
    reason: str
    basis: str
    expected: str
    confirmed: bool | None


def rows(receipt: Receipt) -> tuple[Row, ...]:
    """The verdicts of a receipt, a row a pair and domain."""
    return tuple(
        Row(
            pair.fn,
            pair.launch,
            ", ".join(pair.change),
            pair.first,
            pair.second,
            domain,
            verdict.word,
            verdict.reason,
            pair.basis,
            pair.expected if domain == pair.domain else "",
            pair.confirmed if domain == pair.domain else None,
        )
        for pair in receipt.pairs
        for domain, verdict in pair.verdicts.items()
    )


def corrected_labels(receipt: Receipt) -> tuple[PairVerdict, ...]:
    """The pairs whose label predicted another verdict than the device gave."""
    return tuple(pair for pair in receipt.pairs if pair.confirmed is False)


def silent_controls(receipt: Receipt) -> tuple[str, ...]:
    """Negative controls that did not differ: functions with a pair expected to differ, of which none did."""
    expected = {pair.fn for pair in receipt.pairs if pair.expected == "differs"}
    differing = {pair.fn for pair in receipt.pairs if pair.domain and pair.verdicts[pair.domain].word == "differs"}
    return tuple(sorted(expected - differing))


def verdict_index(receipt: Receipt) -> Mapping[frozenset[str], PairVerdict]:
    """The verdicts by unordered pair of hashes; of several launches, the one that differs is kept."""
    index: dict[frozenset[str], PairVerdict] = {}
    for pair in receipt.pairs:
        key = frozenset((pair.first, pair.second))
        if key not in index or pair.verdicts["every bit pattern"].word != "equal":
            index[key] = pair
    return index
