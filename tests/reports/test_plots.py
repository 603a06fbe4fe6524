"""The discovery curve as SVG inside a page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
from foldproof.reports.render.plots import MOST_POINTS, discovery, early, steps

CURVE = tuple((n * n * 100, min(11, n)) for n in range(1, 101))


def test_a_plot_has_no_style_of_its_own_and_colours_by_class() -> None:
    svg = discovery(CURVE, 15, "p1-")
    assert not re.search(r"style|#0000|metadata|xmlns|<\?xml", svg)
    root = ET.fromstring(svg)  # noqa: S314 (made a moment ago)
    classes = {word for node in root.iter() for word in node.get("class", "").split()}
    assert {"plot", "fill-ink", "stroke-line", "stroke-goal"} <= classes
    assert "possible 15" in ["".join(node.itertext()) for node in root.iter("text")]


def test_two_plots_share_no_id() -> None:
    first, second = (set(re.findall(r' id="([^"]+)"', discovery(CURVE, 15, f"p{n}-"))) for n in (1, 2))
    assert first
    assert not first & second
    svg = discovery(CURVE, 15, "p1-")
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg)) == first


def test_the_settings_of_a_user_change_nothing() -> None:
    before = discovery(CURVE, 15, "p-")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": "other", "axes.grid": True}):
        assert discovery(CURVE, 15, "p-") == before


def test_the_axis_is_logarithmic_where_cells_come_early() -> None:
    assert early(steps(CURVE))
    assert not early([(n, n) for n in range(1, 100)])
    assert "cases (logarithmic)" in discovery(CURVE, 15, "p-")
    assert ">cases<" in discovery(tuple((n, n) for n in range(1, 100)), None, "p-")


def test_a_curve_keeps_its_rises_and_its_end() -> None:
    assert steps(CURVE) == [*CURVE[:11], CURVE[-1]]
    assert steps(()) == []
    assert steps(((5, 3),)) == [(5, 3)]
    many = tuple((n, n) for n in range(1, 50_001))
    assert len(steps(many)) <= MOST_POINTS + 1
    assert steps(many)[-1] == (50_000, 50_000)
    assert discovery((), 15, "p-") == ""
    assert discovery(((0, 0), (10, 0)), None, "p-").startswith("<svg")
