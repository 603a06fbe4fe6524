"""The scenarios as a worker job: three ways of decoding that must agree, with two captures each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from foldproof.gpu.replay.backend import Backend
from foldproof.gpu.replay.worker import Bench, Emit, Job
from foldproof.gpu.scenarios.comparing import Comparison, compare_sessions
from foldproof.gpu.scenarios.decoder import CHUNK, VOCABULARY, WINDOW, prompt
from foldproof.gpu.scenarios.launching import Launcher, without_folded
from foldproof.gpu.scenarios.session import Model, Session
from foldproof.impl import Capture, load_policy

PROMPT = 24
GENERATED = 24
SESSIONS = 8
SAVED_AT = PROMPT + 9
WRONG_EVERY = 5
"""Every so manieth drafted token is wrong, so that drafts are refused too."""
POLICY = "recommended"


class Scenario(msgspec.Struct, frozen=True, omit_defaults=True):
    """One scenario with one capture: what was compared, the variants' passes, and the log of the fallbacks."""

    name: str
    capture: str
    comparison: Comparison
    launches: int
    passes: dict[str, int]
    fallbacks: int
    log: dict[str, int]
    tokens: list[int]
    detail: str = ""


class Stage:
    """What the scenarios of one capture share."""

    def __init__(self, backend: Backend, bench: Bench, model: Model, capture: Capture, title: str) -> None:
        self.backend, self.bench, self.model, self.capture, self.title = backend, bench, model, capture, title

    def launcher(self) -> Launcher:
        """A launcher with a log of its own."""
        load = self.bench.load
        return Launcher(self.backend, self.capture, load_policy(POLICY), lambda name: load(self.backend, name))

    def scenario(
        self, name: str, launcher: Launcher, comparison: Comparison, session: Session, detail: str
    ) -> Scenario:
        """The record of a scenario whose odd run went through `launcher`."""
        tokens = [session.tokens[position] for position in sorted(session.tokens)]
        log, passes = dict(launcher.log), dict(launcher.passes)
        fallbacks = sum(log.values())
        return Scenario(name, self.title, comparison, launcher.launches, passes, fallbacks, log, tokens, detail)


def plain(session: Session, tokens: list[int], until: int) -> None:
    """Decode one token at a time, up to the position `until`: first the given tokens, then what was sampled."""
    while session.position < until:
        token = tokens[at] if (at := session.position - CHUNK) < len(tokens) else session.token
        session.begin([token])
        session.submit()
        session.advance(1, session.finish()[0])


def drafted(session: Session, tokens: list[int], until: int, right: Mapping[int, int]) -> tuple[int, int]:
    """Decode in windows: the next token and drafts of those after it, verified at once. `right` is what to draft from.

    Gives how many drafts were accepted and refused.
    """
    accepted = refused = 0
    while session.position < until:
        at = session.position - CHUNK
        room = min(session.room(), until - session.position)
        given = tokens[at : at + room]
        window = given or [session.token]
        drafts = (
            range(session.position + len(window), session.position + room) if len(given) in {0, len(window)} else ()
        )
        for position in drafts:
            token = tokens[position - CHUNK] if position - CHUNK < len(tokens) else right[position]
            known = position - CHUNK < len(tokens)
            window.append(token if known or position % WRONG_EVERY else (token + 1) % VOCABULARY)
        session.begin(window)
        session.submit()
        after = session.finish()
        taken = 1
        while taken < len(window) and (taken < len(given) or window[taken] == after[taken - 1]):
            taken += 1
        accepted += max(0, taken - max(1, len(given)))
        refused += len(window) - taken
        session.advance(taken, after[taken - 1])
    return accepted, refused


def drafted_against_plain(stage: Stage) -> tuple[Scenario, Scenario]:
    """Windows of up to 4 tokens against one token at a time; the second record is the plain run's own log."""
    tokens, until = prompt(stage.model.seed, 0, PROMPT), CHUNK + PROMPT + GENERATED
    one, many = stage.launcher(), stage.launcher()
    base = Session(stage.backend, stage.model, one)
    plain(base, tokens, until)
    other = Session(stage.backend, stage.model, many)
    accepted, refused = drafted(other, tokens, until, base.tokens)
    compared = compare_sessions(base, other, CHUNK)
    detail = f"windows of up to {WINDOW}, {accepted} drafts accepted, {refused} refused"
    rows = (
        stage.scenario("drafted/plain", many, compared, other, detail),
        stage.scenario("plain against itself", one, _itself(stage, base, tokens, until), base, "the same run twice"),
    )
    base.close()
    other.close()
    return rows


