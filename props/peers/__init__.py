"""Real peers from Triton itself: the JIT's own specialisation as the oracle of what "exact" means, and the dispatcher
that Triton's AOT linker writes as a selector under test. Both need the extra `triton`; the second a C compiler too.
"""
