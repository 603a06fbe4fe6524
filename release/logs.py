"""An engine's log read back: the lines of fallbacks and of missing variants become launches with counts.

The default patterns are those of the public project, which are also what `impl.select` writes. A missing variant
dumps its launch, a line an argument; what such a line may look like is said in docs/reference/release.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from foldproof.impl.capture import Capture
from foldproof.impl.errors import FoldproofError
from foldproof.impl.launch import Arg, Kind, Launch, launch_from
from foldproof.release.classes import class_key
from foldproof.release.dumps import arg_json, const_json, option_json, says_kind
from foldproof.release.launch_shape import with_args
from foldproof.release.launches import Counted
from foldproof.release.shapes import Family, own_class

FALLBACK = (
    r"aot: (?P<fn>\S+) runs variant (?P<hash>[^\s,]+), its 1 read at runtime"
    r"(?: \([^)]*\))?(?:: (?P<ones>[\w$.]+(?:, [\w$.]+)*))?"
)
MISSING = r"no captured Triton variant of (?P<fn>\S+) for this launch:"
MOST_ARGS = 1024
"""Lines of one dump that are kept; more than a kernel can have, so a longer dump cannot be read."""
MOST_EVENTS = 100_000
"""Different fallbacks, launch classes that miss, and unread dumps that are kept; an engine has some hundreds."""
MOST_KEPT = 128 << 20
"""Characters of lines that are kept of them."""
OPTIONS = ("num_warps", "num_stages", "arch", "enable_fp_fusion")
_ITEM = re.compile(r"(?:^|\s)(?P<what>arg|const|option) (?P<name>\S+?)\s*[:=]\s*(?P<value>\S.*)$")
_BARE = re.compile(r"^\s+(?P<name>[A-Za-z_$][\w$]*)\s*[:=]\s*(?P<value>\S.*)$")
_SOURCE = re.compile(r"(?:^\s+|\s{2})source: (?P<value>\S+)$")


class Fallback(msgspec.Struct, frozen=True):
    """How often one variant read its 1s at run time: the function, the hash, the args where the line names them."""

    fn: str
    hash: str
    ones: tuple[str, ...]
    count: int
    first_line: int
    last_line: int


class Missed(msgspec.Struct, frozen=True):
    """How often one launch class found no variant, and where it was first and last seen."""

    launch: Launch
    count: int
    first_line: int
    last_line: int


class LogEvents(msgspec.Struct, frozen=True):
    """What a log holds. `unread` are dumps of a miss that name no launch that could be read, by their first line."""

    lines: int
    fallbacks: tuple[Fallback, ...]
    misses: tuple[Missed, ...]
    unread: tuple[str, ...]


@dataclass(slots=True)
class Reader:
    """Takes a log a line at a time; `events` is what it holds so far."""

    fallback: re.Pattern[str]
    missing: re.Pattern[str]
    lines: int = 0
    _fallbacks: dict[tuple[str, str, tuple[str, ...]], list[int]] = field(default_factory=dict)
    _misses: dict[tuple[object, ...], tuple[Launch, list[int]]] = field(default_factory=dict)
    _unread: list[str] = field(default_factory=list)
    _open: dict[str, Any] | None = None
    _open_at: int = 0
    _kept: int = 0
    _dumped: int = 0

    def take(self, line: str) -> None:
        """The next line. Raises `FoldproofError` for a log of more different events than fit a GB."""
        self.lines += 1
        if self._open is not None:
            if self._continues(line.rstrip()):
                return
            self._close()
        if match := self.fallback.search(line):
            named = match.groupdict()
            ones = tuple((named.get("ones") or "").split(", ")) if named.get("ones") else ()
            seen = self._fallbacks.setdefault((named["fn"], named.get("hash") or "", ones), [0, self.lines, 0])
            self._kept += 0 if seen[0] else len(line)
            seen[0], seen[2] = seen[0] + 1, self.lines
            self._fits()
        elif match := self.missing.search(line):
            self._open, self._open_at = {"fn": match["fn"], "args": [], "consts": {}}, self.lines

    def _fits(self) -> None:
        """Raises `FoldproofError` where more is held than fits a GB."""
        held = len(self._fallbacks) + len(self._misses) + len(self._unread)
        if self._kept + self._dumped > MOST_KEPT or held > MOST_EVENTS:
            why = f"holds more than {MOST_EVENTS} different fallbacks and misses, or {MOST_KEPT >> 20} MiB of them"
            raise FoldproofError(why, where=f"the log, line {self.lines}", fix="cut the log, or check the patterns")

    def _continues(self, line: str) -> bool:
        """Whether the line belongs to the dump that is open; if so, what it says is kept."""
        assert self._open is not None
        if match := _SOURCE.search(line):
            self._open["source"] = match["value"]
            return True
        match = _ITEM.search(line) or _BARE.match(line)
        if match is None:
            return False
        self._dumped += len(line)
        self._fits()
        what, name, value = match.groupdict().get("what") or "arg", match["name"], match["value"]
        # An indented line of something else ends the dump. One that says "arg", or a kind, belongs to it even where it
        # is not understood: the launch is then one that cannot be read, and not one of fewer args.
        if "what" not in match.groupdict() and arg_json(value)["kind"] not in tuple(Kind) and not says_kind(value):
            return False
        kept = len(self._open["args"]) + len(self._open["consts"])
        if what == "option" and name in OPTIONS:
            self._open[name] = option_json(value)
        elif kept < MOST_ARGS and what == "const":
            self._open["consts"][name] = const_json(value)
        elif kept <= MOST_ARGS:
            understood = kept < MOST_ARGS and what == "arg"
            self._open["args"].append(
                {"name": name, **(arg_json(value) if understood else {"kind": f"a line of {what}"})}
            )
        return True

    def _close(self) -> None:
        value, self._open = self._open, None
        try:
            launch = launch_from(value)
        except FoldproofError as problem:
            self._unread.append(f"line {self._open_at}: {problem}")
            self._dumped = 0
            self._fits()
            return
        _, seen = self._misses.setdefault(class_key(launch), (launch, [0, self._open_at, 0]))
        self._kept, self._dumped = self._kept + (0 if seen[0] else self._dumped), 0
        seen[0], seen[2] = seen[0] + 1, self._open_at
        self._fits()

    def events(self) -> LogEvents:
        """What was read so far, the most frequent first. A dump that is still open is closed."""
        if self._open is not None:
            self._close()
        fallbacks = [Fallback(*key, *seen) for key, seen in self._fallbacks.items()]
        misses = [Missed(launch, *seen) for launch, seen in self._misses.values()]
        return LogEvents(
            self.lines,
            tuple(sorted(fallbacks, key=lambda f: -f.count)),
            tuple(sorted(misses, key=lambda m: -m.count)),
            tuple(self._unread),
        )


def pattern(text: str, needs: Sequence[str], option: str) -> re.Pattern[str]:
    """A pattern of the user's. Raises `FoldproofError` where it is none, or lacks a group that is needed."""
    try:
        found = re.compile(text)
    except re.error as problem:
        raise FoldproofError(
            f"is no pattern: {problem}", where=option, fix="write a Python regular expression"
        ) from None
    for name in needs:
        if name not in found.groupindex:
            raise FoldproofError(f"has no group (?P<{name}>...)", where=option, fix="see docs/reference/release.md")
    return found


