"""Release tools: lint a capture, say what it covers, show what a release changes, join captures.

May import `impl`, `model`, `props` and `gpu.bundle`; nothing imports it but `cli`.
"""
