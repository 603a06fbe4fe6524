"""One comment that is written anew each time: the places of GitHub and GitLab where it lies, and its text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
from foldproof.ci.host import Env
from foldproof.ci.settings import TOKEN

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_KEY = re.compile(r"[\w.-]{1,60}")
SHOWN = ("receipt.md", "summary.md")
"""What a comment shows: the first that fits."""
_UNSEEN = "\u200b"
_PINGS = re.compile(r"(?<![\w`&])(\\?[@!~%]|\\?#)(?=\w)")


class Skip(Exception):
    """Why no comment is written."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the comments of one pull or merge request are, and the words that the host's interface has for them."""

    comments: str
    one: str
    me: str
    headers: dict[str, str] = field(repr=False)
    update: Literal["PATCH", "PUT"]
    author: Literal["user", "author"]
    login: Literal["login", "username"]
    limit: int


def place(env: Env) -> Place:
    """The place that the environment of the job names. Raises `Skip` where there is none that may be written."""
    token = env.get(TOKEN, "")
    if env.get("CI_PROJECT_ID"):
        return _gitlab(env, token)
    return _github(env, token)


def _github(env: Env, token: str) -> Place:
    repository = env.get("GITHUB_REPOSITORY", "")
    pull = _event(env).get("pull_request")
    if not isinstance(pull, dict) or not isinstance(pull.get("number"), int):
        raise Skip("this is no pull request")
    head = pull.get("head") or {}
    if (head.get("repo") or {}).get("full_name") != repository:
        raise Skip("the pull request comes from a fork, whose token may not write; the step summary has the report")
    if not token:
        raise Skip("no token is given")
    if not _REPOSITORY.fullmatch(repository):
        raise Skip("GITHUB_REPOSITORY is no owner/name")
    root = f"{env.get('GITHUB_API_URL') or 'https://api.github.com'}/repos/{repository}/issues"
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    comments = f"{root}/{pull['number']}/comments"
    me = f"{env.get('GITHUB_API_URL') or 'https://api.github.com'}/user"
    return Place(comments, f"{root}/comments", me, headers, "PATCH", "user", "login", 65_000)


def _gitlab(env: Env, token: str) -> Place:
    number, project = env.get("CI_MERGE_REQUEST_IID", ""), env["CI_PROJECT_ID"]
    if not (number.isdecimal() and project.isdecimal()):
        raise Skip("this is no pipeline of a merge request")
    if env.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", project) != project:
        raise Skip("the merge request comes from a fork; the job's artifacts have the report")
    if not token:
        raise Skip("no token is given")
    root = env.get("CI_API_V4_URL", "")
    comments = f"{root}/projects/{project}/merge_requests/{number}/notes"
    return Place(comments, comments, f"{root}/user", {"PRIVATE-TOKEN": token}, "PUT", "author", "username", 900_000)


def _event(env: Env) -> dict[str, Any]:
    try:
        event = msgspec.json.decode(Path(env.get("GITHUB_EVENT_PATH") or "/nonexistent").read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return event if isinstance(event, dict) else {}


def marker(env: Env) -> str:
    """The first line of the comment, not shown: by it a later run finds the comment again."""
    key = env.get("FOLDPROOF_COMMENT_KEY", "") or "foldproof"
    if not _KEY.fullmatch(key):
        raise Skip("the comment key is not of letters, digits, '.', '_' and '-'")
    return f"<!-- foldproof: {key} -->"


def body(env: Env, folder: Path, limit: int) -> str:
    """The comment: the receipt, or the summary where that is too long, and the run that it comes from.

    `folder` has what the step `run` found new; an empty file is a text that there is not.
    """
    last = f"\n\n{_origin(env)}\n"
    for name in SHOWN:
        file = folder / name
        text = quiet(file.read_text(encoding="utf-8", errors="replace")) if file.is_file() else ""
        whole = f"{marker(env)}\n{text}{last}"
        if text and len(whole) <= limit:
            return whole
    return f"{marker(env)}\n**foldproof** wrote no report that fits here; the log of the run says why.{last}"


def _origin(env: Env) -> str:
    if env.get("CI_JOB_URL"):
        return f"From [job {env.get('CI_JOB_ID', '')}]({env['CI_JOB_URL']}), commit {env.get('CI_COMMIT_SHA', '')}."
    server, repository, run = (env.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    head = (_event(env).get("pull_request") or {}).get("head") or {}
    return f"From [run {run}]({server}/{repository}/actions/runs/{run}), commit {head.get('sha', '')}."


def quiet(text: str) -> str:
    """`text`, so that no name in it calls a person, links an issue or is a quick action: hosts do so in plain text.

    An unseen character goes behind the sign; code between fences is left alone, as the hosts leave it.
    """
    lines, fence = [], ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence:
            line = _PINGS.sub(rf"\1{_UNSEEN}", line)  # noqa: PLW2901 (the line as it is written)
            line = _UNSEEN + line if line.startswith("/") else line  # noqa: PLW2901 (as above)
        lines.append(line)
    return "".join(lines)
