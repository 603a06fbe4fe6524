"""The pages for readers as data: fenced blocks, the commands in them, and the marks that say how a command is run.

A mark is a comment above a fence, unseen on the rendered page:

    <!-- exits 1 -->                              each command of the block ends with exit code 1, not 0
    <!-- exits 1: foldproof diff -->              those that begin so do
    <!-- not run (needs a GPU) -->                the block is parsed, not run; the reason names one of `REASONS`
    <!-- not run (minutes): foldproof prove -->   those that begin so are
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REASONS = ("a GPU", "a network", "a cluster", "minutes")
SHELLS = ("sh", "console")
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"<!-- (?:exits (?P<exit>\d+)|not run \((?P<reason>[^)]+)\))(?:: (?P<start>.+?))? -->")
MARKS_ABOVE = re.compile(r"(?: *<!-- [^\n]* -->\n+)+\Z")
INLINE = re.compile(r"`(foldproof\s[^`]+)`")
HEREDOC = re.compile(r"<<-? ?'?(\w+)'?")


@dataclass(frozen=True, slots=True)
class Mark:
    """How the commands of the block that begin with `start` are run: their exit code, or the reason not to run them."""

    exit: int = 0
    reason: str = ""
    start: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, text without indentation, marks, and the line of the page where it begins."""

    language: str
    text: str
    marks: tuple[Mark, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a block, the output that the page shows below it, and how it is run."""

    text: str
    shown: tuple[str, ...]
    mark: Mark
    line: int


def pages() -> list[Path]:
    """Every page whose commands a reader types."""
    top = [file for name in ("README.md", "CONTRIBUTING.md") if (file := ROOT / name).exists()]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    """The page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    for fence in FENCE.finditer(text):
        above = MARKS_ABOVE.search(text[: fence.start()])
        marks = tuple(_mark(mark) for mark in MARK.finditer(above.group() if above else ""))
        indent = fence["indent"]
        body = "".join(line.removeprefix(indent) for line in fence["body"].splitlines(keepends=True))
        found.append(Block(fence["language"], body, marks, text.count("\n", 0, fence.start()) + 1))
    return found


def _mark(found: re.Match[str]) -> Mark:
    return Mark(int(found["exit"] or 0), found["reason"] or "", found["start"] or "")


def commands(block: Block) -> list[Command]:
    """The commands of a shell block. In `console`, one is a line after `$ `, and what follows is its output."""
    if block.language not in SHELLS:
        return []
    made = []
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        first, start = lines[at], at
        is_typed = block.language == "sh" or first.startswith("$ ")
        at += 1
        if not is_typed or not first.strip():
            continue
        text = first.removeprefix("$ ")
        while at < len(lines) and _goes_on(text):
            text += "\n" + lines[at]
            at += 1
        shown = []
        while block.language == "console" and at < len(lines) and not lines[at].startswith("$ "):
            shown.append(lines[at])
            at += 1
        made.append(Command(text, tuple(shown), _mark_for(block, text), block.line + start + 1))
    return made


def _goes_on(text: str) -> bool:
    here = HEREDOC.search(text)
    if here:
        return text.splitlines()[-1] != here[1]
    return text.endswith("\\")


def _mark_for(block: Block, text: str) -> Mark:
    return next((mark for mark in block.marks if text.startswith(mark.start)), Mark())


def without_heredocs(text: str) -> str:
    """The command without the text that it reads: what the shell and `foldproof` parse."""
    return text.split("\n", maxsplit=1)[0] if HEREDOC.search(text) else text.replace("\\\n", " ")


def inline_commands(text: str) -> list[str]:
    """The commands that the prose of a page names between backticks."""
    prose = FENCE.sub("", text)
    return [" ".join(found.split()) for found in INLINE.findall(prose)]


def output_pattern(shown: tuple[str, ...]) -> re.Pattern[str]:
    """What the output must match: the shown lines in order, `...` for anything, any run of blanks for any other."""
    lines = [".*?".join(_blanks(part) for part in line.strip().split("...")) for line in shown if line.strip()]
    return re.compile(r"[\s\S]*?".join(lines))


def _blanks(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))
