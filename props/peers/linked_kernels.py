# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, N803, PLR0913, PLR0917, E741
# An annotation on a kernel parameter changes how Triton specialises it, so kernels stay untyped.
"""Small kernels for Triton's AOT compiler, which loads this file by its path. What they compute does not matter; each
reads all of its params, so that none is dropped.
"""

import triton
import triton.language as tl


@triton.jit
def pair(P, S, T):
    """A pointer and two ints."""
    tl.store(P + S, T)


@triton.jit(do_not_specialize=["T"])
def pair_nospec(P, S, T):
    """The same, but T is never specialised by the JIT."""
    tl.store(P + S, T)


@triton.jit
def pair_annotated(P, S, T: tl.int32):
    """The same, but T is an i32 by annotation, which the JIT never folds."""
    tl.store(P + S, T)


@triton.jit
def middle(P, BLOCK: tl.constexpr, S, T):
    """A constant in the middle of the signature."""
    tl.store(P + S + tl.arange(0, BLOCK), T)


@triton.jit
def scale(P, X, S):
    """A float param."""
    tl.store(P + S, X)


@triton.jit
def wide(P, A, B, C, D, E, F, G, H, I, J, K, L):
    """Twelve ints, so that hints have two digits."""
    tl.store(P + A + B + C + D + E + F + G + H + I + J + K, L)


@triton.jit
def constant(P, V: tl.constexpr):
    """A constant that is stored as it is."""
    tl.store(P, V)
