# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803, PLR0913, PLR0917
# An annotation on a kernel parameter changes how Triton specialises it, so kernels stay untyped; their names are those
# of the tensors and extents of the field, and a kernel takes as many as it needs.
"""Kernels whose result depends on timing, and one whose folded twin does not compile."""

import triton
import triton.language as tl


@triton.jit
def _atomic_sum(X, OUT, S, N, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Float atomics from many programs into BINS sums: the order of arrival decides the rounding."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at * S, mask=at < N, other=0.0)
    tl.atomic_add(OUT + at % BINS, x, mask=at < N)


@triton.jit
def _atomic_count(X, OUT, S, N, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Integer atomics from many programs: a histogram of X modulo BINS, exact in any order of arrival."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at * S, mask=at < N, other=0)
    tl.atomic_add(OUT + (x & (BINS - 1)), 1, mask=at < N)


@triton.jit
def _fold_breaks(X, OUT, R, N, BLOCK: tl.constexpr):
    """OUT = X * fp32(R) by a method call: a folded R is a plain Python integer and has no such method."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N)
    tl.store(OUT + at, x * R.to(tl.float32), mask=at < N)
