"""Every input of the corpus, seeds and crashers that were found, read again: without atheris, in seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from abuse.targets import TARGETS
from foldproof.impl.errors import FoldproofError

CORPUS = Path(__file__).with_name("corpus")


def test_every_target_has_a_corpus_and_no_corpus_is_without_a_target() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} == set(TARGETS)
    sizes = {name: sum(file.stat().st_size for file in (CORPUS / name).iterdir()) for name in TARGETS}
    assert all(0 < size < 20_000 for size in sizes.values()), sizes


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_of_the_corpus_is_more_than_an_error(name: str, tmp_path: Path) -> None:
    read = 0
    for file in sorted((CORPUS / name).iterdir()):
        folder = tmp_path / file.name
        folder.mkdir()
        try:
            TARGETS[name].run(file.read_bytes(), folder)
        except FoldproofError:
            continue
        read += 1
    assert read, "a corpus without an input that is read through reaches little of its reader"
