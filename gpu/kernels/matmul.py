# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803, PLR0913, PLR0917
# An annotation on a kernel parameter changes how Triton specialises it, so kernels stay untyped; their names are those
# of the tensors and extents of the field, and a kernel takes as many as it needs.
"""Tensor-core products in bf16 with fp32 accumulation."""

import triton
import triton.language as tl


@triton.jit
def _tile(A, B, M, N, K, AM, AK, BK, BM: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, STEP)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, STEP):
        a = tl.load(
            A + m[:, None] * AM + (start + k)[None, :] * AK,
            mask=(m < M)[:, None] & (start + k < K)[None, :],
            other=0.0,
        )
        b = tl.load(
            B + (start + k)[:, None] * BK + n[None, :],
            mask=(start + k < K)[:, None] & (n < N)[None, :],
            other=0.0,
        )
        acc = tl.dot(a, b, acc)
    return m, n, acc


@triton.jit
def _dot(A, B, OUT, M, N, K, AM, AK, BK, BM: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr):
    """OUT[M, N] = A[M, K] @ B[K, N] in fp32; AM and AK are the strides of A, BK the row stride of B."""
    m, n, acc = _tile(A, B, M, N, K, AM, AK, BK, BM, BN, STEP)
    tl.store(OUT + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def _dot_small(A, B, OUT, M, N, K, AM, AK, BK, BM: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr):
    """The same product on tiles below 64 rows, which sm_90 serves by mma.sync in place of wgmma."""
    m, n, acc = _tile(A, B, M, N, K, AM, AK, BK, BM, BN, STEP)
    tl.store(OUT + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def _linear(X, W, BIAS, OUT, T, N, K, WS, BM: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr):
    """bf16 OUT[T, N] = X[T, K] @ W[K, N] (+ BIAS[N] unless None) for a window of T tokens; WS strides W's rows."""
    m, n, acc = _tile(X, W, T, N, K, K, 1, WS, BM, BN, STEP)
    if BIAS is not None:
        acc += tl.load(BIAS + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    tl.store(OUT + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=(m < T)[:, None] & (n < N)[None, :])


@triton.jit
def _deep_pipeline(A, B, OUT, K, AM, AK, BK, BM: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr):
    """One tile of the product by a pipeline so deep that its buffers fit no device once all loads are wide."""
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, STEP)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, STEP):
        a = tl.load(A + m[:, None] * AM + (start + k)[None, :] * AK)
        b = tl.load(B + (start + k)[:, None] * BK + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(OUT + m[:, None] * BN + n[None, :], acc)
