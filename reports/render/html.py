"""`report.html`: one file that needs no network, readable by a release manager in ten seconds, verdict first.

The page runs one small script, and its own policy lets the browser run no other: names in a report come from captures
and command lines, and must stay text. What is shown is in `grids` and `sections`; the page around it in `templates/`.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any

from foldproof.reports.limits import limits
from foldproof.reports.render import grids, sections
from foldproof.reports.render.grid import COMMAND, FIRST_ROWS, Budget, short, shown, tone
from foldproof.reports.tables import tables
from foldproof.reports.view import EXIT_FAILS, EXIT_HOLDS, Report
from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

_PARTS = ("report.html.j2", "report_parts.html.j2", "report.css", "report.js")
_POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; img-src data:; base-uri 'none'; form-action 'none'"
)


def html(report: Report) -> str:
    """The text of `report.html`. Two calls give the same bytes."""
    folder = resources.files("foldproof.reports") / "templates"
    parts = {name: (folder / name).read_text("utf-8") for name in _PARTS}
    environment = Environment(
        loader=DictLoader(parts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"shown": shown, "short": short, "tone": tone, "command": lambda text: shown(text, COMMAND)}
    environment.globals |= {"zip": zip, "command_length": COMMAND, "first_rows": FIRST_ROWS}
    style, script = Markup(parts["report.css"]), Markup(parts["report.js"])  # noqa: S704 (our own files)
    policy = _POLICY.format(style=_source(style), script=_source(script))
    page = environment.get_template("report.html.j2")
    return page.render(style=style, script=script, policy=policy, **context(report))


def context(report: Report) -> dict[str, Any]:
    """What the template shows. Tables take from one budget in the order in which a reader needs them."""
    made, budget = tables(report), Budget()
    obligations = grids.obligations(report, budget)
    owed = grids.plain("owed", "What nothing shows, and what would", made["owed"], budget)
    changes = grids.changes(made["changes"], budget)
    scope = grids.plain("scope", "Captures, policies and selectors, by sha256", made["scope"], budget)
    cases = sections.cases(report, budget)
    links = {view.event.file.path: view.id for view in cases}
    return {
        "report": report,
        "verdict": {EXIT_HOLDS: "holds", EXIT_FAILS: "fails"}.get(report.exit_code, "owed"),
        "counts": {word: sum(row.verdict == word for row in report.rows) for word in ("holds", *grids.ORDER)},
        "last": report.found.runs[-1] if report.found.runs else None,
        "stale": sum(bool(fact.stale) for fact in report.found.facts),
        "matrix": sections.matrix(report, links, sections.policy_numbers(report)),
        "cases": cases,
        "cases_left_out": len(report.cases()) - len(cases),
        "campaign_views": sections.campaigns(report),
        "limits": limits(report),
        "grids": {
            "obligations": obligations,
            "owed": owed,
            "changes": changes,
            "scope": scope,
            "theorems": grids.theorems(report, made["theorems"], links, budget),
            "bytes_by_function": grids.bytes_by_function(made["bytes"], budget),
            "bytes": grids.byte_verdicts(report, made["bytes"], budget),
            "devices": grids.plain("devices", "Runs that gave byte verdicts", made["devices"], budget, "state"),
            "launches": grids.launches(made["launches"], budget),
            "campaigns": grids.plain(
                "campaigns", "What ran against what, and what it saw", made["campaigns"], budget, "state"
            ),
            "mutants": grids.mutants(made["mutants"], budget),
            "scripts": grids.scripts(made["scripts"], budget),
            "runs": grids.plain("runs", "Runs", made["runs"], budget, "state"),
            "versions": grids.plain("versions", "Versions of the newest run", made["versions"], budget),
        },
    }


def _source(text: str) -> str:
    """The text as a source of a content security policy: its sha256."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
