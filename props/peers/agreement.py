"""Where the exact rules of docs/reference/rules.md and Triton's specialisation agree, over every class of arg.

A variant carries the switches of its own function (nospec, noalign, annotated). The property: a variant matches a
launch exactly if and only if Triton, compiling a function with those switches for that launch, makes that variant.
A constant carries no switches, so it is asked about under those that let Triton fold.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import msgspec
from foldproof.impl.capture import Capture, Const, Consts, Param, Variant
from foldproof.impl.launch import Launch
from foldproof.impl.policy import zoo_policy
from foldproof.impl.rules import Rules, Strictness, holds, refusal
from foldproof.impl.select import Outcome, Selection, decide
from foldproof.props.peers.specialisation import (
    FN,
    Declared,
    Target,
    Tensor,
    Value,
    annotated_type,
    is_annotated,
    is_const,
    launch_for,
    param_of,
    variant_for,
)
from foldproof.props.peers.tools import AMD, CUDA

EXACT = Rules(Strictness.EXACT)
POLICY = "three-pass"
INTS = (1, 0, 2, 7, 15, 16, 17, -1, -15, -16, -32, 127, 128, 255, 256, -128, -129, 2**15, 2**16, 2**31 - 1, 2**31 - 16)
BORDERS = (
    2**31,
    2**31 + 1,
    -(2**31),
    -(2**31) - 1,
    -(2**31) - 16,
    2**32,
    2**32 + 1,
    2**32 - 1,
    2**40,
    2**63 - 1,
    2**63,
)
FAR = (2**63 - 16, 2**63 + 1, 2**63 + 16, 2**64 - 1, 2**64 - 16, -(2**63), -(2**63) + 1)
SCALARS: tuple[Value, ...] = (True, False, 1.0, 0.0, -0.0, 16.0, 0.5, float("nan"), None)
ADDRESSES = (0, 0x1000, 0x1004, 0x1008, 0x100F, 0x8000_0000_0000_0010, 2**64 - 1, 2**64 - 16)
SIZES = (None, 0, 4096, 2**31 - 1, 2**31)
TENSORS = tuple(Tensor(d, a, b) for d, a, b in product(("fp32", "bf16"), ADDRESSES, SIZES))
VALUES: tuple[Value, ...] = (*INTS, *BORDERS, *FAR, *SCALARS, *TENSORS)
"""Every class of arg: ints with the borders of each kind, bools, floats, None, pointers by address and allocation."""

ANNOTATIONS = ("", *(f"tl.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "int")
OTHER_ANNOTATIONS = ("tl.int1", "tl.float16", "tl.float32", "tl.float64", "*fp32", "tl.const", "const *fp32")
DECLARATIONS = tuple(
    Declared("x", annotation, nospec, noalign)
    for annotation in (*ANNOTATIONS, *OTHER_ANNOTATIONS)
    for nospec, noalign in product((False, True), repeat=2)
)
TYPES = ("i32", "i64", "u64", "i8", "u32", "u1", "fp32", "fp16", "*fp32", "*bf16", "*kfp32")
CONSTS = (Const(int_=1), Const(int_=2), Const(int_=0), Const(bool_=True), Const(f32=0x3F80_0000), Const(none=True))
TARGETS: tuple[Target, ...] = (CUDA, AMD)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A variant and a launch on which the two differ; `finding` is the known difference, "" if it is a new one."""

    target: Target
    declared: Declared
    value: Value
    variant: Variant
    by_triton: bool
    finding: str

    def __str__(self) -> str:
        made = "makes" if self.by_triton else "does not make"
        exact = "no exact match" if self.by_triton else "an exact match"
        place = self.variant.params[0] if self.variant.params else self.variant.consts["x"]
        return f"{self.target[0]}: {self.declared} = {self.value!r}: Triton {made} {place}, which is {exact}"


def candidates(declared: Declared, target: Target) -> Iterator[Variant]:
    """Every variant with one param that a function of this declaration might have, whatever Triton would do."""
    own = annotated_type(declared)
    for type_name in (own,) if own else TYPES:
        is_pointer = type_name.startswith("*")
        if is_pointer and type_name.startswith("*k") != is_const(declared):
            continue
        for div16, range32 in product((False, True), repeat=2):
            if not range32 or (is_pointer and target == AMD):
                yield _variant(param_of(declared, type_name, div16=div16, range32=range32))
    if not declared.nospec and not own:
        for const in CONSTS:
            yield Variant(FN, "candidate", 4, (), {"x": const})


def _variant(param: Param) -> Variant:
    return Variant(FN, "candidate", 4, (param,), {})


