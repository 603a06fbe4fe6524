"""Errors of the reference selector: each says what is wrong, where, and what to do about it.

`code` is the machine-readable word of GLOSSARY.md; it appears unchanged in every output.
"""

from __future__ import annotations

from pathlib import Path


class FoldproofError(Exception):
    """Bad input or usage; a command that meets one prints it as one line and exits with 2.

    `where` is a file, optionally followed by a JSON path or a line; `fix` is what to do next.
    """

    code = "BadInput"

    def __init__(self, why: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        fix = f" ({self.fix})" if self.fix else ""
        return one_line(f"{place}{self.why}{fix}")

    def at(self, prefix: str | Path) -> FoldproofError:
        """The same error with the file (and, for a part of it, the JSON path) put before its place."""
        where = f"{prefix}: {self.where}" if self.where else str(prefix)
        return type(self)(self.why, where=where, fix=self.fix)


class InvalidCapture(FoldproofError):
    """The capture breaks its format or contradicts itself (docs/reference/rules.md)."""

    code = "InvalidCapture"


class InvalidLaunch(FoldproofError):
    """The launch breaks its format, repeats an arg, or holds a value that its kind cannot."""

    code = "InvalidLaunch"


class InvalidPolicy(FoldproofError):
    """The policy is outside the policy language."""

    code = "InvalidPolicy"


class SelectionError(FoldproofError):
    """A valid launch for which the policy selects nothing; `detail` is the whole message, `among` hashes."""

    def __init__(self, detail: str, among: tuple[str, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.among = among

    def __str__(self) -> str:
        return self.detail


class MissingTritonVariant(SelectionError):
    """No candidate is admissible in any pass of the policy (T05)."""

    code = "MissingTritonVariant"


class AmbiguousTritonVariant(SelectionError):
    """Several candidates are admissible and the policy refuses to choose among them."""

    code = "AmbiguousTritonVariant"


def one_line(text: str) -> str:
    """`text` with control characters escaped and cut at 600 characters, safe to print from untrusted input."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return shown if len(shown) <= 600 else shown[:597] + "..."
