"""The dispatcher of Triton's AOT linker, driven through the C interface and compared with `linker-order`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations, product
from pathlib import Path

import msgspec
import pytest
from foldproof.impl import Arg, Capture, Kind, Launch
from foldproof.impl.capture import Const
from foldproof.impl.external.answers import Reply
from foldproof.impl.external.cabi import AbiSelector
from foldproof.impl.rules import c_type
from foldproof.props.peers.aot import AotError, Compiled, compiled
from foldproof.props.peers.comparison import Answer, broken_theorems, class_launches, compared
from foldproof.props.peers.findings import FINDINGS
from foldproof.props.peers.library import LinkerPeer, peer
from foldproof.props.peers.linker_probes import ALIGNED, PROBES, UNALIGNED, launch
from foldproof.props.peers.probes import observe

POINTERS, INTS = ("*fp32", "*fp32:16"), ("i32", "i32:16", "i32:1")


def variants(folder: Path, folds: int) -> list[Compiled]:
    """Every variant of `pair` that folds so many of its two ints."""
    signatures = [", ".join(entries) for entries in product(POINTERS, INTS, INTS) if entries.count("i32:1") == folds]
    return [compiled("pair", signature, folder / "kernels") for signature in signatures]


def answers(made: LinkerPeer) -> tuple[Answer, ...]:
    return compared(made, list(class_launches(made)))


def fallen(made: LinkerPeer, given: Sequence[Answer]) -> Counter[str]:
    """How many answers break each theorem."""
    return Counter(theorem for a in given for theorem in broken_theorems(made.capture, a.launch, a.real))


@pytest.mark.parametrize("finding", PROBES)
def test_each_known_fault_is_in_the_generated_code(finding: str, folder: Path) -> None:
    shown, seen = PROBES[finding](folder)
    assert shown, seen
    assert seen


@pytest.mark.parametrize(("folds", "count", "misses"), [(0, 8, 0), (1, 8, 32), (2, 2, 48)])
def test_one_dispatcher_is_linker_order_whatever_the_order(folds: int, count: int, misses: int, folder: Path) -> None:
    parts = variants(folder, folds)
    assert len(parts) == count
    for order in (parts, parts[::-1]):
        made = peer("pair", order, folder)
        assert len(made.linked.groups) == 1
        given = answers(made)
        assert len(given) == 50
        assert [a for a in given if not a.agrees] == []
        assert sum(a.real is None for a in given) == misses
        # As many folded ones in each variant: the one that folds most of the launch's ones is never outvoted.
        assert fallen(made, given) == {}


def test_the_default_entry_is_not_linker_order_and_folded_kernels_are_never_run(folder: Path) -> None:
    unfolded_first = [part for folds in (0, 1, 2) for part in variants(folder, folds)]
    made = peer("pair", unfolded_first, folder)
    given = answers(made)
    assert len(made.linked.groups) == 3
    assert sum(a.agrees for a in given) == 32
    assert fallen(made, given) == {"T01": 18, "T02": 18, "T03": 18, "T13": 18}
    assert not any(made.capture.kernels[a.real].consts for a in given if a.real is not None)


def test_with_the_most_folded_first_the_default_entry_misses_what_has_a_variant(folder: Path) -> None:
    made = peer("pair", [part for folds in (2, 1, 0) for part in variants(folder, folds)], folder)
    given = answers(made)
    assert sum(a.real is None for a in given) == 48
    assert sum(a.agrees for a in given) == 2


def test_a_caller_that_tries_the_most_folded_dispatcher_first_gets_linker_order_of_a_full_capture(folder: Path) -> None:
    full = [part for folds in (2, 1, 0) for part in variants(folder, folds)]
    made = peer("pair", full, folder, default_entry=False)
    given = answers(made)
    assert all(a.agrees for a in given)
    assert fallen(made, given) == {}


def test_across_dispatchers_linker_order_prefers_hints_where_triton_cannot(folder: Path) -> None:
    parts = [compiled("pair", s, folder / "kernels") for s in ("*fp32, i32:1, i32", "*fp32:16, i32, i32:16")]
    made = peer("pair", parts, folder, default_entry=False)
    (answer,) = compared(made, [launch("pair", ALIGNED, S=1, T=16)])
    assert (answer.real, answer.policy) == (0, 1)
    assert "T01" in broken_theorems(made.capture, answer.launch, answer.policy)
    assert broken_theorems(made.capture, answer.launch, answer.real) == {}


@pytest.mark.slow
def test_every_ordered_pair_in_one_dispatcher_is_linker_order(folder: Path) -> None:
    for folds in (0, 1):
        for parts in permutations(variants(folder, folds), 2):
            assert all(a.agrees for a in answers(peer("pair", parts, folder)))


def test_a_library_answers_only_for_the_order_that_it_was_linked_in(folder: Path) -> None:
    parts = [compiled("pair", s, folder / "kernels") for s in ("*fp32, i32:1, i32", "*fp32, i32, i32:1")]
    made = peer("pair", parts, folder)
    one = [launch("pair", UNALIGNED, S=1, T=1)]
    with AbiSelector(made.library) as selector:
        assert selector.name == "triton-linker:pair"
        asked = [
            selector.ask(number, Capture(kernels), one)[0]
            for number, kernels in enumerate(
                (made.capture.kernels, made.capture.kernels[::-1], made.capture.kernels[:1])
            )
        ]
    assert asked == [Reply(0, 0), Reply(0, error="InvalidCapture"), Reply(0, error="InvalidCapture")]


def test_another_order_has_another_path_since_dlopen_remembers_paths(folder: Path) -> None:
    parts = [compiled("pair", s, folder / "kernels") for s in ("*fp32, i32:1, i32", "*fp32, i32, i32:1")]
    values = {"P": UNALIGNED, "S": 1, "T": 1}
    made = [peer("pair", order, folder) for order in (parts, parts[::-1])]
    assert made[0].library != made[1].library
    assert [m.trial(values)[0] for m in made] == [part.name for part in parts]
    assert peer("pair", parts, folder).library == made[0].library


def test_an_arg_of_another_c_type_an_absent_one_and_another_function_are_misses(folder: Path) -> None:
    made = peer("pair", ["*fp32, i32, i32"], folder)
    fits = launch("pair", UNALIGNED, S=1, T=1)
    wide = launch("pair", UNALIGNED, S=1)
    given = compared(made, [fits, wide, launch("middle", UNALIGNED, S=1, T=1), launch("pair", UNALIGNED, S=1, X=1)])
    assert [(a.real, a.policy) for a in given] == [(0, 0), (None, None), (None, None), (None, None)]


@pytest.mark.parametrize(
    ("kernel", "signatures"),
    [
        ("pair", ("*fp32, i64:16, u64", "*fp32, i64, u64:16", "*fp32, i64, u64")),
        ("scale", ("*fp32:16, fp32, i32", "*fp32, fp32, i32:16", "*fp32, fp32, i32")),
        ("pair", ("*fp32, u1, i32:16", "*fp32:16, u1, i32")),
    ],
)
def test_other_kinds_are_dispatched_as_linker_order_says(
    kernel: str, signatures: tuple[str, ...], folder: Path
) -> None:
    for order in (signatures, signatures[::-1]):
        given = answers(peer(kernel, order, folder))
        assert [a for a in given if not a.agrees] == []
        assert len({a.real for a in given}) >= 3


def test_an_annotated_param_takes_any_int_that_its_type_holds(folder: Path) -> None:
    made = peer("pair_annotated", ["*fp32, i32, i32:16"], folder)
    kinds = [(Kind.I32, -16), (Kind.I32, 7), (Kind.I64, 16), (Kind.I64, 2**31), (Kind.I64, -(2**40)), (Kind.U64, 16)]
    rest = launch("pair_annotated", ALIGNED, S=7).args
    given = compared(made, [Launch("pair_annotated", (*rest, Arg("T", kind, number))) for kind, number in kinds])
    assert [a.real for a in given] == [0, None, 0, None, None, 0]
    assert all(a.agrees for a in given)


def test_the_policys_c_types_are_those_of_triton(triton: str) -> None:
    assert triton
    from triton.backends.nvidia.driver import ty_to_cpp  # noqa: PLC0415 - optional

    names = ["*fp32", "*bf16", "i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64"]
    names += ["fp16", "bf16", "fp32", "f32", "fp64"]
    for one, other in product(names, repeat=2):
        assert (c_type(one) == c_type(other)) == (ty_to_cpp(one) == ty_to_cpp(other)), (one, other)


def test_the_kernel_gets_the_args_that_it_was_given(folder: Path) -> None:
    made = peer("pair", ["*fp32:16, i32:1, i32:16"], folder)
    assert made.trial({"P": ALIGNED, "S": 1, "T": -32}) == (made.capture.kernels[0].hash, (ALIGNED, 2**32 - 32))
    assert made.trial({"P": ALIGNED, "S": 2, "T": -32}) == ("", ())


def test_a_signature_that_triton_refuses_is_one_line(folder: Path) -> None:
    with pytest.raises(AotError, match=r"Triton's AOT compiler refuses: AssertionError: Only 1 and 16 are valid hints"):
        compiled("pair", "*fp32, i32:8, i32", folder / "kernels")


def test_what_is_observed_says_by_which_triton(workshop: Path, triton: str) -> None:
    (seen,) = observe(workshop, ["L02"])
    assert seen.shown
    assert seen.finding == FINDINGS["L02"]
    assert seen.triton == triton


def test_hints_before_a_constant_and_two_digit_hints_behind_one_at_index_1_are_guarded_rightly(folder: Path) -> None:
    made = peer("middle", ["*fp32:16, 128, i32, i32"], folder)
    given = compared(made, [launch("middle", address, S=7, T=7) for address in (ALIGNED, UNALIGNED)])
    assert [(a.real, a.policy) for a in given] == [(0, 0), (None, None)]
    ints = dict.fromkeys("ABCDEFGHIJKL", 7)
    wide = peer("wide", ["*fp32, i32:16" + ", i32" * 10 + ", i32:16"], folder)
    hinted = [launch("wide", UNALIGNED, **(ints | {"A": a, "L": b})) for a, b in ((16, 16), (16, 7), (7, 16))]
    assert [(a.real, a.policy) for a in compared(wide, hinted)] == [(0, 0), (None, None), (None, None)]


def test_named_constants_choose_the_dispatcher(folder: Path) -> None:
    made = peer("middle", ["*fp32, 64, i32, i32", "*fp32, 128, i32, i32"], folder, default_entry=False)
    plain = launch("middle", UNALIGNED, S=7, T=7)
    named = [msgspec.structs.replace(plain, consts={"BLOCK": Const(int_=size)}) for size in (64, 128, 32)]
    other = [msgspec.structs.replace(plain, consts={"OTHER": Const(int_=64)})]
    given = compared(made, [plain, *named, *other])
    assert [(a.real, a.policy) for a in given] == [(0, 0), (0, 0), (1, 1), (None, None), (None, None)]
