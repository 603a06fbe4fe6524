"""What a comparison of two runs says: the domain, the rules, the outputs that differ, and what it refuses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from foldproof.gpu.symbolic.cases import LaunchCase
from foldproof.gpu.symbolic.compare import Comparer, Comparison, Level, may_contract, outputs_of
from foldproof.gpu.symbolic.execute import Block, Run, execute, launched
from foldproof.gpu.symbolic.graph import Graph
from foldproof.gpu.symbolic.lanes import Stop
from foldproof.gpu.symbolic.memory import Region
from foldproof.gpu.symbolic.normal import Domain
from foldproof.gpu.symbolic.witness import Searcher
from foldproof.impl.launch import launch_from
from helpers_symbolic import BASE, probe

SIZE = 128
IN, OUT = Region(BASE, BASE + SIZE, 4, "IN", "f32"), Region(BASE + SIZE, BASE + 2 * SIZE, 4, "OUT", "f32")
TAIL = Region(OUT.stop, OUT.stop + SIZE, 2, "TAIL", "bf16")
REGIONS = (IN, OUT, TAIL)
"""Without gaps: the end of one is the start of the next."""
LOAD = "ld.global.b32 %r2, [%rd4];"
STORE = "st.global.b32 [%rd5], %r3;"
ONE = "0f3F800000"


def run(comparer: Comparer, body: str, blocks: tuple[Block, ...] = ((0, 0, 0),)) -> Run:
    params = {"p_in": IN.start, "p_out": OUT.start}
    return execute(comparer.g, launched(probe(body), params, (len(blocks), 1, 1), 4096), comparer.regions, blocks)


def compared(first: str, second: str, *, narrowed: bool | None = None) -> tuple[Comparer, Comparison]:
    comparer = Comparer(Graph(), REGIONS)
    runs = run(comparer, first), run(comparer, second)
    return comparer, comparer.compare(*runs, narrowed=comparer.narrowed if narrowed is None else narrowed)


def both_ways(first: str, second: str, *, narrowed: bool | None = None) -> list[Comparison]:
    return [compared(*bodies, narrowed=narrowed)[1] for bodies in ((first, second), (second, first))]


def stored(instruction: str) -> str:
    return f"{LOAD} {instruction} {STORE}"


SAME, TIMES_ONE = stored("mov.b32 %r3, %r2;"), stored(f"mul.f32 %r3, %r2, {ONE};")
THREE, TRIPLE = stored("mul.lo.u32 %r3, %r2, 3;"), stored("add.u32 %r3, %r2, %r2; add.u32 %r3, %r3, %r2;")


def test_what_a_level_claims() -> None:
    equal = {Level.IDENTICAL, Level.PROVED, Level.PROVED_NO_NAN, Level.PROVED_MODULO}
    assert {level for level in Level if level.is_equal is True} == equal
    assert {level for level in Level if level.is_decided is True} == {*equal, Level.DIFFERS, Level.UNSTABLE}


def test_a_comparison_cannot_be_changed() -> None:
    _, found = compared(SAME, SAME)
    with pytest.raises(FrozenInstanceError):
        found.domain = None  # type: ignore[misc]
    assert not hasattr(found, "__dict__")


# --- the domain and the rules --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "domain", "rules"),
    [
        (SAME, SAME, Domain.EVERY, set()),
        (THREE, TRIPLE, Domain.EVERY, {"ring"}),
        (SAME, TIMES_ONE, Domain.NO_NAN, {"times-one"}),
        (SAME, THREE, None, {"ring"}),
        ("", "", Domain.EVERY, set()),
    ],
)
def test_the_domain_on_which_all_outputs_are_the_same_and_the_rules_that_it_rests_on(
    first: str, second: str, domain: Domain | None, rules: set[str]
) -> None:
    for found in both_ways(first, second):
        assert found.domain is domain
        assert found.rules == tuple(sorted({"commute", *rules}))
        assert len(found.address) == (32 if domain is None else 0)


def test_a_normal_form_that_is_kept_names_its_rules_again() -> None:
    comparer = Comparer(Graph(), REGIONS)
    runs = [run(comparer, body) for body in (THREE, TRIPLE, SAME, TIMES_ONE)]
    for _ in range(2):
        assert comparer.compare(*runs[:2], narrowed=False).rules == ("commute", "ring")
        assert comparer.compare(*runs[2:], narrowed=False).rules == ("commute", "times-one")
        assert comparer.compare(runs[0], runs[0], narrowed=False).rules == ("commute",)


def test_only_the_outputs_that_no_rule_makes_the_same_are_told() -> None:
    """Thread 0 the same, 1 by the ring, 2 without NaN, 3 to 31 apart."""
    second = f"""{LOAD} mul.lo.u32 %r3, %r2, 5;
