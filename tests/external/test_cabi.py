"""A library that breaks cannot end or hang the caller, and the launch that breaks it is named."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from foldproof.impl import Arg, Capture, FoldproofError, Kind, Launch, capture_from, decide, launch_from, load_policy
from foldproof.impl.external.answers import Fault, FaultKind, Reply, SelectorError, Unasked
from foldproof.impl.external.cabi import AbiSelector
from foldproof.impl.external.child import Child
from foldproof.impl.external.compare import reply_of
from foldproof.impl.external.decision import FAULTY, UNASKED
from foldproof.impl.external.records import encode, encode_family
from foldproof.impl.external.wire import kernels_text
from foldproof.impl.strictjson import parse

PARAM = {"name": "n", "type": "i32", "div16": False, "nospec": True}


def capture_of(*hashes: str) -> Capture:
    kernels = [{"fn": "k", "hash": h, "num_warps": 4, "params": [PARAM], "consts": {}} for h in hashes]
    return capture_from({"kernels": kernels})


CAPTURE = capture_of("a", "b")
KERNELS = kernels_text(CAPTURE)
POISON = kernels_text(capture_of("poison"))


def launch(value: int, kind: Kind = Kind.I32) -> Launch:
    return Launch("k", (Arg("n", kind, value),))


LAUNCHES = [launch(value) for value in (*range(40), 666, *range(41, 80))]


@pytest.fixture(scope="session")
def library(compile_c: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = Path(__file__).with_name("misbehaving.c").read_text("utf-8")
    return compile_c(text, tmp_path_factory.mktemp("c") / "libmisbehaving.so", "-shared", "-fPIC", "-D_GNU_SOURCE")


@pytest.fixture
def selector(library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., AbiSelector]:
    def make(mode: str, **limits: float) -> AbiSelector:
        monkeypatch.setenv("MODE", mode)
        monkeypatch.setenv("NOTE", str(tmp_path / "note"))
        return AbiSelector(library, **({"timeout_s": 1.5} | limits))  # type: ignore[arg-type]

    return make


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("segfault", FaultKind.CRASH),
        ("exit", FaultKind.CRASH),
        ("hang", FaultKind.TIMEOUT),
        ("out-of-range", FaultKind.OUT_OF_RANGE),
        ("negative", FaultKind.OUT_OF_RANGE),
        ("unwritten", FaultKind.UNWRITTEN),
        ("bad-pass", FaultKind.GARBAGE),
        ("stderr", FaultKind.STDERR_FLOOD),
        ("stdout", FaultKind.STDERR_FLOOD),
    ],
)
def test_the_launch_to_blame_gets_the_fault_and_the_others_their_answers(
    selector: Callable[..., AbiSelector], mode: str, kind: FaultKind
) -> None:
    with selector(mode) as under_test:
        answers = under_test.ask("c", CAPTURE, LAUNCHES)
        again = under_test.ask("c", CAPTURE, LAUNCHES[:40])
    fault = answers.pop(40)
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.reproduced) == (kind, True)
    assert launch_from(parse(fault.launch, "")) == LAUNCHES[40]
    assert all(isinstance(answer, Reply) and answer.pick == 0 for answer in answers + again)
    assert under_test.faults == []


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("other-version", "has version 2 of the C interface, not 1"),
        ("dies-of-dlopen", "killed by signal 6"),
        ("hangs-in-dlopen", "no return within 0.5 s"),
    ],
)
def test_a_library_that_does_not_start_cannot_be_entered(
    selector: Callable[..., AbiSelector], mode: str, said: str
) -> None:
    start_s = 0.5 if mode == "hangs-in-dlopen" else 10.0
    with pytest.raises(SelectorError, match=said), selector(mode, start_s=start_s):
        pass


def test_a_library_that_lacks_a_function_cannot_be_entered(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    text = Path(__file__).with_name("misbehaving.c").read_text("utf-8")
    flags = ("-shared", "-fPIC", "-D_GNU_SOURCE", "-DWITHOUT_NAME")
    library = compile_c(text, tmp_path / "liblacking.so", *flags)
    with pytest.raises(SelectorError, match="does not export foldproof_selector_name"), AbiSelector(library):
        pass


def test_a_file_that_is_no_library_cannot_be_entered(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_text("not ELF")
    with pytest.raises(SelectorError, match="cannot be loaded"), AbiSelector(tmp_path / "lib.so"):
        pass


def test_two_launches_to_blame_in_one_batch_are_both_named(selector: Callable[..., AbiSelector]) -> None:
    """Far apart, so that the second lies behind what the first crash left undone."""
    launches = [launch(666 if value in (5, 9000) else 0) for value in range(10_000)]
    with selector("segfault") as under_test:
        answers = under_test.ask("c", CAPTURE, launches)
    assert [i for i, answer in enumerate(answers) if not isinstance(answer, Reply)] == [5, 9000]


def test_one_that_always_breaks_is_given_up_after_max_faults(selector: Callable[..., AbiSelector]) -> None:
    with selector("segfault", max_faults=3) as under_test:
        answers = under_test.ask("c", CAPTURE, [launch(666)] * 10)
    assert [isinstance(answer, Fault) for answer in answers] == [True] * 3 + [False] * 7
    assert answers[-1] == Unasked("too-many-faults")


def test_a_crash_that_does_not_come_again_is_told_as_such(selector: Callable[..., AbiSelector]) -> None:
    with selector("once") as under_test:
        answers = under_test.ask("c", CAPTURE, LAUNCHES)
    faults = [answer for answer in answers if isinstance(answer, Fault)]
    assert [(fault.kind, fault.reproduced) for fault in faults] == [(FaultKind.CRASH, False)]
    assert sum(isinstance(answer, Reply) for answer in answers) == len(LAUNCHES) - 1


def test_a_capture_that_kills_the_library_costs_no_other_capture(selector: Callable[..., AbiSelector]) -> None:
    with selector("dies-of-capture") as under_test:
        jobs = [(0, 0, 3), (1, 0, 3), (2, 0, 3)]
        decided = under_test.decide([KERNELS, POISON, KERNELS], [2, 1, 2], encode(LAUNCHES[:3]), jobs)
    assert decided.picks.tolist() == [0, 0, 0, FAULTY, UNASKED, UNASKED, 0, 0, 0]
    assert "while loading the capture" in decided.faults[3].detail


def test_a_refused_capture_is_an_invalid_capture(selector: Callable[..., AbiSelector]) -> None:
    with selector("refuses-capture") as under_test:
        decided = under_test.decide([POISON, KERNELS], [1, 2], encode(LAUNCHES[:2]), [(0, 0, 2), (1, 0, 2)])
        (answer,) = under_test.ask("p", capture_of("poison"), [launch(1)])
    assert decided.picks.tolist() == [-4, -4, 0, 0]
    assert answer == Reply(0, error="InvalidCapture")


def test_kinds_that_the_library_does_not_know_are_not_sent(selector: Callable[..., AbiSelector]) -> None:
    with selector("few-kinds") as under_test:
        assert under_test.kinds == {Kind.I32}
        answers = under_test.ask("c", CAPTURE, [launch(1), launch(666, Kind.I64)])
    assert [isinstance(answers[0], Reply), answers[1]] == [True, Unasked("kind-unknown")]


def test_what_the_library_prints_does_not_reach_the_channel(selector: Callable[..., AbiSelector]) -> None:
    with selector("prints") as under_test:
        assert all(isinstance(answer, Reply) for answer in under_test.ask("c", CAPTURE, LAUNCHES))
    assert under_test.faults == []


def test_a_process_that_the_library_forks_does_not_outlive_it(
    selector: Callable[..., AbiSelector], tmp_path: Path, alive: Callable[[int], bool]
) -> None:
    with selector("fork", max_faults=1) as under_test:
        (fault,) = under_test.ask("c", CAPTURE, [launch(666)])
    assert isinstance(fault, Fault)
    assert fault.kind == FaultKind.CRASH
    assert not alive(int((tmp_path / "note").read_text()))


def test_captures_beyond_those_kept_are_loaded_again(zig_library: Path) -> None:
    policy = load_policy("three-pass")
    captures = [capture_of(*"abcdefg"[: 1 + i % 5]) for i in range(150)]
    with AbiSelector(zig_library) as under_test:
        for round_trip in range(2):
            for number, capture in enumerate(captures):
                (answer,) = under_test.ask(number, capture, [launch(round_trip)])
                expected = reply_of(decide(capture, launch(round_trip), policy))
                assert isinstance(answer, Reply)
                assert (answer.pick, answer.strictness) == (expected.pick, expected.strictness)


def test_many_small_captures_at_once(zig_library: Path) -> None:
    """The cross product of captures and launches, as an exhaustive run asks it."""
    policy = load_policy("three-pass")
    entries = [{**PARAM, "nospec": False}, {**PARAM, "div16": True, "nospec": False}, PARAM]
    kernels = [
        [{"fn": "k", "hash": f"{i}", "num_warps": 4, "params": [entries[i % 3]], "consts": {}} for i in (a, a // 3)]
        for a in range(9)
        if a != a // 3
    ]
    texts = [msgspec.json.encode(value) for value in kernels]
    launches = [launch(value) for value in (1, 16, 7)]
    jobs = np.array([(number, 0, 3) for number in range(len(texts))])
    with AbiSelector(zig_library) as under_test:
        decided = under_test.decide(texts, [2] * len(texts), encode(launches), jobs)
        family = under_test.decide(
            texts, [2] * len(texts), encode_family(launches[0], np.array([[1], [16], [7]], np.uint64)), jobs
        )
    expected = [
        reply_of(decide(capture_from({"kernels": value}), one, policy)).pick for value in kernels for one in launches
    ]
    assert decided.picks.tolist() == [-1 if pick is None else pick for pick in expected]
    assert family.picks.tolist() == decided.picks.tolist()
    assert decided.faults == {}


def test_a_batch_beyond_the_shared_memory_is_refused_before_anything_is_sent(zig_library: Path) -> None:
    family = encode_family(launch(1), np.zeros((4_000_000, 1), np.uint64))
    with AbiSelector(zig_library) as under_test:
        with pytest.raises(FoldproofError, match="fewer launches"):
            under_test.decide([KERNELS], [2], family, [(0, 0, len(family))])
        assert isinstance(under_test.ask("c", CAPTURE, [launch(1)])[0], Reply)


def test_the_worker_as_a_module_of_the_package_serves_alike(
    selector: Callable[..., AbiSelector], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started with the caller's environment, and not alone: what a debugger or a coverage measurement needs."""

    def as_module(command: tuple[str, ...], **more: Any) -> Child:
        at = next(i for i, word in enumerate(command) if word.endswith("worker.py"))
        return Child((sys.executable, "-m", "foldproof.impl.external.worker", *command[at + 1 :]), **more)

    monkeypatch.setattr("foldproof.impl.external.channel.Child", as_module)
    with selector("refuses-capture") as under_test:
        assert under_test.name == "misbehaving"
        assert all(isinstance(answer, Reply) for answer in under_test.ask("c", CAPTURE, LAUNCHES))
        assert under_test.ask("p", capture_of("poison"), [launch(1)]) == [Reply(0, error="InvalidCapture")]
    assert under_test.faults == []
    with pytest.raises(SelectorError, match="has version 2"), selector("other-version"):
        pass


def test_the_header_ships_beside_the_code() -> None:
    header = resources.files("foldproof.impl") / "native/foldproof_selector.h"
    assert "FOLDPROOF_SELECTOR_ABI 1u" in header.read_text("utf-8")
