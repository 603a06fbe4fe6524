"""Pages that are written from the code equal it, links lead somewhere, and Python in the docs names what exists."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest
from docs.pages import FENCE, ROOT, blocks, name_of, pages
from docs.test_commands import parse
from foldproof.cli.main import VERBS
from foldproof.cli.reference import reference
from foldproof.impl.policy import ZOO, zoo_policy
from foldproof.model.index import index
from foldproof.model.mutants import mutants
from foldproof.model.theorems import THEOREMS

LINKED = [*pages(), ROOT / "ARCHITECTURE.md", ROOT / "GLOSSARY.md", ROOT / "CHANGELOG.md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def test_the_page_of_the_command_line_is_that_of_the_commands() -> None:
    text = (ROOT / "docs/reference/cli.md").read_text()
    assert text == reference(), "write it again: python -m foldproof.cli.reference > docs/reference/cli.md"


def test_each_verb_has_its_heading_and_examples_that_parse() -> None:
    text = reference()
    for verb in VERBS:
        assert f"\n## {verb}\n" in text
    lines = [line for block in blocks(text) for line in block.text.splitlines()]
    examples = [line for line in lines if line.startswith("foldproof ") and "[OPTIONS]" not in line]
    assert len(examples) > len(VERBS)
    for example in examples:
        parse(example)


def test_the_theorem_index_names_formulas_checks_mutants_and_policies_that_exist() -> None:
    text = index()
    sections = {part.split(" ", 1)[0]: part for part in text.split("\n## ")[1:]}
    assert list(sections) == list(THEOREMS)
    for theorem in THEOREMS.values():
        section = sections[theorem.id]
        assert theorem.name in section
        assert theorem.sentence in section
        for room, module, function in re.findall(r"`(model|props)\.(\w+)\.(\w+)`", section):
            assert callable(getattr(importlib.import_module(f"foldproof.{room}.{module}"), function))
        assert len(re.findall(r"`(?:model|props)\.", section)) == 2
        promised = (re.search(r"- promised by: (.+)", section) or pytest.fail("no line of promises"))[1].split(", ")
        keepers = [n for n in ZOO if theorem.id in {p.partition(":")[0] for p in zoo_policy(n).promises}]
        assert promised == (keepers or ["none"])
        telling = (re.search(r"- mutants: (.+)", section) or pytest.fail("no line of mutants"))[1].split(", ")
        known = {mutant.name for name in ZOO for mutant in mutants(zoo_policy(name))}
        assert set(telling) <= known


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if link.startswith(("https://", "http://")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{name_of(page)}: {link}"
        assert target.is_relative_to(ROOT), f"{name_of(page)}: {link} leaves the repository"
        if anchor:
            assert anchor in anchors(target), f"{name_of(page)}: {link}; there are {sorted(anchors(target))}"


def test_every_page_is_in_the_index() -> None:
    linked = {
        (ROOT / "docs" / link.partition("#")[0]).resolve()
        for link in LINK.findall((ROOT / "docs/README.md").read_text())
    }
    missing = [name_of(page) for page in pages() if page.is_relative_to(ROOT / "docs") and page not in linked]
    left = [name for name in missing if name != "docs/README.md" and not name.startswith("docs/adr/0")]
    assert not left, f"not in docs/README.md: {left}"


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_fences_say_their_language_and_python_imports_what_exists(page: Path) -> None:
    for block in blocks(page.read_text()):
        where = f"{name_of(page)}:{block.line}"
        assert block.language, f"{where}: a block without a language"
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("foldproof"):
                module = importlib.import_module(node.module or "")
                for name in node.names:
                    assert hasattr(module, name.name), f"{where}: {node.module} has no {name.name}"
