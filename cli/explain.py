"""`foldproof explain`: why a launch gets the variant it gets, and why not another."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
import msgspec
from foldproof import __version__
from foldproof.cli.following import after_miss, after_why_not
from foldproof.cli.release import say_json, schema_option
from foldproof.cli.ui import console, say, say_next, show_table
from foldproof.impl.capture import Capture, load_capture
from foldproof.impl.cases import case_from
from foldproof.impl.errors import InvalidLaunch
from foldproof.impl.explain import Explanation, Node, decision_tree, describe_param, verdict_line
from foldproof.impl.explain import explain as explained
from foldproof.impl.launch import Launch, launch_from, launch_to, load_launches
from foldproof.impl.policy import load_policy
from foldproof.impl.select import Refused, Selection
from foldproof.impl.strictjson import located, parse, read_many
from foldproof.release.reaching import WhyNot, matching_functions, why_not
from foldproof.release.svg import svg as drawn
from foldproof.reports.write import write_folder
from rich.text import Text
from rich.tree import Tree

SCHEMA_VERSION = 1
EXAMPLE = """\b
Examples:
  foldproof explain CAPTURE launch.json
  foldproof explain CAPTURE '{"fn": "k", "args": [{"name": "R", "kind": "i32", "value": 1}]}'
  foldproof explain CAPTURE launch.json --why-not 3f56b3 --tree
  foldproof explain CAPTURE launch.json --svg decision.svg
  foldproof explain foldproof-report/cases/T01-single-guard.json --policy single-guard"""
STATES = {"picked": "bold green", "refused": "red", "passed over": "yellow", "skipped": "dim", "": "bold"}


class CandidateRow(msgspec.Struct, frozen=True):
    """One candidate: for each pass the first refusal, null where it is admissible."""

    index: int
    hash: str
    passes: dict[str, str | None]
    picked: bool


class WhyNotRow(msgspec.Struct, frozen=True):
    """Why the launch does not get one candidate, and the nearest launch that would."""

    hash: str
    refused: dict[str, tuple[str, ...]]
    instead: str
    changes: tuple[str, ...]
    reaching: dict[str, Any] | None


class Explained(msgspec.Struct, frozen=True):
    """The decision of one launch."""

    launch: dict[str, Any]
    pick: str | None
    strictness: str | None
    error: str | None
    says: str
    candidates: tuple[CandidateRow, ...]
    why_not: WhyNotRow | None


class ExplainResult(msgspec.Struct, frozen=True):
    """What `foldproof explain` says of every launch."""

    schema_version: int
    tool: str
    capture: str
    policy: str
    launches: tuple[Explained, ...]


@click.command(epilog=EXAMPLE)
@click.argument("capture", type=click.Path(path_type=Path))
@click.argument("launch", required=False)
@click.option("--policy", default="three-pass", show_default=True, help="A policy of the zoo, or a TOML file.")
@click.option("--why-not", "mark", metavar="HASH", help="Why not this candidate, and what launch would reach it.")
@click.option("--tree", is_flag=True, help="The whole decision as a tree.")
@click.option("--svg", "picture", type=click.Path(path_type=Path), help="Write the tree of the first launch as SVG.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@schema_option(ExplainResult)
def explain(  # noqa: PLR0913, PLR0917 (one parameter an option)
    capture: Path,
    launch: str | None,
    policy: str,
    mark: str | None,
    tree: bool,
    picture: Path | None,
    form: Literal["text", "json"],
) -> int:
    """Show each candidate under each pass of the policy, and the pick.

    CAPTURE is a folder with an aot.json, or that file. LAUNCH is a file of launches (JSON or NDJSON), or one
    launch as JSON text; a part of a function's name will do where only one function has it, and on a terminal one
    is asked for where several do. Without LAUNCH, CAPTURE is a file of cases, each with a launch of its own. Exit 1
    if a launch gets no variant.
    """
    rules = load_policy(policy)
    asked = _cases(capture) if launch is None else _asked(load_capture(capture), launch)
    explanations = [explained(of, one, rules) for of, one in asked]
    reasons = [why_not(of, one, mark, rules) if mark else None for of, one in asked]
    if picture is not None and asked:
        text = drawn(decision_tree(explanations[0], asked[0][1]))
        write_folder(picture.parent, {picture.name: text.encode()})
    rows = list(zip(asked, explanations, reasons, strict=True))
    if form == "json":
        said = tuple(_record(one, explanation, reason) for (_, one), explanation, reason in rows)
        say_json(ExplainResult(SCHEMA_VERSION, f"foldproof {__version__}", str(capture), rules.name, said))
    else:
        for (of, one), explanation, reason in rows:
            _show(of, one, explanation, tree, reason)
    missed = any(isinstance(explanation.outcome, Refused) for explanation in explanations)
    if missed and form == "text":
        decided = list(zip(asked, explanations, strict=True))
        words = (str(capture), launch)
        say_next(after_why_not(*words, policy) if mark else after_miss(words, (policy, rules), decided))
    return int(missed)


def _asked(capture: Capture, launch: str) -> list[tuple[Capture, Launch]]:
    return [(capture, _function_of(capture, one)) for one in _launches(launch)]


def _cases(file: Path) -> list[tuple[Capture, Launch]]:
    if file.is_dir() or file.name == "aot.json":
        raise click.UsageError("name a launch, or a file of cases instead of the capture")
    found = [located(f"{file}: {place}", partial(case_from, value)) for place, value in read_many(file)]
    return [(case.capture, case.launch) for case in found]


def _launches(text: str) -> tuple[Launch, ...]:
    if text.lstrip().startswith("{"):
        value = parse(text, "LAUNCH", InvalidLaunch)
        return (located("LAUNCH", lambda: launch_from(value)),)
    return load_launches(Path(text))


def _function_of(capture: Capture, launch: Launch) -> Launch:
    """The launch with the function that its name means; asked for on a terminal where several match."""
    found = matching_functions(capture.functions, launch.fn)
    if len(found) > 1 and sys.stdin.isatty() and sys.stdout.isatty():
        for number, fn in enumerate(found, 1):
            say(f"  {number}  {fn}")
        chosen = click.prompt(f"{launch.fn!r} is part of several functions; which", type=click.IntRange(1, len(found)))
        return msgspec.structs.replace(launch, fn=found[chosen - 1])
    return msgspec.structs.replace(launch, fn=found[0]) if len(found) == 1 else launch


def _show(capture: Capture, launch: Launch, explanation: Explanation, tree: bool, reason: WhyNot | None) -> None:
    said = [f"{arg.name}: {arg}" for arg in launch.args] + [f"{name}: const {c}" for name, c in launch.consts.items()]
    said += [f"{name} {value}" for name, value in launch.options]
    say(f"{launch.fn}({', '.join(said)})", style="bold")
    if not explanation.rows:
        near = matching_functions(capture.functions, launch.fn) or capture.functions[:12]
        say(f"the capture has no variant of {launch.fn}; it has {', '.join(near)}")
    elif tree:
        console().print(_tree(decision_tree(explanation, launch)))
    else:
        rows = [_row(capture, explanation, i) for i in range(len(explanation.rows))]
        show_table(("", "candidate", "params", *explanation.passes), rows)
    if reason is not None:
        _show_reason(reason)
    say(verdict_line(explanation))


def _tree(node: Node) -> Tree:
    made = Tree(Text(node.says, style=STATES[node.state]))
    for below in node.below:
        made.add(_tree(below))
    return made


def _show_reason(reason: WhyNot) -> None:
    if reason.instead == reason.hash:
        say(f"{reason.hash} is what the launch gets")
        return
    say(f"why not {reason.hash}:")
    for name, refused in reason.refused:
        say(f"  {name}: {'; '.join(refused) or f'admissible, and {reason.instead} is answered'}")
    if reason.reaching is None:
        say(f"  no launch of these args reaches {reason.hash} under this policy")
    elif reason.changes:
        say(f"  a launch reaches it with {'; '.join(reason.changes)}")


def _record(launch: Launch, explanation: Explanation, reason: WhyNot | None) -> Explained:
    outcome = explanation.outcome
    picked = outcome if isinstance(outcome, Selection) else None
    rows = tuple(
        CandidateRow(
            row.index,
            row.hash,
            {
                name: None if refused is None else str(refused)
                for name, refused in zip(explanation.passes, row.passes, strict=True)
            },
            row.picked,
        )
        for row in explanation.rows
    )
    return Explained(
        launch_to(launch),
        picked.variant.hash if picked else None,
        str(picked.strictness) if picked and picked.strictness else None,
        outcome.code if isinstance(outcome, Refused) else None,
        verdict_line(explanation),
        rows,
        None if reason is None else _reason_record(reason),
    )


def _reason_record(reason: WhyNot) -> WhyNotRow:
    reaching = None if reason.reaching is None else launch_to(reason.reaching)
    return WhyNotRow(reason.hash, dict(reason.refused), reason.instead, reason.changes, reaching)


def _row(capture: Capture, explanation: Explanation, number: int) -> tuple[str, ...]:
    row = explanation.rows[number]
    variant = capture.kernels[row.index]
    params = ", ".join(f"{p.name} {describe_param(p)}" for p in variant.params)
    cells = ("admissible" if refusal is None else str(refusal) for refusal in row.passes)
    return ("picked" if row.picked else "", row.hash, params, *cells)
