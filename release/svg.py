"""A decision tree as a small SVG: a line of text a step, indented, with a rule down the left of each group."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from foldproof.impl.errors import one_line
from foldproof.impl.explain import Node

LINE, INDENT, CHARACTER, MARGIN = 20, 22, 7.3, 12
COLOURS = {"picked": "#1a7f37", "refused": "#b42318", "passed over": "#9a6700", "skipped": "#6e7781", "": "#1f2328"}
MARKS = {"picked": "✓", "refused": "✗", "passed over": "·", "skipped": "-", "": ""}


def svg(root: Node) -> str:
    """The tree as an SVG document that needs no font, script or style sheet."""
    rows = list(_rows(root, 0))
    width = max(MARGIN * 2 + depth * INDENT + len(_text(node)) * CHARACTER for node, depth in rows)
    height = MARGIN * 2 + LINE * len(rows)
    parts = [_row(node, depth, number) for number, (node, depth) in enumerate(rows)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-family="monospace" font-size="12">'
    )
    back = f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>'
    return "\n".join((head, f"<title>{escape(_text(root))}</title>", back, *parts, "</svg>")) + "\n"


def _rows(node: Node, depth: int) -> Iterator[tuple[Node, int]]:
    yield node, depth
    for below in node.below:
        yield from _rows(below, depth + 1)


def _text(node: Node) -> str:
    mark = MARKS[node.state]
    return f"{mark} {one_line(node.says)}" if mark else one_line(node.says)


def _row(node: Node, depth: int, number: int) -> str:
    x, y = MARGIN + depth * INDENT, MARGIN + LINE * number
    weight = ' font-weight="bold"' if node.below or node.state == "picked" else ""
    text = f'<text x="{x}" y="{y + 14}" fill="{COLOURS[node.state]}"{weight}>{escape(_text(node))}</text>'
    if not depth:
        return text
    return f'<path d="M{x - 14} {y} v10 h8" fill="none" stroke="#d0d7de"/>{text}'
