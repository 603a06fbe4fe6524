"""The two kernels of our own, as CUDA C++: fill regions with a pattern, and compare two batches byte by byte.

They are compiled where they run (NVRTC, or nvcc where that is absent), because a comparison that only one architecture
can run would bind the whole replay to it.
"""

from __future__ import annotations

COMPARE = "fp_compare"
FILL = "fp_fill"
THREADS = 256
UNROLL = 4
CHUNK = 16
"""Bytes that one load of the comparison reads from each side."""

SOURCE = r"""
typedef unsigned long long u64;
struct Region { u64 begin, end; };

// found holds three numbers a slot and region: differing bytes, ~(offset of the first one in the slot), and bytes that
// still hold the two fill patterns. Kept inverted, the first offset starts from a zeroed buffer like the counts.
__device__ void note(u64* found, u64 cell, u64 differing, u64 untouched, u64 first) {
    if (differing) {
        atomicAdd(found + 3 * cell, differing);
        atomicMax(found + 3 * cell + 1, ~first);
    }
    if (untouched) atomicAdd(found + 3 * cell + 2, untouched);
}

__device__ __noinline__ void inspect(uint4 x, uint4 y, u64 chunk, u64 chunks_a_slot, const Region* regions,
                                     int region_count, u64* found, int fills) {
    const u64 slot = chunk / chunks_a_slot;
    const u64 at = (chunk - slot * chunks_a_slot) * 16;
    const unsigned a[4] = {x.x, x.y, x.z, x.w};
    const unsigned b[4] = {y.x, y.y, y.z, y.w};
    int region = 0;
    while (region + 1 < region_count && regions[region].end <= at) ++region;
    u64 differing = 0, untouched = 0, first = 0;
    for (int i = 0; i < 16; ++i) {
        if (regions[region].end <= at + i && region + 1 < region_count) {
            note(found, slot * region_count + region, differing, untouched, first);
            differing = untouched = 0;
            ++region;
        }
        const unsigned p = (a[i >> 2] >> (8 * (i & 3))) & 255u, q = (b[i >> 2] >> (8 * (i & 3))) & 255u;
        if (p == q) continue;
        if (fills >= 0 && p == (unsigned)(fills & 255) && q == (unsigned)(fills >> 8)) {
            ++untouched;
            continue;
        }
        if (!differing) first = at + i;
        ++differing;
    }
    note(found, slot * region_count + region, differing, untouched, first);
}

// fills: the fill bytes of side a (low) and side b (high) where a byte that both left alone is no difference; -1: none.
extern "C" __global__ void __launch_bounds__(256) fp_compare(const uint4* __restrict__ a, const uint4* __restrict__ b,
        u64 chunks, u64 chunks_a_slot, const Region* __restrict__ regions, int region_count, u64* found, int fills) {
    const u64 step = (u64)gridDim.x * blockDim.x * 4;
    for (u64 base = (u64)blockIdx.x * blockDim.x * 4 + threadIdx.x; base < chunks; base += step) {
        uint4 x[4], y[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const u64 i = base + (u64)k * blockDim.x;
            if (i < chunks) { x[k] = a[i]; y[k] = b[i]; }
            else { x[k] = make_uint4(0, 0, 0, 0); y[k] = x[k]; }
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if ((x[k].x ^ y[k].x) | (x[k].y ^ y[k].y) | (x[k].z ^ y[k].z) | (x[k].w ^ y[k].w))
                inspect(x[k], y[k], base + (u64)k * blockDim.x, chunks_a_slot, regions, region_count, found, fills);
        }
    }
}

// A block a span and slot. Spans start and end at any byte, so the 16-byte stores cover only what is aligned.
extern "C" __global__ void fp_fill(unsigned char* base, u64 stride, const Region* __restrict__ spans, int value) {
    const Region span = spans[blockIdx.x];
    unsigned char* slot = base + (u64)blockIdx.y * stride;
    const u64 head = min((span.begin + 15) & ~15ull, span.end);
    const u64 tail = max(span.end & ~15ull, head);
    const unsigned word = (unsigned)value * 0x01010101u;
    for (u64 i = span.begin + threadIdx.x; i < head; i += blockDim.x) slot[i] = (unsigned char)value;
    for (u64 i = head + 16ull * threadIdx.x; i < tail; i += 16ull * blockDim.x)
        *(uint4*)(slot + i) = make_uint4(word, word, word, word);
    for (u64 i = tail + threadIdx.x; i < span.end; i += blockDim.x) slot[i] = (unsigned char)value;
}
"""
