"""Every rewrite that proofs rest on: against exact arithmetic on bits, and against Z3's and cvc5's floating point."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import cvc5
import numpy as np
import pytest
import z3
from foldproof.gpu.symbolic import softfloat as sf
from foldproof.gpu.symbolic.forms import Forms
from foldproof.gpu.symbolic.graph import Graph
from foldproof.gpu.symbolic.memory import Region
from foldproof.gpu.symbolic.normal import RULES, Domain, Normaliser
from foldproof.gpu.symbolic.primitives import primitive

RNG = np.random.default_rng(2)
FORMATS = ("f16", "bf16", "f32")


def bits_of(fmt: sf.Format, count: int = 4000) -> np.ndarray:
    """Any bits, and the special ones: zeros, ones, infinities, NaNs with payloads, subnormals, extremes."""
    top = 1 << (fmt.width - 1)
    one = fmt.bias << fmt.fraction
    special = [
        0,
        1,
        2,
        (1 << fmt.fraction) - 1,
        1 << fmt.fraction,
        one,
        one + 1,
        fmt.inf - 1,
        fmt.inf,
        fmt.inf + 1,
        top - 1,
    ]
    every = np.array([b | s for b in special for s in (0, top)], np.uint64)
    grid = np.repeat(every, len(every)) if count > 1000 else every
    return np.concatenate([grid, RNG.integers(0, 1 << fmt.width, count).astype(np.uint64)])


def triples(fmt: sf.Format) -> list[np.ndarray]:
    """Three operands, all pairs of special values among them."""
    count = len(bits_of(fmt, 10))
    special = bits_of(fmt, 10)
    pairs = np.stack(np.meshgrid(special, special), -1).reshape(-1, 2).T
    third = RNG.choice(special, pairs.shape[1])
    assert count
    rest = [RNG.integers(0, 1 << fmt.width, 4000).astype(np.uint64) for _ in range(3)]
    return [np.concatenate([x, y]) for x, y in zip((*pairs, third), rest, strict=True)]


def op(name: str) -> Callable[..., np.ndarray]:
    prim = primitive(name)
    assert prim is not None
    assert prim.function is not None
    assert prim.exact
    return prim.function


def one(fmt: sf.Format, bits: int | None = None) -> Callable[[np.ndarray], np.ndarray]:
    return lambda like: np.full_like(like, (fmt.bias << fmt.fraction) if bits is None else bits)


@pytest.mark.parametrize("kind", FORMATS)
def test_operands_commute_on_every_bit_pattern(kind: str) -> None:
    a, b, c = triples(sf.FORMATS[kind])
    for name in ("add", "mul", "max", "min"):
        f = op(f"{name}.{kind}")
        assert (f(a, b) == f(b, a)).all(), name
    f = op(f"fma.{kind}")
    assert (f(a, b, c) == f(b, a, c)).all()


@pytest.mark.parametrize("kind", FORMATS)
def test_times_and_over_one_keep_numbers_and_canonical_nans_only(kind: str) -> None:
    fmt = sf.FORMATS[kind]
    x = bits_of(fmt)
    kept = ~sf.is_nan(fmt, x) | (x == fmt.nan)
    for result in (op(f"mul.{kind}")(x, one(fmt)(x)), op(f"div.rn.{kind}")(x, one(fmt)(x))):
        assert (result[kept] == x[kept]).all()
        assert (result[~kept] == fmt.nan).all()
        assert (~kept).any()


@pytest.mark.parametrize("kind", FORMATS)
def test_arithmetic_returns_numbers_or_the_canonical_nan(kind: str) -> None:
    """The ground of `numbers`: what add, sub, mul and fma return is left alone by a further `* 1`."""
    fmt = sf.FORMATS[kind]
    a, b, c = triples(fmt)
    for result in (*(op(f"{n}.{kind}")(a, b) for n in ("add", "sub", "mul")), op(f"fma.{kind}")(a, b, c)):
        assert (op(f"mul.{kind}")(result, one(fmt)(result)) == result).all()


@pytest.mark.parametrize("kind", FORMATS)
def test_fma_by_one_is_a_sum_and_fma_plus_minus_zero_a_product(kind: str) -> None:
    fmt = sf.FORMATS[kind]
    a, b, _ = triples(fmt)
    minus_zero = one(fmt, 1 << (fmt.width - 1))(a)
    assert (op(f"fma.{kind}")(a, one(fmt)(a), b) == op(f"add.{kind}")(a, b)).all()
    assert (op(f"fma.{kind}")(a, b, minus_zero) == op(f"mul.{kind}")(a, b)).all()


@pytest.mark.parametrize("kind", FORMATS)
def test_adding_minus_zero_keeps_numbers_and_plus_zero_does_not(kind: str) -> None:
    fmt = sf.FORMATS[kind]
    x = bits_of(fmt)
    kept = ~sf.is_nan(fmt, x)
    minus_zero, zero = one(fmt, 1 << (fmt.width - 1))(x), one(fmt, 0)(x)
    assert (op(f"add.{kind}")(x, minus_zero)[kept] == x[kept]).all()
    assert (op(f"sub.{kind}")(x, zero)[kept] == x[kept]).all()
    assert (op(f"add.{kind}")(x, zero)[kept] != x[kept]).any()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("mods", ["", ".NaN", ".ftz"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_are_sets(kind: str, mods: str, name: str) -> None:
    """Associative, commutative, idempotent, NaNs and signed zeros included; a single operand is canonicalised."""
    if kind != "f32" and mods == ".ftz":
        pytest.skip("PTX has no such instruction")
    f = op(f"{name}{mods}.{kind}")
    a, b, c = triples(sf.FORMATS[kind])
    results = [f(f(x, y), z) for x, y, z in permutations((a, b, c))] + [f(a, f(b, c)), f(f(a, b), f(b, f(c, a)))]
    for result in results:
        assert (result == results[0]).all()
    assert (f(f(a, a), a) == f(a, a)).all()
    assert (f(a, a) != a).any()


def test_bf16_and_fp16_survive_fp32_unless_nan() -> None:
    for kind in ("bf16", "f16"):
        fmt = sf.FORMATS[kind]
        x = np.arange(1 << 16, dtype=np.uint64)
        wide = op(f"cvt.f32.{kind}")(x)
        kept = ~sf.is_nan(fmt, x)
        assert (op(f"cvt.rn.{kind}.f32")(wide)[kept] == x[kept]).all()
        if kind == "bf16":
            assert (wide[kept] == x[kept] << np.uint64(16)).all()


def test_subtraction_is_no_sum_and_products_do_not_distribute() -> None:
    """What must not be a rule is none: the normal forms of these differ."""
    g = Graph()
    normal = Normaliser(g, (Region(0, 1024, 4, "X", "f32"),), Domain.NO_NAN, Forms())
    x, y, z = (g.leaf(32, np.array([4 * n], np.uint64)) for n in range(3))

    def make(name: str, *operands: np.ndarray) -> np.ndarray:
        prim = primitive(name)
        assert prim is not None
        return g.apply(g.op_id(name, prim.width, prim.arity, commutative=prim.commutative), *operands)

    zero = g.constant(32, 0)
    pairs = [
        (make("add.f32", make("add.f32", x, y), z), make("add.f32", x, make("add.f32", y, z))),
        (make("mul.f32", make("mul.f32", x, y), z), make("mul.f32", x, make("mul.f32", y, z))),
        (make("sub.f32", x, y), make("sub.f32", y, x)),
        (make("add.f32", x, zero), x),
        (make("fma.f32", x, y, z), make("add.f32", make("mul.f32", x, y), z)),
        (make("add.f32", x, y), make("add.ftz.f32", x, y)),
        (make("mul.ftz.f32", x, g.constant(32, 0x3F800000)), x),
        (make("max.f32", x, x), x),
        (make("max.f32", x, y), make("max.NaN.f32", x, y)),
    ]
    for one_, other in pairs:
        assert normal(one_)[0] != normal(other)[0], (g.name(int(one_[0])), g.name(int(other[0])))


HALF, RNE = z3.Float16(), z3.RNE()


def refuted(claim: z3.BoolRef, *premises: z3.BoolRef) -> bool:
    solver = z3.Solver()
    solver.set("timeout", 120_000)
    solver.add(*premises, z3.Not(claim))
    found = solver.check()
    assert found != z3.unknown
    return bool(found == z3.sat)


def z3_max(a: z3.FPRef, b: z3.FPRef) -> z3.FPRef:
    """PTX max: NaNs lose, -0 < +0."""
    zeros = z3.And(z3.fpIsZero(a), z3.fpIsZero(b))
    larger = z3.If(zeros, z3.If(z3.fpIsNegative(a), b, a), z3.If(z3.fpGT(a, b), a, b))
    return z3.If(z3.fpIsNaN(a), b, z3.If(z3.fpIsNaN(b), a, larger))


def claims() -> dict[str, tuple[z3.BoolRef, ...]]:
    """Rule -> claim and premises over all fp16 (structural equality: Z3 has one NaN)."""
    a, b, c = z3.FPs("a b c", HALF)
    i, j, k = z3.BitVecs("i j k", 8)
    unit, minus_zero = z3.FPVal(1, HALF), z3.fpMinusZero(HALF)
    numbers = [z3.Not(z3.fpIsNaN(v)) for v in (a, b, c)]

    def better(x: tuple[z3.FPRef, z3.BitVecRef], y: tuple[z3.FPRef, z3.BitVecRef]) -> tuple[z3.FPRef, z3.BitVecRef]:
        first = z3.Or(z3.fpGT(x[0], y[0]), z3.And(z3.fpEQ(x[0], y[0]), z3.ULT(x[1], y[1])))
        return z3.If(first, x[0], y[0]), z3.If(first, x[1], y[1])

    pairs = [(a, i), (b, j), (c, k)]
    left, right = better(better(pairs[0], pairs[1]), pairs[2]), better(pairs[0], better(pairs[1], pairs[2]))
    swapped = better(pairs[1], pairs[0])
    straight = better(pairs[0], pairs[1])
    distinct = z3.Distinct(i, j, k)
    wide = z3.fpToFP(RNE, a, z3.Float32())
    x, y, z = z3.BitVecs("x y z", 16)
    return {
        "commute": (z3.And(z3.fpAdd(RNE, a, b) == z3.fpAdd(RNE, b, a), z3.fpMul(RNE, a, b) == z3.fpMul(RNE, b, a)),),
        "times-one": (z3.And(z3.fpMul(RNE, a, unit) == a, z3.fpDiv(RNE, a, unit) == a),),
        "fma-one": (z3.fpFMA(RNE, a, unit, b) == z3.fpAdd(RNE, a, b),),
        "fma-zero": (z3.fpFMA(RNE, a, b, minus_zero) == z3.fpMul(RNE, a, b),),
        "plus-zero": (z3.And(z3.fpAdd(RNE, a, minus_zero) == a, z3.fpSub(RNE, a, z3.fpPlusZero(HALF)) == a),),
        "widen-narrow": (z3.fpToFP(RNE, wide, HALF) == a,),
        "extremum": (
            z3.And(z3_max(a, z3_max(b, c)) == z3_max(z3_max(a, b), c), z3_max(a, b) == z3_max(b, a), z3_max(a, a) == a),
        ),
        "argmax": (z3.And(left[1] == right[1], swapped[1] == straight[1]), *numbers, distinct),
        "ring": (z3.And((x + y) + z == y + (z + x), x * (y + z) == x * y + x * z, x - y == x + y * 0xFFFF),),
        "bitwise": (z3.And((x ^ y) ^ z == y ^ (z ^ x), x ^ x == 0, x & (y & z) == (z & x) & y, x | x == x),),
    }


PROVED = ("commute", "times-one", "fma-one", "plus-zero", "widen-narrow", "extremum", "argmax", "ring", "bitwise")


@pytest.mark.parametrize("rule", PROVED)
@pytest.mark.slow
def test_z3_proves_the_rule_for_all_fp16(rule: str) -> None:
    assert rule in RULES
    claim, *premises = claims()[rule]
    assert not refuted(claim, *premises)


def test_z3_refutes_what_is_no_rule() -> None:
    """The proofs can fail: associativity of sums, the sign of a zero, argmax with NaNs."""
    a, b, c = z3.FPs("a b c", HALF)
    assert refuted(z3.fpAdd(RNE, z3.fpAdd(RNE, a, b), c) == z3.fpAdd(RNE, a, z3.fpAdd(RNE, b, c)))
    assert refuted(z3.fpAdd(RNE, a, z3.fpPlusZero(HALF)) == a)
    claim, *premises = claims()["argmax"]
    assert refuted(claim, premises[-1])


def test_cvc5_proves_products_by_one_and_minus_zero_for_all_fp32() -> None:
    solver = cvc5.Solver()
    solver.setLogic("QF_FP")
    single = solver.mkFloatingPointSort(8, 24)
    x, mode = solver.mkConst(single, "x"), solver.mkRoundingMode(cvc5.RoundingMode.ROUND_NEAREST_TIES_TO_EVEN)
    unit = solver.mkFloatingPoint(8, 24, solver.mkBitVector(32, 0x3F800000))
    minus = solver.mkFloatingPointNegZero(8, 24)
    product = solver.mkTerm(cvc5.Kind.FLOATINGPOINT_MULT, mode, x, unit)
    total = solver.mkTerm(cvc5.Kind.FLOATINGPOINT_ADD, mode, x, minus)
    same = [solver.mkTerm(cvc5.Kind.EQUAL, t, x) for t in (product, total)]
    solver.assertFormula(solver.mkTerm(cvc5.Kind.NOT, solver.mkTerm(cvc5.Kind.AND, *same)))
    assert solver.checkSat().isUnsat()


def test_every_rule_is_tested_here() -> None:
    by_arithmetic = {"full-one", "fma-zero", "widen-bits", "rn-suffix"}
    assert set(RULES) == set(PROVED) | by_arithmetic
