"""An exhaustive run that goes on from the shards of one that was stopped counts as one that was not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import msgspec
import pytest
from foldproof.cli import resuming
from foldproof.impl import load_policy
from foldproof.impl.external.answers import Fault, FaultKind
from foldproof.props import exhaust_external
from foldproof.props.drive import SelectorSpec
from foldproof.props.exhaust import Block, DecideSelector, Picks
from foldproof.props.exhaust_external import Exhausted, Run, run_all
from foldproof.props.kept_shards import known_shards, shard_file
from foldproof.props.universe import Universe

RUN = Run(SelectorSpec("two-pass"), load_policy("three-pass"), Universe(2, 1, 0))
"""16 captures of 3 launches; the two policies differ on some."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A policy as a selector, in this process."""

    inner: DecideSelector
    faults: list[Fault] = field(default_factory=list)

    def decide_many(self, block: Block) -> Picks:
        return self.inner.decide_many(block)

    def close(self) -> None:
        """Nothing to end."""


@cache
def kept_here(spec: SelectorSpec) -> tuple[Asked, Asked]:
    return Asked(DecideSelector(load_policy(spec.text))), Asked(DecideSelector(load_policy(spec.text)))


@pytest.fixture(scope="module", autouse=True)
def _in_this_process() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exhaust_external, "kept", kept_here)
        yield


@pytest.fixture(scope="module")
def shards() -> tuple[Exhausted, list[Exhausted]]:
    """The whole run, and its shards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exhaust_external, "SHARD_DECISIONS", 12)
        kept: list[Exhausted] = []
        whole = run_all(RUN, keep=kept.append)
    return whole, kept


def files(shards: list[Exhausted]) -> dict[str, bytes]:
    return dict(named for shard in shards if (named := shard_file(shard)))


def test_shards_are_read_as_they_were_written(shards: tuple[Exhausted, list[Exhausted]]) -> None:
    whole, kept = shards
    assert len(kept) == 4
    assert whole.tally.disagreements > 0
    assert known_shards(RUN, files(kept[::-1])) == kept


@pytest.mark.parametrize("known", [(0,), (1, 3), (3,), (0, 1, 2, 3)])
@pytest.mark.parametrize("decisions", [6, 12, 1 << 19])
def test_a_run_goes_on_from_any_of_them_whatever_its_own_shards_are(
    shards: tuple[Exhausted, list[Exhausted]],
    known: tuple[int, ...],
    decisions: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, kept = shards
    monkeypatch.setattr(exhaust_external, "SHARD_DECISIONS", decisions)
    fresh: list[Exhausted] = []
    again = run_all(RUN, known=[kept[n] for n in known], keep=fresh.append)
    assert again == whole
    assert again.tally.is_complete
    decided = sum(one.tally.decisions for one in fresh)
    assert decided == whole.tally.decisions - sum(kept[n].tally.decisions for n in known)


def test_a_file_that_was_cut_or_changed_is_decided_again(shards: tuple[Exhausted, list[Exhausted]]) -> None:
    _, kept = shards
    given = files(kept)
    cut, changed, *rest = given
    given[cut] = given[cut][:-9]
    given[changed] = given[changed].replace(b'"start":4', b'"start":5')
    assert known_shards(RUN, given) == kept[2:]
    assert len(rest) == 2


def test_of_ranges_that_overlap_one_counts(shards: tuple[Exhausted, list[Exhausted]]) -> None:
    _, kept = shards
    pair = Exhausted(kept[0].tally + kept[1].tally, ())
    assert known_shards(RUN, files([*kept, pair])) == [pair, *kept[2:]]


def test_a_range_outside_the_universe_is_of_another_run(shards: tuple[Exhausted, list[Exhausted]]) -> None:
    small = msgspec.structs.replace(RUN, universe=Universe(1, 1, 0))
    assert known_shards(small, files(shards[1][1:])) == []


def test_a_shard_on_which_the_selector_broke_is_not_kept(shards: tuple[Exhausted, list[Exhausted]]) -> None:
    fault = Fault(FaultKind.CRASH, "exited with 1")
    assert shard_file(Exhausted(shards[1][0].tally, (fault,))) is None


def test_the_folder_of_shards_tells_runs_apart(tmp_path: Path) -> None:
    other = [
        msgspec.structs.replace(RUN, universe=Universe(2, 2, 0)),
        msgspec.structs.replace(RUN, policy=load_policy("two-pass")),
        msgspec.structs.replace(RUN, spec=SelectorSpec("other")),
    ]
    places = {resuming.shards_folder(tmp_path, run, "x") for run in (RUN, *other)}
    places.add(resuming.shards_folder(tmp_path, RUN, "another name"))
    assert len(places) == 5
    selector = tmp_path / "selector.so"
    of_file = msgspec.structs.replace(RUN, spec=SelectorSpec(str(selector)))
    selector.write_bytes(b"one")
    before = resuming.shards_folder(tmp_path, of_file, "x")
    selector.write_bytes(b"two")
    assert resuming.shards_folder(tmp_path, of_file, "x") != before


def test_shards_lie_on_disk_until_the_run_is_recorded(
    tmp_path: Path, shards: tuple[Exhausted, list[Exhausted]]
) -> None:
    whole, kept = shards
    folder = tmp_path / "shards" / "key"
    assert resuming.known(folder, RUN) == []
    keep = resuming.shard_keeper(folder)
    for one in (*kept, whole):
        keep(one)
    assert len(list(folder.iterdir())) == len(kept)
    assert resuming.known(folder, RUN) == kept
    (tmp_path / "shards" / "other").mkdir()
    resuming.forget(folder)
    assert not folder.exists()
    assert folder.parent.exists()
    resuming.forget(tmp_path / "shards" / "other")
    assert not folder.parent.exists()
