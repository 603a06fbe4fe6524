"""`cases.ndjson.gz`: every counterexample and finding, a line each, which `foldproof select --cases` reads as it is."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

from foldproof.impl.errors import FoldproofError
from foldproof.impl.strictjson import parse
from foldproof.reports.events import CaseFound
from foldproof.reports.evidence import Fact
from foldproof.reports.view import Report


def cases(report: Report, read: Callable[[str], bytes]) -> bytes:
    """The file. `read` gives the bytes of a case file by its path below the evidence folder.

    A line is the case itself with a field `evidence`: where it was found, what was expected and what came. Where its
    file is absent or holds no case, `capture` and `launch` are null and `evidence.missing` says why. Equal reports
    give equal bytes: the packed file holds no time and no name.
    """
    lines = [_line(one) for fact, e in report.found.of(CaseFound) for one in _cases(fact, e, read)]
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=6, mtime=0) as stream:
        stream.write(b"".join(lines))
    return packed.getvalue()


def _line(value: dict[str, Any]) -> bytes:
    # ASCII, so that no name can reorder or break the lines of a terminal or an editor.
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def _cases(fact: Fact, event: CaseFound, read: Callable[[str], bytes]) -> Iterator[dict[str, Any]]:
    about = {
        "stage": event.stage,
        "title": event.title,
        "theorem": event.theorem,
        "policy": event.policy,
        "policy_sha256": event.policy_sha256,
        "old": event.old,
        "why": event.why,
        "expected": event.expected,
        "got": event.got,
        "stale": fact.stale,
        "file": event.file.path,
        "sha256": event.file.sha256,
        "record": fact.digest,
    }
    try:
        value = parse(read(event.file.path), event.file.path)
    except FoldproofError as problem:
        yield {"name": event.title, "capture": None, "launch": None, "evidence": {**about, "missing": problem.why}}
        return
    for one in value if isinstance(value, list) else [value]:
        held = one if isinstance(one, dict) else {"name": event.title, "capture": None, "launch": None}
        yield {**held, "evidence": about if held is one else {**about, "missing": "holds no case"}}
