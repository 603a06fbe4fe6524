"""A log read back: what the reference writes is read as it was, and patterns are the user's own."""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic

import pytest
from foldproof.impl import FoldproofError, InvalidLaunch, Launch, Selection, decide, load_policy
from foldproof.impl.select import fallback_line, miss_text
from foldproof.props.generate import make_case, seeded
from foldproof.release import classes, logs
from foldproof.release.classes import class_key, grouped
from foldproof.release.coverage import coverage
from foldproof.release.launches import Counted
from foldproof.release.log_lines import lines_of
from foldproof.release.logs import (
    FALLBACK,
    MISSING,
    MOST_ARGS,
    Fallback,
    Reader,
    fallback_launch,
    launches_of,
    read_log,
)
from helpers import capture, i32, launch, param, ptr, variant

THREE_PASS = load_policy("three-pass")
CAPTURE = capture(
    variant("fold", param("P", "*bf16", div16=True), param("N"), consts={"R": {"int": 1}}),
    variant("read", param("P", "*bf16", div16=True), param("N"), param("R")),
)


def test_the_reference_s_own_lines_are_read_back() -> None:
    lines, classes, fallbacks = [], [], 0
    choose = seeded(4)
    for number in range(400):
        case = make_case(choose, name=str(number))
        outcome = decide(case.capture, case.launch, THREE_PASS)
        lines.append(f"2026-12-01 12:00:00 WARN engine: step {number}\n")
        if isinstance(outcome, Selection):
            lines += [f"WARN {line}\n" for line in outcome.log]
            fallbacks += len(outcome.log)
        else:
            lines += [f"ERROR engine: {miss_text(case.launch)}\n".splitlines(keepends=True)[0]]
            lines += [f"{line}\n" for line in miss_text(case.launch).splitlines()[1:]]
            classes.append(class_key(case.launch))
    events = read_log(lines)
    assert events.unread == ()
    assert sum(f.count for f in events.fallbacks) == fallbacks > 10
    assert {class_key(m.launch) for m in events.misses} == set(classes)
    assert sum(m.count for m in events.misses) == len(classes) > 50


def test_a_line_without_names_is_read_too() -> None:
    line = "aot: k runs variant ab12, its 1 read at runtime (the capture holds no folded variant of it)"
    events = read_log([line, line, fallback_line("k", "ab12", ("R", "S"))])
    assert events.fallbacks == (Fallback("k", "ab12", (), 2, 1, 2), Fallback("k", "ab12", ("R", "S"), 1, 3, 3))


DUMPS = {
    "ours": "  arg P: *bf16 at 0x1000\n  arg N: i32 = 7\n",
    "bare": "    P: *bf16 align16=true\n    N = 7\n",
    "called": "  P: *bf16 (aligned)\n  N: i32(7)\n",
    "stamped": "12:00 ERR   arg P: *bf16 at 0x2000\n12:00 ERR   arg N: i32 7\n",
}


@pytest.mark.parametrize("name", DUMPS)
def test_dumps_of_several_styles_are_one_launch(name: str) -> None:
    text = f"x no captured Triton variant of k for this launch:\n{DUMPS[name]}  done: in 3 ms\nnext line\n"
    events = read_log(text.splitlines(keepends=True))
    assert events.unread == ()
    (miss,) = events.misses
    assert class_key(miss.launch) == class_key(launch(ptr("P", 0x1000), i32("N", 7)))


def test_unaligned_and_unsaid_alignment_count_as_unaligned() -> None:
    for said in ("*bf16 unaligned", "*bf16", "*bf16 align16=false"):
        (miss,) = read_log(["no captured Triton variant of k for this launch:", f"  P: {said}"]).misses
        assert miss.launch.args[0].number % 16


def test_a_dump_that_cannot_be_read_is_said() -> None:
    lines = ["no captured Triton variant of k for this launch:", "  arg P: a tensor", "  arg N: i32 = 7"]
    events = read_log(lines)
    assert events.misses == ()
    assert len(events.unread) == 1
    assert events.unread[0].startswith("line 1: ")


MISS = "no captured Triton variant of k for this launch:"
UNREADABLE = (
    "arg N: i32 = 7.5", "arg N: i32 = 99999999999", f"arg N: i32 = {'1' * 5000}", "arg N: fp32 bits 0x1ffffffff",
    "arg N: u1 = 10", "arg P: *bf16 at 0x1ffffffffffffffff", f"arg N: {'9' * 5000}", "N: i32 seven", "option args: 4",
    "option fn: other", "option num_warps: many", "const B: f32 one", "const B: bool maybe",
    f"const B: int {'1' * 5000}",
    "const B: int 1e5",
)  # fmt: skip


@pytest.mark.parametrize("line", UNREADABLE)
def test_what_is_not_understood_as_a_whole_is_never_guessed(line: str) -> None:
    events = read_log([MISS, f"  {line}", "  arg M: i32 = 7", "12:00 INFO read from source: disk"])
    assert (events.misses, len(events.unread)) == ((), 1)


