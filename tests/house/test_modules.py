"""What is asked of every module: its length, or a reason; no open end; words that the code still knows."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 250
REASON = "Longer than 250 lines because "
MODULES = sorted(file for room in ROOT.glob("*/__init__.py") for file in room.parent.rglob("*.py"))
TEXTS = (".py", ".zig", ".h", ".md", ".toml", ".j2")
DOCUMENTS = re.compile(r"(?<![\w/])((?:docs/[\w/-]+|[A-Z]{4,})\.md)\b")
OPEN_END = re.compile(r"\b(TODO|FIXME|XXX)\b(?!.*\bissue \d+)")
PATHS = re.compile(r"`((?:impl|model|props|gpu|release|reports|cli|selectors|tests|docs)/[\w./-]+)`")


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def tracked() -> list[Path]:
    """The text files of the repository; where this is no clone, those that lie here."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split("\0") if listed.returncode == 0 else [name_of(file) for file in MODULES]
    return [ROOT / name for name in names if name.endswith(TEXTS) and (ROOT / name).is_file()]


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_module_is_short_or_says_why_not(module: Path) -> None:
    text = module.read_text()
    docstring = ast.get_docstring(ast.parse(text)) or ""
    assert docstring or not text.strip(), "no docstring"
    lines = text.count("\n")
    is_long = lines > MOST_LINES
    assert is_long == (REASON in docstring), (
        f"{lines} lines: split it where a seam is natural, or say in its docstring: {REASON}..."
        if is_long
        else f"{lines} lines: the docstring says that it is longer than {MOST_LINES}"
    )


def test_nothing_is_left_open_without_an_issue() -> None:
    own = Path(__file__)
    found = [
        f"{name_of(file)}:{number}: {line.strip()}"
        for file in tracked()
        if file != own
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if OPEN_END.search(line)
    ]
    assert not found


def test_a_path_that_the_text_names_exists() -> None:
    found = [
        f"{name_of(file)}: {named}"
        for file in tracked()
        if file.suffix in {".md", ".py"} and file != Path(__file__)
        for named in PATHS.findall(file.read_text())
        if not (ROOT / named).exists()
    ]
    assert not found


def test_a_document_that_code_or_docs_cite_is_in_the_repository() -> None:
    cited = {
        (name_of(file), named)
        for file in tracked()
        if file != Path(__file__)
        for named in DOCUMENTS.findall(file.read_text())
    }
    assert {"docs/reference/rules.md", "GLOSSARY.md"} <= {named for _, named in cited}
    assert [each for each in sorted(cited) if not (ROOT / each[1]).exists()] == []


def test_the_mark_of_an_open_end_is_told_from_a_word() -> None:
    assert OPEN_END.search("# TODO: later")
    assert not OPEN_END.search("# TODO (issue 12): later")
    assert not OPEN_END.search("todo = [node]")
