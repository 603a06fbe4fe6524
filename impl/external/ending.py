"""The end of a selector that has nothing left to answer: what a good one does, and the fault if it does not."""

from __future__ import annotations

import time

from foldproof.impl.external.answers import Fault, FaultKind
from foldproof.impl.external.child import Child

GRACE_S = 1.0


def end_politely(child: Child, grace_s: float) -> Fault | None:
    """End a process that has no launches left; the fault, if it does not exit well or leaves processes behind."""
    deadline = time.monotonic() + grace_s
    exited = child.end(grace_s)
    left = child.descendants() if exited else []
    while left and time.monotonic() < deadline:
        time.sleep(0.01)
        left = child.descendants()
    status, ending, tail = child.status, child.ending() if exited else "", child.stderr_tail
    child.kill()
    if not exited:
        return Fault(FaultKind.NOT_ENDING, f"still running {grace_s:g} s after the end of input", stderr=tail)
    if left:
        return Fault(FaultKind.LEFT_PROCESSES, f"ended, and left {len(left)} processes running", stderr=tail)
    return Fault(FaultKind.CRASH, f"{ending} after the end of input", stderr=tail) if status else None