def _itself(stage: Stage, base: Session, tokens: list[int], until: int) -> Comparison:
    again = Session(stage.backend, stage.model, stage.launcher())
    plain(again, tokens, until)
    compared = compare_sessions(base, again, CHUNK)
    again.close()
    return compared


def resumed_against_fresh(stage: Stage) -> Scenario:
    """A session saved between two windows and restored into new memory, against one that went on."""
    tokens, until = prompt(stage.model.seed, 0, PROMPT), CHUNK + PROMPT + GENERATED
    base = Session(stage.backend, stage.model, stage.launcher())
    plain(base, tokens, CHUNK + SAVED_AT)
    state = base.save()
    launcher = stage.launcher()
    hole = stage.backend.allocate(3 << 20)
    other = Session(stage.backend, stage.model, launcher, state=state)
    plain(base, tokens, until)
    plain(other, tokens, until)
    compared = compare_sessions(base, other, CHUNK + SAVED_AT)
    row = stage.scenario("resumed/fresh", launcher, compared, other, f"saved at position {CHUNK + SAVED_AT}")
    stage.backend.release(hole)
    base.close()
    other.close()
    return row


def concurrent_against_solo(stage: Stage, *, graph: bool) -> Scenario:
    """A session alone against the same with 7 others on streams of their own, as launches or as CUDA graphs."""
    until = CHUNK + PROMPT + GENERATED
    prompts = [prompt(stage.model.seed, session, PROMPT) for session in range(SESSIONS)]
    solo = Session(stage.backend, stage.model, stage.launcher())
    plain(solo, prompts[0], until)
    launcher = stage.launcher()
    crowd = [Session(stage.backend, stage.model, launcher, lane=lane) for lane in range(SESSIONS)]
    while crowd[0].position < until:
        for session, tokens in zip(crowd, prompts, strict=True):
            at = session.position - CHUNK
            session.begin([tokens[at] if at < len(tokens) else session.token], graph=graph)
        for session in crowd:
            session.submit()
        stage.backend.sync()
        for session in crowd:
            session.advance(1, session.finish()[0])
    compared = compare_sessions(solo, crowd[0], CHUNK)
    name = "concurrent/solo, CUDA graphs" if graph else "concurrent/solo"
    row = stage.scenario(name, launcher, compared, crowd[0], f"{SESSIONS} sessions on {SESSIONS} streams")
    for session in (solo, *crowd):
        session.close()
    return row


def complete_against_ablated(stages: tuple[Stage, Stage]) -> Scenario:
    """The same plain run by the complete capture and by the one without folded variants: the ablation in place."""
    tokens, until = prompt(stages[0].model.seed, 0, PROMPT), CHUNK + PROMPT + GENERATED
    launchers = [stage.launcher() for stage in stages]
    pairs = zip(stages, launchers, strict=True)
    sessions = [Session(stage.backend, stage.model, launcher) for stage, launcher in pairs]
    for session in sessions:
        plain(session, tokens, until)
    compared = compare_sessions(sessions[0], sessions[1], CHUNK)
    row = stages[1].scenario("complete/without folded", launchers[1], compared, sessions[1], "plain in both captures")
    for session in sessions:
        session.close()
    return row


def scenarios_job(backend: Backend, bench: Bench, body: dict[str, Any], emit: Emit) -> dict[str, Any]:
    """Every scenario with both captures, an event before each."""
    model = Model(backend, int(body.get("seed", 0)))
    ablated = without_folded(bench.capture)
    stages = (
        Stage(backend, bench, model, bench.capture, "complete"),
        Stage(backend, bench, model, ablated, "without folded variants"),
    )
    rows: list[Scenario] = []
    for stage in stages:
        todo: list[Callable[[], tuple[Scenario, ...]]] = [
            lambda stage=stage: drafted_against_plain(stage),  # type: ignore[misc]
            lambda stage=stage: (resumed_against_fresh(stage),),  # type: ignore[misc]
            lambda stage=stage: (concurrent_against_solo(stage, graph=False),),  # type: ignore[misc]
            lambda stage=stage: (concurrent_against_solo(stage, graph=True),),  # type: ignore[misc]
        ]
        for work in todo:
            emit({"event": "step", "scenario": len(rows)})
            rows += work()
    emit({"event": "step", "scenario": len(rows)})
    rows.append(complete_against_ablated(stages))
    kernels = {"complete": len(bench.capture.kernels), "without folded variants": len(ablated.kernels)}
    return {"scenarios": msgspec.to_builtins(rows), "kernels": kernels}


SCENARIO_JOBS: Mapping[str, Job] = {"scenarios": scenarios_job}
