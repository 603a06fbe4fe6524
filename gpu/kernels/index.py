# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803, PLR0913, PLR0917
# An annotation on a kernel parameter changes how Triton specialises it, so kernels stay untyped; their names are those
# of the tensors and extents of the field, and a kernel takes as many as it needs.
"""Kernels in which the foldable integer is a loop count, a divisor of an index, or a stride of a copy."""

import triton
import triton.language as tl


@triton.jit
def _trip_sum(X, OUT, R, N, BLOCK: tl.constexpr):
    """OUT[i] = X[0, i] + X[1, i] + ... over R rows of N: R is the trip count, the order of the additions is fixed."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(R):
        total += tl.load(X + row * N + at, mask=at < N, other=0.0)
    tl.store(OUT + at, total, mask=at < N)


@triton.jit
def _trip_decay(X, OUT, R, N, BLOCK: tl.constexpr):
    """OUT = OUT * 0.5 + X over R rows: a trip count around a product and a sum that may contract."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.load(OUT + at, mask=at < N, other=0.0)
    for row in range(R):
        state = state * 0.5 + tl.load(X + row * N + at, mask=at < N, other=0.0)
    tl.store(OUT + at, state, mask=at < N)


@triton.jit
def _trip_int(X, OUT, R, N, BLOCK: tl.constexpr):
    """A 32-bit integer hash folded over R rows."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.full((BLOCK,), 17, dtype=tl.int32)
    for row in range(R):
        state = state * 31 + tl.load(X + row * N + at, mask=at < N, other=0)
    tl.store(OUT + at, state, mask=at < N)


@triton.jit
def _head_group(K, OUT, G, D: tl.constexpr):
    """Row h of OUT is row h // G of K: grouped-query heads that share a key head."""
    head = tl.program_id(0)
    d = tl.arange(0, D)
    tl.store(OUT + head * D + d, tl.load(K + (head // G) * D + d))


@triton.jit
def _pid_mod(X, OUT, B, D: tl.constexpr):
    """Row p of OUT is row p % B of X: programs spread over B batches."""
    row = tl.program_id(0)
    d = tl.arange(0, D)
    tl.store(OUT + row * D + d, tl.load(X + (row % B) * D + d))


@triton.jit
def _embed(TOKENS, TABLE, OUT, TS, D: tl.constexpr):
    """Row t of OUT is the row of TABLE that token t names; TS is the stride of TOKENS."""
    token = tl.load(TOKENS + tl.program_id(0) * TS)
    d = tl.arange(0, D)
    tl.store(OUT + tl.program_id(0) * D + d, tl.load(TABLE + token * D + d))


@triton.jit
def _transpose(X, OUT, XR, XC, OR, BLOCK: tl.constexpr):
    """A square tile of X with row stride XR and column stride XC, written transposed with row stride OR."""
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(X + r[:, None] * XR + c[None, :] * XC)
    tl.store(OUT + c[:, None] * OR + r[None, :], tl.trans(tile))


@triton.jit(do_not_specialize=["S"])
def _copy_nospec(X, OUT, S, N, BLOCK: tl.constexpr):
    """The strided copy with a stride that Triton is told never to specialise: a 1 is read at run time by right."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(OUT + at, tl.load(X + at * S, mask=at < N), mask=at < N)


@triton.jit(do_not_specialize_on_alignment=["S"])
def _copy_noalign(X, OUT, S, N, BLOCK: tl.constexpr):
    """The strided copy with a stride that folds at 1 and never claims to be a multiple of 16."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(OUT + at, tl.load(X + at * S, mask=at < N), mask=at < N)


@triton.jit
def _copy_annotated(X, OUT, S: tl.int32, N, BLOCK: tl.constexpr):
    """The strided copy with an explicit integer type on the stride: multiples of 16 are claimed, a 1 never folds."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(OUT + at, tl.load(X + at * S, mask=at < N), mask=at < N)
