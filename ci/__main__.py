"""`python -m foldproof.ci run|comment|verdict`: the steps of a pipeline, told everything by the environment."""

from __future__ import annotations

import os
import sys

from foldproof.ci import comment, steps, verdict

STEPS = {"run": steps.run, "comment": comment.post, "verdict": verdict.judge}


def main(words: list[str]) -> int:
    """Do the step that the one word names; its exit code, or 2 with the usage."""
    if len(words) != 1 or words[0] not in STEPS:
        sys.stderr.write(f"usage: python -m foldproof.ci {'|'.join(STEPS)}\n")
        return 2
    return STEPS[words[0]](os.environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
