"""Every command of the docs is parsed by the verb that it names, and run unless a mark gives the reason why not."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from docs.pages import (
    FENCE,
    REASONS,
    ROOT,
    SHELLS,
    Command,
    blocks,
    commands,
    inline_commands,
    name_of,
    output_pattern,
    pages,
    without_heredocs,
)
from docs.stand_ins import WORDS, build_libraries, furnish, needs_libraries
from foldproof.cli.main import cli

PAGES = pages()
OPERATORS = set("();<>|&\n")
SECONDS = 170
"""The longest that one command may take."""


def commands_of(page: Path) -> list[Command]:
    return [command for block in blocks(page.read_text()) for command in commands(block)]


RUN = [page for page in PAGES if any(not command.mark.reason for command in commands_of(page))]


def parse(text: str) -> None:
    """Every call of `foldproof` in a shell command, quoted ones too. Raises `click.ClickException`."""
    words = shlex.shlex(text, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    call: list[str] = []
    for word in [*words, ";"]:
        if set(word) <= OPERATORS:
            _parse_call(call)
            call = []
        else:
            call.append(word)
        if " " in word and word.startswith(("foldproof ", "python ")):
            parse(word)


def _parse_call(call: list[str]) -> None:
    for at, word in enumerate(call):
        if word == "-m" and call[at + 1].startswith("foldproof."):
            assert importlib.util.find_spec(call[at + 1]), f"no module {call[at + 1]}"
        if Path(word).name == "foldproof" and at + 1 < len(call) and (at == 0 or "=" in call[at - 1]):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(click.exceptions.Exit):
                _parse_verb(cli, call[at + 1 :])


def _parse_verb(group: click.Group, words: list[str]) -> None:
    if words[0].startswith("-"):
        group.make_context("foldproof", list(words))
        return
    verb = group.get_command(click.Context(group), words[0])
    if verb is None:
        raise click.UsageError(f"no verb {words[0]}")
    if isinstance(verb, click.Group) and words[1:]:
        _parse_verb(verb, words[1:])
    else:
        verb.make_context(words[0], list(words[1:]))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_verb_and_option_in_a_block_of_a_page_exists(page: Path) -> None:
    for command in commands_of(page):
        text = without_heredocs(command.text)
        try:
            parse(text)
        except click.ClickException as problem:
            pytest.fail(f"{name_of(page)}:{command.line}: {text}: {problem.format_message()}")
        checked = subprocess.run(["bash", "-n", "-c", command.text], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, f"{name_of(page)}:{command.line}: {checked.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_verb_and_option_that_the_text_of_a_page_names_exists(page: Path) -> None:
    for command in inline_commands(page.read_text()):
        try:
            # The text may name a verb without what it needs, and an option without its value.
            with contextlib.suppress(click.MissingParameter, click.BadOptionUsage):
                parse(command)
        except click.ClickException as problem:
            pytest.fail(f"{name_of(page)}: {command}: {problem.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_mark_has_a_known_reason_and_a_command(page: Path) -> None:
    text = page.read_text()
    found = [block for block in blocks(text) if block.marks]
    for block in found:
        assert block.language in SHELLS, f"{name_of(page)}:{block.line}: a mark above a block that is no shell block"
        texts = [command.text for command in commands(block)]
        for mark in block.marks:
            where = f"{name_of(page)}:{block.line}"
            assert not mark.reason or any(word in mark.reason for word in REASONS), f"{where}: {mark.reason}"
            assert any(command.startswith(mark.start) for command in texts), f"{where}: nothing begins {mark.start}"
    written = len(re.findall(r"^ *<!-- (?:exits|not run)", FENCE.sub("", text), re.MULTILINE))
    assert written == sum(len(block.marks) for block in found), f"{name_of(page)}: a mark that stands above no block"


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    furnish(tmp_path)
    to_run = [command for command in commands_of(page) if not command.mark.reason]
    for tool in ("cc", "git"):
        if any(command.text.startswith(f"{tool} ") for command in to_run) and shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    if needs_libraries([command.text for command in to_run]) and (why := build_libraries(tmp_path)):
        pytest.skip(why)
    for block in blocks(page.read_text()):
        _write_named_file(block.language, block.text, tmp_path)
    for command in to_run:
        _run(command, page, tmp_path)


def _write_named_file(language: str, text: str, folder: Path) -> None:
    """A TOML or Python block whose first line is a comment with a file's name is that file."""
    named = re.match(r"# ([\w./-]+\.(?:toml|py))\n", text)
    if language in {"toml", "python"} and named:
        (folder / named[1]).write_text(text)


def _run(command: Command, page: Path, folder: Path) -> None:
    text = command.text
    for word, value in WORDS.items():
        text = re.sub(rf"\b{word}\b", value, text)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | {"PATH": path}
    with subprocess.Popen(
        ["bash", "-e", "-o", "pipefail", "-c", text],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        output, _ = running.communicate(timeout=SECONDS)
    where = f"{name_of(page)}:{command.line}: {command.text}"
    assert running.returncode == command.mark.exit, f"{where}\nexit code {running.returncode}\n{output}"
    assert output_pattern(command.shown).search(output), f"{where}\nthe page shows other output than\n{output}"


def test_marks_and_output_are_read_as_they_are_documented() -> None:
    page = (
        "1. text\n\n   <!-- exits 1: foldproof diff -->\n   <!-- not run (minutes): foldproof prove -->\n"
        "   ```console\n   $ foldproof diff A B\n   two ... differ\n   $ foldproof prove \\\n     --json\n"
        "   $ cat <<'END'\n   $ no command\n   END\n   ```\n"
    )
    (block,) = blocks(page)
    first, second, third = commands(block)
    assert (first.text, first.mark.exit, first.mark.reason) == ("foldproof diff A B", 1, "")
    assert (second.text, second.mark.reason) == ("foldproof prove \\\n  --json", "minutes")
    assert third.text.endswith("\nEND")
    assert without_heredocs(third.text) == "cat <<'END'"
    assert output_pattern(first.shown).search("two regions  differ")
    assert not output_pattern(first.shown).search("two regions agree")
    assert inline_commands("run `foldproof\nbits` now\n```sh\n`foldproof not`\n```\n") == ["foldproof bits"]


@pytest.mark.parametrize(
    "text",
    [
        "foldproof no-such-verb",
        "foldproof fuzz --no-such-option 3",
        "foldproof select",
        "foldproof check && foldproof lint",
        "foldproof fuzz --selector 'foldproof serve --polcy single-guard'",
        "foldproof capture bild",
    ],
)
def test_a_wrong_command_is_caught(text: str) -> None:
    with pytest.raises(click.ClickException):
        parse(text)


def test_the_pages_are_found() -> None:
    assert ROOT / "README.md" in PAGES
    assert len(RUN) > 5