def test_a_dump_that_no_kernel_can_have_is_not_kept() -> None:
    for what, value in (("arg", "i32 = 7"), ("const", "int 7")):
        reader = Reader(re.compile(FALLBACK), re.compile(MISSING))
        for line in (MISS, *(f"  {what} N{n}: {value}" for n in range(3 * MOST_ARGS))):
            reader.take(line)
        assert len(str(reader)) < 300 * MOST_ARGS
        assert (reader.events().misses, len(reader.events().unread)) == ((), 1)


def test_a_log_and_launches_without_end_are_an_error_and_not_all_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_EVENTS", 50)
    monkeypatch.setattr(classes, "MOST_CLASSES", 50)
    with pytest.raises(FoldproofError, match="line 51: holds more than 50 different"):
        read_log(fallback_line("k", f"hash{n}", ("N",)) for n in range(60))
    with pytest.raises(InvalidLaunch, match="line 50: holds more than 50 launch classes"):
        grouped(Counted(Launch(f"k{n}", ()), 1, f"line {n}") for n in range(60))


def test_long_lines_take_no_longer_than_their_length() -> None:
    fill = " " * (1 << 18)
    started = monotonic()
    for line in (
        f"arg N: i32{fill}x",
        f"arg N:{fill}",
        f"arg N: i32 ={fill}7{fill}x",
        f"{fill}N",
        f"  source: x{fill}y",
    ):
        read_log([MISS, line, f"{fill}{line}"])
    assert monotonic() - started < 5  # a pattern that backtracks takes minutes


def test_fallbacks_become_the_launches_that_fall_back() -> None:
    for ones in (("N",), ()):
        found = fallback_launch(CAPTURE, Fallback("k", "read", ones, 3, 1, 1))
        assert found is not None
        outcome = decide(CAPTURE, found, THREE_PASS)
        if ones:
            assert isinstance(outcome, Selection)
            assert (outcome.variant.hash, outcome.ones) == ("read", ones)
    assert fallback_launch(CAPTURE, Fallback("k", "gone", (), 1, 1, 1)) is None


def test_the_work_list_serves_every_launch_of_the_log() -> None:
    lines = [fallback_line("k", "read", ("N",)), *miss_text(launch(ptr("P", 8), i32("N", 7), i32("R", 7))).splitlines()]
    events = read_log(lines)
    launches = list(launches_of(events, CAPTURE))
    found = coverage(CAPTURE, launches, THREE_PASS, strict=True)
    assert found.ends["fallback"] == found.ends["missing"] == 1
    assert len(found.needs["needs"]) == 2
    assert list(launches_of(events, None)) == launches[:1]


def test_patterns_are_the_users_own() -> None:
    events = read_log(
        ["FALLBACK[k/ab]", "MISS(k)", "  P: *i32"], r"FALLBACK\[(?P<fn>\w+)/(?P<hash>\w+)\]", r"MISS\((?P<fn>\w+)\)"
    )
    assert (events.fallbacks[0].hash, events.misses[0].launch.fn) == ("ab", "k")
    for bad in ("(", "no group"):
        with pytest.raises(FoldproofError, match="--fallback"):
            read_log([], bad)


@pytest.mark.parametrize(
    ("content", "why", "line"),
    [
        (b"fine\nab\0c\n", "a NUL at byte 2 of the line", 2),
        ("a log\n".encode("utf-16-le"), "a NUL at byte 1", 1),
        (b"\x01\x02\x03\x04" * 16, "64 control characters in 64 bytes", 1),
    ],
)
def test_what_is_no_text_is_refused_with_its_line(tmp_path: Path, content: bytes, why: str, line: int) -> None:
    file = tmp_path / "log"
    file.write_bytes(content)
    with pytest.raises(FoldproofError, match=why) as problem:
        list(lines_of(file))
    assert problem.value.where == f"{file}: line {line}"
    assert "tr -d '\\000'" in problem.value.fix


def test_colours_progress_bars_and_other_encodings_are_text(tmp_path: Path) -> None:
    file = tmp_path / "log"
    lines = ["\x1b[31mred\x1b[0m " * 20, "10%\r20%\b\b" * 20, "\x01\x02"]
    file.write_bytes("\n".join(lines).encode() + (b"\n" + bytes(range(0xC0, 0x100))) * 9)
    assert len(list(lines_of(file))) == 12


def test_a_log_that_grows_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("one\n")
    lines = lines_of(file, 5)
    assert next(lines) == "one\n"
    with file.open("a") as stream:
        stream.write("two\n")
    assert next(lines) == "two\n"
    assert list(lines_of(file)) == ["one\n", "two\n"]
    with pytest.raises(FoldproofError, match="cannot be read"):
        list(lines_of(tmp_path / "absent"))
