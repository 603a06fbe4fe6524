"""The Zig selector decides as the reference does, through the protocol and through the C interface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from foldproof.impl import (
    Capture,
    FoldproofError,
    Launch,
    Param,
    Variant,
    decide,
    launch_from,
    load_capture,
    load_policy,
)
from foldproof.impl.cases import case_from, read_cases
from foldproof.impl.external.answers import Reply, Selector
from foldproof.impl.external.cabi import AbiSelector
from foldproof.impl.external.compare import difference, reply_of
from foldproof.impl.external.process import ProcessSelector

THREE_PASS = load_policy("three-pass")
CASES = 500
Row = tuple[object, Capture, list[Launch], list[Reply]]
Work = Iterable[Row]


@pytest.fixture(params=["protocol", "c-interface"])
def zig(request: pytest.FixtureRequest) -> Iterator[Selector]:
    if request.param == "protocol":
        with ProcessSelector(request.getfixturevalue("zig_command")) as selector:
            yield selector
            selector.close()
            assert selector.faults == []
    else:
        with AbiSelector(request.getfixturevalue("zig_library")) as library:
            yield library
            library.close()
            assert library.faults == []


def differences(selector: Selector, work: Work) -> tuple[list[str], Counter[str]]:
    """What the selector answers otherwise than the reference, and how often each pass or error came up."""
    unequal, seen = [], Counter[str]()
    for key, capture, launches, expecteds in work:
        for launch, answer, expected in zip(launches, selector.ask(key, capture, launches), expecteds, strict=True):
            said = difference(expected, answer) if isinstance(answer, Reply) else str(answer)
            if said:
                unequal.append(f"{key}: {launch}: {said}")
            seen[str(expected.strictness or expected.error)] += 1
    return unequal, seen


@pytest.fixture(scope="session")
def work(case: Callable[[int], tuple[Capture, list[Launch]]]) -> Work:
    return [answered(seed, *case(seed)) for seed in range(CASES)]


def answered(
    key: object, capture: Capture, launches: list[Launch]
) -> tuple[object, Capture, list[Launch], list[Reply]]:
    """The same with the reference's answers."""
    return key, capture, launches, [reply_of(decide(capture, launch, THREE_PASS)) for launch in launches]


def test_generated_cases(zig: Selector, work: Work) -> None:
    unequal, seen = differences(zig, work)
    assert unequal == []
    # The generator reaches each outcome often, or the agreement says little.
    assert min(seen[word] for word in ("exact", "general", "runtime-one", "MissingTritonVariant")) > 100


def test_each_planted_fault_shows_in_the_generated_cases(
    zig_build: ModuleType, work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zig_build.build(tmp_path, bug="any")
    for bug in zig_build.bugs()[1:-1]:
        monkeypatch.setenv("FOLDPROOF_PLANTED", bug.replace("-", "_"))
        with ProcessSelector([str(tmp_path / "three-pass")]) as process:
            assert differences(process, work)[0], bug
        with AbiSelector(tmp_path / "libthree_pass.so") as library:
            assert differences(library, work)[0], bug


def test_a_single_planted_fault_is_a_build_option(zig_build: ModuleType, work: Work, tmp_path: Path) -> None:
    zig_build.build(tmp_path, bug="single-guard", parts=("exe",))
    with ProcessSelector([str(tmp_path / "three-pass")]) as process:
        unequal, _ = differences(process, work)
    assert unequal


def test_handed_cases(zig: Selector, shared: Path) -> None:
    cases = []
    for value in read_cases(shared / "cases/selection-reports.json"):
        try:
            cases.append(case_from(value))
        except FoldproofError:
            continue
    assert len(cases) > 20
    assert differences(zig, (answered(one.name, one.capture, [one.launch]) for one in cases))[0] == []


def test_recorded_captures_and_launches(zig: Selector, shared: Path) -> None:
    cases = [case_from(value) for value in read_cases(shared / "recorded/selections.jsonl.gz")]
    assert len(cases) == 1500
    assert differences(zig, (answered(one.name, one.capture, [one.launch]) for one in cases))[0] == []


def test_launches_derived_from_a_shipped_capture(zig: Selector, shared: Path) -> None:
    capture = load_capture(shared / "captures/deepseek-v41-tp4")
    launches = [launch for variant in capture.kernels[::4] for launch in derived(variant)]
    unequal, seen = differences(zig, [answered("deepseek", capture, launches)])
    assert unequal == []
    assert seen["exact"] > 50


def derived(variant: Variant) -> Iterator[Launch]:
    """The launch that the variant was compiled for, and the same with its first aligned arg off by one."""
    args = [arg for param in variant.params if (arg := _arg(param, 16 if param.div16 else 24))]
    folded = [{"name": n, "kind": "i32", "value": 1} for n, c in variant.consts.items() if n.islower() and c.value == 1]
    yield launch_from({"fn": variant.fn, "args": args + folded, "consts": {}})
    shifted = [_arg(param, 1 if param.type == "i32" else 8) or {} for param in variant.params]
    yield launch_from({"fn": variant.fn, "args": shifted + folded, "consts": {}})


def _arg(param: Param, number: int) -> dict[str, object]:
    if param.type.startswith("*"):
        return {"name": param.name, "kind": "ptr", "type": param.type, "addr": hex(number), "bytes": 4096}
    if param.type == "fp32":
        return {"name": param.name, "kind": "fp32", "bits": number}
    return {"name": param.name, "kind": param.type, "value": number}
