"""A universe holds each capture and each launch of its size, once."""

from __future__ import annotations

import pytest
from foldproof.impl import Capture, FoldproofError, Launch
from foldproof.impl.cases import capture_to
from foldproof.props.universe import INT_STATES, Universe


def key_of(capture: Capture) -> str:
    return str([{k: v for k, v in kernel.items() if k != "hash"} for kernel in capture_to(capture)["kernels"]])


def test_no_capture_is_left_out_and_none_counted_twice() -> None:
    universe = Universe(2, 1, 1, free_const=True, options=True)
    keys = {key_of(universe.capture(number)) for number in range(universe.captures)}
    assert len(keys) == universe.captures == (4 * 2 * 2 * 2) ** 2
    swapped = {key_of(Capture(universe.capture(n).kernels[::-1])) for n in range(universe.captures)}
    assert swapped == keys  # every order is there: no symmetry is reduced


def test_every_state_of_a_param_and_every_class_of_an_arg_occurs() -> None:
    universe = Universe(1, 2, 1)
    states = {tuple(state_of(v, name) for name in ("n0", "n1")) for v in universe.plain_variants}
    assert states == {(one, other) for one in INT_STATES for other in INT_STATES}
    classes = {tuple(class_of(x, place) for place in range(3)) for x in universe.launches}
    assert len(classes) == universe.launch_count == 3 * 3 * 2


def state_of(variant: object, name: str) -> str:
    param = variant.param(name)  # type: ignore[attr-defined]
    if param is None:
        assert variant.consts[name].value == 1  # type: ignore[attr-defined]
        return "folded"
    return "nospec" if param.nospec else "div16" if param.div16 else "runtime"


def class_of(launch: Launch, place: int) -> str:
    number = launch.args[place].number
    return "one" if number == 1 else "div16" if number % 16 == 0 else "other"


def test_the_stated_full_scope_has_the_stated_size() -> None:
    assert (Universe().captures, Universe().launch_count, Universe().decisions) == (64**3, 36, 9_437_184)
    assert Universe(free_const=True).decisions == 128**3 * 72
    assert Universe(options=True).decisions == 128**3 * 72


def test_numbers_and_captures_agree() -> None:
    universe = Universe(3, 1, 2)
    rows = universe.type_ids(100, 140)
    for row, number in zip(rows, range(100, 140), strict=True):
        want = [universe.plain_variants[kind].params for kind in row]
        assert [v.params for v in universe.capture(number).kernels] == want


def test_hashes_are_distinct_and_no_copy_of_the_order() -> None:
    universe = Universe(2, 1, 0)
    captures = [universe.capture(number) for number in range(universe.captures)]
    ahead = {c.kernels[0].hash < c.kernels[1].hash for c in captures}
    assert ahead == {True, False}


@pytest.mark.parametrize("count", [1, 2, 7, 16, 1000])
def test_shards_cover_the_universe_once(count: int) -> None:
    universe = Universe(2, 1, 1)
    covered = [n for start, stop in universe.shards(count) for n in range(start, stop)]
    assert covered == list(range(universe.captures))


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ({"variants": 0}, "is no scope"),
        ({"ints": 0, "ptrs": 0}, "is no scope"),
        ({"ints": -1}, "is no scope"),
        ({"ints": 8}, "more than can be exhausted"),
        ({"variants": 9, "ints": 1, "ptrs": 0}, "more than can be exhausted"),
        ({"div16": 8}, "does not stand for its class"),
        ({"other": 1}, "does not stand for its class"),
        ({"unaligned": 32}, "does not stand for its class"),
    ],
)
def test_a_size_that_is_none_is_refused_with_a_reason(sizes: dict[str, int], why: str) -> None:
    with pytest.raises(FoldproofError, match=why):
        Universe(**sizes)  # type: ignore[arg-type]
