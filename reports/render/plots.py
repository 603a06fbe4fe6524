"""Plots as SVG that stands inside a page: no ids that collide, no styles that leak, colours by class.

Matplotlib draws; what it writes is then made fit for a page whose policy allows no style attribute: every colour turns
into a class that the page's own style sheet knows, so that a plot follows the light and the dark theme.
"""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

INK, LINE, GOAL, FAINT = "#000001", "#000002", "#000003", "#000004"
_CLASSES = {INK: "ink", LINE: "line", GOAL: "goal", FAINT: "faint"}
"""Colours that stand for a class of the style sheet."""
_KEPT = ("stroke-width", "stroke-dasharray", "stroke-dashoffset", "text-anchor")
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "foldproof",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.4,
}
MOST_POINTS = 1_000


def discovery(curve: Sequence[tuple[int, int]], possible: int | None, prefix: str) -> str:
    """Cells visited over cases run, as an `<svg>` element; ids in it begin with `prefix`. "" for an empty curve."""
    points = steps(curve)
    if not points:
        return ""
    xs, ys = [cases for cases, _ in points], [cells for _, cells in points]
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(7.2, 2.7), layout="constrained")
        axes = figure.add_subplot()
        figure.patch.set_visible(False)
        axes.patch.set_visible(False)
        axes.plot(xs, ys, drawstyle="steps-post", color=LINE, linewidth=1.6, solid_joinstyle="round")
        axes.plot(xs[-1:], ys[-1:], color=LINE, marker="o", markersize=4)
        top = max(ys[-1], possible or 0, 1)
        if possible:
            axes.axhline(possible, color=GOAL, linewidth=1, linestyle=(0, (4, 3)))
            axes.annotate(
                f"possible {possible:,}", (1, possible), (0, 3), xycoords=("axes fraction", "data"),
                textcoords="offset points", ha="right", va="bottom", color=INK,
            )  # fmt: skip
        axes.set_ylim(0, top * 1.15)
        if early(points):
            axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: _round(value))
        axes.yaxis.set_major_formatter(lambda value, _: _round(value))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.grid(visible=True, axis="y")
        axes.minorticks_off()
        axes.tick_params(length=0)
        axes.set_xlabel("cases (logarithmic)" if early(points) else "cases")
        axes.set_ylabel("cells visited")
        return inlined(_drawn(figure), prefix, f"Cells visited over cases run: {ys[-1]:,} after {xs[-1]:,} cases")


def steps(curve: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The points of the curve at which it rises, and its last; never more than `MOST_POINTS`."""
    rises = [point for before, point in zip([(0, -1), *curve], curve, strict=False) if point[1] != before[1]]
    stride = -(-len(rises) // MOST_POINTS)
    kept = rises[::stride] if stride > 1 else rises
    return kept if not curve or kept[-1:] == [tuple(curve[-1])] else [*kept, curve[-1]]


def early(points: Sequence[tuple[int, int]]) -> bool:
    """Whether half of what was found was found in the first tenth: then equal steps would show a corner, no curve."""
    half = next(cases for cases, cells in points if 2 * cells >= points[-1][1])
    return points[0][0] > 0 and half * 10 < points[-1][0]


def _round(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):,.4g} {unit}"
    return f"{value:,.4g}"


def _drawn(figure: Figure) -> bytes:
    written = io.BytesIO()
    FigureCanvasSVG(figure).print_svg(written, metadata={"Date": None, "Creator": None})
    return written.getvalue()


def inlined(svg: bytes, prefix: str, label: str) -> str:
    """The `<svg>` element of a Matplotlib file, for use inside HTML. `label` is what a screen reader says."""
    root = ET.fromstring(svg)  # noqa: S314 (Matplotlib wrote it a moment ago)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in {"metadata", "style"}:
                parent.remove(child)
    text = ET.tostring(root, encoding="unicode")
    used = {node.get("id", "") for node in root.iter() if f"#{node.get('id')}" in text}
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
        attributes = {name.rpartition("}")[2]: value for name, value in node.attrib.items()}
        node.attrib.clear()
        node.attrib.update(_attributes(attributes, used, prefix))
    size = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"viewBox": size, "class": "plot", "role": "img", "aria-label": label, "focusable": "false"})
    return ET.tostring(root, encoding="unicode", short_empty_elements=False)


def _attributes(given: dict[str, str], used: set[str], prefix: str) -> dict[str, str]:
    made, classes = dict[str, str](), list[str]()
    style = dict(part.strip().split(": ", 1) for part in given.pop("style", "").split(";") if ": " in part)
    for name in ("fill", "stroke"):
        colour = style.get(name, given.pop(name, ""))
        if colour in _CLASSES:
            classes.append(f"{name}-{_CLASSES[colour]}")
        elif colour:
            made[name] = colour
    made |= {name: value for name, value in style.items() if name in _KEPT}
    for name, value in given.items():
        if name == "id" and value in used:
            made["id"] = f"{prefix}{value}"
        elif name == "href":
            made["href"] = f"#{prefix}{value.removeprefix('#')}"
        elif name == "clip-path":
            made["clip-path"] = value.replace("url(#", f"url(#{prefix}")
        elif name != "id":
            made[name] = value
    if classes:
        made["class"] = " ".join(classes)
    return made
