"""Symbolic replay: byte verdicts for pairs of variants by executing their PTX on symbolic memory, without a device.

`foldproof.gpu.symbolic.bits` is the entrance; `docs/explanation/symbolic-replay.md` says what a proof here is worth.
"""
