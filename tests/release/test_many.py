"""Lint of variants that share much: each finding against what trying every pair and every launch says."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from foldproof.impl import Capture, Selection, Variant, decide, load_policy
from foldproof.impl.capture import Const
from foldproof.impl.rules import Rules, Strictness, arg_refusal
from foldproof.props.generate import Shape as CaseShape
from foldproof.props.generate import make_case, seeded
from foldproof.release.choices import OPTIONS, UNPINNABLE, UNSAID, open_choices
from foldproof.release.launch_shape import with_args
from foldproof.release.lenient import Entry, read_leniently
from foldproof.release.reach import unreached
from foldproof.release.shapes import Family

CASES = 40
EXACT = Rules(Strictness.EXACT)
ODD = ({}, {}, {"num_ctas": 2}, {"arch": "sm_80"}, {"num_stages": 5}, {"consts": {"G": Const(int_=3)}})


def families() -> Iterator[Family]:
    """Functions of which several variants hold the args alike and differ in little else, or in nothing."""
    choose = seeded(29)
    for number in range(CASES):
        case = make_case(choose, CaseShape(candidates=4, args=2), str(number))
        made = [v for v in case.capture.kernels if v.fn == "k"]
        for one in tuple(made):
            for k in range(choose((0, 1, 3))):
                changes = dict(choose(ODD))
                if "consts" in changes:
                    changes["consts"] = {**one.consts, **changes["consts"]}
                like = msgspec.structs.replace(one, hash=f"{choose(range(10**6))}-{k}-{one.hash}", **changes)
                made.insert(choose(range(len(made) + 1)), like)
        yield Family.of("k", made)


def entries(family: Family) -> list[Entry]:
    return [Entry(index, {}, variant) for index, variant in enumerate(family.variants)]


def between(family: Family) -> Iterator[tuple[str, str, int]]:
    """By every pair: the rule, what differs, and an index of the pair."""

    def admits(variant: Variant, name: str, place: int) -> bool:
        arg = family.classes(name)[place]
        return arg_refusal(arg, variant.param(name), variant.consts.get(name), EXACT) is None

    def placed(variant: Variant) -> object:
        held = {(n, c.kind, c.value) for n, c in variant.consts.items() if n in family.names(variant)}
        return set(variant.params), held

    def meet(a: Variant, b: Variant) -> bool:
        if set(family.names(a)) != set(family.names(b)) or a.source != b.source:
            return False
        if placed(a) == placed(b):
            return True
        places = ((name, range(len(family.classes(name)))) for name in family.names(a))
        return all(any(admits(a, name, p) and admits(b, name, p) for p in known) for name, known in places)

    for (i, a), (k, b) in itertools.combinations(enumerate(family.variants), 2):
        if not meet(a, b):
            continue
        free = {n for n in {*a.consts, *b.consts} - set(family.names(a)) if a.consts.get(n) != b.consts.get(n)}
        odd = [n for n in OPTIONS if getattr(a, n) != getattr(b, n)]
        tells = any(n not in UNPINNABLE and UNSAID.get(n, ()) not in (getattr(a, n), getattr(b, n)) for n in odd)
        for name in free or odd:
            rule = "L201" if free else "L205" if tells else "L204"
            yield from ((rule, name, i), (rule, name, k))


def test_open_choices_are_those_of_every_pair() -> None:
    seen = set()
    for family in families():
        wanted: dict[str, tuple[set[str], set[int]]] = {}
        for rule, name, index in between(family):
            names, indices = wanted.setdefault(rule, (set(), set()))
            names.add(name)
            indices.add(index)
        got = {f.rule: f for f in open_choices(entries(family)) if f.rule in ("L201", "L204", "L205")}
        assert got.keys() == wanted.keys()
        for rule, (names, indices) in wanted.items():
            assert got[rule].what.startswith(f"{len(indices)} variants of k differ in "), got[rule].what
            assert set(re.findall(r"\w+", got[rule].what.split(" differ in ")[1].split(":")[0])) == names
            assert got[rule].where.startswith(f"$.kernels[{min(indices)}]")
            seen.add(rule)
    assert seen == {"L201", "L204", "L205"}


@pytest.mark.parametrize("policy", ["three-pass", "recommended", "most-held"])
def test_unreached_are_those_that_no_launch_of_their_own_shape_picks(policy: str) -> None:
    rules, seen = load_policy(policy), set()
    for family in itertools.islice(families(), 16):
        told = {f.where: f.rule for f in unreached(entries(family), rules)}
        for index, variant in enumerate(family.variants):
            shape = family.own_shape(variant)
            launches = (with_args(shape.base, args) for args in itertools.product(*shape.classes))
            outcomes = (decide(Capture(family.variants), launch, rules) for launch in launches)
            picked = any(isinstance(o, Selection) and o.variant is variant for o in outcomes)
            rule = told.get(f"$.kernels[{index}]", "")
            assert picked == (rule == ""), (variant, rule)
            seen.add(rule)
    assert seen >= {"", "L301"}


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ["placement", "options", "nothing"])
def test_three_thousand_variants_of_one_function(sharing: str, tmp_path: Path) -> None:
    kernels = []
    for number in range(3000):
        switches = [{"div16": bool(number & bit), "nospec": False} for bit in (1, 2, 4)]
        types = (("p", "*fp32"), ("n", "i32"), ("m", "i32"))
        params = [{"name": n, "type": t} | more for (n, t), more in zip(types, switches, strict=True)]
        one = {"fn": "f", "hash": f"{number:064x}", "name": "f", "num_warps": 4, "params": params, "consts": {}}
        apart = {
            "placement": {},
            "options": {"num_warps": 1 + number % 32},
            "nothing": {"consts": {"B": {"int": number}}},
        }
        kernels.append(one | apart[sharing])
    (tmp_path / "aot.json").write_text(json.dumps({"kernels": kernels}))
    before = time.process_time()
    capture = read_leniently(tmp_path / "aot.json")
    shadowed = list(unreached(capture.entries, load_policy("three-pass")))
    choices = list(open_choices(capture.entries))
    assert time.process_time() - before < 30
    assert not capture.findings
    assert len(shadowed) == {"placement": 3000 - 8, "options": 3000 - 32, "nothing": 0}[sharing]
    assert {f.rule for f in choices} == {"placement": set(), "options": {"L205"}, "nothing": {"L201"}}[sharing]
