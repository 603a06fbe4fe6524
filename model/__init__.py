"""The rules, policies and theorems as Z3 formulas; proofs and counterexamples. May import `impl` alone."""