setp.eq.u32 %p1, %r1, 0; @%p1 mov.b32 %r3, %r2;
setp.eq.u32 %p2, %r1, 1; @%p2 add.u32 %r3, %r2, %r2;
setp.eq.u32 %p3, %r1, 2; @%p3 mul.f32 %r3, %r2, {ONE}; {STORE}"""
    first = f"{LOAD} mov.b32 %r3, %r2; setp.eq.u32 %p2, %r1, 1; @%p2 shl.b32 %r3, %r2, 1; {STORE}"
    for bodies in ((first, second), (second, first)):
        comparer, found = compared(*bodies)
        assert found.domain is None
        assert found.address.tolist() == [OUT.start + 4 * thread for thread in range(3, 32)]
        assert found.width.tolist() == [32] * 29
        names = [{comparer.g.name(node) for node in nodes.tolist()} for nodes in (found.first, found.second)]
        assert names == ([{"input32"}, {"mul.i32"}] if bodies[0] == first else [{"mul.i32"}, {"input32"}])


def test_a_part_that_was_written_makes_its_whole_element_an_output() -> None:
    half = "ld.global.b32 %r2, [%rd1]; mov.b32 {%rs1, %rs2}, %r2; st.global.b16 [%rd2+6], %rs1;"
    for found in both_ways(half, ""):
        assert (found.address.tolist(), found.width.tolist()) == ([OUT.start + 4], [32])


@pytest.mark.parametrize("index", [0, 1, 63])
def test_an_output_belongs_to_one_buffer(index: int) -> None:
    one = f"ld.global.b32 %r2, [%rd1]; mov.b32 {{%rs1, %rs2}}, %r2; st.global.b16 [%rd2+{SIZE + 2 * index}], %rs1;"
    for found in both_ways(one, ""):
        assert (found.address.tolist(), found.width.tolist()) == ([TAIL.start + 2 * index], [16])


@pytest.mark.parametrize("offset", [0, 4, SIZE - 4])
def test_every_element_of_a_buffer_counts(offset: int) -> None:
    for found in both_ways(f"{LOAD} st.global.b32 [%rd2+{offset}], 7;", ""):
        assert found.address.tolist() == [OUT.start + offset]


@pytest.mark.parametrize(
    "body",
    [
        "st.global.b32 [%rd5], %r9;",
        "mov.b32 %r4, %r9; red.global.add.u32 [%rd2], %r4;",
        f"{LOAD} atom.global.add.u32 %r3, [%rd2], %r2; st.global.b16 [%rd2+{SIZE}], %r3;",
    ],
)
def test_what_depends_on_nothing_defined_has_no_verdict(body: str) -> None:
    with pytest.raises(Stop, match="nothing was written to"):
        compared(body, body)


@pytest.mark.parametrize("swapped", [False, True])
def test_an_output_that_one_run_alone_wrote_has_a_witness(swapped: bool) -> None:
    """Where the other wrote nothing, the buffer holds what it held before."""
    bodies = SAME, f"{LOAD} setp.lt.u32 %p1, %r1, 16; @%p1 st.global.b32 [%rd5], %r2;"
    comparer = Comparer(Graph(), REGIONS)
    first, second = (run(comparer, body) for body in (bodies[::-1] if swapped else bodies))
    result = comparer.compare(first, second, narrowed=False)
    assert result.address.tolist() == [OUT.start + 4 * thread for thread in range(16, 32)]
    case = LaunchCase("case", launch_from({"fn": "k", "args": []}))
    witness = Searcher(comparer, case).find(result, first, second)
    assert witness is not None
    assert witness.output.bits != witness.other_bits
    at = witness.output.index
    bits = {(element.buffer, element.index): element.bits for element in witness.inputs}
    values = [witness.output.bits, witness.other_bits]
    assert (values[::-1] if swapped else values) == [bits["IN", at], bits["OUT", at]]


# --- threads that write one place ----------------------------------------------------------------------------------


def one_place(first: str, second: str) -> str:
    """Thread 0 writes the first value, the others the second."""
    return f"""ld.global.b32 %r2, [%rd1]; {first} mov.b32 %r4, %r3; {second}
