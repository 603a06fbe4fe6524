"""What a launch can leave open: free constants, options, sources, and kernels that share a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foldproof.impl.capture import Variant
from foldproof.impl.launch import Arg
from foldproof.impl.rules import Rules, Strictness, arg_refusal
from foldproof.release.findings import Finding, finding
from foldproof.release.lenient import Entry
from foldproof.release.reach import functions
from foldproof.release.shapes import Family

PINNABLE = ("num_warps", "num_stages", "arch", "enable_fp_fusion")
UNSAID = {"num_stages": 0, "arch": None, "enable_fp_fusion": None}
UNPINNABLE = ("num_ctas", "pdl")
SHOWN = 4
EXACT = Rules(Strictness.EXACT)


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
    constants: dict[str, list[Entry]] = {}
    untellable: dict[str, list[Entry]] = {}
    pinnable: dict[str, list[Entry]] = {}
    names = {e.index: frozenset(family.names(e.variant)) for e in own}
    for one, other in _meeting(family, own):
        a, b = one.variant, other.variant
        named = names[one.index] | names[other.index]
        free = [n for n in sorted({*a.consts, *b.consts} - named) if a.consts.get(n) != b.consts.get(n)]
        if free:
            for name in free:
                constants.setdefault(name, []).extend((one, other))
            continue
        differing = [n for n in (*PINNABLE, *UNPINNABLE) if getattr(a, n) != getattr(b, n)]
        group = pinnable if any(_tells(n, a, b) for n in differing) else untellable
        for name in differing:
            group.setdefault(name, []).extend((one, other))
    if constants:
        yield _choice("L201", family.fn, constants, ".consts")
    if untellable:
        yield _choice("L204", family.fn, untellable, "")
    if pinnable:
        yield _choice("L205", family.fn, pinnable, "")


def _choice(rule: str, fn: str, names: dict[str, list[Entry]], below: str) -> Finding:
    entries = sorted({e.index: e for found in names.values() for e in found}.values(), key=lambda e: e.index)
    what = f"{len(entries)} variants of {fn} differ in {_list(list(names))}: {_list([e.variant.hash for e in entries])}"
    return finding(rule, f"{entries[0].path}{below}", what)


def _tells(name: str, one: Variant, other: Variant) -> bool:
    """Whether a launch that pins the option of one variant refuses the other."""
    if name in UNPINNABLE:
        return False
    unsaid = UNSAID.get(name, ())
    return bool(getattr(one, name) != unsaid and getattr(other, name) != unsaid)


def _meeting(family: Family, own: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Pairs of variants that some launch matches exactly, each launch naming no constant and pinning nothing."""
    groups: dict[tuple[object, ...], dict[object, list[Entry]]] = {}
    for entry in own:
        names = frozenset(family.names(entry.variant))
        places = groups.setdefault((names, entry.variant.source), {})
        places.setdefault(_placement(entry.variant, names), []).append(entry)
    for places in groups.values():
        kinds = list(places.values())
        for number, same in enumerate(kinds):
            yield from ((a, b) for i, a in enumerate(same) for b in same[i + 1 :])
            for others in kinds[number + 1 :]:
                if _meet(same[0].variant, others[0].variant, family):
                    yield from ((a, b) for a in same for b in others)


def _placement(variant: Variant, names: frozenset[str]) -> object:
    """How the variant holds each arg: variants of one placement match the same launches exactly."""
    return frozenset(variant.params), frozenset((n, str(variant.consts[n])) for n in names if n in variant.consts)


def _meet(one: Variant, other: Variant, family: Family) -> bool:
    """Whether one launch matches both exactly: the args are independent, so each is asked alone."""

    def admits(variant: Variant, arg: Arg) -> bool:
        return arg_refusal(arg, variant.param(arg.name), variant.consts.get(arg.name), EXACT) is None

    classes = (family.classes(name) for name in family.names(one))
    return all(any(admits(one, arg) and admits(other, arg) for arg in args) for args in classes)


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
