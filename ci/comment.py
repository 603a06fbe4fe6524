"""The step `comment`: write the one comment, or update it. Whatever the host answers, the job goes on."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import IO, Any

import msgspec
from foldproof.ci.host import Env, tell
from foldproof.ci.sticky import Place, Skip, body, marker, place
from foldproof.ci.verdict import codes_file
from foldproof.impl.errors import FoldproofError

_PAGE, _PAGES, _TIMEOUT = 100, 50, 30
_ANSWER_BYTES = 32 * 1024 * 1024


class _Stay(urllib.request.HTTPRedirectHandler):
    """No redirect is followed: it would carry the token to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)


def post(env: Env) -> int:
    """Write or update the comment of FOLDPROOF_COMMENT_KEY from what `run` left in FOLDPROOF_HOME. Always 0.

    A verdict is not to hang on a token's rights: what hinders the comment is told as a notice or a warning.
    """
    try:
        at, mark = place(env), marker(env)
        text = body(env, codes_file(env).parent, at.limit)
        found = _find(at, mark)
        if found is None:
            _ask(at, "POST", at.comments, {"body": text})
        else:
            _ask(at, at.update, f"{at.one}/{found}", {"body": text})
    except Skip as reason:
        tell(env, "notice", f"no comment: {reason}")
    except urllib.error.HTTPError as problem:
        hint = " (the token may not write comments)" if problem.code in (401, 403, 404) else ""
        tell(env, "warning", f"no comment: the host answers {problem.code}{hint}")
    except FoldproofError as problem:
        tell(env, "warning", f"no comment: {problem}")
    except (OSError, ValueError) as problem:
        tell(env, "warning", f"no comment: {type(problem).__name__}: {problem}")
    else:
        tell(env, "notice", "the comment is updated" if found else "the comment is written")
    return 0


def _find(at: Place, mark: str) -> int | None:
    """The id of our own comment with the mark: anybody can write the mark, so the author counts too."""
    me: str | None = None
    for comment in _comments(at):
        if not str(comment.get("body") or "").startswith(mark) or comment.get("system"):
            continue
        author = comment.get(at.author) or {}
        if author.get("type") == "Bot":
            return int(comment["id"])
        me = _who(at) if me is None else me
        if me and author.get(at.login) == me:
            return int(comment["id"])
    return None


def _comments(at: Place) -> Iterator[dict[str, Any]]:
    for page in range(1, _PAGES + 1):
        found = _ask(at, "GET", f"{at.comments}?per_page={_PAGE}&page={page}")
        if not isinstance(found, list):
            raise ValueError("the host's list of comments is no list")  # noqa: TRY004 (the answer is bad, not a type)
        yield from (comment for comment in found if isinstance(comment, dict))
        if len(found) < _PAGE:
            return


def _who(at: Place) -> str:
    """The name that the token speaks for; empty where the host does not tell, as GitHub does not tell a job's token."""
    try:
        answer = _ask(at, "GET", at.me)
    except urllib.error.HTTPError:
        return ""
    return str(answer.get(at.login) or "") if isinstance(answer, dict) else ""


def _ask(at: Place, method: str, url: str, value: object = None) -> Any:
    if not url.startswith(("https://", "http://")):
        raise ValueError("the address of the host's interface is not http(s)")
    data = None if value is None else msgspec.json.encode(value)
    headers = at.headers | {"User-Agent": "foldproof", "Content-Type": "application/json"}
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 (http or https, see above)
    answer: IO[bytes]
    with _OPENER.open(request, timeout=_TIMEOUT) as answer:
        return msgspec.json.decode(answer.read(_ANSWER_BYTES) or b"null")
