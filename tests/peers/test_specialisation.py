"""The exact pass against Triton's own specialisation: equal on every class of arg, but for the known differences."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import msgspec
import pytest
from foldproof.impl.capture import Const, Param
from foldproof.impl.errors import FoldproofError, InvalidLaunch
from foldproof.impl.rules import Rules, Strictness
from foldproof.props.peers import agreement, jit_probes, tools
from foldproof.props.peers.agreement import Disagreement, wrong_picks
from foldproof.props.peers.findings import FINDINGS
from foldproof.props.peers.specialisation import Declared, Placed, Tensor, Value, launch_for, placed, variant_for

X = Declared("x")


@pytest.fixture(autouse=True)
def _needs_triton(triton: str) -> None:
    assert triton


def test_exact_is_what_triton_would_compile_but_for_the_known_differences() -> None:
    agreeing, found = jit_probes.swept()
    assert [str(d) for d in found.get("", [])] == []
    assert set(found) == {f"J0{n}" for n in range(1, 8)}
    assert agreeing > 60_000


def test_no_known_difference_touches_a_plain_param_on_cuda_but_div16_of_a_float_or_bool() -> None:
    plain = {
        d.finding
        for entries in jit_probes.swept()[1].values()
        for d in entries
        if not d.declared.annotation and d.target == tools.CUDA
    }
    assert plain == {"J02"}


def test_an_annotated_integer_differs_only_where_the_value_is_no_int_that_it_holds() -> None:
    ints = [
        d
        for entries in jit_probes.swept()[1].values()
        for d in entries
        if agreement.is_annotated(d.declared) and type(d.value) is int
    ]
    assert {d.finding for d in ints} == {"J04"}


@pytest.mark.parametrize("strictness", [Strictness.GENERAL, Strictness.RUNTIME_ONE, Strictness.LINKER])
def test_the_sweep_sees_rules_that_are_not_exact(strictness: Strictness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "EXACT", Rules(strictness))
    values: tuple[Value, ...] = (1, 7, 16, Tensor("fp32", 0x1000))
    seen = [d for value in values for d in agreement.decisions(X, value, tools.CUDA)]
    assert [d for d in seen if isinstance(d, Disagreement) and not d.finding]


def test_the_exact_pass_picks_tritons_variant_among_all_its_neighbours() -> None:
    assert [entry for entry in wrong_picks(seed=1, count=500) if entry] == []


@pytest.mark.parametrize("policy", ["least-held", "linker-order"])
def test_another_policy_does_not(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "POLICY", policy)
    assert any(wrong_picks(seed=1, count=50))


@pytest.mark.slow
def test_the_exact_pass_picks_tritons_variant_in_many_more_captures() -> None:
    assert [entry for entry in wrong_picks(seed=2, count=20_000, width=6) if entry] == []


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        (X, 1, Placed("", Const(int_=1))),
        (X, 0, Placed("i32", div16=True)),
        (X, -32, Placed("i32", div16=True)),
        (X, 2**31, Placed("i64", div16=True)),
        (X, 2**63 + 1, Placed("u64")),
        (X, True, Placed("u1")),
        (X, 1.0, Placed("fp32")),
        (X, None, Placed("", Const(none=True))),
        (X, Tensor("bf16", 0x1000), Placed("*bf16", div16=True)),
        (X, Tensor("bf16", 0x1004), Placed("*bf16")),
        (dataclasses.replace(X, nospec=True), 1, Placed("i32")),
        (dataclasses.replace(X, nospec=True), Tensor("bf16", 0x1000), Placed("*bf16")),
        (dataclasses.replace(X, noalign=True), 1, Placed("", Const(int_=1))),
        (dataclasses.replace(X, noalign=True), 16, Placed("i32")),
        (dataclasses.replace(X, annotation="tl.int64"), 1, Placed("i64")),
        (dataclasses.replace(X, annotation="tl.int64"), 16, Placed("i64", div16=True)),
    ],
)
def test_what_triton_makes_of_one_arg(declared: Declared, value: Value, expected: Placed) -> None:
    assert placed([declared], [value]) == (expected,)


def test_on_amd_a_small_allocation_of_known_size_is_range32() -> None:
    for size, expected in ((None, False), (4096, True), (2**31 - 1, True), (2**31, False)):
        assert placed([X], [Tensor("fp32", 16, size)], tools.AMD)[0].range32 is expected


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_an_int_of_more_than_64_bits_is_refused_by_both(value: int) -> None:
    with pytest.raises(InvalidLaunch, match="fits no 64 bits"):
        launch_for([X], [value])
    with pytest.raises(InvalidLaunch, match="too large"):
        placed([X], [value])


def test_a_variant_carries_the_switches_of_the_declaration() -> None:
    declared = [Declared("a", nospec=True), Declared("b", annotation="tl.int64", noalign=True), Declared("c")]
    variant = variant_for(declared, [1, 16, 1])
    expected = [
        Param("a", "i32", div16=False, nospec=True),
        Param("b", "i64", div16=False, nospec=False, noalign=True, annotated=True),
    ]
    assert list(variant.params) == expected
    assert variant.consts == {"c": Const(int_=1)}


def test_a_neighbour_differs_in_one_param() -> None:
    declared = [Declared("a"), Declared("b"), Declared("p")]
    made = variant_for(declared, [1, 16, Tensor("fp32", 16)])
    for name in "abp":
        others = list(agreement.neighbours(made, name))
        assert len(others) > 5
        for other in others:
            assert other != made
            kept = [(v.consts.get(n), v.param(n)) for v in (made, other) for n in "abp" if n != name]
            assert kept[:2] == kept[2:]


@pytest.mark.parametrize("finding", [key for key in FINDINGS if key.startswith("J")])
def test_each_known_difference_is_there(finding: str, tmp_path: Path) -> None:
    shown, seen = jit_probes.PROBES[finding](tmp_path)
    assert shown
    assert seen


def test_without_triton_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(FoldproofError, match=r"install foldproof\[triton\]"):
        placed([X], [1])


def test_another_series_of_triton_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["triton"], "__version__", "3.10.1")
    with pytest.raises(FoldproofError, match=r"this is Triton 3\.10\.1"):
        placed([X], [1])


def test_findings_are_data() -> None:
    text = msgspec.json.encode(list(FINDINGS.values()))
    assert [item["id"] for item in msgspec.json.decode(text)] == list(FINDINGS)


def test_the_page_tells_every_finding_in_the_words_of_the_data() -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/triton-peers.md").read_text("utf-8")
    for finding in FINDINGS.values():
        effect = f"{finding.effect}: {' '.join(finding.theorems)}" if finding.theorems else finding.effect
        assert f"| {finding.id} | {finding.title} | {finding.design} | {finding.triton} | {effect} |" in page
