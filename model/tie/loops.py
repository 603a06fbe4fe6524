"""The tie, parts two and three: the loop over arguments, and the loop over candidates and passes.

What was tied per arg is a symbol here: the loop over arguments is run with symbolic outcomes of each rule, the
loop over passes with symbolic admissions, counts and traits of each candidate. Sizes are small and stated; the
induction of `model.lemmas.loop` carries the scan to any number of candidates.

Longer than 250 lines because both loops run on the same symbols.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from types import ModuleType
from typing import Any

import z3
from foldproof.impl import choose
from foldproof.impl.capture import Capture, Const, Param, Variant
from foldproof.impl.launch import Arg, Kind, Launch
from foldproof.impl.policy import Policy
from foldproof.impl.rules import Rules
from foldproof.model.rules import conj
from foldproof.model.scope import Scope, Size, make_scope
from foldproof.model.selection import Answer, answer, pass_is
from foldproof.model.terms import OPTIONS, Bits, Bool
from foldproof.model.tie.args import Gap, Tied
from foldproof.model.tie.symbolic import WIDTH, Flag, Paths, Symbol, Whole
from foldproof.model.world import SOUND, Flaws

MARK = "A"
# The package exports a function of the module's name, so the module itself is asked for by its full name.
select = importlib.import_module("foldproof.impl.select")


class Outcome(Symbol):
    """What a rule answers: truthy where it refuses. `key` says what it was asked about."""

    def __init__(self, key: str) -> None:
        self.flag = Flag(z3.Bool(f"refuses {key}"))

    def __bool__(self) -> bool:
        return bool(self.flag)


def refuses(key: str) -> Bool:
    """The truth of the outcome of that key."""
    return z3.Bool(f"refuses {key}")


@contextmanager
def patched(module: ModuleType, replacements: Mapping[str, Any]) -> Iterator[None]:
    """The module with some of its names replaced, for the time of a run."""
    before = {name: getattr(module, name) for name in replacements}
    try:
        for name, value in replacements.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def tie_argument_loop(module: ModuleType) -> Iterator[Tied]:
    """Compare the module's `refusal` with the conjunction of its parts, for every shape of up to three args."""
    stubs = {
        "arg_refusal": lambda arg, param, const, rules: Outcome(_arg_key(arg, param, const)),  # noqa: ARG005
        "named_const_refusal": lambda wanted, present: Outcome(f"const {wanted} {present}"),
        "option_refusal": lambda recorded, pinned: Outcome(f"option {recorded} {pinned}"),
        "source_refusal": lambda variant, launch: Outcome(f"source {variant} {launch}"),
    }
    with patched(module, stubs):
        for places in (p for n in range(4) for p in product(("param", "const", "nowhere"), repeat=n)):
            for extra, named, pinned in product((False, True), (0, 2), ((), OPTIONS)):
                for source, options in ((True, True), (False, False)):
                    rules = module.Rules(next(iter(module.Strictness)), False, options, source)
                    yield _one_shape(module, places, rules, (extra, named, pinned))


def _arg_key(arg: Arg, param: Param | None, const: Const | None) -> str:
    return f"arg {arg.name} on {param.name if param else None} {const}"


