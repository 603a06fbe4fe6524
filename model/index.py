"""The index from each English sentence to its formula, proof and checks, as Markdown; `docs/reference/theorems.md`.

python -m foldproof.model.index > docs/reference/theorems.md
"""

from __future__ import annotations

import sys

from foldproof.impl.policy import ZOO, zoo_policy
from foldproof.model.mutants import TELLING
from foldproof.model.theorems import THEOREMS

HEAD = """# The theorems

One id and one sentence each, the same in the code, the reports and here. The formula is the function of that name in
`model/statements.py`; the unbounded proof is its statement over `model/abstract.py`; the executable check is the
function of that name in `props/checks.py`. The mutants named are tried first to show that a proof is not vacuous.
"""


def index() -> str:
    """The text of the index."""
    rows = [HEAD]
    for theorem in THEOREMS.values():
        promised = [name for name in ZOO if any(p.partition(":")[0] == theorem.id for p in zoo_policy(name).promises)]
        key = theorem.id.lower()
        rows.append(
            f"## {theorem.id} {theorem.name}\n\n{theorem.sentence}\n\n"
            f"- formula: `model.statements.{key}`\n"
            f"- check: `props.checks._{key}`\n"
            f"- scripts: `smt/theorem-{theorem.id}-POLICY{'-over-OLD' if theorem.pairwise else ''}.smt2`\n"
            f"- mutants: {', '.join(TELLING[theorem.id])}\n"
            f"- promised by: {', '.join(promised) or 'none'}\n"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(index())
