from __future__ import annotations

from pathlib import Path

from foldproof.model import statements
from foldproof.model.index import index
from foldproof.model.theorems import THEOREMS
from foldproof.props import checks

ROOT = Path(__file__).resolve().parents[2]


def test_the_index_in_docs_is_that_of_the_code() -> None:
    assert (ROOT / "docs" / "reference" / "theorems.md").read_text() == index()


def test_each_theorem_has_its_formula_and_its_check_under_its_id() -> None:
    for theorem in THEOREMS.values():
        key = theorem.id.lower()
        assert theorem.state is getattr(statements, key)
        assert checks.CHECKS[theorem.id] is getattr(checks, f"_{key}")
        assert (theorem.state.__doc__ or "").startswith(theorem.id)
