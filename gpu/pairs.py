"""The interchangeable pairs of the corpus: two variants that one launch may be served by, and the expected verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

from foldproof.gpu.corpus.model import Buffer, Int, Kernel, Twin
from foldproof.gpu.plan import Plan, plans
from foldproof.gpu.specialise import ALIGNMENT, Specialisation, folds, specialise

Expected: TypeAlias = Literal["equal", "differs", "unstable", "no reference"]
Strictness: TypeAlias = Literal["exact", "general", "runtime-one"]
STRICTNESSES: tuple[Strictness, ...] = ("exact", "general", "runtime-one")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two variants and a launch that both are admissible for, as a twin: its values and its misaligned pointers."""

    first: Plan
    second: Plan
    launch: Twin
    expected: Expected

    @property
    def change(self) -> tuple[str, ...]:
        """What the two variants differ in, such as "fold of R", "div16 of X", "4 against 8 warps"."""
        a, b = self.first.spec, self.second.spec
        found = [f"fold of {name}" for name in sorted(_folded(a) ^ _folded(b))]
        found += [f"div16 of {n}" for n in sorted(a.div16 ^ b.div16) if n not in _folded(a) | _folded(b)]
        if self.first.num_warps != self.second.num_warps:
            found.append(f"{self.first.num_warps} against {self.second.num_warps} warps")
        return tuple(found)


def pairs(kernels: Iterable[Kernel]) -> Iterator[Pair]:
    """Every interchangeable pair of the kernels: same fusion, and same warps or else the same twin."""
    for kernel in kernels:
        for first, second in combinations(plans([kernel]), 2):
            if first.fused != second.fused:
                continue
            if first.num_warps != second.num_warps and first.twin != second.twin:
                continue
            launch = common_launch(kernel, first.twin, second.twin)
            if launch is not None:
                yield Pair(first, second, launch, expected(first, second))


def expected(first: Plan, second: Plan) -> Expected:
    """The verdict that the kernel's label predicts for two of its variants, on the label's domain."""
    kernel, label = first.kernel, first.kernel.label
    if first.twin.name in kernel.no_reference or second.twin.name in kernel.no_reference:
        return "no reference"
    if label.theme == "unstable":
        return "unstable"
    if first.num_warps != second.num_warps:
        return "differs" if label.warps else "equal"
    fused = first.fused
    return "equal" if label.class_of(first.twin.name, fused) == label.class_of(second.twin.name, fused) else "differs"


def common_launch(kernel: Kernel, first: Twin, second: Twin) -> Twin | None:
    """The values under which the assumptions of both twins hold, or None if no launch meets both."""
    a, b = specialise(kernel, first), specialise(kernel, second)
    values: dict[str, int] = {}
    for param in kernel.params:
        if not isinstance(param, Int):
            continue
        one, other = a.values[param.name], b.values[param.name]
        if param.name in _folded(b) or (param.name in b.div16 and param.name not in _folded(a)):
            one = other
        values[param.name] = one
    shared = [n for n in first.misaligned if n in second.misaligned]
    launch = Twin("common", values, tuple(shared))
    both = (admits(kernel, spec, launch) for spec in (a, b))
    return launch if all(both) else None


def admits(kernel: Kernel, spec: Specialisation, launch: Twin) -> Strictness | None:
    """The strictest rules under which a variant of this specialisation serves the launch; None if none do.

    Exact is "the JIT would have compiled this very variant for the launch"; the others follow docs/reference/rules.md.
    """
    wanted = specialise(kernel, launch)
    if wanted == Specialisation(spec.signature, spec.constants, spec.div16, wanted.values):
        return "exact"
    reads_one = False
    for param in kernel.params:
        if isinstance(param, Int):
            value = wanted.values[param.name]
            if param.name in spec.constants:
                if not folds(param, value):
                    return None
            elif param.name in spec.div16 and value % ALIGNMENT:
                return None
            else:
                reads_one = reads_one or folds(param, value)
        elif isinstance(param, Buffer) and param.name in spec.div16 and param.name in launch.misaligned:
            return None
    return "runtime-one" if reads_one else "general"


def served(hashes: Mapping[str, Plan], launch: Twin, kernel: Kernel) -> tuple[Strictness | None, list[str]]:
    """Among the variants by hash: the strictest rules that any meets, and those that meet them, in candidate order."""
    met = {name: admits(kernel, plan.spec, launch) for name, plan in sorted(hashes.items())}
    for strictness in STRICTNESSES:
        names = [name for name, reached in met.items() if reached == strictness]
        if names:
            return strictness, names
    return None, []


def _folded(spec: Specialisation) -> frozenset[str]:
    return frozenset(name for name in spec.values if name in spec.constants)
