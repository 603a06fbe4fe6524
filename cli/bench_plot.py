"""A curve of `foldproof bench` as an SVG file: seconds over size, both logarithmic, with the line that was fitted."""

from __future__ import annotations

import io
import math
import textwrap

import matplotlib as mpl
from foldproof.props.measure import Grown
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "foldproof",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
MEASURED, FITTED = "#1f5fa8", "#b04a00"
TITLE_WIDTH = 64
"""Characters of a title that fit on one line of the figure."""


def curve_svg(of: Grown) -> bytes:
    """The file; equal curves give equal bytes."""
    sizes, values = [p.size for p in of.points], [p.seconds.median for p in of.points]
    spread = [[v - p.seconds.least for v, p in zip(values, of.points, strict=True)]]
    spread += [[p.seconds.most - v for v, p in zip(values, of.points, strict=True)]]
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(5.4, 3.4), layout="constrained")
        axes = figure.add_subplot()
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.errorbar(
            sizes, values, spread, color=MEASURED, marker="o", markersize=4, capsize=2, label="median, spread"
        )
        ends = [of.first, of.last]
        fitted = f"size^{of.exponent:.2f}, {of.first:,} to {of.last:,}"
        axes.plot(ends, [_on_the_line(of, size) for size in ends], color=FITTED, linestyle=(0, (5, 3)), label=fitted)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(of.axis)
        axes.set_ylabel(f"seconds a {of.unit}")
        axes.set_title(textwrap.fill(of.what, TITLE_WIDTH), loc="left", fontsize=9)
        axes.grid(visible=True, linewidth=0.4)
        axes.legend(frameon=False)
        written = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(written, metadata={"Date": None, "Creator": None})
    return written.getvalue()


def _on_the_line(of: Grown, size: int) -> float:
    """The fitted line at a size: through the centre of its points, as least squares has it."""
    fitted = [point for point in of.points if of.first <= point.size <= of.last]
    centre = sum(math.log(p.seconds.median) - of.exponent * math.log(p.size) for p in fitted) / len(fitted)
    return math.exp(centre + of.exponent * math.log(size))
