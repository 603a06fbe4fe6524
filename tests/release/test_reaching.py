"""Why not another candidate: the launch that is named reaches it, and none is nearer."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

import pytest
from foldproof.impl import Capture, FoldproofError, Selection, decide, load_policy
from foldproof.impl.explain import Node, decision_tree, explain
from foldproof.props.generate import Shape as CaseShape
from foldproof.props.generate import make_case, seeded
from foldproof.release.classes import class_key
from foldproof.release.launch_shape import with_args
from foldproof.release.reaching import matching_functions, nearest_reaching, why_not
from foldproof.release.shapes import Family
from foldproof.release.svg import svg
from helpers import capture, i32, launch, param, ptr, variant

THREE_PASS = load_policy("three-pass")
CAPTURE = capture(
    variant("fold", param("P", "*bf16", div16=True), consts={"R": {"int": 1}, "B": {"int": 64}}),
    variant("read", param("P", "*bf16", div16=True), param("R"), consts={"B": {"int": 128}}, num_warps=8),
)
ONE = launch(ptr("P", 0x1000), i32("R", 1), consts={"B": {"int": 64}}, num_warps=4)


def test_the_first_rule_that_refuses_and_the_launch_that_would_reach_it() -> None:
    found = why_not(CAPTURE, ONE, "rea", THREE_PASS)
    assert (found.hash, found.instead) == ("read", "fold")
    assert found.refused[0][0] == "exact"
    assert found.refused[0][1][0].startswith("num_warps: ")
    assert found.reaching is not None
    outcome = decide(CAPTURE, found.reaching, THREE_PASS)
    assert isinstance(outcome, Selection)
    assert outcome.variant.hash == "read"
    assert found.changes == ("B: const int 128 instead of int 64", "num_warps 8 instead of 4")


def test_a_candidate_that_no_launch_reaches_is_said() -> None:
    shadowed = capture(variant("A", param("R", nospec=True)), variant("B", param("R")))
    found = why_not(shadowed, launch(i32("R", 7)), "B", THREE_PASS)
    assert found.reaching is None
    assert found.refused[0] == ("exact", ())
    with pytest.raises(FoldproofError, match="0 candidates of k are named 'C'"):
        why_not(shadowed, launch(i32("R", 7)), "C", THREE_PASS)


def test_no_launch_that_reaches_it_is_nearer() -> None:
    choose, seen = seeded(8), set()
    for number in range(25):
        case = make_case(choose, CaseShape(candidates=3, args=2), str(number))
        family = Family.of("k", case.capture.kernels)
        for chosen in family.variants:
            found = nearest_reaching(family, case.launch, chosen, THREE_PASS)
            seen.add(found is None)
            if found is None:
                continue
            outcome = decide(Capture(family.variants), found, THREE_PASS)
            assert isinstance(outcome, Selection)
            assert outcome.variant is chosen
            given = {arg.name: arg for arg in case.launch.args}
            away = sum(given.get(arg.name) != arg for arg in found.args if arg.name in given)
            options = [(given.get(arg.name, arg), *family.classes(arg.name)) for arg in found.args]
            for args in itertools.product(*options):
                other = with_args(found, args)
                answer = decide(Capture(family.variants), other, THREE_PASS)
                if isinstance(answer, Selection) and answer.variant is chosen:
                    moved = [a for a in args if a.name in given and _key(a) != _key(given[a.name])]
                    assert len(moved) >= away
    assert seen == {True, False}


def _key(arg: object) -> object:
    return class_key(launch(i32("x", 1)).__class__("k", (arg,)))  # type: ignore[arg-type]


def test_the_tree_has_every_pass_and_ends_with_the_verdict() -> None:
    tree = decision_tree(explain(CAPTURE, ONE, THREE_PASS), ONE)
    assert [node.says.split(":")[0] for node in tree.below[:3]] == ["exact", "general", "runtime-one"]
    assert [node.state for node in tree.below] == ["", "skipped", "skipped", "picked"]
    assert {leaf.state for leaf in tree.below[0].below} == {"picked", "refused"}


def test_the_svg_is_a_document_with_a_line_a_step() -> None:
    tree = decision_tree(explain(CAPTURE, ONE, THREE_PASS), ONE)
    root = ET.fromstring(svg(tree))  # noqa: S314 (our own text)
    texts = [node for node in root.iter() if node.tag.endswith("text")]
    assert len(texts) == 7
    hostile = ET.fromstring(svg(Node('<script>&"\x1b[31m')))  # noqa: S314 (as above)
    assert "script" in "".join(hostile.itertext())
    assert not [node for node in hostile.iter() if node.tag.endswith("script")]


def test_a_part_of_a_name_means_the_functions_that_contain_it() -> None:
    names = ("_row_sum", "_row_max", "_scale")
    assert matching_functions(names, "_scale") == ["_scale"]
    assert matching_functions(names, "row") == ["_row_sum", "_row_max"]
    assert matching_functions(names, "zzz") == []
