"""The kernels of the bundled capture, grouped by theme.

Each module imports Triton, so nothing in ``foldproof`` imports them except the build (``foldproof capture build``).
What a kernel is launched with, how its twins differ and which verdict is expected of them is data in
``foldproof.gpu.corpus``.

Parameters carry no type annotations on purpose: Triton reads an annotation as part of the signature (an annotated
integer is never folded), so annotating them for the type checker would change what is compiled.
"""
