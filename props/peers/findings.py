"""What is known to differ between our rules and Triton 3.9, as data; `probes` shows each with Triton's own code."""

from __future__ import annotations

from typing import Literal

import msgspec

Peer = Literal["triton-jit", "triton-linker"]
Effect = Literal["silent", "order", "loud", "none"]
"""What comes of it: a kernel runs whose assumptions are false, or on wrong values (silent); which kernel runs is chance
or is not the preferred one (order); an error (loud); nothing at run time (none)."""


class Finding(msgspec.Struct, frozen=True):
    """One difference: what our rules or the policy `linker-order` say, what Triton does, which theorems fall."""

    id: str
    peer: Peer
    title: str
    design: str
    triton: str
    effect: Effect
    theorems: tuple[str, ...] = ()


class Observation(msgspec.Struct, frozen=True):
    """One finding looked for in the installed Triton: whether it was there, and what was seen, a line each."""

    finding: Finding
    shown: bool
    seen: tuple[str, ...]
    triton: str


_FINDINGS = (
    Finding(
        "J01",
        "triton-jit",
        "range32 is part of the specialisation on AMD",
        "a range32 param is a guard: a variant without it matches a small allocation exactly too",
        "a pointer of at most 2^31 - 1 bytes is compiled with the 32-bit range, whenever its size is known, unless the "
        "param is do_not_specialize; the variant without it is another one",
        "order",
    ),
    Finding(
        "J02",
        "triton-jit",
        "div16 on a float or a bool",
        "ignored, so that a variant which claims it still matches exactly",
        "never claimed, so that no such variant comes from the JIT",
        "none",
    ),
    Finding(
        "J03",
        "triton-jit",
        "an annotated integer param takes a bool",
        "a bool is u1 and another type: no match",
        "the variant of the annotated type, never div16 (0 as an int would be): Python's True is an int",
        "loud",
    ),
    Finding(
        "J04",
        "triton-jit",
        "an annotated integer param is specialised without a look at its range",
        "an int that the annotated type cannot hold matches nothing",
        "the variant of the annotated type; what becomes of the value is left to the launcher",
        "loud",
    ),
    Finding(
        "J05",
        "triton-jit",
        "an annotated integer param is specialised for a float, None or a pointer too",
        "another type: no match; None matches only a constant none",
        "the variant of the annotated type; whether the value converts is left to the launcher",
        "loud",
    ),
    Finding(
        "J06",
        "triton-jit",
        "an annotation may name a float or bool type",
        "annotated is for integer types; a float is fp32, a bool u1, and neither takes an int",
        "the variant of the named type, whatever the value is; nothing is folded, nothing claimed",
        "loud",
    ),
    Finding(
        "J07",
        "triton-jit",
        "a pointer annotation decides the type",
        "the type of a pointer arg is that of the tensor and must equal the param's",
        "the annotated pointer type replaces the tensor's; an annotation `const` makes it *k",
        "loud",
    ),
    Finding(
        "J08",
        "triton-jit",
        "the JIT's cache takes equal constants of different kinds for one",
        "1, True and 1.0 are three constants, and so are 0.0 and -0.0",
        "the first of them that a process launches is compiled, and then serves the others: the cache key is looked up "
        "by Python's ==, so that -0.0 after 0.0 stores a 0.0",
        "silent",
        ("T04",),
    ),
    Finding(
        "L01",
        "triton-linker",
        "the default entry is the first dispatcher, and `if (1)` takes a 1",
        "linker-order: sorted by number of hints over all variants of the function",
        "variants with different numbers of folded 1s are in separate dispatchers; the default entry calls the one "
        "whose header came first, and its variant without hints takes every launch, 1 included",
        "order",
        ("T01", "T02", "T03", "T06", "T13"),
    ),
    Finding(
        "L02",
        "triton-linker",
        "the order of the headers decides between variants with as many hints",
        "linker-order: ties to the earlier",
        "the same: a stable sort, so that S = T = 1 runs the variant that folds S or the one that folds T by chance",
        "order",
        ("T06",),
    ),
    Finding(
        "L03",
        "triton-linker",
        "hints count alike, so pointer hints outweigh what is folded",
        "linker-order: the same; three-pass falls back only where nothing is admissible otherwise",
        "S = T = 1 with T never folded: the variant that folds S reads no foldable 1, and the one with a hint more "
        "that folds T is run",
        "order",
        ("T03", "T13"),
    ),
    Finding(
        "L04",
        "triton-linker",
        "a constexpr in the middle of the signature shifts the hints behind it",
        "linker-order: a hint guards its own param",
        "the compiler numbers hints over the whole signature, the linker over the params that are left: the guard "
        "tests the next param (or the link fails where there is none)",
        "silent",
        ("T04",),
    ),
    Finding(
        "L05",
        "triton-linker",
        "a hint at index 10 or above is misread",
        "linker-order: a hint guards its own param",
        "without a hint at index 1, hint 12 is read as one at index 2 and guards that param; at index 10 and 11 the "
        "link fails",
        "silent",
        ("T04",),
    ),
    Finding(
        "L06",
        "triton-linker",
        "a folded param is declared int32_t, whatever its type",
        "linker-order: folded takes an i32 of value 1 alone",
        "a 64-bit value is converted by C on the way to the guard, so that 2^32 + 1 runs the variant compiled for 1",
        "silent",
        ("T04",),
    ),
    Finding(
        "L07",
        "triton-linker",
        "a float is passed as a double",
        "not a matter of selection",
        "the launcher hands cuLaunchKernel the address of a double for an fp32 param: the kernel reads its low half",
        "silent",
    ),
    Finding(
        "L08",
        "triton-linker",
        "do_not_specialize and annotations do not bind the AOT compiler",
        "a nospec param is never folded and never div16; an annotated one is never folded",
        "the signature alone decides: hints on such params compile",
        "none",
    ),
    Finding(
        "L09",
        "triton-linker",
        "dispatchers are grouped by the values of the constants, not by their names",
        "linker-order: a constant is a guard like any other",
        "a variant compiled for the constant T = 1 shares the dispatcher of one that folds S = 1, nothing tests its T, "
        "and it takes T = 5",
        "silent",
        ("T04",),
    ),
)

FINDINGS = {finding.id: finding for finding in _FINDINGS}
"""Every known difference by its id."""