setp.eq.u32 %p1, %r1, 0; @%p1 mov.b32 %r3, %r4; st.global.b32 [%rd2], %r3;"""


COPIED, ONCE = "mov.b32 %r3, %r2;", f"mul.f32 %r3, %r2, {ONE};"
TIMES_THREE, ADDED = "mul.lo.u32 %r3, %r2, 3;", "add.u32 %r3, %r2, %r2; add.u32 %r3, %r3, %r2;"


@pytest.mark.parametrize(
    ("first", "second", "domain", "rule"),
    [(COPIED, ONCE, Domain.NO_NAN, "times-one"), (TIMES_THREE, ADDED, Domain.EVERY, "ring")],
)
def test_a_run_whose_threads_agree_by_a_rule_rests_on_it(first: str, second: str, domain: Domain, rule: str) -> None:
    for values in ((first, second), (second, first)):
        comparer, found = compared(one_place(*values), one_place(*values))
        assert comparer.narrowed is (domain is Domain.NO_NAN)
        assert (found.domain, found.rules) == (domain, tuple(sorted(("commute", rule))))


def test_threads_that_agree_by_no_rule_stop_the_run() -> None:
    with pytest.raises(Stop, match="two threads write different values"):
        compared(one_place(COPIED, TIMES_THREE), "")


def test_agreement_is_told_node_by_node() -> None:
    comparer = Comparer(Graph(), REGIONS)
    at = OUT.start + 4 * np.arange(1)
    nodes = {body: run(comparer, body).memory.final(at, 4)[0] for body in (SAME, THREE, TRIPLE, TIMES_ONE)}
    one, other = (np.array([nodes[body] for body in bodies], np.int32) for bodies in ((SAME, THREE), (THREE, SAME)))
    assert comparer.agree(one, other).tolist() == [False, False]
    assert not comparer.narrowed
    rows = [(THREE, TRIPLE), (TRIPLE, THREE), (SAME, THREE), (THREE, SAME), (SAME, SAME)]
    ones, others = (np.array([nodes[body] for body in column], np.int32) for column in zip(*rows, strict=True))
    assert comparer.agree(ones, others).tolist() == [True, True, False, False, True]
    assert not comparer.narrowed
    assert comparer.agreed_by == {Domain.EVERY: {"ring"}, Domain.NO_NAN: set()}
    rows = [(SAME, TIMES_ONE), (THREE, SAME), (TIMES_ONE, SAME), (SAME, THREE), (THREE, TRIPLE)]
    ones, others = (np.array([nodes[body] for body in column], np.int32) for column in zip(*rows, strict=True))
    assert comparer.agree(ones, others).tolist() == [True, False, True, False, True]
    assert comparer.narrowed
    assert comparer.agreed_by == {Domain.EVERY: {"ring"}, Domain.NO_NAN: {"times-one"}}


def test_a_narrowed_comparison_claims_nothing_for_nans() -> None:
    for found in both_ways(SAME, SAME, narrowed=True):
        assert (found.domain, found.rules) == (Domain.NO_NAN, ("commute",))
    for found in both_ways(SAME, TIMES_ONE, narrowed=True):
        assert (found.domain, found.rules) == (Domain.NO_NAN, ("commute", "times-one"))


# --- atomics -------------------------------------------------------------------------------------------------------


def red(value: str, place: str = "[%rd2]", op: str = "add.u32") -> str:
    return f"{LOAD} {value} red.global.{op} {place}, %r3;"


INDEXED = "and.b32 %r5, %r2, 31; mul.wide.u32 %rd9, %r5, 4; add.s64 %rd9, %rd9, %rd2;"
NOTE = f"st.global.b16 [%rd2+{SIZE}], 7; st.global.b16 [%rd2+{SIZE + 2}], 8;"
"""Plain output in another buffer than the atomics use."""


@pytest.mark.parametrize(
    ("first", "second", "rules"),
    [
        (red(COPIED), red(COPIED), set()),
        (red(TIMES_THREE), red(ADDED), {"ring"}),
        (red(COPIED, "[%rd5]"), red(COPIED, "[%rd5]"), set()),
        (red(COPIED + INDEXED, "[%rd9]"), red(COPIED + INDEXED, "[%rd9]"), set()),
        (red(COPIED) + red(TIMES_THREE), red(TIMES_THREE) + red(COPIED), set()),
    ],
)
def test_atomics_of_one_kind_are_the_same_in_any_order(first: str, second: str, rules: set[str]) -> None:
    for found in both_ways(first + NOTE, second + NOTE):
        assert (found.domain, found.rules) == (Domain.EVERY, tuple(sorted({"commute", *rules})))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (red(COPIED), red(TIMES_THREE)),
        (red(COPIED), red(COPIED, op="or.b32")),
        (red(COPIED), red(COPIED, "[%rd2+4]")),
        (red(COPIED), red(COPIED) + red(COPIED)),
        (red(COPIED), ""),
        (red(COPIED), red(ONCE)),
    ],
)
def test_atomics_that_differ_are_told_without_an_output(first: str, second: str) -> None:
    for found in both_ways(first + NOTE, second + NOTE):
        assert (found.domain, found.why, found.rules) == (None, "the atomics differ", ())
        assert [len(column) for column in (found.address, found.first, found.second, found.width)] == [0] * 4


def test_atomics_of_narrowed_runs_are_compared_without_nan() -> None:
    for found in both_ways(red(COPIED), red(ONCE), narrowed=True):
        assert (found.domain, found.rules) == (Domain.NO_NAN, ("commute", "times-one"))


def test_plain_outputs_that_differ_are_told_beside_atomics_that_do_not() -> None:
    for found in both_ways(red(COPIED) + NOTE, red(COPIED)):
        assert (found.domain, found.why) == (None, "")
        assert found.address.tolist() == [TAIL.start, TAIL.start + 2]


@pytest.mark.parametrize(
    ("place", "other"), [("[%rd2]", "[%rd2]"), ("[%rd5]", "[%rd5]"), ("[%rd2]", "[%rd2+4]"), ("[%rd9]", "[%rd2+8]")]
)
def test_atomics_of_several_kinds_in_one_buffer_have_no_verdict(place: str, other: str) -> None:
    """`min` after `add` and `add` after `min` leave different sums, in whatever order the rest arrives."""
    first = red(COPIED + INDEXED, place) + red(COPIED, other, "min.u32")
    second = red(COPIED, other, "min.u32") + red(COPIED + INDEXED, place)
    for bodies in ((first, second), (second, first), (first, first), ("", first), (first, "")):
        with pytest.raises(Stop, match="OUT has atomics of several kinds"):
            compared(*bodies)


def test_atomics_of_several_kinds_in_two_buffers_are_compared() -> None:
    body = red(COPIED) + red(COPIED, f"[%rd2+{SIZE}]", "min.u32")
    assert compared(body, body)[1].domain is Domain.EVERY


@pytest.mark.parametrize("place", ["[%rd2]", "[%rd2+4]", f"[%rd2+{SIZE - 4}]"])
@pytest.mark.parametrize("access", ["st.global.b32 {}, 7;", "ld.global.b32 %r7, {};"])
def test_a_buffer_of_atomics_and_plain_accesses_has_no_verdict(place: str, access: str) -> None:
    body = red(COPIED, "[%rd2+8]") + access.format(place)
    for bodies in ((body, body), (body, ""), ("", body)):
        with pytest.raises(Stop, match="OUT is used by atomics and by plain accesses"):
            compared(*bodies)


@pytest.mark.parametrize("offset", [SIZE, SIZE + 4, 2 * SIZE - 4])
@pytest.mark.parametrize("place", ["[%rd2]", f"[%rd2+{SIZE - 4}]", "[%rd9]"])
def test_plain_accesses_of_the_buffers_beside_are_none_of_it(offset: int, place: str) -> None:
    body = f"ld.global.b32 %r7, [%rd2+{offset}];" + red(COPIED + INDEXED, place)
    assert compared(body, body)[1].domain is Domain.EVERY


@pytest.mark.parametrize("address", ["cvt.u64.u32 %rd9, %r2;", "mov.b64 %rd9, 4096;", f"mov.b64 %rd9, {TAIL.stop};"])
def test_an_atomic_at_no_known_buffer_has_no_verdict(address: str) -> None:
    body = red(COPIED + address, "[%rd9]")
    with pytest.raises(Stop, match="an atomic at an address whose buffer is not known"):
        compared(body, body)


# --- the outputs of one block --------------------------------------------------------------------------------------


def test_the_outputs_of_one_block_are_what_it_wrote() -> None:
    comparer = Comparer(Graph(), REGIONS)
    body = "mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd9, %r2, 4; add.s64 %rd9, %rd9, %rd2; st.global.b32 [%rd9], %r2;"
    found = run(comparer, body, ((0, 0, 0), (1, 0, 0), (2, 0, 0)))
    values = [comparer.g.imm[outputs_of(found, REGIONS, block)].tolist() for block in (None, 0, 1, 2, 3)]
    assert values == [[0, 1, 2], [0], [1], [2], []]


# --- contraction ---------------------------------------------------------------------------------------------------

PRODUCT = "mul.f32 %r4, %r2, %r2;"
CHOICE = "setp.lt.s32 %p1, %r2, 0;"


@pytest.mark.parametrize(
    ("body", "may"),
    [
        (f"{PRODUCT} add.f32 %r3, %r4, %r2;", True),
        (f"{PRODUCT} sub.f32 %r3, %r4, %r2;", True),
        (f"{PRODUCT} sub.f32 %r3, %r2, %r4;", True),
        (f"{PRODUCT} add.f32 %r3, %r4, %r4;", True),
        ("mul.rn.f32 %r4, %r2, %r2; add.f32 %r3, %r4, %r2;", False),
        (f"{PRODUCT} add.rn.f32 %r3, %r4, %r2;", False),
        (f"{PRODUCT} neg.f32 %r4, %r4; add.f32 %r3, %r4, %r2;", True),
        (f"{PRODUCT} abs.f32 %r4, %r4; add.f32 %r3, %r4, %r2;", True),
        (f"{PRODUCT} abs.f32 %r4, %r4; neg.f32 %r4, %r4; add.f32 %r3, %r4, %r2;", True),
        (f"{PRODUCT} neg.f32 %r4, %r4; abs.f32 %r4, %r4; neg.f32 %r4, %r4; add.f32 %r3, %r4, %r2;", True),
        (f"{PRODUCT} {CHOICE} selp.b32 %r4, %r4, %r2, %p1; add.f32 %r3, %r4, %r2;", True),
        (f"{PRODUCT} {CHOICE} selp.b32 %r4, %r2, %r4, %p1; add.f32 %r3, %r4, %r2;", True),
        (f"{CHOICE} selp.b32 %r4, %r2, 5, %p1; add.f32 %r3, %r4, %r2;", False),
        (f"{PRODUCT} max.f32 %r4, %r4, %r2; add.f32 %r3, %r4, %r2;", False),
        ("ex2.approx.f32 %r4, %r2; add.f32 %r3, %r4, %r2;", True),
        ("div.full.f32 %r4, %r2, %r1; add.f32 %r3, %r4, %r2;", True),
        ("fma.rn.f32 %r4, %r2, %r2, %r2; add.f32 %r3, %r4, %r2;", False),
        ("add.f32 %r4, %r2, %r2; add.f32 %r3, %r4, %r2;", False),
        (f"{PRODUCT} mul.f32 %r3, %r4, %r2;", False),
        (f"{PRODUCT} neg.f32 %r3, %r4;", False),
        ("mul.lo.u32 %r4, %r2, %r2; add.u32 %r3, %r4, %r2;", False),
        ("mul.bf16 %rs3, %rs1, %rs1; add.bf16 %rs3, %rs3, %rs1; mov.b32 %r3, {%rs3, %rs3};", True),
        (f"{PRODUCT} add.f32 %r5, %r4, %r2; mov.b32 %r3, %r4;", False),
    ],
)
def test_what_ptxas_may_fuse(body: str, may: bool) -> None:
    whole = stored(f"mov.b32 {{%rs1, %rs2}}, %r2; {body}")
    comparer, found = compared(whole, whole)
    assert found.contractible is may
    runs: Any = run(comparer, whole)
    assert may_contract(comparer.g, comparer.g.cone(outputs_of(runs, REGIONS))) is may
    assert compared("", whole)[1].contractible is may
    alone = whole.replace("st.global", "setp.eq.u32 %p9, %r1, 0; @%p9 st.global")
    assert compared(alone, alone)[1].contractible is may
