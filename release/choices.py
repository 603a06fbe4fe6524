"""What a launch can leave open: free constants, options, sources, and kernels that share a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import and_
from typing import TypeAlias

from foldproof.impl.capture import Const, Variant
from foldproof.impl.launch import Arg
from foldproof.impl.rules import Rules, Strictness, arg_refusal
from foldproof.release.findings import Finding, finding
from foldproof.release.lenient import Entry
from foldproof.release.reach import functions
from foldproof.release.shapes import Family, held_alike

PINNABLE = ("num_warps", "num_stages", "arch", "enable_fp_fusion")
UNSAID = {"num_stages": 0, "arch": None, "enable_fp_fusion": None}
UNPINNABLE = ("num_ctas", "pdl")
OPTIONS = (*PINNABLE, *UNPINNABLE)
SHOWN = 4
EXACT = Rules(Strictness.EXACT)
Values: TypeAlias = Mapping[Const | None, Sequence[Entry]]
Choices: TypeAlias = dict[str, dict[int, Entry]]
"""Name of a constant or an option -> the entries between which it leaves a choice, by index."""


def open_choices(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Findings L201 to L205, one a function and kind of choice, with the variants between which it lies."""
    for family, own in functions(entries):
        yield from _sources(family.fn, own)
        yield from _signatures(family, own)
        yield from _pairs(family, own)


def _sources(fn: str, own: Sequence[Entry]) -> Iterator[Finding]:
    sources = {e.variant.source: e for e in reversed(own) if e.variant.source is not None}
    if len(sources) > 1:
        last = max(sources.values(), key=lambda e: e.index)
        yield finding("L202", f"{last.path}.source", f"{fn} stands for {_list(sorted(map(str, sources)))}")


def _signatures(family: Family, own: Sequence[Entry]) -> Iterator[Finding]:
    if len({e.variant.source for e in own}) > 1:
        return
    found = list(family.signatures())
    if len(found) > 1:
        odd = sorted(set(found[0]) ^ set(found[1]))
        other = next(e for e in own if tuple(sorted(family.names(e.variant))) == found[1])
        what = f"variants of {family.fn} take {len(found)} different sets of arguments; {_list(odd)} is not in all"
        yield finding("L203", f"{other.path}.params", what)


def _pairs(family: Family, own: Sequence[Entry]) -> Iterator[Finding]:
    """Pairs that one launch which names no constant and pins nothing matches equally well."""
    constants: Choices = {}
    untellable: Choices = {}
    pinnable: Choices = {}
    for one, other in _meeting(family, own):
        for name in sorted({*one.values, *other.values}):
            _note_differing(constants.setdefault(name, {}), one.by_value(name), other.by_value(name))
        for consts in one.parts.keys() & other.parts.keys():
            for mine, a in one.parts[consts].items():
                for theirs, b in other.parts[consts].items():
                    differing = [n for n, x, y in zip(OPTIONS, mine, theirs, strict=True) if x != y]
                    group = pinnable if any(_tells(n, a[0].variant, b[0].variant) for n in differing) else untellable
                    for name in differing:
                        group.setdefault(name, {}).update((e.index, e) for e in (*a, *b))
    for rule, found, below in (("L201", constants, ".consts"), ("L204", untellable, ""), ("L205", pinnable, "")):
        names = {name: entries for name, entries in found.items() if entries}
        if names:
            yield _choice(rule, family.fn, names, below)


def _note_differing(noted: dict[int, Entry], one: Values, other: Values) -> None:
    """Note the entries of each side that some entry of the other side differs from."""
    for mine, theirs in ((one, other), (other, one)):
        for value, entries in mine.items():
            if theirs.keys() - {value}:
                noted.update((e.index, e) for e in entries)


def _choice(rule: str, fn: str, names: Choices, below: str) -> Finding:
    found = {index: entry for entries in names.values() for index, entry in entries.items()}
    entries = [found[index] for index in sorted(found)]
    what = f"{len(entries)} variants of {fn} differ in {_list(list(names))}: {_list([e.variant.hash for e in entries])}"
    return finding(rule, f"{entries[0].path}{below}", what)


def _tells(name: str, one: Variant, other: Variant) -> bool:
    """Whether a launch that pins the option of one variant refuses the other."""
    if name in UNPINNABLE:
        return False
    unsaid = UNSAID.get(name, ())
    return bool(getattr(one, name) != unsaid and getattr(other, name) != unsaid)


@dataclass(frozen=True, slots=True)
class Placed:
    """The variants of a function that hold each arg alike, by what else tells them apart: constants and options."""

    entries: tuple[Entry, ...]
    admitted: tuple[int, ...]
    """Of each arg which of its classes they admit exactly, a bit a class."""
    values: Mapping[str, Values]
    """Name of a constant that is no arg -> its value -> the variants that have it."""
    parts: Mapping[frozenset[tuple[str, Const]], Mapping[tuple[object, ...], list[Entry]]]
    """All such constants -> the options in the order of `OPTIONS` -> the variants."""

    @classmethod
    def of(cls, entries: Sequence[Entry], names: Sequence[str], family: Family) -> Placed:
        """Variants of one placement of the args named."""
        values: dict[str, dict[Const | None, list[Entry]]] = {}
        parts: dict[frozenset[tuple[str, Const]], dict[tuple[object, ...], list[Entry]]] = {}
        for entry in entries:
            free = [(name, const) for name, const in entry.variant.consts.items() if name not in names]
            for name, const in free:
                values.setdefault(name, {}).setdefault(const, []).append(entry)
            options = tuple(getattr(entry.variant, name) for name in OPTIONS)
            parts.setdefault(frozenset(free), {}).setdefault(options, []).append(entry)
        for name, known in values.items():
            if absent := [entry for entry in entries if name not in entry.variant.consts]:
                known[None] = absent
        classes = ([_admits(entries[0].variant, arg) for arg in family.classes(name)] for name in names)
        masks = (sum(1 << place for place, is_admitted in enumerate(known) if is_admitted) for known in classes)
        return cls(tuple(entries), tuple(masks), values, parts)

    def by_value(self, name: str) -> Values:
        """The variants by their value of a constant, None where they have none."""
        return self.values.get(name, {None: self.entries})


def _meeting(family: Family, own: Sequence[Entry]) -> Iterator[tuple[Placed, Placed]]:
    """Variants that hold each arg alike, or that one launch matches exactly that names no constant and pins nothing.

    Every variant of the one group meets every variant of the other, which may be the same group.
    """
    groups: dict[tuple[frozenset[str], object], dict[object, list[Entry]]] = {}
    for entry in own:
        names = frozenset(family.names(entry.variant))
        places = groups.setdefault((names, entry.variant.source), {})
        places.setdefault(held_alike(entry.variant, names), []).append(entry)
    for (names, _), places in groups.items():
        placed = [Placed.of(same, sorted(names), family) for same in places.values()]
        for number, one in enumerate(placed):
            yield one, one
            # The args are independent: variants meet where each arg has a class that both admit.
            yield from ((one, other) for other in placed[:number] if all(map(and_, one.admitted, other.admitted)))


def _admits(variant: Variant, arg: Arg) -> bool:
    return arg_refusal(arg, variant.param(arg.name), variant.consts.get(arg.name), EXACT) is None


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
