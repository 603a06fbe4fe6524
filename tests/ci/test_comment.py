"""The one comment: written, updated in place, never somebody else's, and no reason for a job to fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from comment_host import TOKEN, Host, playing
from foldproof.ci import comment
from foldproof.ci.sticky import quiet

EVENT = {"pull_request": {"number": 7, "head": {"sha": "abc", "repo": {"full_name": "owner/repository"}}}}


@pytest.fixture
def host() -> Iterator[Host]:
    with playing() as played:
        yield played


@pytest.fixture
def github(tmp_path: Path, host: Host) -> dict[str, str]:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "receipt.md").write_text("# all holds\n")
    (tmp_path / "event.json").write_text(json.dumps(EVENT))
    return {
        "GITHUB_API_URL": host.address,
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_REPOSITORY": "owner/repository",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_RUN_ID": "17",
        "FOLDPROOF_HOME": str(tmp_path / "report"),
        "FOLDPROOF_TOKEN": TOKEN,
    }


@pytest.fixture
def gitlab(github: dict[str, str], host: Host) -> dict[str, str]:
    host.bot = False
    ours = {name: value for name, value in github.items() if name.startswith("FOLDPROOF")}
    job = {"CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "7", "CI_API_V4_URL": host.address}
    return ours | job | {"CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "5", "CI_JOB_URL": "https://gitlab.example/j/1"}


def says(folder: str, text: str) -> None:
    Path(folder, "receipt.md").write_text(text)


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_it_is_written_once_and_updated_after_that(
    kind: str, host: Host, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    env = request.getfixturevalue(kind)
    host.add("a person's words", "somebody")
    assert comment.post(env) == 0
    assert [c["body"].splitlines()[:2] for c in host.comments[1:]] == [["<!-- foldproof: foldproof -->", "# all holds"]]
    says(env["FOLDPROOF_HOME"], "# something fails\n")
    assert comment.post(env) == 0
    assert len(host.comments) == 2
    assert "# something fails" in host.comments[1]["body"]
    assert "all holds" not in host.comments[1]["body"]
    assert host.comments[0]["body"] == "a person's words"
    assert TOKEN not in capsys.readouterr().out + host.comments[1]["body"]


def test_it_is_found_on_a_later_page(host: Host, github: dict[str, str]) -> None:
    for n in range(130):
        host.add(f"comment {n}", "somebody")
    comment.post(github)
    comment.post(github)
    assert len(host.comments) == 131


def test_jobs_with_keys_of_their_own_keep_comments_of_their_own(host: Host, github: dict[str, str]) -> None:
    for key in ("one", "two", "one"):
        comment.post(github | {"FOLDPROOF_COMMENT_KEY": key})
    assert [c["body"].splitlines()[0] for c in host.comments] == ["<!-- foldproof: one -->", "<!-- foldproof: two -->"]


@pytest.mark.parametrize("bot", [True, False])
def test_a_person_who_writes_the_mark_does_not_get_their_comment_overwritten(
    bot: bool, host: Host, github: dict[str, str]
) -> None:
    host.bot = bot
    forged = host.add("<!-- foldproof: foldproof -->\nmine", "somebody")
    comment.post(github)
    comment.post(github)
    assert forged["body"].endswith("mine")
    assert len(host.comments) == 2


@pytest.mark.parametrize("status", [401, 403, 404, 422, 500])
def test_a_token_that_may_not_write_fails_nothing(
    status: int, host: Host, github: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    host.refuse = status
    assert comment.post(github) == 0
    assert f"warning: no comment: the host answers {status}" in capsys.readouterr().out
    assert host.comments == []


def test_a_host_that_is_not_there_fails_nothing(github: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert comment.post(github | {"GITHUB_API_URL": "http://127.0.0.1:9"}) == 0
    assert comment.post(github | {"GITHUB_API_URL": "file:///etc"}) == 0
    told = capsys.readouterr().out
    assert told.count("warning: no comment") == 2
    assert "is not http(s)" in told


def test_the_token_does_not_follow_a_redirect(host: Host, github: dict[str, str]) -> None:
    with playing() as other:
        host.redirect = f"{other.address}/user"
        assert comment.post(github) == 0
        assert host.requests
        assert other.requests == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"FOLDPROOF_TOKEN": ""}, "no token"),
        ({"GITHUB_EVENT_PATH": "/nonexistent"}, "no pull request"),
        ({"GITHUB_REPOSITORY": "fork/repository"}, "fork"),
        ({"FOLDPROOF_COMMENT_KEY": "--> <b>"}, "comment key"),
    ],
)
def test_without_what_it_needs_nothing_is_sent_to_github(
    change: dict[str, str], reason: str, host: Host, github: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert comment.post(github | change) == 0
    assert reason in capsys.readouterr().out
    assert host.requests == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"FOLDPROOF_TOKEN": ""}, "no token"),
        ({"CI_MERGE_REQUEST_IID": ""}, "no pipeline of a merge request"),
        ({"CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "6"}, "fork"),
    ],
)
def test_without_what_it_needs_nothing_is_sent_to_gitlab(
    change: dict[str, str], reason: str, host: Host, gitlab: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert comment.post(gitlab | change) == 0
    assert reason in capsys.readouterr().out
    assert host.requests == []


def test_a_fork_that_was_deleted_is_a_fork(host: Host, github: dict[str, str]) -> None:
    event = {"pull_request": {"number": 7, "head": {"sha": "abc", "repo": None}}}
    Path(github["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    assert comment.post(github) == 0
    assert host.requests == []


def test_a_receipt_that_is_too_long_gives_way_to_the_summary(host: Host, github: dict[str, str]) -> None:
    says(github["FOLDPROOF_HOME"], "x" * 70_000)
    Path(github["FOLDPROOF_HOME"], "summary.md").write_text("short\n")
    comment.post(github)
    assert host.comments[0]["body"].splitlines()[1] == "short"
    assert len(host.comments[0]["body"]) < 65_536


def test_without_a_report_the_comment_says_so(host: Host, github: dict[str, str]) -> None:
    Path(github["FOLDPROOF_HOME"], "receipt.md").unlink()
    comment.post(github)
    assert "wrote no report" in host.comments[0]["body"]
    assert "https://github.example/owner/repository/actions/runs/17" in host.comments[0]["body"]


def test_no_name_calls_a_person_links_an_issue_or_is_a_quick_action() -> None:
    text = "kernel @owner/team, \\@all and \\#12, !34\n/approve\n"
    code = "```sh\necho @user #1\n/usr/bin/x\n```\nx@y.z 5 # 6 &#64;\n"
    made = quiet(text + code)
    assert made.replace("\u200b", "") == text + code
    for sign in ("@owner", "@all", "#12", "!34"):
        assert sign not in made
    assert "\n/approve" not in made
    assert made.endswith(code)
