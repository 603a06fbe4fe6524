"""Each known fault of Triton's AOT linker, looked for in the code that the installed Triton generates."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.props.peers.aot import AotError, compiled
from foldproof.props.peers.comparison import broken_theorems, compared
from foldproof.props.peers.jit_probes import Seen
from foldproof.props.peers.library import LinkerPeer, peer

ALIGNED, UNALIGNED = 0x1000, 0x1004


def launch(kernel: str, address: int, **ints: int) -> Launch:
    """A launch of one of the kernels: its pointer P, and i32 args."""
    pointer = Arg("P", Kind.PTR, address, "*fp32")
    return Launch(kernel, (pointer, *(Arg(name, Kind.I32, value) for name, value in ints.items())))


def _asked(made: LinkerPeer, one: Launch) -> tuple[str, str, dict[str, str], str]:
    """The hash that the dispatcher launches, the policy's, the theorems that the former breaks, and a line on both."""
    (answer,) = compared(made, [one])
    hashes = ["" if i is None else made.capture.kernels[i].hash for i in (answer.real, answer.policy)]
    broken = broken_theorems(made.capture, one, answer.real)
    args = ", ".join(f"{arg.name} = {arg}" for arg in one.args)
    said = f"{args}: runs {hashes[0] or 'nothing'}, linker-order {hashes[1] or 'nothing'}"
    why = "; ".join(f"{theorem}: {text}" for theorem, text in broken.items())
    return hashes[0], hashes[1], broken, f"{said}; {why}" if why else said


def _default_takes_one(folder: Path) -> Seen:
    unfolded, folded = (compiled("pair", s, folder / "kernels") for s in ("*fp32, i32, i32", "*fp32, i32:1, i32"))
    one = launch("pair", UNALIGNED, S=1, T=7)
    first = peer("pair", [unfolded, folded], folder)
    ran, policy, broken, line = _asked(first, one)
    swapped = peer("pair", [folded, unfolded], folder)
    ran_swapped, _, _, line_swapped = _asked(swapped, one)
    miss = _asked(swapped, launch("pair", UNALIGNED, S=7, T=7))
    shown = (ran, policy, ran_swapped) == (unfolded.name, folded.name, folded.name) and miss[0] == ""
    has = "if (1)" in first.linked.dispatchers and {"T01", "T02", "T03", "T13"} <= set(broken)
    return shown and has, (line, f"headers swapped: {line_swapped}", f"headers swapped: {miss[3]}")


def _order(folder: Path) -> Seen:
    parts = [compiled("pair", s, folder / "kernels") for s in ("*fp32, i32:1, i32", "*fp32, i32, i32:1")]
    one = launch("pair", UNALIGNED, S=1, T=1)
    asked = [_asked(peer("pair", order, folder), one) for order in (parts, parts[::-1])]
    shown = [a[0] for a in asked] == [p.name for p in parts] and all(a[0] == a[1] for a in asked)
    return shown, tuple(a[3] for a in asked)


def _outweighed(folder: Path) -> Seen:
    seen = []
    for kernel in ("pair_nospec", "pair_annotated"):
        made = peer(kernel, ["*fp32, i32:1, i32", "*fp32:16, i32, i32:1"], folder)
        ran, policy, broken, line = _asked(made, launch(kernel, ALIGNED, S=1, T=1))
        seen.append((ran == policy == made.capture.kernels[1].hash and {"T03", "T13"} <= set(broken), line))
    return all(shown for shown, _ in seen), tuple(line for _, line in seen)


def _shifted(folder: Path) -> Seen:
    made = peer("middle", ["*fp32, 128, i32:16, i32"], folder)
    ran, policy, broken, line = _asked(made, launch("middle", UNALIGNED, S=7, T=16))
    right = _asked(made, launch("middle", UNALIGNED, S=16, T=7))
    folds = peer("middle", ["*fp32, 128, i32:1, i32"], folder)
    name, words = folds.trial({"P": UNALIGNED, "S": 5, "T": 1})
    loud = _refusal("middle", ["*fp32, 128, i32, i32:16"], folder)
    shown = ran != "" == policy and "T04" in broken and right[0] == "" and name != "" and words == (UNALIGNED, 5)
    passed = f"S = 5, T = 1: runs {name}, compiled for S = 1, and its T is {words[-1] if words else 'not passed'}"
    return shown and "extra suffix: 3d" in loud, (line, right[3], passed, loud)


