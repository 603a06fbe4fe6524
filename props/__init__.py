"""Theorems as executable checks, generators, differential tests and campaigns. May import `impl` and `model`."""
