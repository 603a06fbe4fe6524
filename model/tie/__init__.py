"""The tie: the Python rules of `impl`, run on symbols, proved equal to the formulas of `model`."""
