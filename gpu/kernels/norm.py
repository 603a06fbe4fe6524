# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803, PLR0913, PLR0917
# An annotation on a kernel parameter changes how Triton specialises it, so kernels stay untyped; their names are those
# of the tensors and extents of the field, and a kernel takes as many as it needs.
"""Row normalisations in bf16 with fp32 arithmetic: S is the element stride, RS the row stride of X, in elements."""

import triton
import triton.language as tl


@triton.jit
def _rms_norm(X, W, OUT, RS, S, N, EPS: tl.constexpr, BLOCK: tl.constexpr):
    """OUT = X / sqrt(mean(X * X) + EPS) * W, where S strides W and OUT as well."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=0.0).to(tl.float32)
    w = tl.load(W + at * S, mask=at < N, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / N + EPS)
    tl.store(OUT + row * RS + at * S, (x * scale * w).to(tl.bfloat16), mask=at < N)


@triton.jit
def _layer_norm(X, W, OUT, RS, S, N, eps, BLOCK: tl.constexpr):
    """OUT = (X - mean) / sqrt(variance + eps) * W with OUT dense; eps is a run-time float."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=0.0).to(tl.float32)
    w = tl.load(W + at, mask=at < N, other=0.0).to(tl.float32)
    centred = tl.where(at < N, x - tl.sum(x, axis=0) / N, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / N + eps)
    tl.store(OUT + row * N + at, (centred * scale * w).to(tl.bfloat16), mask=at < N)


@triton.jit
def _softmax(X, OUT, RS, S, N, BLOCK: tl.constexpr):
    """OUT = exp(X - max) / sum(exp(X - max)) over the row; S and RS stride OUT as well."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(OUT + row * RS + at * S, (e / tl.sum(e, axis=0)).to(tl.bfloat16), mask=at < N)
