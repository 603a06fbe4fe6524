"""When to stop asking a selector that keeps its driver waiting: each such launch costs the whole time allowed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from foldproof.impl.external.answers import Fault, FaultKind
from foldproof.impl.external.blame import WAITED

HUNG = WAITED | {FaultKind.NO_GREETING}
"""Faults that cost time: a fresh process that does not greet is one, too."""
MOST_AT_FIRST = 4
"""Launches without an answer of a selector that has given none yet."""
MOST_IN_ALL = 16


@dataclass(slots=True)
class Patience:
    """How many launches a selector hung on, and whether it ever answered one."""

    hung: int = 0
    answered: bool = False

    @property
    def is_spent(self) -> bool:
        """Whether to ask on would be to wait on."""
        return self.hung >= (MOST_IN_ALL if self.answered else MOST_AT_FIRST)

    def note(self, faults: Iterable[Fault], *, answered: bool) -> None:
        """What one batch came to; `answered`: at least one launch of it has an answer."""
        self.answered |= answered
        self.hung += sum(fault.kind in HUNG for fault in faults)

    def given_up(self) -> Fault:
        """That the rest was not asked, as a fault that belongs to no launch."""
        said = f"hung on {self.hung} launches{'' if self.answered else ' and answered none'}: the rest was not asked"
        return Fault(FaultKind.TIMEOUT, said)
