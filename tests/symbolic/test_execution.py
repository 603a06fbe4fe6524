"""Single instructions and protocols of threads, against what PTX says of them."""

from __future__ import annotations

import numpy as np
import pytest
from foldproof.gpu.symbolic.execute import execute, launched
from foldproof.gpu.symbolic.graph import Graph
from foldproof.gpu.symbolic.lanes import Stop, Unstable
from foldproof.gpu.symbolic.memory import Region
from helpers_symbolic import BASE, probe, run_probe, values

RNG = np.random.default_rng(11)
WORDS = RNG.integers(0, 1 << 32, 32).astype(np.uint64)
LANE = np.arange(32)


def result(body: str, words: np.ndarray = WORDS, **options: object) -> np.ndarray:
    return run_probe(body, **options).outputs(words)  # type: ignore[arg-type]


def on_data(instruction: str) -> str:
    return f"ld.global.b32 %r2, [%rd4];\n{instruction}\nst.global.b32 [%rd5], %r3;"


def signed(words: np.ndarray) -> np.ndarray:
    return words.astype(np.uint32).view(np.int32).astype(np.int64)


INTEGER = {
    "add.s32 %r3, %r2, 7;": lambda x: x + 7,
    "sub.s32 %r3, 5, %r2;": lambda x: 5 - x,
    "mul.lo.s32 %r3, %r2, -3;": lambda x: x * -3,
    "mul.hi.u32 %r3, %r2, 1000003;": lambda x: (x & 0xFFFFFFFF) * 1000003 >> 32,
    "mul.hi.s32 %r3, %r2, -77;": lambda x: x * -77 >> 32,
    "mad.lo.s32 %r3, %r2, %r1, 9;": lambda x: x * LANE + 9,
    "div.s32 %r3, %r2, -7;": lambda x: -(np.sign(x) * (np.abs(x) // 7)),
    "rem.s32 %r3, %r2, 7;": lambda x: x - np.sign(x) * (np.abs(x) // 7) * 7,
    "div.u32 %r3, %r2, 7;": lambda x: (x & 0xFFFFFFFF) // 7,
    "min.s32 %r3, %r2, 0;": lambda x: np.minimum(x, 0),
    "max.u32 %r3, %r2, 77;": lambda x: np.maximum(x & 0xFFFFFFFF, 77),
    "neg.s32 %r3, %r2;": lambda x: -x,
    "abs.s32 %r3, %r2;": np.abs,
    "not.b32 %r3, %r2;": lambda x: ~x,
    "and.b32 %r3, %r2, 65535;": lambda x: x & 0xFFFF,
    "and.b32 %r3, %r2, -65536;": lambda x: x & ~0xFFFF,
    "and.b32 %r3, %r2, 255;": lambda x: x & 0xFF,
    "xor.b32 %r3, %r2, 12345;": lambda x: x ^ 12345,
    "or.b32 %r3, %r2, %r1;": lambda x: x | LANE,
    "shl.b32 %r3, %r2, 16;": lambda x: x << 16,
    "shl.b32 %r3, %r2, 40;": lambda x: x * 0,
    "shr.u32 %r3, %r2, 16;": lambda x: (x & 0xFFFFFFFF) >> 16,
    "shr.s32 %r3, %r2, 33;": lambda x: x >> 31,
    "shr.u32 %r3, %r2, 5;": lambda x: (x & 0xFFFFFFFF) >> 5,
    "bfe.u32 %r3, %r2, 5, 9;": lambda x: x >> 5 & 511,
    "bfe.s32 %r3, %r2, 5, 9;": lambda x: (x << 18 & 0xFFFFFFFF).astype(np.uint32).view(np.int32) >> 23,
    "popc.b32 %r3, %r2;": lambda x: np.bitwise_count(x & 0xFFFFFFFF),
    "clz.b32 %r3, %r2;": lambda x: 32 - np.array([int(v).bit_length() for v in x & 0xFFFFFFFF]),
    "prmt.b32 %r3, %r2, %r1, 0x5042;": lambda x: ((x >> 16) & 0xFF) | (LANE & 0xFF) << 8 | (x & 0xFF) << 16,
    "lop3.b32 %r3, %r2, %r1, 77, 0x6a;": lambda x: (x & LANE) ^ 77,
    "bfi.b32 %r3, %r2, %r1, 8, 8;": lambda x: LANE & ~0xFF00 | (x & 0xFF) << 8,
    "cvt.u16.u32 %rs1, %r2; cvt.u32.u16 %r3, %rs1;": lambda x: x & 0xFFFF,
    "cvt.s64.s32 %rd9, %r2; shr.u64 %rd9, %rd9, 32; cvt.u32.u64 %r3, %rd9;": lambda x: x >> 63,
    "mov.b32 {%rs1, %rs2}, %r2; mov.b32 %r3, {%rs2, %rs1};": lambda x: (x >> 16 & 0xFFFF) | (x & 0xFFFF) << 16,
    "setp.lt.s32 %p1, %r2, 100; selp.b32 %r3, %r2, 5, %p1;": lambda x: np.where(x < 100, x, 5),
    "setp.hi.u32 %p1|%p2, %r2, 100; selp.b32 %r3, 1, 2, %p2;": lambda x: np.where((x & 0xFFFFFFFF) > 100, 2, 1),
}


@pytest.mark.parametrize("instruction", INTEGER)
def test_integer_instructions_on_data(instruction: str) -> None:
    want = np.asarray(INTEGER[instruction](signed(WORDS))).astype(np.int64) & 0xFFFFFFFF
    assert result(on_data(instruction)).tolist() == want.tolist()


@pytest.mark.parametrize("instruction", INTEGER)
def test_integer_instructions_on_known_values(instruction: str) -> None:
    body = f"mul.lo.u32 %r2, %r1, 0x9E3779B1;\n{instruction}\nst.global.b32 [%rd5], %r3;"
    values = signed(LANE * 0x9E3779B1 & 0xFFFFFFFF)
    want = np.asarray(INTEGER[instruction](values)).astype(np.int64) & 0xFFFFFFFF
    assert result(body).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("mode", "source"),
    [
        ("bfly.b32 %r3, %r2, 5, 31", LANE ^ 5),
        ("up.b32 %r3, %r2, 3, 0", np.where(LANE >= 3, LANE - 3, LANE)),
        ("down.b32 %r3, %r2, 3, 31", np.where(LANE + 3 < 32, LANE + 3, LANE)),
        ("idx.b32 %r3, %r2, 9, 31", np.full(32, 9)),
        ("up.b32 %r3, %r2, 1, 0x1800", np.where(LANE % 8 >= 1, LANE - 1, LANE)),
    ],
)
def test_shuffles(mode: str, source: np.ndarray) -> None:
    assert result(on_data(f"shfl.sync.{mode}, -1;")).tolist() == WORDS[source].tolist()


def test_redux_combines_a_warp() -> None:
    total = int(WORDS.sum()) & 0xFFFFFFFF
    body = on_data("mov.b32 %r9, -1; redux.sync.add.s32 %r3, %r2, %r9;")
    assert result(body).tolist() == [total] * 32


def test_loops_and_parting_threads_meet_again() -> None:
    body = """
mov.b32 %r3, 0; mov.b32 %r4, 0;
$L_again: add.s32 %r3, %r3, %r4; add.s32 %r4, %r4, 1;
setp.le.s32 %p1, %r4, %r1; @%p1 bra $L_again;
and.b32 %r5, %r1, 1; setp.eq.b32 %p2, %r5, 0; @%p2 bra $L_even;
add.s32 %r3, %r3, 1000; bra.uni $L_join;
$L_even: add.s32 %r3, %r3, 2000;
$L_join: bar.sync 0; st.global.b32 [%rd5], %r3;"""
    want = LANE * (LANE + 1) // 2 + np.where(LANE % 2, 1000, 2000)
    assert result(body).tolist() == want.tolist()


def test_a_branch_on_data_becomes_a_choice() -> None:
    body = """
ld.global.b32 %r2, [%rd4]; mov.b32 %r3, 1;
setp.lt.s32 %p1, %r2, 0; @%p1 bra $L_less;
add.s32 %r3, %r2, 10; bra.uni $L_join;
$L_less: sub.s32 %r3, 0, %r2;
$L_join: st.global.b32 [%rd5], %r3;"""
    x = signed(WORDS)
    assert result(body).tolist() == (np.where(x < 0, -x, x + 10) & 0xFFFFFFFF).tolist()


def test_a_predicated_instruction_on_data_becomes_a_choice() -> None:
    body = on_data("mov.b32 %r3, 4; setp.lt.s32 %p1, %r2, 0; @!%p1 add.s32 %r3, %r2, 1;")
    x = signed(WORDS)
    assert result(body).tolist() == (np.where(x < 0, 4, x + 1) & 0xFFFFFFFF).tolist()


SHARED = "mov.b32 %r4, smem; shl.b32 %r5, %r1, 2; add.s32 %r6, %r4, %r5; xor.b32 %r7, %r5, 4; add.s32 %r7, %r7, %r4;"


def test_shared_memory_with_a_barrier() -> None:
    body = on_data(f"{SHARED} st.shared.b32 [%r6], %r2; bar.sync 0; ld.shared.b32 %r3, [%r7];")
    assert result(body).tolist() == WORDS[LANE ^ 1].tolist()


def test_halves_of_shared_words() -> None:
    body = on_data(
        f"{SHARED} mov.b32 {{%rs1, %rs2}}, %r2; st.shared.b16 [%r6], %rs2; st.shared.b16 [%r6+2], %rs1; bar.sync 0; "
        "ld.shared.b32 %r3, [%r7];"
    )
    x = WORDS[LANE ^ 1]
    assert result(body).tolist() == ((x >> np.uint64(16)) | (x & np.uint64(0xFFFF)) << np.uint64(16)).tolist()


@pytest.mark.parametrize(
    "body",
    [
        f"{SHARED} st.shared.b32 [%r6], %r2; ld.shared.b32 %r3, [%r7];",
        f"{SHARED} st.shared.b32 [%r4], %r1; mov.b32 %r3, 0;",
        f"{SHARED} st.shared.b32 [%r6], %r2; bar.sync 0; ld.shared.b32 %r3, [%r7]; st.shared.b32 [%r6], %r3;",
        f"{SHARED} cp.async.ca.shared.global [%r6], [%rd4], 4; cp.async.commit_group; ld.shared.b32 %r3, [%r6];",
        SHARED
        + "cp.async.ca.shared.global [%r6], [%rd4], 4; cp.async.commit_group; bar.sync 0; ld.shared.b32 %r3, [%r7];",
    ],
)
def test_races_are_errors(body: str) -> None:
    with pytest.raises(Stop, match="race"):
        result(on_data(body))


def test_a_warp_barrier_orders_a_warp() -> None:
    body = on_data(f"{SHARED} st.shared.b32 [%r6], %r2; bar.warp.sync -1; ld.shared.b32 %r3, [%r7];")
    assert result(body).tolist() == WORDS[LANE ^ 1].tolist()


def test_a_warp_barrier_orders_no_other_warp() -> None:
    body = on_data(
        f"{SHARED} xor.b32 %r7, %r5, 128; add.s32 %r7, %r7, %r4; st.shared.b32 [%r6], %r2; bar.warp.sync -1; "
        "ld.shared.b32 %r3, [%r7];"
    )
    with pytest.raises(Stop, match="race"):
        result(body, threads=64)


def test_an_asynchronous_copy_arrives_when_waited_for() -> None:
    body = on_data(
        f"{SHARED} cp.async.ca.shared.global [%r6], [%rd4], 4; cp.async.commit_group; cp.async.wait_group 0; "
        "bar.sync 0; ld.shared.b32 %r3, [%r7];"
    )
    assert result(body).tolist() == WORDS[LANE ^ 1].tolist()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("frob.s32 %r3, %r2;", "unknown instruction frob.s32"),
        ("add.sat.s32 %r3, %r2, 1;", "unknown instruction add.sat.s32"),
        ("mbarrier.init.shared::cta.b64 [%r1], 1;", "memory barriers"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier [%r1], [%rd1, {%r1, %r1}], [%r2];", "TMA"),
        ("ld.acquire.gpu.global.b32 %r3, [%rd4];", "acquire"),
        (
            "mul.wide.u32 %rd9, %r2, 4; add.s64 %rd9, %rd9, %rd1; ld.global.b32 %r3, [%rd9];",
            "address depends on data: IN",
        ),
        ("ld.global.b32 %r3, [%rd4+4096];", "outside every allocation"),
        ("st.global.b32 [%rd2], %r1; mov.b32 %r3, 0;", "two threads write different values"),
        ("st.global.b32 [%rd1], 5; mov.b32 %r3, 0;", "read by one thread and written by another"),
        ("bar.sync 1; mov.b32 %r3, 0;", "barrier 0"),
        ("$L_a: ld.global.b32 %r3, [%rd4]; setp.ne.b32 %p1, %r3, 0; @%p1 bra $L_a;", "depends on data"),
        ("setp.ne.b32 %p1, %r2, 0; @%p1 st.global.b32 [%rd5], %r2; mov.b32 %r3, 0;", "predicate that depends on data"),
    ],
)
def test_what_is_not_modelled_is_refused_with_its_reason(body: str, reason: str) -> None:
    with pytest.raises(Stop, match=reason) as caught:
        result(on_data(body))
    assert caught.value.line or "read by one" in reason


def test_float_atomics_are_unstable() -> None:
    with pytest.raises(Unstable):
        result(on_data("atom.global.gpu.acq_rel.add.f32 %r3, [%rd5], %r2;"))


def test_nothing_defined_is_an_own_value() -> None:
    found = run_probe("st.global.b32 [%rd5], %r9;")
    nodes = found.run.memory.final(np.arange(32) * 4 + found.regions[1].start, 4)
    assert {found.g.name(n) for n in nodes.tolist()} == {"undef32"}


def test_blocks_that_part_run_one_by_one() -> None:
    """Block b waits for its copies in round b of a loop; together the blocks could not."""
    body = f"""
{SHARED} mov.u32 %r20, %ctaid.x; mov.b32 %r21, 0;
shl.b32 %r22, %r20, 7; cvt.u64.u32 %rd10, %r22; add.s64 %rd11, %rd4, %rd10; add.s64 %rd12, %rd5, %rd10;
$L_round: cp.async.ca.shared.global [%r6], [%rd11], 4; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
ld.shared.b32 %r3, [%r7]; bar.sync 0; add.s32 %r21, %r21, 1; setp.le.s32 %p1, %r21, %r20; @%p1 bra $L_round;
st.global.b32 [%rd12], %r3;"""
    kernel, g = probe(body), Graph()
    regions = (Region(BASE, BASE + 256, 4, "IN", "f32"), Region(BASE + 65536, BASE + 65792, 4, "OUT", "f32"))
    start = launched(kernel, {"p_in": BASE, "p_out": BASE + 65536}, (2, 1, 1), 4096)
    run = execute(g, start, regions, ((0, 0, 0), (1, 0, 0)))
    words = RNG.integers(0, 1 << 32, 64).astype(np.uint64)
    at = regions[1].start + 4 * np.arange(64)
    got = values(g, run, at, {"IN": words}, regions, 4)
    assert got.tolist() == words[np.arange(64) ^ 1].tolist()
