# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, N803, PLR0913, PLR0917
# An annotation on a kernel parameter changes how Triton specialises it, so kernels stay untyped; their names are those
# of the tensors and extents of the field, and a kernel takes as many as it needs.
"""The attention of a decoder: rotary embedding, one split of the keys, and the merge over R splits."""

import triton
import triton.language as tl


@triton.jit
def _rotary(X, POS, COS, SIN, OUT, S, H: tl.constexpr, HALF: tl.constexpr):
    """Rotate the halves of each head of X by the angle of its position; S is the element stride within a head.

    One program a token and head; POS holds a position a token, COS and SIN a row of HALF a position.
    """
    row = tl.program_id(0)
    d = tl.arange(0, HALF)
    position = tl.load(POS + row // H)
    c = tl.load(COS + position * HALF + d)
    s = tl.load(SIN + position * HALF + d)
    low = tl.load(X + row * 2 * HALF * S + d * S).to(tl.float32)
    high = tl.load(X + row * 2 * HALF * S + (HALF + d) * S).to(tl.float32)
    tl.store(OUT + row * 2 * HALF + d, (low * c - high * s).to(tl.bfloat16))
    tl.store(OUT + row * 2 * HALF + HALF + d, (high * c + low * s).to(tl.bfloat16))


@triton.jit
def _attend(Q, K, V, ACC, MAX, SUM, LEN, R, G, KS, scale, H: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    """Attention of one query head over one of R splits of LEN keys, unnormalised, with its maximum and sum.

    Grid: token times head, split. G query heads share a key head, KS is the row stride of K and V, scale has the
    factor log2(e) in it because exponentials are of base 2.
    """
    row = tl.program_id(0)
    split = tl.program_id(1)
    shared_head = (row % H) // G
    d = tl.arange(0, D)
    q = tl.load(Q + row * D + d).to(tl.float32)
    length = tl.cdiv(LEN, R)
    begin = split * length
    end = tl.minimum(begin + length, LEN)
    top = tl.full((), float("-inf"), dtype=tl.float32)
    total = tl.zeros((), dtype=tl.float32)
    acc = tl.zeros((D,), dtype=tl.float32)
    for start in range(begin, end, BLOCK):
        n = start + tl.arange(0, BLOCK)
        at = n[:, None] * KS + shared_head * D + d[None, :]
        k = tl.load(K + at, mask=(n < end)[:, None], other=0.0).to(tl.float32)
        v = tl.load(V + at, mask=(n < end)[:, None], other=0.0).to(tl.float32)
        s = tl.where(n < end, tl.sum(q[None, :] * k, axis=1) * scale, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, axis=0))
        p = tl.exp2(s - new_top)
        keep = tl.exp2(top - new_top)
        acc = acc * keep + tl.sum(p[:, None] * v, axis=0)
        total = total * keep + tl.sum(p, axis=0)
        top = new_top
    tl.store(ACC + (row * R + split) * D + d, acc)
    tl.store(MAX + row * R + split, top)
    tl.store(SUM + row * R + split, total)


@triton.jit
def _merge(ACC, MAX, SUM, OUT, R, D: tl.constexpr):
    """OUT[row] = the R partial attentions of the row put together by their maxima and sums."""
    row = tl.program_id(0)
    d = tl.arange(0, D)
    top = tl.full((), float("-inf"), dtype=tl.float32)
    total = tl.zeros((), dtype=tl.float32)
    acc = tl.zeros((D,), dtype=tl.float32)
    for r in range(R):
        part = row * R + r
        part_top = tl.load(MAX + part)
        new_top = tl.maximum(top, part_top)
        keep = tl.exp2(top - new_top)
        take = tl.exp2(part_top - new_top)
        acc = acc * keep + tl.load(ACC + part * D + d) * take
        total = total * keep + tl.load(SUM + part) * take
        top = new_top
    tl.store(OUT + row * D + d, (acc / total).to(tl.bfloat16))
