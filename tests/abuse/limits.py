"""What an input may cost: seconds of one reader, and the memory of a process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 10
MOST_KIB = 1 << 20


class TookTooLongError(Exception):
    """A reader that did not come back."""


@contextmanager
def within(seconds: int = SECONDS) -> Iterator[None]:
    """What runs inside is interrupted after that much wall time. Only in the main thread."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TookTooLongError(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
