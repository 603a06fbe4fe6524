"""The decoder on the fake device: what must agree does, fallbacks are logged, and a divergence is named."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import msgspec
import pytest
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.replay import PairVerdict, Verdict, plan_replay, replay_receipt
from foldproof.gpu.replay.worker import Bench
from foldproof.gpu.scenarios import jobs
from foldproof.gpu.scenarios.comparing import compare_sessions
from foldproof.gpu.scenarios.decoder import CHUNK, LAYERS, commit_call, window_calls
from foldproof.gpu.scenarios.jobs import Scenario, Stage
from foldproof.gpu.scenarios.launching import Launcher, without_folded
from foldproof.gpu.scenarios.running import explained, scenario_receipt
from foldproof.gpu.scenarios.session import Model, Session, Wrote
from foldproof.impl import Capture, MissingTritonVariant
from replay.fake_decoder import DECODER
from replay.fake_device import FakeBackend

CALLS = 4 + 16 * LAYERS
"""Launches of one window, whatever its size; bringing the recurrent state forward is one more."""
ONES = {"_embed": "TS", "_rms_norm": "S", "_rotary": "S", "_attend": "R", "_merge": "R", "_linear": "T"}
ONES |= {"_residual_add": "S", "_silu_mul": "S", "_dot_small": "AK", "_row_argmax": "S", "_trip_decay": "R"}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PROMPT": 5, "GENERATED": 5, "SESSIONS": 3, "SAVED_AT": 6}.items():
        monkeypatch.setattr(jobs, name, value)


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(bundled_capture(), 7)


def stage(bench: Bench, capture: Capture, title: str) -> Stage:
    backend = FakeBackend(bundled_capture(), DECODER)
    return Stage(backend, bench, Model(backend, 20), capture, title)


def logged(row: Scenario) -> Counter[tuple[str, str]]:
    """How often a function's fallback was logged, with the args that its line names."""
    found: Counter[tuple[str, str]] = Counter()
    for line, times in row.log.items():
        found[line.split()[1], line.rpartition(": ")[2]] += times
    return found


def test_drafted_and_plain_agree_and_read_r_as_w_and_as_1(bench: Bench) -> None:
    whole = stage(bench, bench.capture, "complete")
    drafted, plain = jobs.drafted_against_plain(whole)
    assert drafted.comparison.equal
    assert drafted.comparison.positions == 10
    assert (drafted.fallbacks, plain.fallbacks, drafted.log) == (0, 0, {})
    assert drafted.launches < plain.launches
    ablated = stage(bench, without_folded(bench.capture), "without folded variants")
    drafted, plain = jobs.drafted_against_plain(ablated)
    assert drafted.comparison.equal
    assert drafted.tokens == plain.tokens
    one_by_one, windows = logged(plain), logged(drafted)
    assert set(one_by_one) == set(ONES.items())
    assert plain.fallbacks == sum(one_by_one.values()) == plain.passes["runtime-one"]
    # R and T are w in a window, so only a window that took one token falls back there.
    assert one_by_one["_trip_decay", "R"] == 10
    assert windows["_trip_decay", "R"] < 4
    assert windows["_linear", "T"] == 7 * LAYERS
    assert drafted.passes["exact"] > 0


def test_a_saved_session_goes_on_as_if_it_had_not_been_saved(bench: Bench) -> None:
    row = jobs.resumed_against_fresh(stage(bench, bench.capture, "complete"))
    assert row.comparison.equal
    assert row.comparison.positions == 4


@pytest.mark.parametrize("graph", [False, True])
def test_a_session_among_others_is_as_if_alone(bench: Bench, graph: bool) -> None:
    row = jobs.concurrent_against_solo(stage(bench, bench.capture, "complete"), graph=graph)
    assert row.comparison.equal
    assert row.comparison.positions == 10
    assert row.launches == 3 * 10 * (CALLS + 1)


def test_a_lost_recurrent_state_is_seen(bench: Bench) -> None:
    whole = stage(bench, bench.capture, "complete")
    base = Session(whole.backend, whole.model, whole.launcher())
    jobs.plain(base, [1, 2, 3], CHUNK + 3)
    state = base.save()
    kept = {**state.kept, "state": state.kept["state"] ^ 1}
    other = Session(whole.backend, whole.model, whole.launcher(), state=type(state)(state.position, state.token, kept))
    for session in (base, other):
        jobs.plain(session, [1, 2, 3], CHUNK + 5)
    found = compare_sessions(base, other, CHUNK + 3)
    assert found.tokens_equal
    assert found.divergence is not None
    assert (found.divergence.call, found.divergence.fn, found.differing_outputs) == ("commit", "_trip_decay", 2)


