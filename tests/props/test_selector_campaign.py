"""The campaign finds what is planted, shrinks it, repeats itself, and goes on past faults."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import ModuleType

import msgspec
import pytest
from foldproof.impl import FoldproofError, Kind, Policy, load_policy
from foldproof.impl.cases import answers, read_cases
from foldproof.impl.external.answers import Answer, Fault, Reply
from foldproof.impl.external.compare import reply_of
from foldproof.impl.select import decide
from foldproof.props.drive import SelectorSpec
from foldproof.props.fuzz_run import Done, Plan, run
from foldproof.props.pin import Bench, case_file
from foldproof.props.selector_campaign import Part

THREE_PASS = load_policy("three-pass")
Zig = Callable[..., SelectorSpec]


def campaign(spec: SelectorSpec, policy: Policy = THREE_PASS, **more: object) -> Done:
    plan = Plan(spec, policy, **({"seconds": None, "rounds": 48} | more))  # type: ignore[arg-type]
    with spec.open() as selector:
        return run(plan, selector)


@pytest.mark.parametrize("part", ["exe", "lib"])
def test_a_sound_selector_has_no_finding(zig: Zig, part: str) -> None:
    done = campaign(zig("none", part), rounds=120)
    assert done.part.is_clean
    assert done.findings == ()
    assert done.part.rounds == 120
    assert min(done.part.outcomes[word] for word in ("exact", "general", "runtime-one", "MissingTritonVariant")) > 200


@pytest.mark.parametrize("part", ["exe", "lib"])
def test_single_guard_is_found_within_a_second_and_shrinks_to_two_by_two(zig: Zig, part: str) -> None:
    spec, seconds = zig("single-guard", part), []
    for seed in range(20):
        (finding,) = campaign(spec, seed=seed, seconds=30.0, rounds=None, exitfirst=True).findings
        assert finding.seconds is not None
        seconds.append(finding.seconds)
        assert finding.kind == "another variant"
        assert finding.reproduced
        assert (len(finding.case.capture.kernels), len(finding.case.launch.args)) == (2, 2), seed
    assert median(seconds) < 1


def test_each_planted_fault_is_found_by_both_ways(
    zig_build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zig_build.build(tmp_path, bug="any")
    for bug in zig_build.bugs()[1:-1]:
        monkeypatch.setenv("FOLDPROOF_PLANTED", bug.replace("-", "_"))
        found = [campaign(SelectorSpec(str(tmp_path / file))) for file in ("three-pass", "libthree_pass.so")]
        assert all(done.findings for done in found), bug
        assert all(finding.reproduced for done in found for finding in done.findings), bug


def summary(done: Done) -> object:
    findings = [msgspec.structs.replace(finding, seconds=None, trials=0) for finding in done.findings]
    return done.part, findings, done.cells, done.stop


def test_the_same_seed_shows_the_same_however_it_is_cut(zig: Zig) -> None:
    spec = zig("single-guard", "lib")
    whole = campaign(spec, seed=4, rounds=48)
    assert summary(whole) == summary(campaign(spec, seed=4, rounds=48))
    parts = [campaign(spec, seed=4, first=first, rounds=count).part for first, count in ((0, 5), (5, 40), (45, 3))]
    assert sum(reversed(parts), Part()) == whole.part
    assert campaign(spec, seed=5).part != whole.part


def test_the_findings_of_both_ways_are_the_same_cases(zig: Zig) -> None:
    found = [campaign(zig("last-match", part)) for part in ("exe", "lib")]
    assert [f.case for f in found[0].findings] == [f.case for f in found[1].findings]


def test_a_case_file_replays_against_the_reference_and_the_selector(zig: Zig, tmp_path: Path) -> None:
    spec = zig("single-guard")
    (finding,) = campaign(spec).findings
    file = tmp_path / "case.json"
    file.write_bytes(case_file(finding, THREE_PASS, spec.text))
    (value,) = read_cases(file)
    (row,) = answers([value], THREE_PASS)
    assert row["pick"] == value["expect"]["pick"]
    with spec.open() as selector:
        assert Bench(selector, THREE_PASS).ask(finding.case).kind == "another variant"


class Scripted:
    """A selector in this process: the reference, and a flaw."""

    def __init__(self, answer: Callable[[int, Reply, list[object]], Answer]) -> None:
        self.name, self.kinds = "scripted", frozenset(Kind)
        self.faults: list[Fault] = []
        self._answer = answer

    def ask(self, _: object, capture: object, launches: object) -> list[Answer]:
        seen: list[object] = []
        given = []
        for place, launch in enumerate(launches):  # type: ignore[arg-type, var-annotated]
            right = reply_of(decide(capture, launch, THREE_PASS))  # type: ignore[arg-type]
            given.append(self._answer(place, right, seen))
            seen.append(launch)
        return given

    def close(self) -> None:
        pass

    def run(self, **more: object) -> Done:
        plan = Plan(SelectorSpec("unused"), THREE_PASS, **({"seconds": None, "rounds": 32} | more))  # type: ignore[arg-type]
        return run(plan, self)


def test_a_selector_that_depends_on_earlier_launches_shrinks_to_those_that_matter() -> None:
    def remembers(_: int, right: Reply, seen: list[object]) -> Answer:
        # Two launches with the value 1 before this one, and it forgets how to select.
        ones = [launch for launch in seen if any(arg.number == 1 for arg in launch.args)]  # type: ignore[attr-defined]
        return Reply(0, error="MissingTritonVariant") if len(ones) >= 2 and right.pick is not None else right

    finding = next(f for f in Scripted(remembers).run().findings)
    assert finding.reproduced
    assert len(finding.case.before) == 2
    assert len(finding.case.capture.kernels) == 1


def test_a_difference_that_does_not_come_again_says_so_and_names_its_round() -> None:
    count = 0

    def once(_: int, right: Reply, __: list[object]) -> Answer:
        nonlocal count
        count += 1
        return Reply(0, error="AmbiguousTritonVariant") if count == 700 else right

    (finding,) = Scripted(once).run().findings
    assert not finding.reproduced
    assert finding.round == 6


def test_log_lines_and_passes_are_compared_where_they_are_said() -> None:
    def wrong(_: int, right: Reply, __: list[object]) -> Answer:
        if right.strictness == "runtime-one":
            return msgspec.structs.replace(right, log=())
        return msgspec.structs.replace(right, strictness="exact") if right.strictness == "general" else right

    assert {finding.kind for finding in Scripted(wrong).run().findings} == {
        "another pass",
        "another number of log lines",
    }

    def silent(_: int, right: Reply, __: list[object]) -> Answer:
        return msgspec.structs.replace(right, log=None, strictness=None)

    assert Scripted(silent).run().findings == ()


def test_more_kinds_of_finding_than_are_kept_are_all_counted() -> None:
    def moody(place: int, _: Reply, __: list[object]) -> Answer:
        return Fault(("timeout", "crash", "garbage")[place % 3], "moody")  # type: ignore[arg-type]

    done = Scripted(moody).run(rounds=4)
    assert set(done.part.kinds) == {"fault timeout", "fault crash", "fault garbage"}
    assert sum(done.part.kinds.values()) == done.part.launches


MISBEHAVING = """
import json, sys
print(json.dumps({"type": "hello", "protocol": "foldproof-selector/1", "name": "bad"}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "launch":
        continue
    if any(a["kind"] == "fp32" for a in message["launch"]["args"]):
        %s
    print(json.dumps({"id": message["id"], "pick": None, "error": "MissingTritonVariant"}), flush=True)
"""


@pytest.mark.parametrize(
    ("flaw", "kind"),
    [
        ("sys.exit(3)", "fault crash"),
        ("print('oops', flush=True)", "fault garbage"),
        pytest.param("__import__('time').sleep(9)", "fault timeout", marks=pytest.mark.slow),
        ("message['id'] += 10**6", "fault wrong-id"),
    ],
)
def test_faults_are_findings_and_the_campaign_goes_on(tmp_path: Path, flaw: str, kind: str) -> None:
    script = tmp_path / "bad.py"
    script.write_text(MISBEHAVING % flaw)
    spec = SelectorSpec(f"{sys.executable} {script}", timeout_s=0.3)
    done = campaign(spec, rounds=16)
    assert kind in done.part.kinds
    assert done.part.rounds == 16
    finding = next(f for f in done.findings if f.kind == kind)
    assert any(arg.kind == Kind.FP32 for arg in finding.case.launch.args)
    assert len(finding.case.launch.args) == 1 or kind == "fault timeout"


def test_the_spec_tells_libraries_from_commands() -> None:
    assert SelectorSpec("a/libx.so").is_library
    assert not SelectorSpec("run libx.so").is_library
    assert SelectorSpec("'a b' c").command == ("a b", "c")
    for text in ("", "'open"):
        with pytest.raises(FoldproofError, match="--selector"):
            SelectorSpec(text).open()
