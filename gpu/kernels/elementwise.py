# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803, PLR0913, PLR0917, SIM108
# An annotation on a kernel parameter changes how Triton specialises it, so kernels stay untyped; their names are those
# of the tensors and extents of the field, and a kernel takes as many as it needs.
# A branch at compile time stays a branch.
"""Kernels that compute each output element from the inputs at the same position."""

import triton
import triton.language as tl


@triton.jit
def _fma_scale(A, B, C, OUT, R, N, BLOCK: tl.constexpr):
    """OUT = (A * B) * R + C. With R folded the product feeds the addition directly, so both may contract to one FMA."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < N
    a = tl.load(A + at, mask=inside)
    b = tl.load(B + at, mask=inside)
    c = tl.load(C + at, mask=inside)
    tl.store(OUT + at, (a * b) * R + c, mask=inside)


@triton.jit
def _scale(X, OUT, R, N, BLOCK: tl.constexpr):
    """OUT = X * R. With R folded the multiplication is gone, and with it the canonical NaN that it returns."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N)
    tl.store(OUT + at, x * R, mask=at < N)


@triton.jit
def _divide(X, OUT, R, N, BLOCK: tl.constexpr):
    """OUT = X / R by the approximate full-range division; with R folded there is no division."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N)
    tl.store(OUT + at, x / R, mask=at < N)


@triton.jit
def _cast_scale(X, OUT, R, N, BLOCK: tl.constexpr):
    """bf16 OUT = bf16(fp32(X) * R): the scale stands between a widening and a narrowing conversion."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N).to(tl.float32)
    tl.store(OUT + at, (x * R).to(tl.bfloat16), mask=at < N)


@triton.jit
def _copy_stride(X, OUT, S, N, BLOCK: tl.constexpr):
    """OUT[i] = X[i * S]: pure data movement; a folded S makes the loads wide."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(OUT + at, tl.load(X + at * S, mask=at < N), mask=at < N)


@triton.jit
def _int_mix(X, OUT, R, N, BLOCK: tl.constexpr):
    """32-bit integer arithmetic with R as factor, divisor and modulus: exact whatever the order."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N)
    tl.store(OUT + at, (x * R + x // R) ^ (x % R), mask=at < N)


@triton.jit
def _select_every(X, Y, OUT, R, N, BLOCK: tl.constexpr):
    """Every R-th element from X, the others from Y: with R folded to 1 the select is gone."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N)
    y = tl.load(Y + at, mask=at < N)
    tl.store(OUT + at, tl.where(at % R == 0, x, y), mask=at < N)


@triton.jit
def _silu_mul(GATE, UP, OUT, S, N, ACT: tl.constexpr, BLOCK: tl.constexpr):
    """The gated activation of an MLP in bf16; ACT is "silu" or "relu", S the element stride of both inputs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(GATE + at * S, mask=at < N, other=0.0).to(tl.float32)
    up = tl.load(UP + at * S, mask=at < N, other=0.0).to(tl.float32)
    if ACT == "silu":
        gate = gate / (1.0 + tl.exp(-gate))
    else:
        gate = tl.maximum(gate, 0.0)
    tl.store(OUT + at, (gate * up).to(tl.bfloat16), mask=at < N)


@triton.jit
def _residual_add(X, DELTA, OUT, S, N, BLOCK: tl.constexpr):
    """OUT = X + DELTA in bf16 through fp32; S is the element stride of DELTA."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N, other=0.0).to(tl.float32)
    delta = tl.load(DELTA + at * S, mask=at < N, other=0.0).to(tl.float32)
    tl.store(OUT + at, (x + delta).to(tl.bfloat16), mask=at < N)