def sessions(bench: Bench) -> tuple[Session, Session]:
    whole = stage(bench, bench.capture, "complete")
    pair = tuple(Session(whole.backend, whole.model, whole.launcher()) for _ in range(2))
    for session in pair:
        jobs.plain(session, [1, 2], CHUNK + 2)
    return pair[0], pair[1]


def test_the_first_diverging_launch_is_named_with_its_pair_verdict(bench: Bench) -> None:
    left, right = sessions(bench)
    wrote = right.history[CHUNK + 1]
    for place in (3, 7):
        old = wrote[place]
        data = bytearray(old.data)
        data[5] ^= 1
        wrote[place] = Wrote(old.call, old.fn, "another", old.output, bytes(data))
    found = compare_sessions(left, right, CHUNK)
    where = found.divergence
    assert where is not None
    assert (where.position, where.call, where.offset, found.differing_outputs) == (CHUNK + 1, wrote[3].call, 5, 2)
    plan = plan_replay(bundled_capture())
    receipt = replay_receipt(
        plan,
        {},
        FakeBackend(bundled_capture(), DECODER).facts(),
        ablation=(),
        sets={},
        started=dt.datetime.now(dt.UTC),
        seconds=0,
        seed=1,
        command="",
        commit=None,
        dirty=None,
        owed=(),
        results={},
    )
    words = {"finite": Verdict("differs"), "no NaN": Verdict("differs"), "every bit pattern": Verdict("differs")}
    pair = PairVerdict("l", where.fn, where.first, "another", ("fold of S",), "replay", words)  # type: ignore[arg-type]
    row = Scenario("s", "complete", found, 1, {}, 0, {}, [])
    shown = scenario_receipt(
        msgspec.structs.replace(receipt, pairs=(pair,)),
        {"scenarios": [msgspec.to_builtins(row)], "kernels": {"complete": 238}},
    )
    text = shown.results["scenarios"][0]["comparison"]["divergence"]["verdict"]
    assert text == "fold of S: differs on finite, differs on no NaN, differs on every bit pattern"
    same = msgspec.structs.replace(where, second=where.first)
    alone = msgspec.structs.replace(row, comparison=msgspec.structs.replace(found, divergence=same))
    divergence = explained(alone, receipt).comparison.divergence
    assert divergence is not None
    assert divergence.verdict.startswith("both were served by the same variant")


def test_runs_that_share_nothing_are_not_equal(bench: Bench) -> None:
    left, right = sessions(bench)
    with pytest.raises(ValueError, match="share no position"):
        compare_sessions(left, right, CHUNK + 2)


def test_a_capture_that_serves_a_launch_in_no_way_is_an_error(bench: Bench) -> None:
    capture = msgspec.structs.replace(
        bench.capture, kernels=tuple(v for v in bench.capture.kernels if v.fn != "_merge")
    )
    broken = stage(bench, capture, "without _merge")
    with pytest.raises(MissingTritonVariant):
        jobs.plain(Session(broken.backend, broken.model, broken.launcher()), [1], CHUNK + 1)


def test_windows_end_with_their_chunk() -> None:
    assert len(list(window_calls(CHUNK, 1))) == CALLS
    for position, tokens in ((CHUNK - 1, 1), (CHUNK, 5), (CHUNK + 14, 3), (CHUNK, 0)):
        with pytest.raises(ValueError, match="are no window"):
            list(window_calls(position, tokens))
    with pytest.raises(ValueError, match="cannot be taken"):
        commit_call(5)


def test_the_launcher_counts_every_launch_once(bench: Bench) -> None:
    whole = stage(bench, bench.capture, "complete")
    launcher: Launcher = whole.launcher()
    session = Session(whole.backend, whole.model, launcher)
    jobs.plain(session, [1], CHUNK + 1)
    assert launcher.launches == sum(launcher.passes.values()) == CALLS + 1
    # An attention has three outputs, every other launch one; the recurrent state is kept apart.
    assert len(session.history[CHUNK]) == CALLS + 2 * LAYERS
    assert list(session.commits) == [CHUNK]