def _one_shape(
    module: ModuleType, places: tuple[str, ...], rules: Any, rest: tuple[bool, int, tuple[str, ...]]
) -> Tied:
    extra, named, pinned = rest
    names = [f"x{i}" for i in range(len(places))]
    args = tuple(Arg(name, Kind.I32, 7) for name in names)
    params = [Param(n, "i32", div16=False, nospec=False) for n, p in zip(names, places, strict=True) if p == "param"]
    if extra:
        params.append(Param("extra", "i32", div16=False, nospec=False))
    consts = {n: Const(int_=i) for i, (n, p) in enumerate(zip(names, places, strict=True)) if p == "const"}
    wanted = {f"k{i}": Const(int_=50 + i) for i in range(named)}
    present = {"k0": Const(int_=60)} if named else {}
    values: dict[str, Any] = {"num_warps": 201, "num_stages": 202, "arch": "a203", "enable_fp_fusion": True}
    # Params in reverse: nothing may depend on their order.
    variant = Variant("k", MARK, 101, tuple(reversed(params)), consts | present, num_stages=0, arch="a103", source="s1")
    launch = Launch("k", args, wanted, **{name: values[name] for name in pinned}, source="s2")
    recorded = {"num_warps": 101, "num_stages": None, "arch": "a103", "enable_fp_fusion": None}
    parts = [refuses(_arg_key(a, variant.param(a.name), consts.get(a.name))) for a in args]
    parts += [refuses(f"const {c} {present.get(n)}") for n, c in wanted.items()]
    if rules.options:
        parts += [refuses(f"option {recorded[name]} {values[name]}") for name in pinned]
    if rules.source:
        parts.append(refuses("source s1 s2"))
    admitted = z3.And(conj(z3.Not(p) for p in parts), z3.BoolVal(not extra))
    setting = (
        f"{'-'.join(places) or 'no args'}, extra {extra}, {named} consts, {len(pinned)} options, source {rules.source}"
    )
    return _compare("refusal", setting, (), lambda: module.refusal(variant, launch, rules) is None, admitted)


def _compare(rule: str, setting: str, known: tuple[Bool, ...], run: Callable[[], bool], formula: Bool) -> Tied:
    count = 0
    for condition, result in Paths(known).explore(run):
        count += 1
        if not _valid(known, condition, formula == z3.BoolVal(bool(result))):
            return Tied(rule, setting, count, Gap(rule, setting, f"Python says {result!r}; the formula disagrees"))
    return Tied(rule, setting, count)


def _valid(known: tuple[Bool, ...], condition: Bool, claim: Bool) -> bool:
    solver = z3.SolverFor("QF_BV")
    solver.add(*known, condition, z3.Not(claim))
    return bool(solver.check() == z3.unsat)


class Candidates(Scope):
    """A scope in which what is asked of a candidate is a symbol of its own: the loop sees no args."""

    __slots__ = ()

    def _symbol(self, name: str, index: int) -> Bits:
        return z3.BitVec(f"{name}{index}", 7)

    def wide(self, name: str, index: int) -> Bits:
        """The candidate's symbol of that name, as wide as the formulas count."""
        return z3.ZeroExt(1, self._symbol(name, index))

    def admits(self, index: int, rules: Rules, flaws: Flaws = SOUND) -> Bool:  # noqa: ARG002
        """A flag for each strictness."""
        return z3.Bool(f"admits{index}.{rules.strictness}")

    def ones(self, index: int) -> Bits:
        """A number."""
        return self.wide("ones", index)

    def runtime_ones(self, index: int) -> Bits:
        """A number."""
        return self.wide("runtime_ones", index)

    def assumptions(self, index: int) -> Bits:
        """A number."""
        return self.wide("assumptions", index)

    def held(self, index: int) -> Bits:
        """A number."""
        return self.wide("held", index)

    def rank(self, index: int) -> Bits:
        """A number."""
        return self.wide("rank", index)

    def falls_back(self, index: int) -> Bool:
        """A flag."""
        return z3.Bool(f"falls_back{index}")

    def differs_in_free(self, one: int, other: int) -> Bool:
        """Difference of a trait."""
        return self._symbol("free", one) != self._symbol("free", other)

    def same_options(self, one: int, other: int, names: Any = OPTIONS) -> Bool:
        """Equality of a trait, one for all options and one for warps and stages."""
        trait = "options" if tuple(names) == OPTIONS else "warps"
        return self._symbol(trait, one) == self._symbol(trait, other)

    def twins(self, one: int, other: int) -> Bool:
        """Equality of a trait."""
        return self._symbol("identity", one) == self._symbol("identity", other)


def candidates(count: int) -> Candidates:
    """A world of `count` candidates that are nothing but symbols."""
    plain = make_scope(Size(count, 0, 0, 0))
    return Candidates(plain.size, plain.launch, plain.candidates, tuple(z3.BoolVal(False) for _ in range(count)))


