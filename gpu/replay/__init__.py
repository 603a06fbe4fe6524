"""Replaying the variants of a capture on identical inputs, and comparing their bytes.

Importing it loads neither a CUDA library nor a driver. Data walks one way: capture and launches -> `Plan` of bouts ->
counts from a worker process on the device -> verdicts -> `Receipt`.
"""

from __future__ import annotations

from foldproof.gpu.replay.ablating import AblationRow
from foldproof.gpu.replay.backend import DeviceFacts, NoDevice
from foldproof.gpu.replay.receipts import (
    Receipt,
    capture_digest,
    capture_id,
    corrected_labels,
    matching,
    read_receipt,
    read_receipts,
    rows,
    silent_controls,
    verdict_index,
    write_receipt,
)
from foldproof.gpu.replay.replaying import (
    Plan,
    Schedule,
    ablate,
    device_facts,
    judge,
    plan_replay,
    replay_receipt,
    run_plan,
)
from foldproof.gpu.replay.supervising import Supervisor, worker_command
from foldproof.gpu.replay.trace import BufferNote, Record, TraceWriter, read_trace, record_from, record_to
from foldproof.gpu.replay.verdicts import PairVerdict, Verdict

__all__ = [
    "AblationRow",
    "BufferNote",
    "DeviceFacts",
    "NoDevice",
    "PairVerdict",
    "Plan",
    "Receipt",
    "Record",
    "Schedule",
    "Supervisor",
    "TraceWriter",
    "Verdict",
    "ablate",
    "capture_digest",
    "capture_id",
    "corrected_labels",
    "device_facts",
    "judge",
    "matching",
    "plan_replay",
    "read_receipt",
    "read_receipts",
    "read_trace",
    "record_from",
    "record_to",
    "replay_receipt",
    "rows",
    "run_plan",
    "silent_controls",
    "verdict_index",
    "worker_command",
    "write_receipt",
]
