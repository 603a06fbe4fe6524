# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803, PLR0913, PLR0917
# An annotation on a kernel parameter changes how Triton specialises it, so kernels stay untyped; their names are those
# of the tensors and extents of the field, and a kernel takes as many as it needs.
"""Row reductions and scans: S is the element stride and RS the row stride of X, in elements."""

import triton
import triton.language as tl


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def _row_sum(X, OUT, RS, S, N, BLOCK: tl.constexpr):
    """OUT[row] = sum of the row in fp32: the width of a load decides the shape of the addition tree."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=0.0)
    tl.store(OUT + row, tl.sum(x, axis=0))


@triton.jit
def _row_dot(X, Y, OUT, RS, S, N, BLOCK: tl.constexpr):
    """OUT[row] = sum of X * Y over the row in fp32: products and an addition tree."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=0.0)
    y = tl.load(Y + row * RS + at * S, mask=at < N, other=0.0)
    tl.store(OUT + row, tl.sum(x * y, axis=0))


@triton.jit
def _row_max(X, OUT, RS, S, N, BLOCK: tl.constexpr):
    """OUT[row] = maximum of the row in fp32: exact in any order."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=float("-inf"))
    tl.store(OUT + row, tl.max(x, axis=0))


@triton.jit
def _row_argmax(X, OUT, RS, S, N, BLOCK: tl.constexpr):
    """OUT[row] = index of the first maximum of the row: greedy sampling over a vocabulary."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=float("-inf"))
    tl.store(OUT + row, tl.argmax(x, axis=0))


@triton.jit
def _row_isum(X, OUT, RS, S, N, BLOCK: tl.constexpr):
    """OUT[row] = sum of the row in wrapping 32-bit integers: exact in any order."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=0)
    tl.store(OUT + row, tl.sum(x, axis=0))


@triton.jit
def _row_xor(X, OUT, RS, S, N, BLOCK: tl.constexpr):
    """OUT[row] = exclusive or of the row: exact in any order."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=0)
    tl.store(OUT + row, tl.xor_sum(x, axis=0))


@triton.jit
def _row_cumsum(X, OUT, RS, S, N, BLOCK: tl.constexpr):
    """OUT[row, i] = X[row, 0] + ... + X[row, i] in fp32 by a parallel scan, OUT dense."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=0.0)
    tl.store(OUT + row * N + at, tl.cumsum(x, axis=0), mask=at < N)


@triton.jit
def _row_cumsum_strided(X, OUT, RS, S, N, BLOCK: tl.constexpr):
    """The same scan with OUT strided like X, so that nothing else decides how many elements a thread holds."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=0.0)
    tl.store(OUT + row * RS + at * S, tl.cumsum(x, axis=0), mask=at < N)


@triton.jit
def _row_cumsum_int(X, OUT, RS, S, N, BLOCK: tl.constexpr):
    """The running sum of a row in wrapping 32-bit integers."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=0)
    tl.store(OUT + row * N + at, tl.cumsum(x, axis=0), mask=at < N)


@triton.jit
def _row_cummax(X, OUT, RS, S, N, BLOCK: tl.constexpr):
    """The running maximum of a row in fp32, by an associative scan with our own combine function."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * RS + at * S, mask=at < N, other=float("-inf"))
    tl.store(OUT + row * N + at, tl.associative_scan(x, 0, _larger), mask=at < N)