def decisions(declared: Declared, value: Value, target: Target) -> Iterator[Disagreement | None]:
    """One entry a candidate: the disagreement, or None where the rules and Triton agree."""
    launch = launch_for((declared,), (value,))
    made = variant_for((declared,), (value,), target, "candidate")
    asked = list(candidates(declared, target))
    if made not in asked and (made.params or (not declared.nospec and not annotated_type(declared))):
        asked.append(made)
    for variant in asked:
        exact = refusal(variant, launch, EXACT) is None
        by_triton = variant == made
        known = _known(target, declared, value, variant, by_triton=by_triton) if exact != by_triton else ""
        yield Disagreement(target, declared, value, variant, by_triton, known) if exact != by_triton else None


def _known(target: Target, declared: Declared, value: Value, variant: Variant, *, by_triton: bool) -> str:
    """The id of the finding that explains a disagreement, "" if none does."""
    own = annotated_type(declared)
    if not by_triton:
        param = variant.params[0] if variant.params else None
        if target == AMD and isinstance(value, Tensor) and value.bytes is not None and param:
            return "J01"
        return "J02" if param and param.div16 and isinstance(value, (bool, float)) else ""
    if is_annotated(declared):
        if isinstance(value, bool):
            return "J03"
        if isinstance(value, int):
            return "" if holds(own, value) else "J04"
        return "J05"
    if own and not own.startswith("*"):
        return "J06"
    return "J07" if own or is_const(declared) else ""


def sweep() -> Iterator[Disagreement | None]:
    """Every declaration x value x candidate x target, one entry each. Takes seconds."""
    for target, declared, value in product(TARGETS, DECLARATIONS, VALUES):
        yield from decisions(declared, value, target)


def neighbours(variant: Variant, name: str) -> Iterator[Variant]:
    """The variants that differ from this one in one switch of one param: what is claimed, its type, folded or not.

    The switches that the kernel's author set stay, since they are the same for all variants of one function, and a
    param that they keep at run time is not folded to 1: that variant is another function's, and exact for that one.
    """
    rest = tuple(param for param in variant.params if param.name != name)
    consts = {other: const for other, const in variant.consts.items() if other != name}

    def put(param: Param | None = None, const: Const | None = None) -> Variant:
        own: Consts = {name: const} if const else {}
        return msgspec.structs.replace(variant, params=(*rest, param) if param else rest, consts=consts | own)

    param = variant.param(name)
    if param is None:
        yield put(Param(name, "i32", div16=False, nospec=False))
        yield from (put(const=const) for const in CONSTS if const != variant.consts[name])
        return
    if not param.type.startswith("fp") and param.type != "u1":
        yield put(msgspec.structs.replace(param, div16=not param.div16))
    if not param.annotated:
        yield from (put(msgspec.structs.replace(param, type=t)) for t in TYPES if t != param.type)
    may_fold = not param.nospec and not param.annotated
    yield from (put(const=const) for const in CONSTS if may_fold or const != Const(int_=1))


def agreeing(choose: random.Random, name: str) -> tuple[Declared, Value]:
    """A random param and value outside the known differences."""
    annotation = choose.choice(("", "", "", *ANNOTATIONS))
    declared = Declared(name, annotation, choose.random() < 0.2, choose.random() < 0.2)
    own = annotated_type(declared)
    values = [v for v in VALUES if not own or (type(v) is int and holds(own, v))]
    # Chance alone would hardly ever draw a 1.
    return declared, 1 if choose.random() < 0.3 else choose.choice(values)


def wrong_picks(seed: int, count: int, width: int = 4) -> Iterator[tuple[Capture, Launch, Outcome] | None]:
    """`count` random launches of 1 to `width` args: an entry each, None where the policy picks Triton's variant.

    The capture holds that variant among all its neighbours, in random order; the pick must be an exact match.
    """
    choose = random.Random(seed)  # noqa: S311
    policy = zoo_policy(POLICY)
    for _ in range(count):
        drawn = [agreeing(choose, f"x{i}") for i in range(choose.randint(1, width))]
        declared, values = [own for own, _ in drawn], [value for _, value in drawn]
        made = variant_for(declared, values)
        others = [v for own in declared for v in neighbours(made, own.name)]
        choose.shuffle(others)
        place = choose.randint(0, len(others))
        named = [msgspec.structs.replace(v, hash=f"n{i}") for i, v in enumerate(others)]
        capture = Capture((*named[:place], made, *named[place:]))
        launch = launch_for(declared, values)
        outcome = decide(capture, launch, policy)
        right = isinstance(outcome, Selection) and outcome.index == place and outcome.strictness == Strictness.EXACT
        yield None if right else (capture, launch, outcome)
