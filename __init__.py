"""foldproof: proofs, counterexamples and byte verdicts for the code that picks a precompiled Triton kernel.

The rooms, and what each may import, are in ARCHITECTURE.md; the words are in GLOSSARY.md.
"""

__version__ = "0.1.0"
