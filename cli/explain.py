"""`foldproof explain`: why a launch gets the variant it gets."""

from __future__ import annotations

from pathlib import Path

import click
from foldproof.cli.ui import say, show_table
from foldproof.impl.capture import Capture, load_capture
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.explain import Explanation, describe_param, verdict_line
from foldproof.impl.explain import explain as explained
from foldproof.impl.launch import Launch, launch_from, load_launches
from foldproof.impl.policy import Policy, load_policy
from foldproof.impl.select import Refused
from foldproof.impl.strictjson import located, parse

EXAMPLE = """\b
Examples:
  foldproof explain CAPTURE launch.json
  foldproof explain CAPTURE '{"fn": "k", "args": [{"name": "R", "kind": "i32", "value": 1}]}'"""


@click.command(epilog=EXAMPLE)
@click.argument("capture", type=click.Path(path_type=Path))
@click.argument("launch")
@click.option("--policy", default="three-pass", show_default=True, help="A policy of the zoo, or a TOML file.")
def explain(capture: Path, launch: str, policy: str) -> int:
    """Show each candidate under each pass of the policy, and the pick.

    CAPTURE is a folder with an aot.json, or that file. LAUNCH is a file of launches (JSON or NDJSON), or one
    launch as JSON text. Exit 1 if a launch gets no variant.
    """
    rules, loaded, launches = load_policy(policy), load_capture(capture), _launches(launch)
    missed = [_show(loaded, one, rules) for one in launches]
    return int(any(missed))


def _launches(text: str) -> tuple[Launch, ...]:
    if text.lstrip().startswith("{"):
        value = parse(text, "LAUNCH", InvalidLaunch)
        return (located("LAUNCH", lambda: launch_from(value)),)
    return load_launches(Path(text))


def _show(capture: Capture, launch: Launch, policy: Policy) -> bool:
    explanation = explained(capture, launch, policy)
    said = [f"{arg.name}: {arg}" for arg in launch.args] + [f"{name}: const {c}" for name, c in launch.consts.items()]
    said += [f"{name} {value}" for name, value in launch.options]
    say(f"{launch.fn}({', '.join(said)})", style="bold")
    if explanation.rows:
        rows = [_row(capture, explanation, i) for i in range(len(explanation.rows))]
        show_table(("", "candidate", "params", *explanation.passes), rows)
    else:
        say(f"the capture has no variant of {launch.fn}; it has {', '.join(capture.functions[:12])}")
    say(verdict_line(explanation))
    return isinstance(explanation.outcome, Refused)


def _row(capture: Capture, explanation: Explanation, number: int) -> tuple[str, ...]:
    row = explanation.rows[number]
    variant = capture.kernels[row.index]
    params = ", ".join(f"{p.name} {describe_param(p)}" for p in variant.params)
    cells = ("admissible" if refusal is None else str(refusal) for refusal in row.passes)
    return ("picked" if row.picked else "", row.hash, params, *cells)
