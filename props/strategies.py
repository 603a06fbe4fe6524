"""Hypothesis strategies over the generator: cases, captures, launches and candidate orders."""

from __future__ import annotations

from foldproof.impl.capture import Capture
from foldproof.impl.cases import Case
from foldproof.impl.launch import Launch
from foldproof.props.generate import Shape, make_case
from hypothesis import strategies as st


@st.composite
def cases(draw: st.DrawFn, shape: Shape = Shape()) -> Case:  # noqa: B008 (frozen)
    """Valid cases; they shrink towards one candidate, one arg and no switches."""
    return make_case(lambda options: draw(st.sampled_from(options)), shape)


def captures(shape: Shape = Shape()) -> st.SearchStrategy[Capture]:  # noqa: B008 (frozen)
    """Captures made around a launch that is then forgotten."""
    return cases(shape).map(lambda case: case.capture)


def launches(shape: Shape = Shape()) -> st.SearchStrategy[Launch]:  # noqa: B008 (frozen)
    """Launches of the function `k`."""
    return cases(shape).map(lambda case: case.launch)


def orders(capture: Capture) -> st.SearchStrategy[Capture]:
    """The same capture with its candidates in another order."""
    return st.permutations(capture.kernels).map(lambda kernels: Capture(tuple(kernels)))
