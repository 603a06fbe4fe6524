"""A shape: every launch that a question is about, as what they share and the classes that each arg may have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from foldproof.impl.capture import Const
from foldproof.impl.launch import Arg, Launch


@dataclass(frozen=True, slots=True)
class Shape:
    """Every launch that a question is about: what they share, and for each arg the classes it may have.

    `base` gives names, constants, options and source; `classes[j]` holds one arg for each class of arg j, the
    plainest first. `consts` and `options` are what a launch may say besides: a constant with one of its values or
    not at all, an option (or "source") likewise.
    """

    base: Launch
    classes: tuple[tuple[Arg, ...], ...]
    consts: tuple[tuple[str, tuple[Const, ...]], ...] = ()
    options: tuple[tuple[str, tuple[object, ...]], ...] = ()

    @property
    def size(self) -> int:
        """How many launch classes there are."""
        total = 1
        for classes in self.classes:
            total *= len(classes)
        return total


def with_args(base: Launch, args: Iterable[Arg]) -> Launch:
    """The launch with other args."""
    options = (base.num_warps, base.num_stages, base.arch, base.enable_fp_fusion, base.source)
    return Launch(base.fn, tuple(args), base.consts, *options)