def _refusal(kernel: str, signatures: Sequence[str], folder: Path) -> str:
    try:
        peer(kernel, signatures, folder)
    except AotError as problem:
        return problem.why
    return ""


def _two_digits(folder: Path) -> Seen:
    ints = "BCDEFGHIJKL"
    hinted = {n: ", ".join(["*fp32", *("i32:16" if i == n else "i32" for i in range(1, 13))]) for n in (10, 11, 12)}
    loud = {n: _refusal("wide", [hinted[n]], folder) for n in (10, 11)}
    made = peer("wide", [hinted[12]], folder)
    values = {"A": 7, **dict.fromkeys(ints, 7)}
    ran, policy, broken, line = _asked(made, launch("wide", UNALIGNED, **(values | {"B": 16})))
    right = _asked(made, launch("wide", UNALIGNED, **(values | {"L": 16})))
    shown = (
        ran != "" == policy and "T04" in broken and right[0] == "" and all("extra suffix" in s for s in loud.values())
    )
    lines = tuple(f"a hint at index {n}: {text}" for n, text in loud.items())
    return shown, (*lines, f"a hint at index 12, {line}", right[3])


def _narrowed(folder: Path) -> Seen:
    made = peer("pair", ["*fp32, i64:1, i32"], folder)
    declared = next(c_type for c_type, name in made.linked.params if name == "S")
    name, words = made.trial({"P": UNALIGNED, "S": 2**32 + 1, "T": 7})
    seen = f"S is declared {declared}; S = 2^32 + 1: runs {name or 'nothing'}, which is compiled for S = 1"
    return declared == "int32_t" and name != "" and words == (UNALIGNED, 7), (seen,)


def _double(folder: Path) -> Seen:
    made = peer("scale", ["*fp32, fp32, i32"], folder)
    seen, shown = [], True
    for value in (1.5, 0.1):
        single = struct.unpack("<f", struct.pack("<f", value))[0]
        low = struct.unpack("<I", struct.pack("<d", single)[:4])[0]
        _, words = made.trial({"P": UNALIGNED, "X": value, "S": 7})
        got = struct.unpack("<f", struct.pack("<I", words[1]))[0]
        shown = shown and words[1] == low and got != single
        seen.append(f"X = {value}: the kernel reads the bits {words[1]:#010x}, which are {got!r}")
    return shown, tuple(seen)


def _unbound(folder: Path) -> Seen:
    seen = []
    for kernel, signature in (("pair_nospec", "*fp32, i32, i32:16"), ("pair_nospec", "*fp32, i32, i32:1")):
        part = compiled(kernel, signature, folder / "kernels")
        param = part.variant.param("T")
        held = "folded" if "T" in part.variant.consts else f"div16, nospec {param.nospec}" if param else ""
        seen.append(f"{kernel}({signature}) compiles as {part.name}: T is {held}")
    return all("T is " in line and not line.endswith("T is ") for line in seen), tuple(seen)


def _grouped_by_value(folder: Path) -> Seen:
    made = peer("pair", ["*fp32, i32:1, i32", "*fp32, i32, 1", "*fp32, i32:1, i32:16"], folder)
    ran, policy, broken, line = _asked(made, launch("pair", UNALIGNED, S=7, T=5))
    return ran == made.capture.kernels[1].hash and policy == "" and "T04" in broken, (line,)


PROBES: Mapping[str, Callable[[Path], Seen]] = {
    "L01": _default_takes_one,
    "L02": _order,
    "L03": _outweighed,
    "L04": _shifted,
    "L05": _two_digits,
    "L06": _narrowed,
    "L07": _double,
    "L08": _unbound,
    "L09": _grouped_by_value,
}
"""By the id of the finding; each builds in the folder, inside `tools.triton_without_gpu`."""
