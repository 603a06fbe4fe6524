"""The launches that a function's variants can be asked for: names, constants, and the classes of each arg."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from foldproof.impl.batch.classes import NARROWED, ArgShape, classes_of
from foldproof.impl.capture import INT_TYPES, Const, Variant
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.impl.rules import STRICTEST_FIRST, Rules, arg_refusal
from foldproof.model.terms import OPTIONS
from foldproof.release.launch_shape import Shape


@dataclass(frozen=True, slots=True)
class Switches:
    """The switches that every variant of a function has on its param of one name; `annotated` is the type."""

    nospec: bool
    noalign: bool
    annotated: str | None


@dataclass(frozen=True, slots=True)
class Family:
    """The variants of one function in candidate order, and the names that some of them read at run time."""

    fn: str
    variants: tuple[Variant, ...]
    read: frozenset[str]
    _classes: dict[str, tuple[Arg, ...]] = field(default_factory=dict, compare=False, repr=False)
    _switches: dict[str, Switches] = field(default_factory=dict, compare=False, repr=False)
    _holders: dict[tuple[str, Const], list[Variant]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, fn: str, variants: Iterable[Variant]) -> Family:
        """The family of one function among the variants of a capture."""
        own = tuple(v for v in variants if v.fn == fn)
        return cls(fn, own, frozenset(p.name for v in own for p in v.params))

    def names(self, variant: Variant) -> tuple[str, ...]:
        """The names of the args that launch a variant: its params, then its folded 1s.

        The format does not tell a folded arg from a constexpr of value 1: what another variant of the function
        reads at run time is an arg.
        """
        foldable = (("int", 1), ("none", True))
        folded = [n for n, c in variant.consts.items() if n in self.read and (c.kind, c.value) in foldable]
        return (*(p.name for p in variant.params), *folded)

    def holding(self, consts: Mapping[str, Const]) -> Sequence[Variant]:
        """Variants that hold the rarest of the constants, or all: no other variant holds all of them."""
        if not self._holders:
            for variant in self.variants:
                for held in variant.consts.items():
                    self._holders.setdefault(held, []).append(variant)
        return min((self._holders.get(said, []) for said in consts.items()), key=len, default=self.variants)

    def classes(self, name: str) -> tuple[Arg, ...]:
        """An arg for each class that the variants can tell apart, of every kind that some variant takes.

        Ordered from what assumes least to what assumes most: no multiple of 16, a multiple, 1.
        """
        if name not in self._classes:
            self._classes[name] = _classes(name, self.variants)
        return self._classes[name]

    def switches(self, name: str) -> Switches:
        """The switches of a name that belong to the function: those of every variant that reads it."""
        if name not in self._switches:
            params = [p for v in self.variants for p in v.params if p.name == name]
            annotated = params[0].type if params and all(p.annotated for p in params) else None
            nospec, noalign = (bool(params) and all(getattr(p, s) for p in params) for s in ("nospec", "noalign"))
            self._switches[name] = Switches(nospec, noalign, annotated)
        return self._switches[name]

    def own_shape(self, variant: Variant, pinned: bool = True) -> Shape:
        """Every launch that names what the variant holds: its args by class, its constants, its options, its source.

        With `pinned` the launch says all that it may, which leaves the variant as few rivals as there can be.
        """
        names = self.names(variant)
        options = (variant.num_warps, variant.num_stages or None, variant.arch, variant.enable_fp_fusion)
        consts = {name: const for name, const in variant.consts.items() if name not in names}
        classes = tuple(self.classes(name) for name in names)
        first = tuple(found[0] for found in classes)
        base = Launch(self.fn, first, consts, *options, variant.source) if pinned else Launch(self.fn, first)
        return Shape(base, classes)

    def open_shapes(self) -> Iterator[Shape]:
        """Every launch of the function: a shape for each set of args, with all that a launch may say or leave out."""
        for names in self.signatures():
            held = sorted({name for v in self.variants for name in v.consts} - set(names))
            consts = tuple((n, tuple(dict.fromkeys(v.consts[n] for v in self.variants if n in v.consts))) for n in held)
            options = tuple((name, _values(name, self.variants)) for name in (*OPTIONS, "source"))
            classes = tuple(self.classes(name) for name in names)
            base = Launch(self.fn, tuple(found[0] for found in classes))
            yield Shape(base, classes, consts, tuple(pair for pair in options if pair[1]))

    def signatures(self) -> Iterator[tuple[str, ...]]:
        """The sets of arg names under which the variants are launched, each once, sorted."""
        yield from dict.fromkeys(tuple(sorted(self.names(v))) for v in self.variants)


def families(variants: Iterable[Variant]) -> Iterator[Family]:
    """The functions of a capture, in candidate order."""
    groups: dict[str, list[Variant]] = {}
    for variant in variants:
        groups.setdefault(variant.fn, []).append(variant)
    for fn, own in groups.items():
        yield Family.of(fn, own)


def own_class(variant: Variant, classes: Iterable[Arg], rules: Iterable[Rules] = ()) -> Arg:
    """The class of an arg for which the compiler would have made the variant's place, else the first it admits."""
    known = tuple(classes)
    param, const = variant.param(known[0].name), variant.consts.get(known[0].name)
    for one in tuple(rules) or tuple(Rules(strictness) for strictness in STRICTEST_FIRST):
        for arg in known:
            if arg_refusal(arg, param, const, one) is None:
                return arg
    return known[0]


def held_alike(variant: Variant, names: Collection[str]) -> object:
    """How a variant holds args of these names: its params and, of its constants, those that are args.

    Variants of which it is equal are admitted for the same args and read the same ones.
    """
    held = frozenset((name, variant.consts[name]) for name in names if name in variant.consts)
    return frozenset(variant.params), held


UNKNOWN: dict[str, object] = {"num_warps": 1 << 20, "num_stages": 1 << 20, "arch": "another", "source": "another"}
"""A value that no variant records: pinning it refuses all that record one."""


def _values(name: str, variants: Iterable[Variant]) -> tuple[object, ...]:
    """What a launch may pin an option to so that it makes a difference: each recorded value, and one unrecorded."""
    recorded = dict.fromkeys(value for v in variants if (value := getattr(v, name)) not in (None, 0) or value is False)
    if not recorded:
        return ()
    return (*recorded, UNKNOWN[name]) if name in UNKNOWN else (True, False)


def _classes(name: str, variants: Iterable[Variant]) -> tuple[Arg, ...]:
    params = [p for v in variants for p in v.params if p.name == name]
    consts = [v.consts[name] for v in variants if name in v.consts]
    shapes: list[ArgShape] = []
    if any(p.type in INT_TYPES for p in params) or any(c.kind == "int" and c.value == 1 for c in consts):
        shapes.append(ArgShape(name, NARROWED))
        shapes += [ArgShape(name, kind) for kind in (Kind.I64, Kind.U64) if any(p.type == kind for p in params)]
    shapes += [ArgShape(name, Kind.PTR, t) for t in dict.fromkeys(p.type for p in params) if t.startswith("*")]
    shapes += [ArgShape(name, kind) for kind in (Kind.FP32, Kind.U1) if any(p.type == kind for p in params)]
    if any(c.kind == "none" for c in consts):
        shapes.append(ArgShape(name, Kind.NONE))
    found = [arg for shape in shapes for arg in classes_of(shape, params).representatives]
    # A name that no kind of arg can have (a type such as fp64) still needs an arg, to be refused.
    return tuple(dict.fromkeys(found)) or (Arg(name, Kind.NONE),)