def tie_pass_loop(policy: Policy, count: int) -> Iterator[Tied]:
    """Compare `decide` with the formulas of the pass loop for `count` candidates of the policy."""
    for warned in (False, True) if policy.log == "variant" else (False,):
        yield _pass_loop(policy, count, warned=warned)


def _pass_loop(policy: Policy, count: int, *, warned: bool) -> Tied:
    plain = candidates(count)
    flags = tuple(z3.BoolVal(warned) for _ in range(count))
    world = Candidates(plain.size, plain.launch, plain.candidates, flags)
    kernels = [Variant("k", chr(ord("A") + i), 4, (), {}) for i in range(count)]
    # A variant of another function stands first: it must be passed over, and indices count it.
    capture = Capture((Variant("other", "other", 4, (), {}), *kernels))
    launch = Launch("k", ())
    place = {variant.hash: i for i, variant in enumerate(kernels)}

    def number(name: str) -> Callable[..., Whole]:
        return lambda candidate, _: Whole(_extended(world.wide(name, place.get(candidate[1].hash, count))))

    def negative(name: str) -> Callable[..., Whole]:
        return lambda candidate, _: -Whole(_extended(world.wide(name, place.get(candidate[1].hash, count))))

    def trait(name: str) -> Callable[..., Whole]:
        return lambda variant, _: Whole(_extended(world.wide(name, place.get(variant.hash, count))))

    def outcome(variant: Variant, _: Launch, rules: Rules) -> Any:
        # The variant of the other function would be admitted, so passing it over is seen.
        admitted = variant.hash not in place or Flag(world.admits(place[variant.hash], rules))
        return None if admitted else "refused"

    keys = dict(choose.KEYS) | {
        "hash": number("rank"),
        "fewest-ones": number("ones"),
        "fewest-runtime-ones": number("runtime_ones"),
        "most-assumptions": negative("assumptions"),
        "fewest-assumptions": number("assumptions"),
        "most-held": negative("held"),
        "fewest-held": number("held"),
    }
    traits = {"free-constants": "free", "warps-and-stages": "warps", "launch-options": "options", "twins": "identity"}
    refusals = {name: (spec[0], trait(traits[name]), spec[2]) for name, spec in choose.REFUSALS.items()}

    def ones_read(variant: Variant, _: Launch) -> tuple[str, ...]:
        return ("R",) if Flag(world.falls_back(place.get(variant.hash, count))) else ()

    terms = answer(world, policy)
    known = (z3.Distinct([world.rank(i) for i in range(count)]) if count > 1 else z3.BoolVal(True),)
    paths = 0
    setting = f"{policy.name}, {count} candidates{', warned before' if warned else ''}"
    seen = frozenset(place) if warned else frozenset()
    with (
        patched(choose, {"KEYS": keys, "REFUSALS": refusals}),
        patched(select, {"refusal": outcome, "ones_read": ones_read}),
    ):
        for condition, result in Paths(known, most=60_000).explore(
            lambda: select.decide(capture, launch, policy, seen)
        ):
            paths += 1
            if not _valid(known, condition, _claim(world, policy, terms, result)):
                return Tied("decide", setting, paths, Gap("decide", setting, f"Python says {result!r}"))
    return Tied("decide", setting, paths)


def _extended(term: Bits) -> Bits:
    return z3.ZeroExt(WIDTH - term.size(), term)


def _claim(world: Candidates, policy: Policy, terms: Answer, result: Any) -> Bool:
    """What the formulas must say where Python answers `result`."""
    if not isinstance(result, select.Selection):
        return (
            terms.missing if result.code == "MissingTritonVariant" else z3.And(terms.ambiguous, z3.Not(terms.missing))
        )
    index = result.index - 1
    if index < 0:
        return z3.BoolVal(False)
    passes = pass_is(world, policy, index)
    named = [r.strictness for r in policy.strictest_first]
    its_pass = passes[named.index(result.strictness)] if result.strictness is not None else passes[3]
    lines = terms.once(index) if len(result.log) == 1 else terms.silent(index)
    reads = world.falls_back(index) == z3.BoolVal(bool(result.ones))
    return z3.And(terms.picks(index), its_pass, lines, reads, z3.BoolVal(len(result.log) <= 1))