def launches_of(events: LogEvents, capture: Capture | None) -> Iterator[Counted]:
    """The launches behind the events. A fallback line names no values: with the capture, the launch is the one for
    which the variant was compiled, with 1 for the args that were read; without it, fallbacks give none.
    """
    for miss in events.misses:
        yield Counted(miss.launch, miss.count, f"line {miss.first_line}")
    for fallback in events.fallbacks if capture is not None else ():
        assert capture is not None
        launch = fallback_launch(capture, fallback)
        if launch is not None:
            yield Counted(launch, fallback.count, f"line {fallback.first_line}")


def fallback_launch(capture: Capture, fallback: Fallback) -> Launch | None:
    """The launch behind a fallback line, None for a variant that the capture does not have.

    Where the line names no arg, each that the variant reads and another variant folds counts as 1.
    """
    family = Family.of(fallback.fn, capture.kernels)
    variant = next((v for v in family.variants if v.hash == fallback.hash), None)
    if variant is None:
        return None
    folded = {n for v in family.variants for n, c in v.consts.items() if (c.kind, c.value) == ("int", 1)}
    open_ = [p.name for p in variant.params if p.type == "i32" and not (p.nospec or p.annotated or p.div16)]
    ones = set(fallback.ones or [n for n in open_ if n in folded] or open_)
    shape = family.own_shape(variant)
    args = [
        Arg(arg.name, Kind.I32, 1) if arg.name in ones else own_class(variant, classes)
        for arg, classes in zip(shape.base.args, shape.classes, strict=True)
    ]
    return with_args(shape.base, args)


def read_log(lines: Iterable[str], fallback: str = FALLBACK, missing: str = MISSING) -> LogEvents:
    """The events of a log. Raises `FoldproofError` for a pattern without its groups."""
    reader = Reader(pattern(fallback, ("fn",), "--fallback"), pattern(missing, ("fn",), "--missing"))
    for line in lines:
        reader.take(line)
    return reader.events()
