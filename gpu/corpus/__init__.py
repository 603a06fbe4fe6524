"""The kernel corpus as data: what is compiled into the bundled capture, and what is expected of each pair."""

from __future__ import annotations

from foldproof.gpu.corpus.atomic import ATOMIC
from foldproof.gpu.corpus.attention import ATTENTION
from foldproof.gpu.corpus.elementwise import ELEMENTWISE
from foldproof.gpu.corpus.index import INDEX
from foldproof.gpu.corpus.matmul import MATMUL
from foldproof.gpu.corpus.model import Absent, Buffer, Float, Int, Kernel, Label, Twin
from foldproof.gpu.corpus.norm import NORM
from foldproof.gpu.corpus.reduce import REDUCE

CORPUS: tuple[Kernel, ...] = (*ELEMENTWISE, *INDEX, *REDUCE, *NORM, *ATTENTION, *MATMUL, *ATOMIC)
"""Every kernel, by theme."""

BY_NAME: dict[str, Kernel] = {kernel.name: kernel for kernel in CORPUS}

__all__ = ["BY_NAME", "CORPUS", "Absent", "Buffer", "Float", "Int", "Kernel", "Label", "Twin"]
