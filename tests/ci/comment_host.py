"""A server on this machine that plays the comments of GitHub's and GitLab's interfaces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

GITHUB = re.compile(
    r"/repos/owner/repository/issues/(?P<number>\d+)/comments|/repos/owner/repository/issues/comments/(?P<id>\d+)"
)
GITLAB = re.compile(r"/projects/5/merge_requests/(?P<number>\d+)/notes(?:/(?P<id>\d+))?")
TOKEN = "token-of-the-job"  # noqa: S105 (of a host that is played)


@dataclass
class Host:
    """Comments, requests, and how the host is minded.

    `refuse` is the status of each write, `bot` whether the token is a job's.
    """

    address: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    refuse: int = 0
    redirect: str = ""
    bot: bool = True
    me: str = "releaser"

    def add(self, body: str, login: str, *, bot: bool = False) -> dict[str, Any]:
        """A comment of somebody."""
        person = {"login": login, "username": login, "type": "Bot" if bot else "User"}
        comment = {"id": 100 + len(self.comments), "body": body, "user": person, "author": person, "system": False}
        self.comments.append(comment)
        return comment

    def answer(self, method: str, target: str, token: str, body: str) -> tuple[int, Any]:
        """Status and value."""
        self.requests.append((method, target))
        url = urlsplit(target)
        if token != TOKEN:
            return 401, {"message": "Bad credentials"}
        if url.path == "/user":
            return (403, {}) if self.bot else (200, {"login": self.me, "username": self.me})
        found = GITHUB.fullmatch(url.path) or GITLAB.fullmatch(url.path)
        if not found:
            return 404, {"message": "Not Found"}
        if method == "GET":
            query = parse_qs(url.query)
            size, page = int(query["per_page"][0]), int(query["page"][0])
            return 200, self.comments[size * (page - 1) : size * page]
        if self.refuse:
            return self.refuse, {"message": "Resource not accessible by integration"}
        text = json.loads(body)["body"]
        if method == "POST":
            return 201, self.add(text, "github-actions[bot]" if self.bot else self.me, bot=self.bot)
        assert method == ("PATCH" if "/repos/" in url.path else "PUT")
        comment = next(c for c in self.comments if c["id"] == int(found["id"]))
        comment["body"] = text
        return 200, comment


@contextmanager
def playing() -> Iterator[Host]:
    """The host, reachable at `address` while the block runs."""
    host = Host()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            token = self.headers.get("PRIVATE-TOKEN") or self.headers.get("Authorization", "").removeprefix("Bearer ")
            status, value = host.answer(self.command, self.path, token, body)
            content = json.dumps(value).encode()
            self.send_response(302 if host.redirect else status)
            if host.redirect:
                self.send_header("Location", host.redirect)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = _any  # noqa: N815 (names that the base class calls)

        def log_message(self, *_: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
