"""What a campaign leaves in its corpus: as it goes, so that a killed one goes on from there, and at its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from foldproof.impl.cases import Case
from foldproof.props.corpus import Corpus, corpus_files, further
from foldproof.props.coverage import Cell
from foldproof.props.fuzz_run import Done, Plan, case_at
from foldproof.props.pin import case_file
from foldproof.props.rounds import Source
from foldproof.props.selector_campaign import Part
from foldproof.reports.write import write_folder

KEEP_S = 2.0
"""Seconds between two looks at how far a campaign came: the most that a killed one does again."""


def remembered(corpus: Corpus, key: str, plan: Plan, done: Done) -> dict[str, bytes]:
    """The files of the corpus after a campaign: its failures, the cells it visited, and how far it came."""
    reached = corpus.reached(key)
    if done.start == reached.next_round:
        reached = further(reached, done.part.coverage, done.part.launches)
    failures = [(f.slug, case_file(f, plan.policy, plan.spec.text)) for f in done.findings if f.reproduced]
    return corpus_files(corpus, key, reached, done.cells, failures)


def keeper(folder: Path, corpus: Corpus, key: str, plan: Plan, source: Source) -> Callable[[Part], None]:
    """Told of what a campaign showed so far, writes every `KEEP_S` seconds how far it came.

    Only while nothing was found: findings are shrunk at the end, and rounds that showed one must run again if the
    campaign does not get there. Raises `FoldproofError` if the folder cannot be written.
    """
    reached, cells, last = corpus.reached(key), dict[Cell, Case](), monotonic()
    # At once, too: a folder that cannot be written is said before the campaign, not after it.
    write_folder(folder, corpus_files(corpus, key, reached, {}, ()))

    def keep(part: Part) -> None:
        nonlocal last
        if not part.is_clean or plan.first != reached.next_round or monotonic() - last < KEEP_S:
            return
        for cell in part.cells.keys() - cells.keys():
            cells[cell] = case_at(source, plan.seed, *part.cells[cell])
        so_far = further(reached, part.coverage, part.launches)
        write_folder(folder, corpus_files(corpus, key, so_far, cells, ()))
        last = monotonic()

    return keep
